"""Arrow files, streams and data frames, checked and copied into DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, run_safely
from comorb.records.sources.files import check_expanded, check_rows
from comorb.records.sources.native import Answer, run_isolated
from comorb.records.sources.parquet import open_parquet
from comorb.records.sources.text_files import check_unique_columns


def copy_reader(source: OpenedSource, label: str, reader: pa.RecordBatchReader) -> SourceTable:
    """Copy the rows of a reader of batches into a table."""
    tables = source.connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0]
    name = f"copy_{tables}"
    refused: list[RecordsError] = []
    batches = _limit_batches(label, reader, refused)
    within = pa.RecordBatchReader.from_batches(reader.schema, batches)
    source.connection.register("incoming", within)
    try:
        source.rows(SourceTable(label, name, {}), f"CREATE TEMP TABLE {name} AS FROM incoming")
    finally:
        source.connection.unregister("incoming")
    if refused:
        raise refused[0]
    return source.view(label, f"SELECT * FROM {name}", text=True)


def _limit_batches(
    label: str, reader: pa.RecordBatchReader, refused: list[RecordsError]
) -> Iterator[pa.RecordBatch]:
    """Yield batches within the limits; an error is kept, as DuckDB would lose its message."""
    try:
        yield from _check_batches(label, reader)
    except RecordsError as error:
        refused.append(error)


def _check_batches(label: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, and raise an error once they are beyond the limits."""
    rows = size = 0
    for batch in batches:
        rows, size = rows + len(batch), size + batch.nbytes
        check_rows(label, rows)
        check_expanded(label, size)
        yield batch


def open_frame(source: OpenedSource, frame: Any) -> SourceTable:
    """Open a table in memory, a polars LazyFrame, an Arrow dataset or a reader of batches."""
    home, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if home == "pyspark":
        raise RecordsError("source.of_spark")
    if home == "dask":
        raise RecordsError("source.of_dask")
    if home == "pandas":
        return register_table(source, source.label, _from_pandas(source.label, frame))
    if home == "polars" and kind == "LazyFrame":
        return _from_lazy(source, frame)
    if home == "pyarrow" and hasattr(frame, "scanner"):
        _check_schema(source.label, frame.schema)
        return _register(source, source.label, frame)
    if isinstance(frame, pa.Table):
        return register_table(source, source.label, frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise RecordsError("source.kind", kind=kind)
    reader = None
    with suppress(pa.ArrowException):
        reader = pa.RecordBatchReader.from_stream(frame)
    if reader is None:
        raise RecordsError("source.no_arrow_type", label=source.label)
    _check_schema(source.label, reader.schema)
    if home == "polars":
        return register_table(source, source.label, run_safely(source.label, reader.read_all))
    return copy_reader(source, source.label, reader)


def frame_rows(label: str, frame: Any) -> pa.Table:
    """Return a pandas frame or an Arrow table as a table that DuckDB reads."""
    table = frame if isinstance(frame, pa.Table) else _from_pandas(label, frame)
    _check_schema(label, table.schema)
    return table


def register_table(source: OpenedSource, label: str, table: pa.Table) -> SourceTable:
    """Let DuckDB read an Arrow table, without copying it."""
    if not table.num_columns:
        raise RecordsError("source.no_columns", label=label)
    _check_schema(label, table.schema)
    return _register(source, label, table)


def _check_schema(label: str, schema: pa.Schema) -> None:
    """Refuse a column name twice, and types that DuckDB doesn't read or that end its process."""
    check_unique_columns(label, schema.names)
    for column in schema:
        kinds = [column.type]
        for kind in kinds:
            empty = pa.types.is_fixed_size_list(kind) and not kind.list_size
            if empty or pa.types.is_float16(kind) or pa.types.is_decimal256(kind):
                name = column.name
                raise RecordsError("source.column_type", label=label, column=name, type=column.type)
            kinds += [kind.field(place).type for place in range(kind.num_fields)]
            kinds += [kind.value_type] if pa.types.is_dictionary(kind) else []


def _register(source: OpenedSource, label: str, data: Any) -> SourceTable:
    name = f"arrow_{len(source.opened)}"
    run_safely(label, lambda: source.connection.register(name, data))
    return source.view(label, f"SELECT * FROM {name}")


def _from_lazy(source: OpenedSource, frame: Any) -> SourceTable:
    """Let polars stream its result to a Parquet file, and open that."""
    file = source.new_copy("lazy")
    try:
        frame.sink_parquet(file)
    except Exception as error:
        kind = type(error).__name__
    else:
        return open_parquet(source, source.label, [file])
    # Raised outside the handler: what polars raises may hold a row.
    raise RecordsError("source.no_collect", label=source.label, kind=kind)


def _from_pandas(label: str, frame: Any) -> pa.Table:
    """Convert column by column, mixed ones (428 and 'V58') as text."""
    if not hasattr(frame, "columns"):
        raise RecordsError("source.kind", kind=type(frame).__name__)
    check_unique_columns(label, [str(name) for name in frame.columns])
    columns = {}
    for name in frame.columns:
        values = frame[name]
        try:
            str(name).encode()
            try:
                columns[str(name)] = pa.array(values, from_pandas=True)
            except (pa.ArrowException, OverflowError):
                pairs = zip(values, values.isna(), strict=True)
                texts = [None if gone else str(value) for value, gone in pairs]
                columns[str(name)] = pa.array(texts, pa.string())
        except UnicodeEncodeError:
            raise RecordsError("source.no_unicode", label=label, name=name) from None
    return pa.table(columns)


_END_MARK = b"\xff\xff\xff\xff\0\0\0\0"


def open_arrow(source: OpenedSource, file: Path) -> SourceTable:
    """Open an Arrow file or stream, mapped into memory."""
    answer = run_isolated(check_arrow, _refusal(file.name), str(file))
    source.note(Message("note.no_checksums", file=file.name))
    if not answer["closed"]:
        source.note(Message("note.no_end_mark", file=file.name))

    def read() -> pa.Table:
        with pa.memory_map(str(file)) as mapped:
            reader = pa.ipc.open_file(mapped) if _is_file(mapped) else pa.ipc.open_stream(mapped)
            return reader.read_all()

    return run_safely(file.name, lambda: register_table(source, file.name, read()))


def check_arrow(file: str) -> Answer:
    """Read a file batch by batch, check every value, and return whether its end is marked."""
    name = Path(file).name
    try:
        with pa.memory_map(file) as mapped:
            is_file = _is_file(mapped)
            for batch in _check_batches(name, _read_batches(mapped)):
                batch.validate(full=True)
            if not is_file and mapped.size() > mapped.tell():
                return {"refusal": _refusal(name)}
            mapped.seek(max(0, mapped.size() - len(_END_MARK)))
            return {"closed": is_file or mapped.read() == _END_MARK}
    except RecordsError as error:
        return {"refusal": error.message}
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, IndexError):
        return {"refusal": _refusal(name)}


def _refusal(name: str) -> str:
    return Message("source.damaged_arrow", name=name)


def _is_file(mapped: Any) -> bool:
    start = mapped.read(6)
    mapped.seek(0)
    return bool(start == b"ARROW1")


def _read_batches(mapped: Any) -> Iterator[pa.RecordBatch]:
    if not _is_file(mapped):
        yield from pa.ipc.open_stream(mapped)
        return
    reader = pa.ipc.open_file(mapped)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)
