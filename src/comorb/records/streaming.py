"""Streaming: records of any number become a cohort file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comorb.engines.blockfile import CODES, feature_columns, ones_of, read_group
from comorb.errors import EmptyCohortError, RecordsError
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
    whole = _Whole(preparation)
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
    whole = _Whole(preparation, source.ledger)
    blocks = range(len(source.blocks(()).loaders))
    parts = (Part(**vars(source.part(number, 0, 0))) for number in blocks)
    try:
        write_parts((whole.table(preparation.select(part)) for part in parts), draft, whole.finish)
        write_parts(_finished(draft, whole), path, lambda: whole.header)
    finally:
        draft.unlink(missing_ok=True)


class _Whole:
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
        self.last = part
        self.ledger = self.ledger + part.ledger
        table = as_table(part)
        if self.schema is None:
            self.schema, self.counts = table.schema, np.zeros_like(part.counts())
            self.asked = self.preparation.asked(part)
            self.held = [Holding()] * len(self.asked)
        self.counts += part.counts()
        found = [holding(one, part.covariates) for one in self.asked]
        self.held = [one + more for one, more in zip(self.held, found, strict=True)]
        for name in set(self.schema.names) - set(table.column_names):
            table = table.append_column(name, pa.nulls(len(part), self.schema.field(name).type))
        return table.select(self.schema.names).cast(self.schema)

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


def _finished(draft: Path, whole: _Whole) -> Iterator[pa.Table]:
    """Yield the rows of a block file without the codes that don't stay, and with the features."""
    for number in range(pq.read_metadata(draft).num_row_groups):
        table = read_group(draft, number)
        ones = moved_ones(*ones_of(table), new_places(whole.kept))
        lists = pa.LargeListArray.from_arrays(*map(pa.array, ones))
        columns = dict(zip(table.column_names, table.columns, strict=True)) | {CODES: lists}
        if whole.features:
            columns |= feature_columns(feature_table(whole.features, table, len(table)))
        yield pa.table(columns)
