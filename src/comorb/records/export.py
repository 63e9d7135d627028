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
    ".parquet": lambda sink, schema: pq.ParquetWriter(
        sink, schema, compression="zstd", write_page_checksum=True
    ),
}


def export(batches: Iterable[pa.RecordBatch], path: str | Path, force: bool = False) -> None:
    """Write batches of rows, one at least and all of one schema, to a .csv or .parquet file.

    Memory holds one batch at a time. A file that is there is replaced by ``force`` only.
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
