"""Scores: the Charlson and Elixhauser comorbidity scores of a record, from its full codes.

The conditions and their codes are those of Quan et al. (Medical Care 43:1130-1139, 2005), for
ICD-9-CM (their enhanced lists) and for ICD-10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from comorb.errors import RecordsError
from comorb.records.codes.tables import expand_span, read_table

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from comorb.model.arrays import Ints

# The table of a score and the column of its points.
SCORES = {
    "charlson": ("charlson.csv", "points"),
    "charlson2011": ("charlson.csv", "points2011"),
    "elixhauser": ("elixhauser.csv", "points"),
}
_LIST_OF_SYSTEM = {"icd9cm": "icd9cm", "icd10cm": "icd10", "icd10": "icd10"}


@dataclass(frozen=True)
class Condition:
    """A condition of a score: its points, and the condition that overrides it."""

    title: str
    points: int
    unless: str


@dataclass(frozen=True)
class Score:
    """A score: its conditions, and for 'icd9cm' and 'icd10' those of codes with each prefix."""

    key: str
    conditions: Mapping[str, Condition]
    prefixes: Mapping[str, Mapping[str, tuple[str, ...]]]

    def conditions_of(self, code: str, system: str) -> tuple[str, ...]:
        """Return the conditions of a canonical code, by the list of its coding system."""
        table = self.prefixes[_LIST_OF_SYSTEM[system]]
        heads = (code[:length] for length in range(3, len(code) + 1))
        return tuple(dict.fromkeys(one for head in heads for one in table.get(head, ())))

    def is_coarse(self, code: str, system: str) -> bool:
        """Return whether a code has no condition, but some of its subdivisions have one."""
        table = self.prefixes[_LIST_OF_SYSTEM[system]]
        return not self.conditions_of(code, system) and any(one.startswith(code) for one in table)

    def points(self, present: csc_array[Any], order: Iterable[str]) -> Ints:
        """Return the score of each row, whose columns are conditions in this order."""
        import numpy as np

        column = {name: place for place, name in enumerate(order)}

        def rows(name: str) -> Ints:
            start, end = present.indptr[column[name] : column[name] + 2]
            return np.asarray(present.indices[start:end])

        total: Ints = np.zeros(present.shape[0], dtype=np.int64)
        for name, condition in self.conditions.items():
            counted = rows(name)
            if condition.unless:
                counted = np.setdiff1d(counted, rows(condition.unless))
            total[counted] += condition.points
        return total


def is_scored(system: str) -> bool:
    """Return whether the scores have a list for a coding system."""
    return system in _LIST_OF_SYSTEM


@cache
def find_score(key: str) -> Score:
    """Return a score by its key; another is refused."""
    if key not in SCORES:
        raise RecordsError("codes.score", scores=SCORES, key=key)
    file, points = SCORES[key]
    rows = read_table(file)
    conditions = {
        row["condition"]: Condition(row["title"], int(row[points]), row["unless"]) for row in rows
    }
    prefixes: dict[str, dict[str, tuple[str, ...]]] = {"icd9cm": {}, "icd10": {}}
    for name, table in prefixes.items():
        for row in rows:
            for text in row[name].split():
                for head in expand_span(text) or [text]:
                    table[head] = (*table.get(head, ()), row["condition"])
    return Score(key, conditions, prefixes)
