"""Gathering: what is told of all records, also of those that are more than memory holds.

Blocks are added one by one. Totals are sums; of what records are sliced by, the narrow columns are
kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from comorb.insight.profile.burden import Burden, BurdenSums
from comorb.insight.profile.cutting import By, coarse, date_ends, default_slices
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.slices import Slices, default_cuts, slice_records
from comorb.model.arrays import Floats, Ints, Keys
from comorb.records.cohort import Cohort

SLICED = ("age", "sex", "site", "date")
_LABEL, _RECORDS, _KEY = "comorb.label", "comorb.records", "comorb.key"


class Gathering:
    """The burden and the slices of clusters, from records that come block by block.

    Where it is ``narrow``, records that are sliced alike are one row, so that what is gathered on
    several machines stays small; weighted ones are kept each.
    """

    def __init__(
        self,
        k: int,
        secret: bytes | None,
        wanted: Sequence[str] | None = None,
        columns: Sequence[str] = SLICED,
        narrow: bool = False,
    ) -> None:
        self.k, self.secret, self.wanted, self.columns = k, secret, wanted, columns
        self.narrow = narrow
        self.sums: BurdenSums | None = None
        self._ends: tuple[Any, Any] | None = None
        self._tables: list[pa.Table] = []
        self._weights: list[Floats] = []

    def add(self, part: Cohort, labels: Ints, keys: Keys | None = None) -> BurdenSums:
        """Add the records of a block, and the cluster of each; return what was added up so far.

        ``keys`` are theirs, where they are known already.
        """
        table = part.covariates
        if self.sums is None:
            self.sums = BurdenSums(table.schema, self.k, part.patient, self.wanted)
        if keys is None and self.secret is not None:
            keys = record_keys(part, self.secret)
        self.sums.add(table, labels, part.weights, keys)
        rows = table.select([name for name in self.columns if name in table.column_names])
        alike = self.narrow and part.weights is None
        if alike:
            if "date" in rows.column_names and pa.types.is_temporal(rows["date"].type):
                self._ends = _both(self._ends, date_ends(rows["date"]))
            rows = coarse(rows)
        told = {_LABEL: pa.array(labels.astype(np.int32))}
        if keys is not None:
            told[_KEY] = pa.array(keys)
        if alike:
            told[_RECORDS] = pa.array(np.ones(labels.size, np.int64))
        rows = pa.table(_narrow(rows) | told)
        self._tables.append(_collapsed([rows]) if alike else rows)
        if part.weights is not None:
            self._weights.append(part.weights)
        return self.sums

    def __iadd__(self, other: Self) -> Self:
        if other.sums is not None and self.sums is not None:
            self.sums += other.sums
        self.sums = self.sums or other.sums
        self._ends = _both(self._ends, other._ends)
        self._weights += other._weights
        self._tables += other._tables
        if self.narrow and not self._weights and self._tables:
            self._tables = [_collapsed(self._tables)]
        return self

    def burden(self, notes: Sequence[str]) -> Burden | None:
        """Return what clusters use; ``notes`` are those of the records' ledger."""
        return None if self.sums is None else self.sums.result(notes, self.secret)

    def slices(self, bys: Sequence[By] | None = None) -> tuple[Slices, ...]:
        """Return the shares of clusters within slices; by default of those that can be made."""
        if not self._tables:
            return ()
        every = pa.concat_tables(self._tables).unify_dictionaries()
        own = [name for name in (_LABEL, _RECORDS, _KEY) if name in every.column_names]
        table, told = every.drop_columns(own), every.select(own)
        labels = told[_LABEL].to_numpy().astype(np.int64)
        records = told[_RECORDS].to_numpy() if _RECORDS in own else None
        wanted = bys
        if wanted is None:
            wanted = default_cuts(table, default_slices(table, self._ends), records)
        weights = np.concatenate(self._weights) if self._weights else None
        keys = told[_KEY].to_numpy() if _KEY in own else None
        some: dict[str, Any] = {"weights": weights, "keys": keys, "records": records}
        return tuple(slice_records(table, labels, self.k, by, **some) for by in wanted)


def _both(one: tuple[Any, Any] | None, two: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    """Return the first and the last of two pairs of dates."""
    known = [ends for ends in (one, two) if ends is not None and ends[0] is not None]
    if not known:
        return one or two
    return min(first for first, _ in known), max(last for _, last in known)


def _collapsed(tables: Sequence[pa.Table]) -> pa.Table:
    """Return rows that are the same once, with how many they are and the sum of their keys."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    added = [name for name in (_RECORDS, _KEY) if name in table.column_names]
    names = [name for name in table.column_names if name not in added]
    made = table.group_by(names).aggregate([(name, "sum") for name in added])
    made = made.rename_columns([name.removesuffix("_sum") for name in made.column_names])
    return made.select(table.column_names).cast(table.schema)


def gathered(
    cohort: Cohort, labels: Ints, k: int, secret: bytes | None, wanted: Sequence[str] | None = None
) -> Gathering:
    """Return what is told of all records of a cohort in memory."""
    gathering = Gathering(k, secret, wanted)
    gathering.add(cohort, labels)
    return gathering


def _narrow(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table, with each different text once."""
    return {
        name: table[name].dictionary_encode()
        if pa.types.is_string(table[name].type)
        else table[name]
        for name in table.column_names
    }
