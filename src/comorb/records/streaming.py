"""Streaming: records of any number become a cohort file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comorb.engines.blockfile import CODES, feature_columns, ones_of, read_group
from comorb.errors import EmptyCohortError, RecordsError
from comorb.model.arrays import Ints, Mask
from comorb.model.columns import moved_ones
from comorb.model.features import Feature
from comorb.records.archive import (
    CohortFile,
    as_table,
    feature_header,
    header_of,
    write_parts,
)
from comorb.records.asked import AnyAsked
from comorb.records.cohort import Cohort, new_places
from comorb.records.featuring import Holding, decide_all, feature_table, holding
from comorb.records.ledger import Ledger
from comorb.records.parts import Part, open_parts
from comorb.records.preparation import Preparation

READ = "read"


def write_cohort(
    source: Any,
    path: str | Path,
    preparation: Preparation | None = None,
    memory: str | None = None,
) -> None:
    """Read records of any number, select and drop, and write the cohort, in bounded memory.

    ``source`` is anything that `read_records` reads, ``memory`` about the most to hold, such as
    '2GB'. The file is one for `load_cohort` and `comorb.engines.open_blocks`.
    """
    path = Path(path)
    preparation = preparation or Preparation()
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


def select_cohort(source: CohortFile, path: str | Path, preparation: Preparation) -> None:
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


def summary_of(part: Cohort, schema: pa.Schema, preparation: Preparation) -> Summary:
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

    def __init__(self, preparation: Preparation, before: Ledger | None = None) -> None:
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
        drop_codes, drop_rare = self.preparation.drop_codes, self.preparation.drop_rare
        self.kept = self.counts > 0
        ledger = self.ledger.open("features", READ, len(self.kept))
        ledger = ledger.less("features", "in no record that is left", int((~self.kept).sum()))
        rules = {}
        if drop_codes:
            rules[self.last.dropping(drop_codes)] = self.last._matching(drop_codes)
        if drop_rare > 1:
            rules[f"fewer than {drop_rare} records"] = self.counts < drop_rare
        for rule, gone in rules.items():
            before, self.kept = int(self.kept.sum()), self.kept & ~gone
            ledger = ledger.add("features", rule, before, int(self.kept.sum()))
        if not ledger.left("records"):
            raise EmptyCohortError("No record is left after the rules; ask for less.")
        self.features, notes = decide_all(self.asked, self.held)
        ledger = self._after(ledger.noted(*notes))
        if not self.kept.any() and not self.features:
            raise RecordsError("No code is left of those that the records have; leave out fewer.")
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
    ones = moved_ones(*ones_of(table), new_places(kept))
    lists = pa.LargeListArray.from_arrays(*map(pa.array, ones))
    columns = dict(zip(table.column_names, table.columns, strict=True)) | {CODES: lists}
    if features:
        columns |= feature_columns(feature_table(features, table, len(table)))
    return pa.table(columns)
