"""Vocabulary: the distinct codes of a source, as written, become the features of a cohort."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Indices, Ints, Mask
from comorb.records.codes.code_map import CodeMap
from comorb.records.codes.recognition import Raw, assign_systems, count_undecided
from comorb.records.codes.scores import find_score, is_scored
from comorb.records.codes.system import LEVELS, CodingSystem, written_as_numbers
from comorb.records.codes.systems import coding_system


@dataclass(frozen=True)
class Coding:
    """What the codes of records become: features at ``levels``, or the groups of a ``map``.

    With ``chronic``, only codes of chronic conditions do. ``scores`` become covariates.
    """

    levels: tuple[str, ...] = ("category",)
    map: CodeMap | None = None
    chronic: bool = False
    scores: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for level in self.levels:
            if level not in LEVELS:
                raise RecordsError("codes.level", levels=LEVELS, level=level)
        for key in self.scores:
            find_score(key)

    @property
    def level(self) -> str:
        """What a cohort calls the level of its features."""
        return "+".join(self.levels) if self.map is None else "map"


NOT_CHRONIC = Message("ledger.not_chronic")
NOT_DETERMINED = Message("ledger.undetermined")
NOT_MAPPED = Message("ledger.not_in_map")


@dataclass(frozen=True)
class Features:
    """What the raw codes of a column become: their features, one a level, none for unusable ones.

    The other fields are about raw codes. ``mixed`` ones have no single group, mostly because their
    subdivisions differ, and become their category; so do ``unshared`` ones, which have no group at
    the 'common' level. ``left_out`` ones are well formed, by the reason. For ``covered`` ones a
    line of the map has groups that a nearer line hasn't. ``codes`` are their canonical forms.
    ``names`` are those of features that aren't codes of the system, which all systems share.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]
    unshared: frozenset[str]
    left_out: dict[str, frozenset[str]]
    covered: frozenset[str]
    names: dict[str, str]
    codes: dict[str, str]


def featurise(
    raw_codes: Iterable[str],
    system: str,
    levels: Sequence[str],
    *,
    code_map: CodeMap | None = None,
    chronic: bool = False,
) -> Features:
    """Map the distinct raw codes of a column to features at one or several levels.

    The groups of ``code_map`` take the place of the levels; ``chronic`` leaves out the codes that
    aren't of chronic conditions.

    >>> featurise(["428.0", "?"], "icd9cm", ["category", "chapter"]).of
    {'428.0': ('428', '390-459'), '?': ()}
    """
    raws = list(dict.fromkeys(raw_codes))
    coding = coding_system(system)
    normal = coding.normalise_all(raws, written_as_numbers(raws))
    codes = {raw: code for raw, (code, _) in normal.items() if code}

    def in_state(state: str) -> frozenset[str]:
        return frozenset(raw for raw, code in normal.items() if code.state == state)

    left_out = _find_not_chronic(codes, coding) if chronic else {}
    kept = set(codes).difference(*left_out.values())
    malformed = in_state("malformed")
    if code_map is None:
        rolled = {raw: _roll_up(code, coding, levels) for raw, code in codes.items()}
        of = {raw: tuple(rolled[raw]) if raw in kept else () for raw in raws}
        names = {code: name for some in rolled.values() for code, name in some.items() if name}
        covered: frozenset[str] = frozenset()
    else:
        index = code_map.index(coding)
        of = {raw: index.groups(codes[raw]) if raw in kept else () for raw in raws}
        of |= {raw: groups for raw in malformed if (groups := index.exact(raw))}
        malformed -= {raw for raw, groups in of.items() if groups}
        left_out[NOT_MAPPED] = frozenset(raw for raw in kept if not of[raw])
        names = code_map.titles
        covered = frozenset(raw for raw in kept if index.is_covered(codes[raw]))
    by_level = {raw: code for raw, code in codes.items() if raw in kept and code_map is None}
    by_group = by_level if "group" in levels and coding.fit is not None else {}
    by_meaning = by_level if "common" in levels else {}
    return Features(
        of,
        in_state("repaired"),
        malformed,
        in_state("missing"),
        frozenset(raw for raw, code in by_group.items() if coding.group_of(code) is None),
        frozenset(raw for raw, code in by_meaning.items() if not coding.shared(code)),
        left_out,
        covered,
        names,
        codes,
    )


def _roll_up(code: str, coding: CodingSystem, levels: Sequence[str]) -> dict[str, str]:
    """Return the features of a code, each with its name where it isn't a code of the system."""
    features: dict[str, str] = {}
    for level in levels:
        shared = coding.shared(code) if level == "common" else ()
        if level == "common" and coding.common and not shared:
            category = coding.roll_up(code, "category")
            features.setdefault(f"{coding.key}:{category}", coding.name(category))
        elif shared:
            features |= {group: coding.name(group) for group in shared}
        else:
            features.setdefault(coding.roll_up(code, level), "")
    return features


def _find_not_chronic(codes: Mapping[str, str], coding: CodingSystem) -> dict[str, frozenset[str]]:
    """Return the raw codes that aren't of chronic conditions, by the reason."""
    if coding.chronic is None:
        return {}
    chronic = {raw: coding.chronic(code) for raw, code in codes.items()}
    return {
        reason: frozenset(raw for raw, own in chronic.items() if own is value)
        for reason, value in ((NOT_CHRONIC, False), (NOT_DETERMINED, None))
    }


Mentions = Callable[[Callable[[str], Collection[str]]], int]


def _features_by_system(systems: Mapping[Raw, str], coding: Coding) -> dict[str, Features]:
    """Return the features of each system's codes; refuse a coding that they can't have."""
    by_system: dict[str, list[str]] = {}
    for raw, key in systems.items():
        by_system.setdefault(key, []).append(raw[1])
    fits = {
        key: featurise(codes, key, coding.levels, code_map=coding.map, chronic=coding.chronic)
        for key, codes in by_system.items()
    }
    shown = " and ".join(sorted(fits))
    unknown = bool(fits) and not any(coding_system(key).kind for key in fits)
    if coding.chronic and unknown:
        raise RecordsError("codes.chronic", shown=shown)
    if coding.scores and unknown:
        raise RecordsError("codes.score_system", score=coding.scores[0], shown=shown)
    if coding.map and fits and not any(some for one in fits.values() for some in one.of.values()):
        raise RecordsError("codes.not_in_map", map=coding.map.name, shown=shown)
    return fits


def ledger_notes(
    counts: Mapping[Raw, int],
    systems: Mapping[Raw, str],
    fits: Mapping[str, Features],
    coding: Coding,
) -> tuple[str, ...]:
    """Return notes on repaired, coarse, shared, mapped and scored codes."""
    notes: list[str] = []

    def mentions(chosen: Callable[[str], Collection[str]]) -> int:
        texts = {key: chosen(key) for key in fits}
        return sum(count for raw, count in counts.items() if raw[1] in texts[systems[raw]])

    def add_note(note: str, chosen: Callable[[str], Collection[str]], **values: Any) -> None:
        if n := mentions(chosen):
            notes.append(Message(note, n=n, **values))

    def coarse(key: str, score: str) -> list[str]:
        codes = fits[key].codes.items() if is_scored(key) else ()
        return [raw for raw, code in codes if find_score(score).is_coarse(code, key)]

    add_note("note.repaired", lambda key: fits[key].repaired)
    add_note("note.zeros", lambda key: {raw for raw in fits[key].missing if "0000" in raw})
    add_note("note.coarse", lambda key: fits[key].mixed)
    if coding.chronic:
        add_note("note.chronic_unknown", lambda key: fits[key].left_out.get(NOT_DETERMINED, ()))
        add_note(
            "note.no_indicator", lambda key: () if coding_system(key).chronic else fits[key].codes
        )
    if coding.map is not None:
        notes += _map_notes(mentions, fits, coding.map)
    elif "common" in coding.levels:
        total = mentions(lambda key: fits[key].codes)
        own = mentions(lambda key: fits[key].unshared)
        percent = _percent(total - own, total)
        notes.append(Message("note.shared_groups", percent=percent, n=total, own=own))
    for score in coding.scores:
        add_note("note.score_coarse", partial(coarse, score=score), score=score)
    if coding.scores:
        add_note("note.no_score", lambda key: () if is_scored(key) else fits[key].codes)
    return tuple(notes)


def _map_notes(mentions: Mentions, fits: Mapping[str, Features], code_map: CodeMap) -> list[str]:
    left = mentions(lambda key: fits[key].left_out.get(NOT_MAPPED, ()))
    total = left + mentions(lambda key: [raw for raw, some in fits[key].of.items() if some])
    file = {"map": code_map.name, "digest": code_map.digest}
    notes: list[str] = [
        *code_map.notes,
        Message("note.in_map", percent=_percent(total - left, total), n=total, left=left, **file),
    ]
    if covered := mentions(lambda key: fits[key].covered):
        notes.append(Message("note.nearest_line", n=covered))
    present = [key for key in fits if coding_system(key).fit]
    open_lines = (line.code for line in code_map.lines if not line.system)
    n_systems = (
        sum(bool(coding_system(key).normalise(code).code) for key in present) for code in open_lines
    )
    if several := sum(n > 1 for n in n_systems):
        notes.append(Message("note.lines_of_several", n=several, systems=sorted(present)))
    return notes


def _percent(part: int, total: int) -> str:
    return f"{100 * part / max(1, total):.1f}%"


__all__ = ["Raw", "Vocabulary", "build_vocabulary"]


@dataclass(frozen=True)
class Vocabulary:
    """Which features each raw code becomes, and which raw codes are lost.

    ``places`` has a row for each raw code: the numbers of its features, then those of the
    conditions of scores, which are numbered after the features; -1 for none. ``malformed`` and
    ``missing`` mark raw codes without a feature, ``left_out`` those that were left out on purpose,
    by the reason. ``undecided`` is how many mentions may be of either of two editions.
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
        masks = {Message("ledger.malformed"): self.malformed, **self.left_out}
        return {reason: int(counts[mask].sum()) for reason, mask in masks.items()}

    def split(
        self, matrix: csr_array[Any], covariates: pa.Table
    ) -> tuple[csr_array[Any], pa.Table]:
        """Return the features of a matrix, and the covariates with the scores of its rows."""
        if not self.conditions:
            return matrix, covariates
        features = matrix[:, : len(self.codes)]
        present = matrix[:, len(self.codes) :].tocsc()
        keys = dict.fromkeys(key for key, _ in self.conditions)
        columns = {
            f"{name} (column)" if name in keys else name: covariates[name]
            for name in covariates.column_names
        }
        for key in keys:
            own = [place for place, (one, _) in enumerate(self.conditions) if one == key]
            order = [self.conditions[place][1] for place in own]
            columns[key] = pa.array(find_score(key).points(present[:, own], order))
        features.sort_indices()
        return features, pa.table(columns)


def build_vocabulary(
    counts: Mapping[Raw, int], system: str | None, coding: Coding, titles: Mapping[str, str]
) -> Vocabulary:
    """Turn raw codes, each with its stated edition and its count, into features.

    A code with a count of 0 has no feature. ``system`` is that of the codes without an edition,
    recognised when None; ``titles`` are the source's names for codes that have none.
    """
    mentioned = {raw: count for raw, count in counts.items() if count}
    systems, notes = assign_systems(mentioned, system)
    fits = _features_by_system(systems, coding)
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

    conditions = tuple((key, one) for key in coding.scores for one in find_score(key).conditions)
    number: dict[Any, int] = {name: place for place, name in enumerate((*codes, *conditions))}

    def numbers(raw: Raw) -> tuple[list[int], list[int]]:
        key, text = systems[raw], raw[1]
        features = [number[feature(code, key)] for code in fits[key].of[text]]
        code = fits[key].codes.get(text, "") if is_scored(key) else ""
        scores = coding.scores if code else ()
        pairs = ((one, name) for one in scores for name in find_score(one).conditions_of(code, key))
        return features, [number[pair] for pair in pairs]

    def marked(which: Callable[[Features], Container[str]]) -> Mask:
        texts = {key: which(features) for key, features in fits.items()}
        return np.array([raw in systems and raw[1] in texts[systems[raw]] for raw in counts], bool)

    def left_out(reason: str) -> Mask:
        return marked(lambda features: features.left_out.get(reason, ()))

    rows = [numbers(raw) if raw in systems else ([], []) for raw in counts]
    reasons = dict.fromkeys(reason for features in fits.values() for reason in features.left_out)
    return Vocabulary(
        codes,
        tuple(name(code) for code in codes),
        "+".join(keys) or "opaque",
        _number_table(rows, len(coding.levels)),
        marked(lambda features: features.malformed),
        marked(lambda features: features.missing),
        (*notes, *ledger_notes(mentioned, systems, fits, coding)),
        {reason: left_out(reason) for reason in reasons},
        conditions,
        count_undecided(mentioned, systems),
    )


def _number_table(rows: Sequence[tuple[list[int], list[int]]], least: int) -> Indices:
    """Return the numbers of each row, those of the features and those of the conditions."""
    width = max([1, least, *(len(features) for features, _ in rows)])
    more = max((len(conditions) for _, conditions in rows), default=0)
    places = np.full((len(rows), width + more), -1, dtype=np.int32)
    for row, (features, conditions) in enumerate(rows):
        places[row, : len(features)] = features
        places[row, width : width + len(conditions)] = conditions
    return places
