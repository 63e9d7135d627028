"""Archive: a cohort in one block file, written whole or not at all and checked when loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from comorb.engines.blockfile import (
    ABOUT,
    CODES,
    ID,
    ROWS_A_GROUP,
    VERSION,
    WEIGHT,
    describe,
    ones_of,
    read_group,
)
from comorb.errors import StorageError
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from comorb.storage import write_whole


def save_cohort(cohort: Cohort, path: str | Path) -> None:
    """Write a cohort to a Parquet file.

    Parameters
    ----------
    cohort : Cohort
        What to write.
    path : path
        Where to write it; a file that is there is replaced once the new one is complete.
    """
    write_parts([as_table(cohort)], path, lambda: about(cohort))


def about(cohort: Cohort) -> dict[str, Any]:
    """Return what the metadata say of a cohort, apart from the numbers of records and ones."""
    return {
        "codes": cohort.codes,
        "names": cohort.names,
        "system": cohort.system,
        "level": cohort.level,
        "ledger": cohort.ledger.to_dict(),
    }


def as_table(cohort: Cohort) -> pa.Table:
    """Return the records of a cohort as rows of its file."""
    matrix = cohort.matrix
    lists = pa.LargeListArray.from_arrays(
        pa.array(matrix.indptr.astype(np.int64)), pa.array(matrix.indices.astype(np.int32))
    )
    columns: dict[str, Any] = {ID: cohort.ids, CODES: lists}
    if cohort.weights is not None:
        columns[WEIGHT] = pa.array(cohort.weights)
    columns |= {name: cohort.covariates[name] for name in cohort.covariates.column_names}
    return pa.table(columns)


def write_parts(
    tables: Iterable[pa.Table], path: str | Path, about: Callable[[], dict[str, Any]]
) -> None:
    """Write tables of one schema as row groups of one size; ``about`` is asked at the end."""
    rows = ones = 0
    groups = _regrouped(tables)
    first = next(groups)
    with (
        write_whole(path) as sink,
        pq.ParquetWriter(sink, first.schema, compression="zstd") as writer,
    ):
        for group in chain([first], groups):
            writer.write_table(group, row_group_size=ROWS_A_GROUP)
            rows += group.num_rows
            ones += pc.sum(pc.list_value_length(group[CODES])).as_py() or 0
        counted = {"version": VERSION, "records": rows, "ones": ones}
        writer.add_key_value_metadata({ABOUT: json.dumps(counted | about()).encode()})


def _regrouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of some tables again, in tables of the size of a row group."""
    held: pa.Table | None = None
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        while held.num_rows > ROWS_A_GROUP:
            yield held.slice(0, ROWS_A_GROUP)
            held = held.slice(ROWS_A_GROUP)
    if held is not None:
        yield held


def load_cohort(path: str | Path, most: int | None = None) -> Cohort:
    """Read a cohort that `save_cohort` wrote.

    Parameters
    ----------
    path : path
        The file.
    most : int, optional
        Read evenly spread records, so many at most, and say so in the ledger.

    Raises
    ------
    StorageError
        When the file isn't there, is no cohort, is damaged or comes from a newer comorb.
    """
    path = Path(path)
    told = describe(path)
    step = 1 if most is None else -(-told["records"] // most)
    parts, start = [], 0
    for number in range(pq.read_metadata(path).num_row_groups):
        part = read_group(path, number)
        parts.append(part if step == 1 else part.take(np.arange(-start % step, len(part), step)))
        start += len(part)
    ledger = Ledger.from_dict(told["ledger"])
    if step > 1:
        ledger = ledger.add("records", f"one in {step}", start, sum(map(len, parts)))
    cohort = _restore(path.name, pa.concat_tables(parts), told, ledger)
    if step == 1 and cohort.matrix.nnz != told["ones"]:
        raise StorageError(f"{path.name} is damaged: it doesn't hold the codes it says it holds.")
    return cohort


def _restore(name: str, table: pa.Table, told: dict[str, Any], ledger: Ledger) -> Cohort:
    indptr, indices = ones_of(table)
    whole = len(table) == ledger.left("records")
    if not whole or (len(indices) and not 0 <= indices.min() <= indices.max() < len(told["codes"])):
        raise StorageError(f"{name} is damaged: it doesn't hold the codes it says it holds.")
    small = np.int32 if len(indices) < 2**31 else np.int64
    matrix = csr_array(
        (np.ones(len(indices), np.uint8), indices, indptr.astype(small)),
        shape=(len(table), len(told["codes"])),
    )
    own = [column for column in (ID, CODES, WEIGHT) if column in table.column_names]
    return Cohort(
        matrix,
        table[ID].combine_chunks(),
        tuple(told["codes"]),
        tuple(told["names"]),
        told["system"],
        told["level"],
        table.drop_columns(own).replace_schema_metadata(None),
        ledger,
        table[WEIGHT].to_numpy() if WEIGHT in own else None,
    )
