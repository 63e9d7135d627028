"""Export: rows to a CSV or Parquet file, batch by batch, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from comorb.storage import check_file, write_whole

_WRITERS = {
    ".csv": lambda sink, schema: pa_csv.CSVWriter(sink, schema),
    ".parquet": lambda sink, schema: pq.ParquetWriter(sink, schema, compression="zstd"),
}


def export(batches: Iterable[pa.RecordBatch], path: str | Path, force: bool = False) -> None:
    """Write batches of rows to a file; memory holds one batch at a time.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        At least one, all of one schema.
    path : path
        A file that ends with .csv or .parquet.
    force : bool, default=False
        Whether a file that is there may be replaced.
    """
    path = Path(path)
    check_export(path, force)
    rest = iter(batches)
    first = next(rest)
    with write_whole(path) as sink, _WRITERS[path.suffix.lower()](sink, first.schema) as writer:
        for batch in chain([first], rest):
            writer.write_batch(batch)


def check_export(path: Path, force: bool) -> None:
    """Refuse early what `export` would refuse late."""
    check_file(path, tuple(_WRITERS), force)
