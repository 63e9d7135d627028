"""Coding: what the codes of records become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from comorb.errors import RecordsError
from comorb.records.codes.own_map import CodeMap
from comorb.records.codes.scores import score
from comorb.records.codes.system import LEVELS


@dataclass(frozen=True)
class Coding:
    """What the codes of records become.

    Attributes
    ----------
    levels : tuple of str
        The levels at which codes are features; a map takes their place.
    map : CodeMap, optional
        The groups that are the features.
    chronic : bool
        Whether codes of chronic conditions alone become features.
    scores : tuple of str
        The scores of each record that become covariates.
    """

    levels: tuple[str, ...] = ("category",)
    map: CodeMap | None = None
    chronic: bool = False
    scores: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        level: str | Iterable[str],
        map: CodeMap | None = None,
        chronic: bool = False,
        scores: str | Iterable[str] = (),
    ) -> Coding:
        """Return the coding of one or several levels and scores; unknown ones are refused."""
        levels = (level,) if isinstance(level, str) else tuple(level)
        keys = (scores,) if isinstance(scores, str) else tuple(scores)
        for one in levels:
            if one not in LEVELS:
                raise RecordsError(f"Expected a level out of {', '.join(LEVELS)}; got {one!r}.")
        for key in keys:
            score(key)
        return cls(levels, map, chronic, keys)

    def beside_scores(self, name: str) -> str:
        """Return what a column of the source is called beside the scores."""
        return f"{name} (column)" if name in self.scores else name

    @property
    def level(self) -> str:
        """What a cohort calls the level of its features."""
        return "+".join(self.levels) if self.map is None else "map"
