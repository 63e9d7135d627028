"""Export: rows to a CSV or Parquet file, batch by batch, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from comorb.remote import Place, opened, place_of
from comorb.storage import check_file, write_whole

_FORMULA = r"'*[=+\-@\t\r]"  # the start of a formula in a spreadsheet
_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?$"
_WRITERS = {
    ".csv": lambda sink, schema: pa_csv.CSVWriter(sink, schema),
    ".parquet": lambda sink, schema: pq.ParquetWriter(
        sink, schema, compression="zstd", write_page_checksum=True
    ),
}


def export(batches: Iterable[pa.RecordBatch], path: str | Place, force: bool = False) -> None:
    """Write batches of rows, one at least and all of one schema, to a .csv or .parquet file.

    Memory holds one batch at a time. An existing file is replaced by ``force`` only. In a .csv file
    an apostrophe precedes a text that a spreadsheet would take for a formula.
    """
    path = place_of(path)
    check_export(path, force)
    rest = iter(batches)
    first = next(rest)
    with write_whole(path) as sink, _WRITERS[path.suffix.lower()](sink, first.schema) as writer:
        for batch in chain([first], rest):
            writer.write_batch(_add_apostrophes(batch) if path.suffix.lower() == ".csv" else batch)


def join_parts(parts: Sequence[Place], path: str | Place, force: bool = False) -> None:
    """Write one file of several that `export` wrote with one schema and ending, by their names."""
    path, parts = place_of(path), sorted(parts, key=str)
    if path.suffix.lower() == ".parquet":
        export(chain.from_iterable(map(_batches, parts)), path, force)
        return
    check_export(path, force)
    with write_whole(path) as sink:
        for place, part in enumerate(parts):
            with part.open("rb") as file:
                header = file.readline()
                sink.write(b"" if place else header)
                shutil.copyfileobj(file, sink, 1 << 20)


def read_parts(parts: Iterable[Place]) -> pa.Table:
    """Return the rows of several .parquet files that `export` wrote, by their names."""
    return pa.Table.from_batches(chain.from_iterable(map(_batches, sorted(parts, key=str))))


def _batches(part: Place) -> Iterator[pa.RecordBatch]:
    with opened(part) as file:
        yield from pq.ParquetFile(file).iter_batches()


def without_apostrophes(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts of a .csv file that `export` wrote as they were before."""
    return pc.replace_substring_regex(texts, rf"\A'({_FORMULA})", r"\1")


def _add_apostrophes(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = list(batch.columns)
    for place, texts in enumerate(columns):
        if pa.types.is_string(texts.type):
            marked = pc.replace_substring_regex(texts, rf"\A({_FORMULA})", r"'\1")
            is_number = pc.match_substring_regex(texts, _NUMBER)
            columns[place] = pc.if_else(is_number, texts, marked)
    return pa.record_batch(columns, schema=batch.schema)


def check_export(path: Place, force: bool) -> None:
    """Refuse a path that `export` would refuse."""
    check_file(path, tuple(_WRITERS), force)
