"""Distributed read: files, tables and frames become a cohort on the workers of an engine."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comorb.engines import block_files
from comorb.engines.base import Engine
from comorb.errors import EngineError, RecordsError, StorageError, not_installed
from comorb.fields import take_options
from comorb.model.arrays import Keys, Mask
from comorb.model.emissions.base import Feature
from comorb.records import stream
from comorb.records.cohort_file import CohortFile, as_table, rows_in
from comorb.records.distributed.partitions import (
    FrameTables,
    NotPartitionedError,
    PartitionedTable,
    partition_source,
)
from comorb.records.distributed.shuffle import (
    FoundAnswers,
    Partition,
    PartitionRows,
    Shuffle,
    ShuffledFile,
    WholeSource,
    head_answers,
    merge_answers,
    plan_partitions,
    run_tasks,
)
from comorb.records.layouts.long import find_code_columns
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import open_columns, plan_table
from comorb.records.ledger import Ledger
from comorb.records.sources.files import temporary_folder
from comorb.records.spec import READING, CohortSpec
from comorb.remote import Place, opened, place_of, removed, written
from comorb.storage import fingerprint_from, fingerprint_sums, write_whole

_LAYOUT_KINDS = ("wide", "long", "delimited", "binary", "omop")


@dataclass(frozen=True)
class ShuffledTable:
    """A table whose rows were shuffled: its name, label, columns and notes."""

    name: str
    label: str
    schema: pa.Schema
    notes: tuple[str, ...]


@dataclass(frozen=True)
class InferredSchema:
    """How a source is read, inferred from its first rows; the first table has the records."""

    spec: CohortSpec
    whole: WholeSource
    plan: Plan
    tables: Mapping[str, PartitionedTable]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that bring together the rows of a patient, or of a record."""
        plan = self.plan
        patient, record = plan.keys or (plan.layout.patient, plan.layout.record)
        if (self.spec.unit or plan.reader.unit) == "patient" and patient:
            return (patient,)
        return tuple(column for column in (patient, record) if column)

    def shuffle_tables(
        self, folder: str, executor: Executor | None
    ) -> tuple[tuple[ShuffledTable, ...], list[tuple[Partition, ...]]]:
        """Let workers shuffle rows into a folder; return the tables, and what each task reads."""
        rows = next(iter(self.tables.values())).rows
        shuffle, tables, files = Shuffle(folder, self.keys, rows=rows), [], []
        for name, table in self.tables.items():
            columns = self.plan.joined.get(name, ())
            own = replace(shuffle, keys=columns[:1], columns=columns) if columns else shuffle
            written, notes = table.shuffle_rows(own, executor)
            schema = table.head.select(columns or table.head.column_names).schema
            tables.append(ShuffledTable(name, table.label, schema, notes))
            files.append(written)
        return tuple(tables), plan_partitions(shuffle, files, len(tables[0].schema))


def infer_schema(
    records: Any, spec: CohortSpec, kind: str, executor: Executor | None
) -> InferredSchema | None:
    """Return how records of a kind are read; None where workers can't read them in parts."""
    divided = partition_source(records, spec.table, executor)
    if divided is None:
        return None
    spec = replace(spec, table=spec.table or divided.table)
    whole = WholeSource(divided.label, tuple(divided.openers))
    tables: dict[str, PartitionedTable] = {}

    def read_head(name: str) -> PartitionRows:
        one = tables[name] = divided.openers[name]()
        return PartitionRows(one.label, one.notes, one.head, pa.array(range(1, len(one.head) + 1)))

    try:
        with whole.open_partition(read_head) as source:
            names = tuple(one.name for one in spec.features)
            layout = replace(spec.layout, features=names)
            table, columns = open_columns(source, spec.table_in(source, kind), layout)
            if kind != "diagnosis":
                columns = find_code_columns(columns, kind)
            plan = plan_table(source, table, columns)
    except NotPartitionedError:
        return None
    if plan.reader.kind not in _LAYOUT_KINDS:
        return None
    return InferredSchema(spec, replace(whole, answers=head_answers(source.found)), plan, tables)


@dataclass(frozen=True)
class _Job:
    """What every task knows; the first table has the records."""

    whole: WholeSource
    spec: CohortSpec
    kind: str
    folder: str
    by_patient: bool
    tables: tuple[ShuffledTable, ...]
    least: int | None = None


@dataclass(frozen=True)
class _Attempt:
    """What a task found out about its rows or, where all was known, what it read and wrote."""

    found: FoundAnswers = field(default_factory=dict)
    begun: Ledger = field(default_factory=Ledger)
    summary: stream.Summary | None = None
    draft: str | None = None
    useless: RecordsError | None = None
    ids: ShuffledFile | None = None


@dataclass(frozen=True)
class _WrittenPart:
    """A written part: its file, the rows of its row groups, its ones, its seal and its sums."""

    file: str
    groups: tuple[int, ...]
    ones: int
    seal: str
    sums: Keys


def distribute_cohort(
    source: Any,
    path: str | Place,
    preparation: CohortSpec | None = None,
    executor: Executor | None = None,
    memory: str | None = None,
) -> None:
    """Read records on the workers of an engine, select and drop, and write the cohort there.

    ``source`` is files that all workers see under the same path, or a frame or a table of the
    engine; ``path`` becomes a folder that they all see, and so does a draft folder next to it, in
    which an interrupted run finds its shuffled rows again. What can't be read in parts, such as a
    database, is read in this process, with ``memory``, and written to one file.
    """
    spec = preparation or CohortSpec()
    path = place_of(path).absolute()
    kind, records, auxiliary = spec.sources(source)
    schema = None if auxiliary else infer_schema(records, spec, kind, executor)
    if schema is None:
        _write_locally(source, path, spec, memory)
        return
    work = path.with_name(f"{path.name}.draft")
    try:
        work.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError("write.choose_place", path=path, reason=reason) from None
    try:
        tables, partitions = schema.shuffle_tables(str(work), executor)
        job = _Job(schema.whole, schema.spec, kind, str(work), len(schema.keys) > 1, tables)

        def write(least: int | None) -> None:
            own = replace(job, least=least)
            attempts = _read_partitions(own, partitions, executor)
            _refuse_repeated(own, schema.keys, attempts, executor)
            _write_parts(attempts, path, work, own, executor)

        stream.relax_least(write)
    except (RecordsError, StorageError):
        with suppress(StorageError):  # the first error says more than that of removing
            removed(work)
        raise
    removed(work)


def _write_locally(source: Any, path: Place, spec: CohortSpec, memory: str | None) -> None:
    """Read records in this process, and write the cohort as a file."""
    if isinstance(path, Path):
        stream.write_cohort(source, path, spec, memory)
        return
    with temporary_folder() as folder:
        draft = Path(folder, path.name)
        stream.write_cohort(source, draft, spec, memory)
        with draft.open("rb") as file:
            path.send(file)


def _read_partitions(
    job: _Job, partitions: Sequence[tuple[Partition, ...]], executor: Executor | None
) -> list[_Attempt]:
    """Let the workers merge what they find out until all of them have read their rows."""
    if not partitions:
        raise RecordsError("source.no_rows", table=job.tables[0].label)
    answers, tasks = dict(job.whole.answers), list(enumerate(partitions))
    while True:
        whole = replace(job.whole, answers=answers)
        attempts = run_tasks(partial(_try_partition, replace(job, whole=whole)), tasks, executor)
        if not any(one.found for one in attempts):
            return attempts
        # A task that read its rows while others have questions disagrees; one without rows may not.
        new = merge_answers([one.found for one in attempts if one.found or one.summary])
        if not new:
            raise EngineError("engine.disagree")
        answers |= new


def _try_partition(job: _Job, item: tuple[int, tuple[Partition, ...]]) -> _Attempt:
    number, partitions = item
    rows = {
        one.name: PartitionRows(one.label, one.notes, *partition.table(one.schema))
        for one, partition in zip(job.tables, partitions, strict=True)
    }
    with job.whole.open_partition(rows.__getitem__) as source:
        part, begun = None, Ledger()
        try:
            read = job.spec.plan(source, job.kind)
            plan, begun, encode = stream.plan_parts(source, read, job.spec)
            if not source.found:
                part = stream.read_partition(source, plan, encode, job.spec.coding)
        except RecordsError:
            if not source.found:
                raise
        if source.found:  # these rows alone answered, so what followed may be wrong
            return _Attempt(source.found)
        if part is None:
            return _Attempt(begun=begun)
        cohort, useless = part
        selected = stream.select_part(cohort, job.spec, job.least)
        table = as_table(selected)
        summary = stream.summarise(selected, table.schema, job.spec)
        draft = f"draft-{number:06d}-{secrets.token_hex(8)}.parquet"
        _write_table(table, place_of(job.folder) / draft)
        own = pa.table({"id": cohort.ids}).to_batches() if job.by_patient else []
        ids = Shuffle(job.folder, ("id",)).write(number, own)
        return _Attempt({}, begun, summary, draft, useless, ids)


def _refuse_repeated(
    job: _Job, keys: tuple[str, ...], attempts: Sequence[_Attempt], executor: Executor | None
) -> None:
    """Refuse ids of records that several patients have: their rows are not in one place."""
    files = [one.ids for one in attempts if one.ids is not None and one.ids.rows]
    partitions = [one for (one,) in plan_partitions(Shuffle(job.folder, ("id",)), [files], 1)]
    if repeated := sum(run_tasks(_count_repeated, partitions, executor)):
        about = {"table": job.tables[0].label, "column": keys[-1]}
        raise RecordsError("source.visits_of_several", n=repeated, **about)


def _count_repeated(partition: Partition) -> int:
    ids = partition.table(pa.schema([("id", pa.string())]))[0]["id"]
    return len(ids) - int(pc.count_distinct(ids).as_py())


def _write_table(table: pa.Table, path: Place) -> None:
    options = {"compression": "zstd", "write_page_checksum": True}
    try:
        with written(path) as file:
            pq.write_table(table, file, block_files.ROWS_A_GROUP, **options)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError("write.shared_place", folder=path.parent, reason=reason) from None


def _write_parts(
    attempts: Sequence[_Attempt],
    path: Place,
    work: Place,
    job: _Job,
    executor: Executor | None,
) -> None:
    """Decide which codes stay, let workers write the final parts, and write the manifest."""
    read = [one for one in attempts if one.summary is not None]
    useless = [one.useless for one in read if one.useless is not None]
    if len(useless) == len(read) and useless:
        raise useless[0]
    total, begun = stream.CohortSum(job.spec, least=job.least), attempts[0].begun
    for one in read:
        assert one.summary is not None  # noqa: S101 - left out above
        total.add(replace(one.summary, ledger=one.summary.ledger + begun))
        begun = Ledger()
    header = total.finish()
    schema, codes = total.total.schema, tuple(header["codes"])
    finish = partial(_finish_part, str(path), schema, total.kept, total.features, codes)
    drafts = [str(work / one.draft) for one in read if one.draft]
    parts = run_tasks(finish, list(enumerate(drafts)), executor)
    kept = [part for part in parts if part.groups]
    header = {
        "version": block_files.VERSION,
        "records": sum(sum(part.groups) for part in kept),
        "ones": sum(part.ones for part in kept),
        **header,
        "parts": [
            {"file": part.file, "groups": list(part.groups), "seal": part.seal} for part in kept
        ],
        "digest": fingerprint_from(sum((part.sums for part in kept[1:]), start=kept[0].sums)),
    }
    with opened(path / kept[0].file) as part:
        schema = pq.read_schema(part)
    with write_whole(path / block_files.MANIFEST) as file:
        file.write(block_files.manifest(header, schema))
    names = {block_files.MANIFEST, *(part.file for part in kept)}
    for other in path.iterdir():
        if other.name not in names:
            other.unlink()


def _finish_part(
    folder: str,
    schema: pa.Schema,
    kept: Mask,
    features: tuple[Feature, ...],
    codes: tuple[str, ...],
    item: tuple[int, str],
) -> _WrittenPart:
    number, draft = item
    with opened(place_of(draft)) as file:
        rows = stream.conform(pq.ParquetFile(file).read(), schema)
    table = stream.finish_rows(rows, kept, features)
    name = f"part-{number:06d}-{secrets.token_hex(8)}.parquet"
    path = place_of(folder) / name
    if not len(table):
        return _WrittenPart(name, (), 0, "", fingerprint_sums([], codes, features))
    _write_table(table, path)
    with opened(path) as file:
        metadata = pq.read_metadata(file)
    groups = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    ones = pc.sum(pc.list_value_length(table[block_files.CODES])).as_py() or 0
    sums = fingerprint_sums([rows_in(table, features)], codes, features)
    return _WrittenPart(name, tuple(groups), ones, block_files.identity(path), sums)


@take_options(CohortSpec, *READING, but=("kinds",))
def read_spark(frame: Any, folder: str | Path, **options: Any) -> CohortFile:
    """Read a DataFrame or a table of Spark into a cohort, on the executors of its session.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame or str, or a mapping of names to such
        The rows, or the name of a table of the session, which may be one of Spark Connect. Tables
        of OMOP are given by their names: ``{"condition_era": …, "person": …, "concept": …}``; a
        table of the session finds those in its schema.
    folder : path
        Where the workers write the cohort; all of them, and this process, see it there.
    {options}

    Returns
    -------
    CohortFile
        The cohort that `read_records` makes of the same rows, its records in the order of a hash
        of the patient, or of the record. It is opened again by its folder.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError(not_installed("Spark", "spark")) from None
    from comorb.engines.spark_engine import SparkEngine

    given = frame if isinstance(frame, Mapping) else {"": frame}
    sessions = [one.sparkSession for one in given.values() if hasattr(one, "sparkSession")]
    if sessions:
        session = sessions[0]
    else:  # a session of Spark Connect is never made without its address
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    named = {name: f"table:{one}" if isinstance(one, str) else one for name, one in given.items()}
    source = named if isinstance(frame, Mapping) else named[""]
    return _read_frames(source, folder, options, SparkEngine(session))


@take_options(CohortSpec, *READING, but=("kinds",))
def read_dask(frame: Any, folder: str | Path, **options: Any) -> CohortFile:
    """Read a Dask DataFrame into a cohort, on the workers of the client that is connected.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame, or a mapping of names to such
        The rows, or the tables of OMOP: ``{"condition_era": …, "person": …, "concept": …}``.
    folder : path
        As in `read_spark`.
    {options}

    Returns
    -------
    CohortFile
        As of `read_spark`.
    """
    try:
        from distributed import get_client
    except ImportError:
        raise EngineError(not_installed("Dask", "dask")) from None
    from comorb.engines.dask_engine import DaskEngine

    try:
        client = get_client()
    except ValueError:
        raise EngineError("engine.no_dask") from None
    return _read_frames(frame, folder, options, DaskEngine(client))


def _read_frames(
    source: Any, folder: str | Path, options: Mapping[str, Any], engine: Engine
) -> CohortFile:
    # Every record, whatever the number of its codes.
    spec = CohortSpec.of(**options, at_least=1)
    tables = FrameTables(source) if isinstance(source, Mapping) else source
    distribute_cohort(tables, folder, spec, engine)
    return CohortFile.open(folder)
