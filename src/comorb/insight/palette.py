"""The colours, read from the one table that the browser reads too."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def palette() -> dict[str, Any]:
    """Return the colours: a list for clusters, and one each for overall, ink and the rest."""
    table = resources.files("comorb.insight").joinpath("palette.json")
    loaded: dict[str, Any] = json.loads(table.read_text(encoding="utf-8"))
    return loaded


def colours(k: int) -> list[str]:
    """Return a colour for each of k clusters, told apart by the colour-blind as far as may be.

    The table's colours first; each further round of them is lighter, then darker, and every
    chart labels its clusters by number as well.

    >>> colours(2)
    ['#0072b2', '#d55e00']
    """
    base = palette()["clusters"]
    return [_shade(base[j % len(base)], j // len(base)) for j in range(k)]


def _shade(colour: str, turn: int) -> str:
    if turn == 0:
        return colour
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [part + (255 - part) * 0.5 if turn % 2 else part * 0.55 for part in parts]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
