"""The colours, read from the one table that the browser reads too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def palette() -> dict[str, Any]:
    """Return the colours: a list for clusters, and one each for overall, ink and the rest."""
    table = resources.files("comorb.insight.views").joinpath("page", "palette.json")
    loaded: dict[str, Any] = json.loads(table.read_text(encoding="utf-8"))
    return loaded


def colours(numbers: Sequence[int]) -> list[str]:
    """Return the colour of each cluster, told apart by the colour-blind as far as may be.

    It follows from the number, which every chart shows as well. Eleven hues; each further round
    of them is lighter, then darker.

    >>> colours([1, 2])
    ['#0072b2', '#d55e00']
    """
    table = palette()["clusters"]
    return [table[(number - 1) % len(table)] for number in numbers]
