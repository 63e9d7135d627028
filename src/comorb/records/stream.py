"""Stream: records of any number become a cohort file, part by part, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from comorb.records.cohort_file import CohortFile, as_table, feature_header, header_of, write_parts
from comorb.records.features import (
    AnyFeature,
    ColumnSummary,
    decide_features,
    feature_table,
    summarise_column,
)
from comorb.records.join import open_joining
from comorb.records.layouts.assembly import Encode, make_encoder
from comorb.records.layouts.plan import Plan, plan_by_date
from comorb.records.ledger import NO_UNIQUE_ID, Ledger, relaxed_note
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import OpenedSource, add_rows, quote
from comorb.records.sources.open import open_source
from comorb.records.spec import CohortSpec

PART_ROWS = 1 << 18
_ROW = "row number"
_SIZE = re.compile(r"\s*([0-9.]+)\s*([KMGT]i?B)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Part(Cohort):
    """Some of the records of a cohort: a rule may leave none of them, and every code stays."""

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        return self.only(mask, rule)

    def relax_least(self) -> Cohort:
        """Return the part: how many codes a record needs is decided for the whole cohort."""
        return self


class TooFewCodesError(Exception):
    """Most records have fewer codes than they need; ``least`` is one less."""

    def __init__(self, least: int) -> None:
        super().__init__(least)
        self.least = least


def relax_least(write: Callable[[int | None], None]) -> None:
    """Write a cohort, again with fewer codes that a record needs while most have too few."""
    least = None
    while True:
        try:
            return write(least)
        except TooFewCodesError as error:
            least = error.least


@contextmanager
def open_parts(
    source: Any, spec: CohortSpec, memory: str | None = None
) -> Iterator[Iterator[Part]]:
    """Open a source as parts of one cohort, before any rule; all of them have the same codes.

    ``memory`` is about the most to hold, such as '2GB'; a quarter of it is for DuckDB, of which
    each source has an equal share.
    """
    kind, records, auxiliary = spec.sources(source)
    share, size = memory, _SIZE.fullmatch(memory or "")
    if size:
        share = f"{float(size[1]) / (4 * (1 + len(auxiliary)))}{size[2]}"
    with open_source(records, share) as opened:
        read = spec.plan(opened, kind)
        with open_joining(records, opened, read, auxiliary, spec.level, share) as joining:
            parts = _read_parts(opened, *plan_parts(opened, read, spec), spec.coding)
            yield (joining.join(part) for part in parts)


def plan_parts(opened: OpenedSource, read: Plan, spec: CohortSpec) -> tuple[Plan, Ledger, Encode]:
    """Return how parts of a source are read: the plan, the first ledger lines, and the encoder."""
    plan, begun = _with_id(opened, read)
    begun = begun.noted(*plan.notes, *opened.notes, *plan.storage_notes(opened))
    raws = _count_codes(opened, plan)
    vocabulary = plan.vocabulary(raws, spec.own_system, spec.coding)
    if vocabulary.undecided and (by_date := plan_by_date(opened, plan)):
        plan, raws = by_date, _count_codes(opened, by_date)
        vocabulary = plan.vocabulary(raws, spec.own_system, spec.coding)
    return plan, begun, make_encoder(raws, vocabulary)


def _count_codes(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    question = f"codes {plan.layout.codes} by {plan.layout.version} in {plan.table.sql}"
    return source.answer_whole(question, lambda: plan.reader.count(source, plan), _add_counts)


def _add_counts(one: dict[Raw, int], two: dict[Raw, int]) -> dict[Raw, int]:
    total = Counter(one)
    total.update(two)
    return dict(sorted(total.items(), key=lambda pair: (pair[0][0] or "", pair[0][1])))


def _with_id(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    """Return how to read the rows that belong to a record, and a ledger of the others."""
    table, column = plan.table, plan.id_column
    if column is None:
        return _number_rows(source, plan)
    name = quote(column)
    ((total, known),) = source.query_whole(
        table, f"SELECT count(*), count({name}) FROM {table.sql}", add_rows
    )
    if not total:
        raise RecordsError("source.no_rows", table=table.label)
    if not plan.has_several_rows:
        distinct = f"SELECT count(*) FROM (SELECT {name} FROM {table.sql} GROUP BY 1) WHERE {name}"
        ((different,),) = source.query_whole(table, f"{distinct} IS NOT NULL", add_rows)
        if different < total and column == plan.layout.patient:
            return _number_rows(source, plan)
        if different < known:
            plan = _join_lines(source, plan, known - different)
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


def _join_lines(source: OpenedSource, plan: Plan, again: int) -> Plan:
    """Return the plan that unites the lines of a stay; refuse ids that repeat otherwise."""
    table, name = plan.table, quote(plan.id_column or "")
    every = ", ".join(map(quote, table.columns))
    same = [f"count(DISTINCT coalesce({table.text_sql(one)}, '')) = 1" for one in plan.stay_columns]
    lines = (
        f"SELECT count(DISTINCT hash({every})) = 1 AS equal, {' AND '.join(same) or 'false'} AS one"
    )
    ids = f"({lines} FROM {table.sql} WHERE {name} IS NOT NULL GROUP BY {name} HAVING count(*) > 1)"
    picks = "count(*), count(*) FILTER (equal), count(*) FILTER (one)"
    ((n, equal, one),) = source.query_whole(table, f"SELECT {picks} FROM {ids}", add_rows)
    if n == equal or one < n:
        raise RecordsError("stream.repeated", table=table.label, n=again, column=plan.id_column)
    note = Message("note.lines_of_stay", column=plan.id_column, n=n, same=plan.stay_columns)
    return replace(plan, lines=True, notes=(*plan.notes, note))


def _number_rows(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    table = source.view(plan.table.label, source.numbered_sql(plan.table, _ROW), plan.table.text)
    layout = replace(plan.layout, record=_ROW)
    return replace(plan, table=table, layout=layout), Ledger(notes=(NO_UNIQUE_ID,))


def _ordered_sql(plan: Plan) -> str:
    """Return the SQL of a table with the rows of each record together."""
    order = f" ORDER BY {quote(plan.id_column or '')}" if plan.has_several_rows else ""
    return f"SELECT * FROM {plan.table.sql}{order}"


def _split_rows(source: OpenedSource, plan: Plan) -> Iterator[pa.Table]:
    """Yield the rows of a table in parts; all rows of a record are in the same part."""
    key, several = plan.id_column or "", plan.has_several_rows
    held: list[pa.RecordBatch] = []
    for batch in source.batches(plan.table, _ordered_sql(plan), PART_ROWS):
        held.append(batch)
        if sum(map(len, held)) < PART_ROWS:
            continue
        whole = pa.Table.from_batches(held)
        end = pc.index(whole[key], whole[key][-1]).as_py() if several else len(whole)
        if end:
            yield whole.slice(0, end)
            held = whole.slice(end).combine_chunks().to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _read_parts(
    source: OpenedSource, plan: Plan, begun: Ledger, encode: Encode, coding: Coding
) -> Iterator[Part]:
    """Yield the cohort of each part of the rows."""
    empty = True
    for table in _split_rows(source, plan):
        with source.connection.cursor() as connection:
            own = OpenedSource(source.label, connection)
            part = replace(plan, table=register_table(own, plan.table.label, table))
            assembly = part.reader.read(own, part, encode)
            cohort = part.cohort(assembly, coding, Part)
        ledger = (cohort.ledger + begun).open("features", Message("ledger.read"), len(cohort.codes))
        begun = Ledger()
        empty = empty and not (len(cohort) and cohort.codes)
        yield replace(cohort, ledger=ledger)
    if empty:
        plan.check_usable(assembly)


def read_partition(
    source: OpenedSource, plan: Plan, encode: Encode, coding: Coding
) -> tuple[Part, RecordsError | None] | None:
    """Return the cohort of all rows of a partition, and why it is of no use; None without rows."""
    batches = list(source.batches(plan.table, _ordered_sql(plan)))
    if not batches:
        return None
    table = register_table(source, plan.table.label, pa.Table.from_batches(batches))
    part = replace(plan, table=table)
    assembly = part.reader.read(source, part, encode)
    try:
        part.check_usable(assembly)
    except RecordsError as error:
        return part.cohort(assembly, coding, Part), error
    return part.cohort(assembly, coding, Part), None


READ = Message("ledger.read")


def write_cohort(
    source: Any, path: str | Path, preparation: CohortSpec | None = None, memory: str | None = None
) -> None:
    """Read records of any number, select and drop, and write the cohort, in bounded memory.

    ``source`` is anything that `read_records` reads, ``memory`` about the most to hold, such as
    '2GB'. The file is one for `load_cohort` and `comorb.engines.open_blocks`.
    """
    spec = preparation or CohortSpec()
    relax_least(
        lambda least: _write_selected(open_parts(source, spec, memory), Path(path), spec, least)
    )


def select_cohort(source: CohortFile, path: str | Path, spec: CohortSpec) -> None:
    """Write the cohort that rules leave of a cohort file, block by block; see `write_cohort`.

    The codes are those of the file: rules on the coding of records need the records themselves.
    """
    blocks = range(len(source.blocks(()).loaders))

    def write(least: int | None) -> None:
        parts = (Part(**vars(source.part(number, 0, 0))) for number in blocks)
        _write_selected(nullcontext(parts), Path(path), spec, least, source.ledger)

    relax_least(write)


def _write_selected(
    opening: AbstractContextManager[Iterator[Part]],
    path: Path,
    spec: CohortSpec,
    least: int | None,
    before: Ledger | None = None,
) -> None:
    """Write the records that rules leave to a draft, then the codes that stay to a file."""
    draft = path.with_name(f"{path.name}.draft")
    whole = CohortSum(spec, before, least)
    try:
        with opening as parts:  # when a source is closed, it is refused if it has changed
            chosen = (select_part(part, spec, least) for part in parts)
            write_parts(map(whole.table, chosen), draft, whole.finish)
        if whole.kept.all() and not whole.features:
            draft.replace(path)
        else:
            groups = range(pq.read_metadata(draft).num_row_groups)
            tables = (read_group(draft, number) for number in groups)
            finished = (finish_rows(table, whole.kept, whole.features) for table in tables)
            write_parts(finished, path, lambda: whole.header)
    finally:
        draft.unlink(missing_ok=True)


def select_part(part: Cohort, spec: CohortSpec, least: int | None) -> Cohort:
    """Return the records of a part that meet the rules, with ``least`` codes if it is given."""
    return spec.select(part if least is None else replace(part, least_codes=least))


@dataclass(frozen=True)
class Summary:
    """A part of a cohort without its records: its ledger, and figures that add up over parts."""

    cohort: Cohort  # without records
    ledger: Ledger
    schema: pa.Schema  # of its rows in a file
    counts: Ints
    specs: tuple[AnyFeature, ...]
    columns: tuple[ColumnSummary, ...]

    def __add__(self, other: Summary) -> Summary:
        columns = zip(self.columns, other.columns, strict=True)
        return replace(
            self,
            ledger=self.ledger + other.ledger,
            counts=self.counts + other.counts,
            columns=tuple(one + two for one, two in columns),
        )


def summarise(part: Cohort, schema: pa.Schema, spec: CohortSpec) -> Summary:
    """Return the summary of a part."""
    specs = spec.feature_specs(part)
    columns = tuple(summarise_column(one, part.covariates) for one in specs)
    none = part.only(np.zeros(len(part), dtype=bool), "")
    return Summary(none, part.ledger, schema, part.counts(), specs, columns)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema, null where they have none."""
    for name in set(schema.names) - set(table.column_names):
        table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
    return table.select(schema.names).cast(schema)


class CohortSum:
    """The sum of the parts of a cohort, of which one at least is added.

    `finish` decides which codes are ``kept``, the ``features``, and the ``header`` of the file.
    ``before`` is the ledger of a cohort that the parts belong to; ``least`` is how many codes a
    record needs, where that was relaxed.
    """

    total: Summary
    kept: Mask
    features: tuple[Feature, ...]
    header: dict[str, Any]

    def __init__(
        self, spec: CohortSpec, before: Ledger | None = None, least: int | None = None
    ) -> None:
        self.spec, self.before, self.least = spec, before, least

    def table(self, part: Cohort) -> pa.Table:
        """Add a part and return its rows, with the columns and types of the first part."""
        table = as_table(part)
        self.add(summarise(part, table.schema, self.spec))
        return conform(table, self.total.schema)

    def add(self, part: Summary) -> None:
        """Add a part."""
        self.total = self.total + part if hasattr(self, "total") else part

    def finish(self) -> dict[str, Any]:
        """Decide which codes stay and what becomes a feature, and return the header."""
        cohort, counts = self.total.cohort, self.total.counts
        ledger = (Ledger() + self.total.ledger).open("features", READ, len(counts))
        limit = Message("ledger.at_least", limit=cohort.least_codes)
        for line in ledger.lines if self.spec.at_least is None else ():
            if line.rule == limit and 2 * line.after < line.before:
                raise TooFewCodesError(cohort.least_codes - 1)
        if self.least is not None:
            ledger = ledger.noted(relaxed_note(self.least))
        rules = self.spec.drop_rules(cohort, lambda: counts)
        self.kept, ledger = follow_rules(rules, counts > 0, ledger)
        if not ledger.left("records"):
            raise EmptyCohortError("cohort.empty_rules")
        self.features, notes = decide_features(self.total.specs, self.total.columns)
        ledger = ledger.noted(*notes)
        if self.before is not None:
            lines = (*self.before.lines, *(one for one in ledger.lines if one.rule != READ))
            notes = tuple(dict.fromkeys((*self.before.notes, *ledger.notes)))
            ledger = replace(self.before, lines=lines, notes=notes)
        if not self.kept.any() and not self.features:
            raise RecordsError("cohort.no_code_left")
        codes, names = np.array(cohort.codes), np.array(cohort.names)
        self.header = header_of(cohort) | {
            "codes": codes[self.kept].tolist(),
            "names": names[self.kept].tolist(),
            "left_out": sorted(codes[(counts > 0) & ~self.kept].tolist()),
            "ledger": ledger.to_dict(),
            **feature_header(self.features),
        }
        return self.header


def finish_rows(table: pa.Table, kept: Mask, features: tuple[Feature, ...]) -> pa.Table:
    """Return rows of a block file without the codes that aren't kept, and with the features."""
    ones = move_columns(*ones_of(table), new_places(kept))
    lists = pa.LargeListArray.from_arrays(*map(pa.array, ones))
    columns = dict(zip(table.column_names, table.columns, strict=True)) | {CODES: lists}
    if features:
        columns |= feature_columns(feature_table(features, table, len(table)))
    return pa.table(columns)
