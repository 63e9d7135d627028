"""Gathering: what is told of all records, also of those that are more than memory holds.

Blocks are added one by one. Totals are sums; of what records are sliced by, the narrow columns are
kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from comorb.insight.profile.burden import Burden, BurdenSums
from comorb.insight.profile.cutting import By, default_slices
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.slices import Slices, default_cuts, slice_records
from comorb.model.arrays import Floats, Ints, Keys
from comorb.records.cohort import Cohort

SLICED = ("age", "sex", "site", "date")


class Gathering:
    """The burden and the slices of clusters, from records that come block by block."""

    def __init__(
        self,
        k: int,
        secret: bytes | None,
        wanted: Sequence[str] | None = None,
        columns: Sequence[str] = SLICED,
    ) -> None:
        self.k, self.secret, self.wanted, self.columns = k, secret, wanted, columns
        self._sums: BurdenSums | None = None
        self._tables: list[pa.Table] = []
        self._labels: list[Ints] = []
        self._weights: list[Floats] = []
        self._keys: list[Keys] = []

    def add(self, part: Cohort, labels: Ints) -> None:
        """Add the records of a block, and the cluster of each."""
        table = part.covariates
        if self._sums is None:
            self._sums = BurdenSums(table.schema, self.k, part.patient, self.wanted)
        keys = None if self.secret is None else record_keys(part, self.secret)
        self._sums.add(table, labels, part.weights, keys)
        kept = [name for name in self.columns if name in table.column_names]
        self._tables.append(_narrow(table.select(kept)))
        self._labels.append(labels.astype(np.int32))
        if part.weights is not None:
            self._weights.append(part.weights)
        if keys is not None:
            self._keys.append(keys)

    def burden(self, notes: Sequence[str]) -> Burden | None:
        """Return what clusters use; ``notes`` are those of the records' ledger."""
        return None if self._sums is None else self._sums.result(notes, self.secret)

    def slices(self, bys: Sequence[By] | None = None) -> tuple[Slices, ...]:
        """Return the shares of clusters within slices; by default of those that can be made."""
        if not self._tables:
            return ()
        table = pa.concat_tables(self._tables).unify_dictionaries()
        wanted = default_cuts(table, default_slices(table)) if bys is None else bys
        labels = np.concatenate(self._labels).astype(np.int64)
        weights = np.concatenate(self._weights) if self._weights else None
        keys = np.concatenate(self._keys) if self._keys else None
        return tuple(
            slice_records(table, labels, self.k, by, weights=weights, keys=keys) for by in wanted
        )


def gathered(
    cohort: Cohort, labels: Ints, k: int, secret: bytes | None, wanted: Sequence[str] | None = None
) -> Gathering:
    """Return what is told of all records of a cohort in memory."""
    gathering = Gathering(k, secret, wanted)
    gathering.add(cohort, labels)
    return gathering


def _narrow(table: pa.Table) -> pa.Table:
    """Return a table with each different text once."""
    columns = {
        name: table[name].dictionary_encode()
        if pa.types.is_string(table[name].type)
        else table[name]
        for name in table.column_names
    }
    return pa.table(columns)
