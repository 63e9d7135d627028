"""Frames and Arrow data in memory; what is lazy is read in a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.dialect import refuse_twice
from comorb.records.sources.duck import OpenedSource, SourceTable, guarded
from comorb.records.sources.incoming import copy_reader
from comorb.records.sources.parquet import open_parquet


def open_frame(source: OpenedSource, frame: Any) -> SourceTable:
    """Open a table in memory, a polars LazyFrame, an Arrow dataset or a reader of batches."""
    home, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if home == "pyspark":
        raise RecordsError(
            "Records of Spark aren't pulled into this process: read them with "
            "comorb.read_spark(frame, 'folder'), or give frame.toPandas() if they fit in memory."
        )
    if home == "dask":
        raise RecordsError(
            "Records of Dask aren't pulled into this process: read them with "
            "comorb.read_dask(frame, 'folder'), or give frame.compute() if they fit in memory."
        )
    if home == "pandas":
        return register_table(source, source.label, _from_pandas(source.label, frame))
    if home == "polars" and kind == "LazyFrame":
        return _from_lazy(source, frame)
    if home == "pyarrow" and hasattr(frame, "scanner"):
        refuse_twice(source.label, frame.schema.names)
        _refuse_types(source.label, frame.schema)
        return _registered(source, source.label, frame)
    if isinstance(frame, pa.Table):
        return register_table(source, source.label, frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise RecordsError(
            f"Records can't be read from a {kind}: give a path, a postgresql:// "
            "URL, or a pandas, polars or Arrow table."
        )
    reader = _stream(source.label, frame)
    refuse_twice(source.label, reader.schema.names)
    _refuse_types(source.label, reader.schema)
    if home == "polars":
        return register_table(source, source.label, guarded(source.label, reader.read_all))
    return copy_reader(source, source.label, reader)


def frame_rows(label: str, frame: Any) -> pa.Table:
    """Return a pandas frame, or an Arrow table, as a table that DuckDB takes over."""
    table = frame if isinstance(frame, pa.Table) else _from_pandas(label, frame)
    refuse_twice(label, table.column_names)
    _refuse_types(label, table.schema)
    return table


def register_table(source: OpenedSource, label: str, table: pa.Table) -> SourceTable:
    """Let DuckDB read an Arrow table, without copying it."""
    if not table.num_columns:
        raise RecordsError(f"{label} holds no columns; give a table that has some.")
    refuse_twice(label, table.column_names)
    _refuse_types(label, table.schema)
    return _registered(source, label, table)


def _refuse_types(label: str, schema: pa.Schema) -> None:
    """Refuse types that DuckDB doesn't take over, or that end its process."""
    for column in schema:
        kinds = [column.type]
        for kind in kinds:
            if _is_foreign(kind):
                raise RecordsError(
                    f"{label}: column {column.name!r} is of the type {column.type}, which isn't "
                    "read; convert it to text or numbers, or leave it out."
                )
            kinds += [kind.field(place).type for place in range(kind.num_fields)]
            kinds += [kind.value_type] if pa.types.is_dictionary(kind) else []


def _is_foreign(kind: pa.DataType) -> bool:
    empty = pa.types.is_fixed_size_list(kind) and not kind.list_size
    return bool(empty or pa.types.is_float16(kind) or pa.types.is_decimal256(kind))


def _stream(label: str, frame: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowException:
        pass
    raise RecordsError(
        f"{label} has a column that Arrow has no type for; convert it to text or numbers, or leave "
        "it out."
    )


def _registered(source: OpenedSource, label: str, data: Any) -> SourceTable:
    name = f"arrow_{len(source.opened)}"
    guarded(label, lambda: source.connection.register(name, data))
    return source.view(label, f"SELECT * FROM {name}")


def _from_lazy(source: OpenedSource, frame: Any) -> SourceTable:
    """Let polars write its answer to a Parquet file, in a stream, and read that."""
    file = source.copies() / "lazy.parquet"
    _quietly(source.label, lambda: frame.sink_parquet(file))
    return open_parquet(source, source.label, [Path(file)])


def _quietly(label: str, action: Callable[[], Any]) -> None:
    """Run an action of polars; whatever it raises becomes one sentence without a row in it."""
    try:
        action()
    except Exception as error:
        kind = type(error).__name__
        message = f"{label} can't be collected ({kind}); check that frame.collect() works."
    else:
        return
    raise RecordsError(message)


def _from_pandas(label: str, frame: Any) -> pa.Table:
    """Convert column by column, mixed ones (428 beside 'V58') as text."""
    if not hasattr(frame, "columns"):
        raise RecordsError(
            f"Records can't be read from a {type(frame).__name__}: give a path, a postgresql:// "
            "URL, or a pandas, polars or Arrow table."
        )
    refuse_twice(label, [str(name) for name in frame.columns])
    columns = {}
    for name in frame.columns:
        try:
            columns[str(name)] = _from_series(frame[name])
            str(name).encode()
        except UnicodeEncodeError:
            message = (
                f"{label}: column {name!a} holds text that isn't Unicode; read it again in "
                "the encoding in which it was written."
            )
            raise RecordsError(message) from None
    return pa.table(columns)


def _from_series(values: Any) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        gone = values.isna()
        texts = [None if no else str(value) for value, no in zip(values, gone, strict=True)]
        return pa.array(texts, pa.string())
