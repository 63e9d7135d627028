"""The colours, read from the one table that the browser reads too."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def palette() -> dict[str, Any]:
    """Return the colours: a list for clusters, and one each for overall, ink and the rest."""
    table = resources.files("comorb.insight").joinpath("page", "palette.json")
    loaded: dict[str, Any] = json.loads(table.read_text(encoding="utf-8"))
    return loaded


def colours(k: int) -> list[str]:
    """Return a colour for each of k clusters, told apart by the colour-blind as far as may be.

    Eleven hues; each further round of them is lighter, then darker. Every chart labels its
    clusters by number as well.

    >>> colours(2)
    ['#0072b2', '#d55e00']
    """
    table = palette()["clusters"]
    return [table[j % len(table)] for j in range(k)]
