"""Framing: the records of a cohort as a table for pandas, polars and Arrow, and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from comorb.model.arrays import Floats, Ints
from comorb.model.frames import html_table, loaded

COMMON = 10  # codes that a notebook shows


class _Held(Protocol):
    """What a cohort holds that a table shows."""

    matrix: Any
    ids: pa.Array
    codes: tuple[str, ...]
    names: tuple[str, ...]
    covariates: pa.Table
    weights: Floats | None

    def counts(self) -> Ints:
        """Return how many records have each code."""

    def to_arrow(self) -> pa.Table:
        """Return the records as a table."""


class Framed:
    """A cohort whose records can be had as a table: its matrix has the same, as zeros and ones."""

    def to_arrow(self: _Held) -> pa.Table:
        """Return a row for each record: its id, the list of its codes, its covariates and weight.

        Examples
        --------
        >>> from comorb import read_records
        >>> rows = pa.table({"id": ["a", "a", "b"], "icd_code": ["428.0", "250.00", "428.1"]})
        >>> read_records(rows).to_arrow()["codes"].to_pylist()
        [['250', '428'], ['428']]
        """
        codes = pa.DictionaryArray.from_arrays(
            pa.array(self.matrix.indices, pa.int32()), pa.array(self.codes, pa.string())
        ).cast(pa.string())
        lists = pa.LargeListArray.from_arrays(pa.array(self.matrix.indptr, pa.int64()), codes)
        table = pa.table({"id": self.ids, "codes": lists})
        for name in self.covariates.column_names:
            table = table.append_column(name, self.covariates[name])
        if self.weights is not None and "weight" not in table.column_names:
            table = table.append_column("weight", pa.array(self.weights))
        return table

    def to_pandas(self: _Held) -> Any:
        """Return what `to_arrow` does as a pandas frame."""
        loaded("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self: _Held) -> Any:
        """Return what `to_arrow` does as a polars frame."""
        return loaded("polars").from_arrow(self.to_arrow())

    def _repr_html_(self: _Held) -> str:
        counts = self.counts()
        order = np.argsort(-counts, kind="stable")[:COMMON].tolist()
        columns = {
            "code": [self.codes[i] for i in order],
            "name": [self.names[i] for i in order],
            "records": [int(counts[i]) for i in order],
        }
        return f"<p>{escape(repr(self))}</p>" + html_table(columns, "The most common codes")
