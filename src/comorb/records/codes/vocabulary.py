"""Vocabulary: the distinct codes of a source, as written, become the features of a cohort."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from comorb.model.arrays import Indices, Ints, Mask
from comorb.records.codes.coding import Coding
from comorb.records.codes.coverage import check_usable, ledger_notes
from comorb.records.codes.editions import Raw, settle_editions, undecided
from comorb.records.codes.features import Features, featurise
from comorb.records.codes.scores import is_scored, score
from comorb.records.codes.systems import coding_system

__all__ = ["Raw", "Vocabulary", "build_vocabulary"]


@dataclass(frozen=True)
class Vocabulary:
    """Which features each raw code becomes, and how many mentions were repaired or lost.

    ``places`` has a row for each raw code: the numbers of its features, one a level or one a
    group of a map, then those of the conditions of scores, which are numbered after the features;
    -1 for none. ``malformed`` and ``missing`` mark raw codes that have none, ``left_out`` those
    that were left out on purpose, by the reason; ``notes`` are for the ledger. So many mentions as
    ``undecided`` may be of either of two editions.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    places: Indices
    malformed: Mask
    missing: Mask
    notes: tuple[str, ...]
    left_out: Mapping[str, Mask] = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()
    undecided: int = 0

    @property
    def width(self) -> int:
        """The number of features and conditions."""
        return len(self.codes) + len(self.conditions)

    def at(self, rows: Sequence[int]) -> Vocabulary:
        """Return the vocabulary of other raw codes: these of its own, or missing ones at -1."""

        def picked(values: NDArray[Any], missing: Any) -> NDArray[Any]:
            last = np.full((1, *values.shape[1:]), missing, dtype=values.dtype)
            return np.concatenate([values, last])[np.asarray(rows, dtype=np.int64)]

        return replace(
            self,
            places=picked(self.places, -1),
            malformed=picked(self.malformed, False),
            missing=picked(self.missing, True),
            left_out={reason: picked(mask, False) for reason, mask in self.left_out.items()},
        )

    def lost(self, counts: Ints) -> dict[str, int]:
        """Return how many mentions have no feature, by the reason."""
        masks = {"malformed": self.malformed, **self.left_out}
        return {reason: int(counts[mask].sum()) for reason, mask in masks.items()}

    def split(
        self, matrix: csr_array[Any], covariates: pa.Table
    ) -> tuple[csr_array[Any], pa.Table]:
        """Return the features of a matrix, and the covariates with the scores of its rows."""
        if not self.conditions:
            return matrix, covariates
        features = matrix[:, : len(self.codes)]
        present = matrix[:, len(self.codes) :].tocsc()
        keys = tuple(dict.fromkeys(key for key, _ in self.conditions))
        named = Coding(scores=keys).beside_scores
        columns = {named(name): covariates[name] for name in covariates.column_names}
        for key in keys:
            own = [place for place, (one, _) in enumerate(self.conditions) if one == key]
            order = [self.conditions[place][1] for place in own]
            columns[key] = pa.array(score(key).points(present[:, own], order))
        features.sort_indices()
        return features, pa.table(columns)


def build_vocabulary(
    counts: Mapping[Raw, int],
    system: str | None,
    coding: Coding,
    titles: Mapping[str, str],
) -> Vocabulary:
    """Turn raw codes, each with the edition it is said to be from and its count, into features.

    A code that nothing mentions has no feature. ``system`` is that of the codes without an edition,
    recognised when None; ``coding`` has the levels, each of which gives a feature, or the map, and
    the scores; ``titles`` are the source's names for codes that have none.
    """
    mentioned = {raw: count for raw, count in counts.items() if count}
    systems, notes = settle_editions(mentioned, system)
    fits = _fits(systems, coding)
    check_usable(fits, coding)
    keys = sorted(fits)

    def feature(code: str, key: str) -> str:
        return code if len(keys) == 1 or code in fits[key].names else f"{key}:{code}"

    own = [(code, key) for key in keys for several in fits[key].of.values() for code in several]
    origins = {feature(code, key): (code, key) for code, key in own}
    codes = tuple(sorted(origins))

    def name(code: str) -> str:
        plain, key = origins[code]
        known = fits[key].names.get(plain) or coding_system(key).name(plain)
        return titles.get(plain, known) if known == plain else known

    conditions = tuple((key, one) for key in coding.scores for one in score(key).conditions)
    number: dict[Any, int] = {name: place for place, name in enumerate((*codes, *conditions))}

    def numbers(raw: Raw) -> tuple[list[int], list[int]]:
        key, text = systems[raw], raw[1]
        features = [number[feature(code, key)] for code in fits[key].of[text]]
        return features, [number[pair] for pair in _conditions(text, key, fits, coding)]

    def marked(which: Callable[[Features], Container[str]]) -> Mask:
        texts = {key: which(features) for key, features in fits.items()}
        return np.array([raw in systems and raw[1] in texts[systems[raw]] for raw in counts], bool)

    reasons = dict.fromkeys(reason for features in fits.values() for reason in features.left_out)
    return Vocabulary(
        codes,
        tuple(name(code) for code in codes),
        "+".join(keys) or "opaque",
        _places(
            [numbers(raw) if raw in systems else ([], []) for raw in counts], len(coding.levels)
        ),
        marked(lambda features: features.malformed),
        marked(lambda features: features.missing),
        (*notes, *ledger_notes(mentioned, systems, fits, coding)),
        {reason: marked(partial(_left_out, reason)) for reason in reasons},
        conditions,
        undecided(mentioned, systems),
    )


def _left_out(reason: str, features: Features) -> Container[str]:
    """Return the raw codes that were left out for a reason."""
    return features.left_out.get(reason, ())


def _fits(systems: Mapping[Raw, str], coding: Coding) -> dict[str, Features]:
    """Return the features of the codes of each system."""
    by_system: dict[str, list[str]] = {}
    for raw, key in systems.items():
        by_system.setdefault(key, []).append(raw[1])
    return {
        key: featurise(codes, key, coding.levels, code_map=coding.map, chronic=coding.chronic)
        for key, codes in by_system.items()
    }


def _conditions(
    text: str, key: str, fits: Mapping[str, Features], coding: Coding
) -> list[tuple[str, str]]:
    """Return the conditions of the scores that a raw code is."""
    code = fits[key].codes.get(text) if coding.scores else None
    if code is None or not is_scored(key):
        return []
    return [(one, name) for one in coding.scores for name in score(one).conditions_of(code, key)]


def _places(rows: Sequence[tuple[list[int], list[int]]], least: int) -> Indices:
    """Return the numbers of each row, those of the features and those of the conditions."""
    width = max((len(features) for features, _ in rows), default=0)
    width = max(1, least, width)
    more = max((len(conditions) for _, conditions in rows), default=0)
    places = np.full((len(rows), width + more), -1, dtype=np.int32)
    for row, (features, conditions) in enumerate(rows):
        places[row, : len(features)] = features
        places[row, width : width + len(conditions)] = conditions
    return places
