"""Spreading: records become a cohort where they are, on the workers of an engine.

Rows that belong together are brought together through files, each task reads some of them as
any cohort is read, and writes a part; the codes and what they count travel, the records don't.
The records are in the order of a hash of the patient, or of the record where no patient is known;
in that of the source where one task reads them all.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comorb.engines import blockfile
from comorb.engines.mapping import each
from comorb.errors import ComorbError, EngineError, RecordsError, StorageError
from comorb.model.arrays import Keys, Mask
from comorb.model.features import Feature
from comorb.records.archive import as_table, rows_in
from comorb.records.ledger import Ledger
from comorb.records.parts import plan_parts, read_portion
from comorb.records.preparation import Preparation
from comorb.records.sources.chunks import told
from comorb.records.sources.portion import Found, Whole, merged
from comorb.records.sources.shuffle import Bucket, Chunk, Shuffle, buckets_of
from comorb.records.sources.spill import temporary_folder
from comorb.records.streaming import (
    CohortSum,
    Summary,
    finished,
    fitted,
    summary_of,
    write_cohort,
)
from comorb.records.understanding import Gathered, understand
from comorb.remote import Remote, opened, place_of, removed, written
from comorb.storage import fingerprint_from, fingerprint_sums, write_whole


@dataclass(frozen=True)
class _Job:
    """What every task knows; the first table has the records."""

    whole: Whole
    preparation: Preparation
    kind: str
    folder: str
    by_patient: bool
    tables: tuple[Gathered, ...]


@dataclass(frozen=True)
class _Attempt:
    """What a task answered for its rows and, where it knew enough, what it read and wrote."""

    found: Found
    done: bool = False
    begun: Ledger = field(default_factory=Ledger)
    summary: Summary | None = None
    draft: str | None = None
    useless: RecordsError | None = None
    ids: Chunk | None = None


@dataclass(frozen=True)
class _Part:
    """A part that is written: its file, the rows of its row groups, its ones, and sums."""

    file: str
    groups: tuple[int, ...]
    ones: int
    seal: str
    sums: Keys


def spread_cohort(
    source: Any,
    path: str | Path | Remote,
    preparation: Preparation | None = None,
    executor: Executor | None = None,
    memory: str | None = None,
) -> None:
    """Read records on the workers of an engine, select and drop, and write the cohort there.

    ``source`` are files that all workers see under the same path, or a frame or a table of the
    engine's own; ``path`` becomes a folder that they all see, and so is one beside it, in which
    chunks of files that were brought together are found again after an interruption. What can't be
    read in parts, such as a database, is read in this process, with ``memory``, and is a file then.
    """
    preparation = preparation or Preparation()
    path = place_of(path).absolute()
    kind, records, besides = preparation.sources(source)
    understood = None if besides else understand(records, preparation, kind, executor)
    if understood is None:
        _write_here(source, path, preparation, memory)
        return
    work = path.with_name(f"{path.name}.draft")
    try:
        work.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{path} can't be written: {error.strerror or error}. Choose another place."
        ) from None
    try:
        tables, buckets = understood.gathered(str(work), executor)
        whole, asked, keys = understood.whole, understood.preparation, understood.keys
        job = _Job(whole, asked, kind, str(work), len(keys) > 1, tables)
        attempts = _attempts(job, buckets, executor)
        _refuse_repeated(job, keys, attempts, executor)
        _write(attempts, path, work, asked, executor)
    except (RecordsError, StorageError):
        with suppress(StorageError):  # a store that is lost is told by what it was asked for
            removed(work)
        raise
    removed(work)


def _write_here(
    source: Any, path: Path | Remote, preparation: Preparation, memory: str | None
) -> None:
    """Read records in this process, and write the cohort as a file."""
    if isinstance(path, Path):
        write_cohort(source, path, preparation, memory)
        return
    with temporary_folder() as folder:
        draft = Path(folder, path.name)
        write_cohort(source, draft, preparation, memory)
        with draft.open("rb") as file:
            path.send(file)


def _attempts(
    job: _Job, buckets: Sequence[tuple[Bucket, ...]], executor: Executor | None
) -> list[_Attempt]:
    """Let the workers ask and answer until all of them have read their rows."""
    if not buckets:
        raise RecordsError(f"{job.tables[0].label} holds no rows; export it again.")
    answers = dict(job.whole.answers)
    attempts: list[_Attempt | None] = [None] * len(buckets)
    while True:
        left = [place for place, one in enumerate(attempts) if one is None]
        whole = replace(job.whole, answers=answers)
        tasks = [(place, buckets[place]) for place in left]
        tried = told(each(partial(_attempt, replace(job, whole=whole)), tasks, executor))
        new = merged([one.found for one in tried if one.summary or not one.done])
        if not new and not all(one.done for one in tried):
            raise EngineError(
                "the workers don't agree on what the records are; install the same comorb on all."
            )
        answers |= new
        for place, one in zip(left, tried, strict=True):
            same = all(new.get(key) == answer for key, (answer, _) in one.found.items())
            attempts[place] = one if one.done and same else None
        done = [one for one in attempts if one is not None]
        if len(done) == len(attempts):
            return done


def _attempt(job: _Job, item: tuple[int, tuple[Bucket, ...]]) -> _Attempt | ComorbError:
    number, buckets = item
    try:
        tables = zip(job.tables, buckets, strict=True)
        pieces = {table.name: table.piece(bucket) for table, bucket in tables}
        with job.whole.portion(pieces.__getitem__) as source:
            try:
                read = job.preparation.plan(source, job.kind)
                plan, begun, encode = plan_parts(source, read, job.preparation)
            except RecordsError:
                if not source.found:
                    raise
                return _Attempt(source.found)
            if source.found:
                return _Attempt(source.found)
            part = read_portion(source, plan, encode, job.preparation.coding)
            if part is None:
                return _Attempt({}, done=True, begun=begun)
            cohort, useless = part
            selected = job.preparation.select(cohort)
            table = as_table(selected)
            summary = summary_of(selected, table.schema, job.preparation)
            draft = f"draft-{number:06d}-{secrets.token_hex(8)}.parquet"
            _write_table(table, place_of(job.folder) / draft)
            own = pa.table({"id": cohort.ids}).to_batches() if job.by_patient else []
            ids = Shuffle(job.folder, ("id",)).write(number, own)
            return _Attempt(source.found, True, begun, summary, draft, useless, ids)
    except ComorbError as error:
        return error


def _refuse_repeated(
    job: _Job, keys: tuple[str, ...], attempts: Sequence[_Attempt], executor: Executor | None
) -> None:
    """Refuse ids of records that several patients have: their rows are not in one place."""
    chunks = [one.ids for one in attempts if one.ids is not None and one.ids.rows]
    buckets = buckets_of(Shuffle(job.folder, ("id",)), [chunks], 1)
    repeated = sum(told(each(_repeated, [bucket for (bucket,) in buckets], executor)))
    if repeated:
        raise RecordsError(
            f"{job.tables[0].label}: {repeated:,} ids of column {keys[-1]!r} stand for visits of "
            "several patients. Name the column that is unique, or read with unit='patient'."
        )


def _repeated(bucket: Bucket) -> int | ComorbError:
    try:
        ids = bucket.table(pa.schema([("id", pa.string())]))[0]["id"]
        return len(ids) - int(pc.count_distinct(ids).as_py())
    except ComorbError as error:
        return error


def _write_table(table: pa.Table, path: Path | Remote) -> None:
    try:
        with written(path) as file:
            pq.write_table(
                table,
                file,
                row_group_size=blockfile.ROWS_A_GROUP,
                compression="zstd",
                write_page_checksum=True,
            )
    except OSError as error:
        raise StorageError(
            f"{path.parent} can't be written: {error.strerror or error}. Make room, or choose "
            "another place that all workers see."
        ) from None


def _write(
    attempts: Sequence[_Attempt],
    path: Path | Remote,
    work: Path | Remote,
    preparation: Preparation,
    executor: Executor | None,
) -> None:
    """Decide which codes stay, let workers write their parts again, and write the manifest."""
    read = [one for one in attempts if one.summary is not None]
    useless = [one.useless for one in read if one.useless is not None]
    if len(useless) == len(read) and useless:
        raise useless[0]
    total, begun = CohortSum(preparation), attempts[0].begun
    for one in read:
        assert one.summary is not None  # noqa: S101 - left out above
        total.add(replace(one.summary, ledger=one.summary.ledger + begun))
        begun = Ledger()
    header = total.finish()
    assert total.schema is not None  # noqa: S101 - there is a part
    finish = partial(
        _finish, str(path), total.schema, total.kept, total.features, tuple(header["codes"])
    )
    drafts = [str(work / one.draft) for one in read if one.draft]
    parts: list[_Part] = told(each(finish, list(enumerate(drafts)), executor))
    kept = [part for part in parts if part.groups]
    header = {
        "version": blockfile.VERSION,
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
    with write_whole(path / blockfile.MANIFEST) as file:
        file.write(blockfile.manifest(header, schema))
    names = {blockfile.MANIFEST, *(part.file for part in kept)}
    for other in path.iterdir():
        if other.name not in names:
            other.unlink()


def _finish(
    folder: str,
    schema: pa.Schema,
    kept: Mask,
    features: tuple[Feature, ...],
    codes: tuple[str, ...],
    item: tuple[int, str],
) -> _Part | ComorbError:
    number, draft = item
    try:
        with opened(place_of(draft)) as file:
            table = finished(fitted(pq.ParquetFile(file).read(), schema), kept, features)
        name = f"part-{number:06d}-{secrets.token_hex(8)}.parquet"
        path = place_of(folder) / name
        if not len(table):
            return _Part(name, (), 0, "", fingerprint_sums([], codes, features))
        _write_table(table, path)
        with opened(path) as file:
            metadata = pq.read_metadata(file)
        groups = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
        ones = pc.sum(pc.list_value_length(table[blockfile.CODES])).as_py() or 0
        sums = fingerprint_sums([rows_in(table, features)], codes, features)
        return _Part(name, tuple(groups), ones, blockfile.identity(path), sums)
    except ComorbError as error:
        return error
