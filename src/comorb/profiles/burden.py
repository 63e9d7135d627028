"""Burden: what the records of each cluster use: days in bed, money, visits; who dies or returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.messages import Message
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.exact_sums import GroupSums
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.noise import hash_texts
from comorb.records.layouts.names import is_additive
from comorb.records.values import yes_no
from comorb.storage import mixed

RATES = ("died", "readmitted")
MAIN_COLUMNS = {"los": "days in bed", "cost": "cost", "visits": "visits"}  # what is shown first
MAX_COLUMNS = 12  # columns that are added up, at most
NON_NEGATIVE = ("los", "visits")


@dataclass(frozen=True, eq=False)
class BurdenCells:
    """The keys of the sets that a burden counts, and the most that one record adds to a total."""

    records: Keys  # (k + 1,)
    patients: Keys  # (k + 1,), or none
    known: Keys  # (m, k + 1)
    rate_known: Keys  # (r, k + 1)
    rate_counts: Keys  # (r, k + 1)
    largest: Floats  # (m, k + 1)


@dataclass(frozen=True, eq=False)
class Burden:
    """What the records of each cluster use, and of all in the last column; NaN is suppressed."""

    records: Floats  # (k + 1,)
    share: Floats  # (k + 1,): their weighted share of all
    patients: Floats  # (k + 1,): different patients among them; empty where that isn't known
    columns: tuple[str, ...]  # what is added up, such as los and cost
    known: Floats  # (m, k + 1): how many records have a value
    mass: Floats  # (m, k + 1): their weight
    totals: Floats  # (m, k + 1): weighted
    shares: Floats  # (m, k + 1): of the total
    rates: tuple[str, ...]  # such as died
    rate_known: Floats  # (r, k + 1)
    rate_counts: Floats  # (r, k + 1): how many say yes
    rate: Floats  # (r, k + 1): weighted, like both ends of the 95% interval
    low: Floats
    high: Floats
    notes: tuple[str, ...] = ()  # what was added up or left out
    cells: BurdenCells | None = None

    @property
    def main(self) -> tuple[str, ...]:
        """Those of the columns that are shown first: days in bed, cost and visits."""
        return tuple(name for name in self.columns if name in MAIN_COLUMNS)

    @property
    def means(self) -> Floats:
        """What a record with a value uses on average, (m, k + 1): the total by its weight."""
        some = self.mass > 0
        return np.where(some, self.totals / np.where(some, self.mass, 1), np.nan)

    @property
    def visits_a_patient(self) -> Floats:
        """Visits by patients, (k + 1,); empty where no patients are known."""
        if self.patients.size:
            visits, patients = self.records, self.patients
        elif "visits" in self.columns:
            row = self.columns.index("visits")
            visits, patients = self.totals[row], self.mass[row]
        else:
            return np.empty(0)
        return np.where(patients > 0, visits / np.where(patients > 0, patients, 1), np.nan)


class PatientSets:
    """Who was seen in which cluster, each patient by a number and no more than once."""

    def __init__(self, k: int, people: Keys | None = None, clusters: Ints | None = None) -> None:
        self.k = k
        self.people = [] if people is None else [people]
        self.clusters = [] if clusters is None else [clusters]

    def __iadd__(self, other: Self) -> Self:
        self.people += other.people
        self.clusters += other.clusters
        return self

    def split(self, parts: int) -> list[PatientSets]:
        """Return parts of whom are different people, each pair of them once."""
        if not self.people:
            return [PatientSets(self.k) for _ in range(parts)]
        people, clusters = np.concatenate(self.people), np.concatenate(self.clusters)
        order = np.lexsort((clusters, people))
        people, clusters = people[order], clusters[order]
        new = np.r_[True, (np.diff(people) != 0) | (np.diff(clusters) != 0)][: people.size]
        place = np.where(new, mixed(people) % np.uint64(parts), parts)
        own = [place == part for part in range(parts)]
        return [PatientSets(self.k, people[one], clusters[one]) for one in own]

    def counted(self, secret: bytes | None) -> tuple[Floats, Keys]:
        """Return how many different patients each cluster has, and all, and their keys."""
        if not self.people:
            return np.empty(0), np.empty(0, np.uint64)
        people, clusters = np.concatenate(self.people), np.concatenate(self.clusters)
        own = people != 0
        people, clusters = people[own], clusters[own]
        counts, keys = np.zeros(self.k + 1), np.zeros(self.k + 1, np.uint64)
        salt = hash_texts(["patients"], secret)[0] if secret is not None else np.uint64(0)
        for place in range(self.k + 1):
            different = np.unique(people if place == self.k else people[clusters == place])
            counts[place] = different.size
            keys[place] = mixed(different ^ salt).sum(dtype=np.uint64)
        return counts, keys


class BurdenSums:
    """What is added up of the records, block by block; the same bits in any order of them."""

    def __init__(
        self, schema: pa.Schema, k: int, patient: str | None, wanted: Sequence[str] | None = None
    ) -> None:
        self.k, self.patient = k, patient
        free = [one for one in schema if wanted is None or one.name in wanted]
        additive = [one.name for one in free if is_number(one.type) and is_additive(one.name)]
        first = [name for name in MAIN_COLUMNS if name in additive]
        rest = [name for name in additive if name not in first]
        self.columns = (*first, *rest)[:MAX_COLUMNS]
        self.rates = tuple(name for name in RATES if name in [one.name for one in free])
        m, r, width = len(self.columns), len(self.rates), k + 1
        self.records, self.known, self.negative = np.zeros(width), np.zeros((m, width)), np.zeros(m)
        self.rate_counts, self.rate_known = np.zeros((r, width)), np.zeros((r, width))
        self.strange = np.zeros(r)  # values that are neither yes nor no
        self.mass, self.squares = GroupSums(k), GroupSums(k)
        self.totals = [(GroupSums(k), GroupSums(k)) for _ in self.columns]
        self.rate_mass = [(GroupSums(k), GroupSums(k), GroupSums(k)) for _ in self.rates]
        self.people = PatientSets(k)
        self.counted: tuple[Floats, Keys] | None = None  # the people, where that is known already
        shapes: list[tuple[int, ...]] = [(width,), (0,), (m, width), (r, width), (r, width)]
        keys: list[Any] = [np.zeros(shape, np.uint64) for shape in shapes]
        self.cells = BurdenCells(*[*keys, np.zeros((m, width))])

    def add(self, table: pa.Table, labels: Ints, weights: Floats | None, keys: Keys | None) -> None:
        """Add the records of a block, by their covariates, clusters, weights and keys."""
        w = np.ones(labels.size) if weights is None else weights
        every = np.ones(labels.size, dtype=bool)
        self.records += _count_by_cluster(labels, every, self.k)
        self.mass.add(w, labels)
        self.squares.add(w * w, labels)
        self._key(self.cells.records, labels, every, keys)
        for place, name in enumerate(self.columns):
            self._add_column(place, name, table[name], labels, w, keys)
        for place, name in enumerate(self.rates):
            known, yes = _read_flags(table[name])
            self.strange[place] += len(known) - table[name].null_count - known.sum()
            self.rate_known[place] += _count_by_cluster(labels, known, self.k)
            self.rate_counts[place] += _count_by_cluster(labels, yes, self.k)
            self._key(self.cells.rate_known[place], labels, known, keys)
            self._key(self.cells.rate_counts[place], labels, yes, keys)
            terms = (w * known, w * w * known, w * yes)
            for sums, some in zip(self.rate_mass[place], terms, strict=True):
                sums.add(some, labels)
        if self.patient is not None and self.patient in table.column_names:
            people = _hash_patients(table[self.patient])
            self.people += PatientSets(self.k, people, labels.astype(np.int32))

    def __iadd__(self, other: Self) -> Self:
        self.people += other.people
        self.negative += other.negative
        self.strange += other.strange
        for name in ("records", "known", "rate_known", "rate_counts"):
            for mine, theirs in ((self, other), (self.cells, other.cells)):
                sums = getattr(mine, name)
                np.add(sums, getattr(theirs, name), out=sums)
        largest = self.cells.largest
        np.maximum(largest, other.cells.largest, out=largest)
        for own, more in zip(self._exact(), other._exact(), strict=True):
            own += more
        return self

    def _exact(self) -> list[GroupSums]:
        several = (*self.totals, *self.rate_mass)
        return [self.mass, self.squares, *(one for some in several for one in some)]

    def _add_column(
        self,
        place: int,
        name: str,
        column: pa.ChunkedArray,
        labels: Ints,
        w: Floats,
        keys: Keys | None,
    ) -> None:
        values = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
        known = np.isfinite(values)
        if name in NON_NEGATIVE:
            below = known & (values < 0)
            self.negative[place] += below.sum()
            known &= ~below
        terms = np.where(known, values, 0.0) * w
        self.known[place] += _count_by_cluster(labels, known, self.k)
        for sums, some in zip(self.totals[place], (terms, w * known), strict=True):
            sums.add(some, labels)
        most = self.cells.largest[place]
        np.maximum.at(most, labels, np.abs(terms))
        most[-1] = max(most[-1], np.abs(terms).max(initial=0.0))
        self._key(self.cells.known[place], labels, known, keys)

    def _key(self, into: Keys, labels: Ints, rows: Mask, keys: Keys | None) -> None:
        if keys is not None:
            np.add.at(into, labels[rows], keys[rows])
            into[-1:] += keys[rows].sum(dtype=np.uint64, keepdims=True)

    def result(self, notes: Sequence[str], secret: bytes | None = None) -> Burden:
        """Return what was added up; ``notes`` are those of the ledger."""
        share = _append_total(self.mass)
        added = [[_append_total(one) for one in pair] for pair in self.totals]
        totals, mass = np.array(added).reshape(-1, 2, self.k + 1).transpose(1, 0, 2)
        whole = totals[:, -1:]
        shares = np.divide(totals, whole, out=np.zeros_like(totals), where=whole != 0)
        rate, low, high = self._rates()
        patients, patient_keys = self.counted or self.people.counted(secret)
        held = self.known[:, -1] > 0
        rated = (self.rate_known[:, -1] > 0) & (self.strange == 0)
        own = self.cells
        rate_keys = (own.rate_known[rated], own.rate_counts[rated])
        largest = np.round(own.largest[held], 6)
        cells = BurdenCells(own.records, patient_keys, own.known[held], *rate_keys, largest)
        return Burden(
            records=self.records,
            share=np.round(share / max(float(share[-1]), 1e-300), 9),
            patients=patients,
            columns=tuple(compress(self.columns, held)),
            known=self.known[held],
            mass=np.round(mass[held], 6),
            totals=np.round(totals[held], 6),
            shares=np.round(shares[held], 9),
            rates=tuple(compress(self.rates, rated)),
            rate_known=self.rate_known[rated],
            rate_counts=self.rate_counts[rated],
            rate=rate[rated],
            low=low[rated],
            high=high[rated],
            notes=(*(note for note in notes if "of the first visit" in note), *self._notes()),
            cells=None if secret is None else cells,
        )

    def _rates(self) -> tuple[Floats, Floats, Floats]:
        figures = np.full((3, len(self.rates), self.k + 1), np.nan)
        for place, (mass, squares, yes) in enumerate(self.rate_mass):
            w, w2, y = (_append_total(one) for one in (mass, squares, yes))
            some = w > 0
            share = np.divide(y, w, out=np.full(w.size, np.nan), where=some)
            n = np.divide(w * w, w2, out=np.zeros(w.size), where=some)
            figures[:, place] = np.clip(share, 0, 1), *wilson_interval(np.clip(share, 0, 1), n)
        rate, low, high = np.round(figures, 6)
        return rate, low, high

    def _notes(self) -> list[str]:
        notes: list[str] = []
        n = int(self.records[-1])
        for place, name in enumerate(self.columns):
            known, below = int(self.known[place, -1]), int(self.negative[place])
            if not known:
                notes.append(Message("note.use_empty", name=name))
            elif below:
                notes.append(Message("note.use_negative", name=name, n=below))
            if 0 < known < n - below:
                notes.append(Message("note.use_missing", name=name, n=n - known - below))
        for place, name in enumerate(self.rates):
            if not self.rate_known[place, -1]:
                notes.append(Message("note.use_neither", name=name))
            elif self.strange[place]:
                notes.append(Message("note.use_strange", name=name))
        return notes


def _append_total(sums: GroupSums) -> Floats:
    """Return the sums of all groups, and that of all at the end."""
    return np.append(sums.totals(), sums.total())


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column's type is one of numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _count_by_cluster(labels: Ints, rows: Mask, k: int) -> Floats:
    counts = np.bincount(labels[rows], minlength=k).astype(np.float64)
    return np.append(counts, counts.sum())


def _read_flags(column: pa.ChunkedArray) -> tuple[Mask, Mask]:
    """Return which values say yes or no, and which yes."""
    texts = pc.cast(column, pa.string())
    kinds = pc.unique(texts.drop_null()).to_pylist()
    either = [one for one in kinds if yes_no(one) is not None]
    marks = (
        pc.fill_null(pc.is_in(texts, pa.array(values, pa.string())), False)
        for values in (either, [one for one in either if yes_no(one)])
    )
    known, yes = (np.asarray(one.to_numpy(zero_copy_only=False), dtype=bool) for one in marks)
    return known, yes


def _hash_patients(column: pa.ChunkedArray) -> Keys:
    """Return a number for each patient of a column, 0 for none."""
    texts = pc.cast(column, pa.string()).combine_chunks()
    encoded = pc.dictionary_encode(texts)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    each = hash_texts(encoded.dictionary.to_pylist(), b"patients") | np.uint64(1)
    places = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return np.where(places < 0, np.uint64(0), np.append(each, np.uint64(0))[places])
