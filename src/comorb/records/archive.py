"""Archive: a cohort in one Parquet file, written whole or not at all and checked when loaded.

Each row is a record: its id, the numbers of its codes, its weight and its covariates. What the
numbers mean, and how many records and codes there must be, is in the metadata of the file.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from comorb.errors import StorageError
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger

VERSION = 1
_KEY = b"comorb.cohort"
_ID, _CODES, _WEIGHT = "comorb.id", "comorb.codes", "comorb.weight"
_ROWS_A_GROUP = 1 << 17


def save_cohort(cohort: Cohort, path: str | Path) -> None:
    """Write a cohort to a Parquet file.

    Parameters
    ----------
    cohort : Cohort
        What to write.
    path : path
        Where to write it; a file that is there is replaced once the new one is complete.
    """
    path = Path(path)
    matrix = cohort.matrix
    lists = pa.LargeListArray.from_arrays(
        pa.array(matrix.indptr.astype(np.int64)), pa.array(matrix.indices)
    )
    columns: dict[str, Any] = {_ID: cohort.ids, _CODES: lists}
    if cohort.weights is not None:
        columns[_WEIGHT] = pa.array(cohort.weights)
    columns |= {name: cohort.covariates[name] for name in cohort.covariates.column_names}
    about = {
        "version": VERSION,
        "records": len(cohort),
        "ones": int(matrix.nnz),
        "codes": cohort.codes,
        "names": cohort.names,
        "system": cohort.system,
        "level": cohort.level,
        "ledger": cohort.ledger.to_dict(),
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about).encode()})
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        pq.write_table(table, name, compression="zstd", row_group_size=_ROWS_A_GROUP)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def load_cohort(path: str | Path) -> Cohort:
    """Read a cohort that `save_cohort` wrote.

    Raises
    ------
    StorageError
        When the file isn't there, is no cohort, is damaged or comes from a newer comorb.
    """
    path = Path(path)
    if not path.is_file():
        raise StorageError(f"There is no cohort file {path}; check the name.")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        message = f"{path.name} is damaged or no Parquet file; write the cohort again."
    else:
        return _restore(path.name, table)
    raise StorageError(message)


def _restore(name: str, table: pa.Table) -> Cohort:
    packed = (table.schema.metadata or {}).get(_KEY)
    if packed is None:
        raise StorageError(f"{name} is a Parquet file but no cohort; read it with read_records.")
    about = json.loads(packed)
    if about["version"] > VERSION:
        raise StorageError(
            f"{name} has version {about['version']} of the cohort format and this comorb knows "
            f"{VERSION}; install a newer comorb."
        )
    lists = table[_CODES].combine_chunks()
    indices = lists.flatten().to_numpy()
    whole = len(table) == about["records"] and len(indices) == about["ones"]
    if not whole or (
        len(indices) and not 0 <= indices.min() <= indices.max() < len(about["codes"])
    ):
        raise StorageError(f"{name} is damaged: it doesn't hold the codes it says it holds.")
    offsets = lists.offsets.to_numpy()
    small = np.int32 if len(indices) < 2**31 else np.int64
    matrix = csr_array(
        (np.ones(len(indices), np.uint8), indices, (offsets - offsets[0]).astype(small)),
        shape=(len(table), len(about["codes"])),
    )
    own = [column for column in (_ID, _CODES, _WEIGHT) if column in table.column_names]
    return Cohort(
        matrix,
        table[_ID].combine_chunks(),
        tuple(about["codes"]),
        tuple(about["names"]),
        about["system"],
        about["level"],
        table.drop_columns(own).replace_schema_metadata(None),
        Ledger.from_dict(about["ledger"]),
        table[_WEIGHT].to_numpy() if _WEIGHT in own else None,
    )
