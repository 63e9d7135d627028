"""Streaming: records of any number become a cohort file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from comorb.engines.blockfile import CODES, ones_of, read_group
from comorb.errors import RecordsError
from comorb.model.blocks import moved_ones
from comorb.records.archive import as_table, write_parts
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from comorb.records.parts import open_parts
from comorb.records.preparation import Preparation


def write_cohort(
    source: Any,
    path: str | Path,
    preparation: Preparation | None = None,
    memory: str | None = None,
) -> None:
    """Read records of any number, select and drop, and write the cohort, in bounded memory.

    Parameters
    ----------
    source : anything that `read_records` reads
        The records.
    path : path
        The cohort file, for `load_cohort` and `comorb.engines.open_blocks`.
    preparation : Preparation, optional
        How to read them and which to keep; by default those with at least 3 codes.
    memory : str, optional
        About the most to hold, such as '2GB'.
    """
    path = Path(path)
    preparation = preparation or Preparation()
    draft = path.with_name(f"{path.name}.draft")
    whole = _Whole()
    try:
        with open_parts(source, preparation, memory) as parts:
            tables = (whole.table(preparation.select(part)) for part in parts)
            write_parts(tables, draft, lambda: whole.about(whole.kept(preparation)))
        kept = whole.kept(preparation)
        if kept.all():
            draft.replace(path)
        else:
            write_parts(_without(draft, kept), path, lambda: whole.about(kept))
    finally:
        draft.unlink(missing_ok=True)


class _Whole:
    """What the parts add up to: the ledger, and how many records have each code."""

    def __init__(self) -> None:
        self.ledger: Ledger | None = None
        self.schema: pa.Schema | None = None

    def table(self, part: Cohort) -> pa.Table:
        """Count a part and return its rows, with the columns and types of the first part."""
        counts = part.counts()
        if self.ledger is None:
            self.counts, self.last, self.ledger = counts, part, part.ledger + Ledger()
        else:
            self.counts, self.ledger = self.counts + counts, self.ledger + part.ledger
        table = as_table(part)
        if self.schema is None:
            self.schema = table.schema
        missing = [name for name in self.schema.names if name not in table.column_names]
        for name in missing:
            table = table.append_column(name, pa.nulls(len(part), self.schema.field(name).type))
        return table.select(self.schema.names).cast(self.schema)

    def kept(self, preparation: Preparation) -> NDArray[np.bool_]:
        """Return which codes stay, with a line of the ledger for each rule."""
        kept = self.counts > 0
        self.lines = [("in no record that is left", int(kept.sum()))] if not kept.all() else []
        self.chosen = kept.copy()
        if preparation.drop_codes:
            named = self.last._matching(preparation.drop_codes)
            kept = kept & ~named
            self.lines.append((f"drop {' and '.join(preparation.drop_codes)}", int(kept.sum())))
        if preparation.drop_rare > 1:
            kept = kept & (self.counts >= preparation.drop_rare)
            self.lines.append((f"fewer than {preparation.drop_rare} records", int(kept.sum())))
        records = (self.ledger or Ledger()).left("records") or 0
        if not records:
            raise RecordsError("No record is left after the rules; ask for less.")
        if not kept.any():
            raise RecordsError(
                f"No code is left of those that {records:,} records have; leave out fewer."
            )
        return kept

    def about(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what the metadata of the file say."""
        codes, names = self.last.codes, self.last.names
        ledger = (self.ledger or Ledger()).open("features", "read", len(codes))
        for rule, left in self.lines:
            ledger = ledger.add("features", rule, ledger.left("features") or 0, left)
        stays = np.flatnonzero(kept)
        return {
            "codes": [codes[i] for i in stays],
            "names": [names[i] for i in stays],
            "left_out": sorted(codes[i] for i in np.flatnonzero(self.chosen & ~kept)),
            "system": self.last.system,
            "level": self.last.level,
            "least_codes": self.last.least_codes,
            "ledger": ledger.to_dict(),
        }


def _without(draft: Path, kept: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """Yield the rows of a block file without the codes that don't stay."""
    place = np.full(len(kept), -1, dtype=np.int32)
    place[kept] = np.arange(kept.sum(), dtype=np.int32)
    for number in range(pq.read_metadata(draft).num_row_groups):
        table = read_group(draft, number)
        indptr, indices = ones_of(table)
        lists = pa.LargeListArray.from_arrays(*map(pa.array, moved_ones(indptr, indices, place)))
        yield table.set_column(table.column_names.index(CODES), CODES, lists)
