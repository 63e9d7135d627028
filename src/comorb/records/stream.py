"""Stream: records that don't fit in memory become a cohort file, part by part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comorb.engines.block_files import CODES, feature_columns, ones_of, read_group
from comorb.errors import EmptyCohortError, RecordsError
from comorb.messages import Message
from comorb.model.arrays import Ints, Mask
from comorb.model.blocks import move_columns
from comorb.model.emissions.base import Feature
from comorb.records.codes.vocabulary import Coding, Raw
from comorb.records.cohort import Cohort, follow_rules, new_places
from comorb.records.cohort_file import (
    CohortFile,
    as_table,
    feature_header,
    header_of,
    write_parts,
)
from comorb.records.features import AnyAsked, Holding, decide_all, feature_table, holding
from comorb.records.join import open_joining
from comorb.records.layouts.assembly import Encode, make_encoder
from comorb.records.layouts.plan import Plan, plan_by_date
from comorb.records.ledger import NO_UNIQUE_ID, Ledger
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import OpenedSource, add_rows, quote
from comorb.records.sources.open import open_source
from comorb.records.spec import CohortSpec

PART_ROWS = 1 << 18
_ROW = "row number"
_SIZE = re.compile(r"\s*([0-9.]+)\s*([KMGT]i?B)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Part(Cohort):
    """Some of the records of a cohort: no rule has to leave any of them, and no code goes."""

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        return self._take(mask, rule)


@contextmanager
def open_parts(
    source: Any, preparation: CohortSpec, memory: str | None = None
) -> Iterator[Iterator[Part]]:
    """Open a source as parts of one cohort, before any rule; all of them have the same codes.

    ``memory`` is about the most to hold, such as '2GB'; a quarter of it is for DuckDB, of which
    each source has an equal share.
    """
    kind, records, besides = preparation.sources(source)
    share = _share(memory, 4 * (1 + len(besides)))
    with open_source(records, share) as opened:
        read = preparation.plan(opened, kind)
        with open_joining(records, opened, read, besides, preparation.level, share) as joining:
            parts = _cohorts(opened, *plan_parts(opened, read, preparation), preparation.coding)
            yield (joining.join(part) for part in parts)


def plan_parts(
    opened: OpenedSource, read: Plan, preparation: CohortSpec
) -> tuple[Plan, Ledger, Encode]:
    """Return how parts of a source are read: the plan, what is known of all, and their codes."""
    plan, begun = _with_id(opened, read)
    begun = begun.noted(*plan.notes, *opened.notes, *plan.storage_notes(opened))
    raws = _count(opened, plan)
    vocabulary = plan.vocabulary(raws, preparation.own_system, preparation.coding)
    if vocabulary.undecided and (by_date := plan_by_date(opened, plan)):
        plan, raws = by_date, _count(opened, by_date)
        vocabulary = plan.vocabulary(raws, preparation.own_system, preparation.coding)
    return plan, begun, make_encoder(raws, vocabulary)


def _count(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    question = f"codes {plan.layout.codes} by {plan.layout.version} in {plan.table.sql}"
    return source.answer_whole(question, lambda: plan.reader.count(source, plan), _counted_in_both)


def _counted_in_both(one: dict[Raw, int], two: dict[Raw, int]) -> dict[Raw, int]:
    total = Counter(one)
    total.update(two)
    return dict(sorted(total.items(), key=lambda pair: (pair[0][0] or "", pair[0][1])))


def _with_id(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    """Return how to read the rows that belong to a record, and what became of the others."""
    table, column = plan.table, plan.id_column
    if column is None:
        return _numbered(source, plan)
    name = quote(column)
    ((total, known),) = source.query_whole(
        table, f"SELECT count(*), count({name}) FROM {table.sql}", add_rows
    )
    if not total:
        raise RecordsError("source.no_rows", table=table.label)
    if not _apart(plan):
        distinct = f"SELECT count(*) FROM (SELECT {name} FROM {table.sql} GROUP BY 1) WHERE {name}"
        ((different,),) = source.query_whole(table, f"{distinct} IS NOT NULL", add_rows)
        if different < total and column == plan.layout.patient:
            return _numbered(source, plan)
        if different < known:
            raise RecordsError(
                "stream.repeated", table=table.label, n=known - different, column=column
            )
    if not known:
        raise plan.missing_ids_error()
    gone = {**plan.removed, Message("ledger.no_id"): total - known}
    begun = Ledger().open("rows", Message("ledger.read"), sum(gone.values()))
    for rule, count in gone.items():
        begun = begun.less("rows", rule, count)
    if known < total:
        held = f"SELECT * FROM {table.sql} WHERE {name} IS NOT NULL"
        table = source.view(table.label, held, table.text)
    return replace(plan, table=table, removed={}), begun


def _numbered(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    table = source.view(plan.table.label, source.numbered_sql(plan.table, _ROW), plan.table.text)
    layout = replace(plan.layout, record=_ROW)
    return replace(plan, table=table, layout=layout), Ledger(notes=(NO_UNIQUE_ID,))


def _apart(plan: Plan) -> bool:
    """Tell whether the rows of a record may lie apart."""
    return plan.reader.by_code or plan.unit == "patient" or plan.layout.part is not None


def _tables(source: OpenedSource, plan: Plan) -> Iterator[pa.Table]:
    """Yield the rows of a table; all rows of a record are in the same one."""
    table, key, apart = plan.table, plan.id_column or "", _apart(plan)
    order = f" ORDER BY {quote(key)}" if apart else ""
    held: list[pa.RecordBatch] = []
    for batch in source.batches(table, f"SELECT * FROM {table.sql}{order}", PART_ROWS):
        held.append(batch)
        if sum(map(len, held)) < PART_ROWS:
            continue
        whole = pa.Table.from_batches(held)
        end = pc.index(whole[key], whole[key][-1]).as_py() if apart else len(whole)
        if end:
            yield whole.slice(0, end)
            held = whole.slice(end).combine_chunks().to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _cohorts(
    source: OpenedSource, plan: Plan, begun: Ledger, encode: Encode, coding: Coding
) -> Iterator[Part]:
    """Yield the cohort of each part of the rows."""
    empty = True
    for table in _tables(source, plan):
        with source.connection.cursor() as connection:
            own = OpenedSource(source.label, connection)
            read = register_table(own, plan.table.label, table)
            part = replace(plan, table=read)
            assembly = part.reader.read(own, part, encode)
            cohort = part.cohort(assembly, coding, Part)
        ledger = (cohort.ledger + begun).open("features", Message("ledger.read"), len(cohort.codes))
        begun = Ledger()
        empty = empty and not (len(cohort) and cohort.codes)
        yield replace(cohort, ledger=ledger)
    if empty:
        plan.check_usable(assembly)


def read_portion(
    source: OpenedSource, plan: Plan, encode: Encode, coding: Coding
) -> tuple[Part, RecordsError | None] | None:
    """Return the cohort of all rows of a portion, and why it is of no use; None without rows."""
    order = f" ORDER BY {quote(plan.id_column or '')}" if _apart(plan) else ""
    table = plan.table
    batches = list(source.batches(table, f"SELECT * FROM {table.sql}{order}"))
    if not batches:
        return None
    held = register_table(source, table.label, pa.Table.from_batches(batches))
    part = replace(plan, table=held)
    assembly = part.reader.read(source, part, encode)
    try:
        part.check_usable(assembly)
    except RecordsError as error:
        return part.cohort(assembly, coding, Part), error
    return part.cohort(assembly, coding, Part), None


def _share(memory: str | None, among: int) -> str | None:
    size = _SIZE.fullmatch(memory or "")
    return f"{float(size[1]) / among}{size[2]}" if size else memory


READ = Message("ledger.read")


def write_cohort(
    source: Any, path: str | Path, preparation: CohortSpec | None = None, memory: str | None = None
) -> None:
    """Read records of any number, select and drop, and write the cohort, in bounded memory.

    ``source`` is anything that `read_records` reads, ``memory`` about the most to hold, such as
    '2GB'. The file is one for `load_cohort` and `comorb.engines.open_blocks`.
    """
    path = Path(path)
    preparation = preparation or CohortSpec()
    draft = path.with_name(f"{path.name}.draft")
    whole = CohortSum(preparation)
    try:
        with open_parts(source, preparation, memory) as parts:
            tables = (whole.table(preparation.select(part)) for part in parts)
            write_parts(tables, draft, whole.finish)
        if whole.kept.all() and not whole.features:
            draft.replace(path)
        else:
            write_parts(_finished(draft, whole), path, lambda: whole.header)
    finally:
        draft.unlink(missing_ok=True)


def select_cohort(source: CohortFile, path: str | Path, preparation: CohortSpec) -> None:
    """Write the cohort that rules leave of a cohort file, block by block; see `write_cohort`.

    The codes are those of the file: rules that ask for others are for the records themselves.
    """
    path = Path(path)
    draft = path.with_name(f"{path.name}.draft")
    whole = CohortSum(preparation, source.ledger)
    blocks = range(len(source.blocks(()).loaders))
    parts = (Part(**vars(source.part(number, 0, 0))) for number in blocks)
    try:
        write_parts((whole.table(preparation.select(part)) for part in parts), draft, whole.finish)
        write_parts(_finished(draft, whole), path, lambda: whole.header)
    finally:
        draft.unlink(missing_ok=True)


@dataclass(frozen=True)
class Summary:
    """What a part adds to the whole: the cohort of none of its records, its ledger, and figures."""

    cohort: Cohort
    ledger: Ledger
    schema: pa.Schema
    counts: Ints
    asked: tuple[AnyAsked, ...]
    held: tuple[Holding, ...]


def summary_of(part: Cohort, schema: pa.Schema, preparation: CohortSpec) -> Summary:
    """Return what a part, whose rows have a schema in the file, adds to the whole."""
    asked = preparation.asked(part)
    held = tuple(holding(one, part.covariates) for one in asked)
    none = part._take(np.zeros(len(part), dtype=bool), "")
    return Summary(none, part.ledger, schema, part.counts(), asked, held)


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema, null where they have none."""
    for name in set(schema.names) - set(table.column_names):
        table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
    return table.select(schema.names).cast(schema)


class CohortSum:
    """What the parts add up to: the ledger, and how many records have each code.

    At the end, ``kept`` are the codes that stay, and ``header`` are the metadata of the file.
    """

    def __init__(self, preparation: CohortSpec, before: Ledger | None = None) -> None:
        self.preparation, self.before = preparation, before
        self.ledger = Ledger()
        self.schema: pa.Schema | None = None
        self.asked: tuple[AnyAsked, ...] = ()
        self.held: list[Holding] = []
        self.features: tuple[Feature, ...] = ()

    def table(self, part: Cohort) -> pa.Table:
        """Count a part and return its rows, with the columns and types of the first part."""
        table = as_table(part)
        return fitted(table, self.add(summary_of(part, table.schema, self.preparation)))

    def add(self, part: Summary) -> pa.Schema:
        """Count a part and return the columns and types of the first one."""
        self.last = part.cohort
        self.ledger = self.ledger + part.ledger
        if self.schema is None:
            self.schema, self.counts = part.schema, np.zeros_like(part.counts)
            self.asked = part.asked
            self.held = [Holding()] * len(self.asked)
        self.counts += part.counts
        self.held = [one + more for one, more in zip(self.held, part.held, strict=True)]
        return self.schema

    def finish(self) -> dict[str, Any]:
        """Decide which codes stay and what features are, and return what the metadata say."""
        self.kept = self.counts > 0
        ledger = self.ledger.open("features", READ, len(self.kept))
        ledger = ledger.less("features", Message("ledger.in_no_record"), int((~self.kept).sum()))
        rules = self.preparation.dropped(self.last, lambda: self.counts)
        self.kept, ledger = follow_rules(rules, self.kept, ledger)
        if not ledger.left("records"):
            raise EmptyCohortError("cohort.empty_rules")
        self.features, notes = decide_all(self.asked, self.held)
        ledger = self._after(ledger.noted(*notes))
        if not self.kept.any() and not self.features:
            raise RecordsError("cohort.no_code_left")
        codes, names = np.array(self.last.codes), np.array(self.last.names)
        self.header = header_of(self.last) | {
            "codes": codes[self.kept].tolist(),
            "names": names[self.kept].tolist(),
            "left_out": sorted(codes[(self.counts > 0) & ~self.kept].tolist()),
            "ledger": ledger.to_dict(),
            **feature_header(self.features),
        }
        return self.header

    def _after(self, ledger: Ledger) -> Ledger:
        """Return the ledger after that of a cohort which the parts are of, where they are."""
        if self.before is None:
            return ledger
        lines = tuple(line for line in ledger.lines if line.rule != READ)
        notes = dict.fromkeys((*self.before.notes, *ledger.notes))
        return replace(self.before, lines=(*self.before.lines, *lines), notes=tuple(notes))


def _finished(draft: Path, whole: CohortSum) -> Iterator[pa.Table]:
    """Yield the rows of a block file without the codes that don't stay, and with the features."""
    for number in range(pq.read_metadata(draft).num_row_groups):
        yield finished(read_group(draft, number), whole.kept, whole.features)


def finished(table: pa.Table, kept: Mask, features: tuple[Feature, ...]) -> pa.Table:
    """Return rows of a block file without the codes that aren't kept, and with the features."""
    ones = move_columns(*ones_of(table), new_places(kept))
    lists = pa.LargeListArray.from_arrays(*map(pa.array, ones))
    columns = dict(zip(table.column_names, table.columns, strict=True)) | {CODES: lists}
    if features:
        columns |= feature_columns(feature_table(features, table, len(table)))
    return pa.table(columns)
