"""Codes beside the records: drugs, procedures and other kinds, as features of the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from comorb.errors import RecordsError
from comorb.records.beside import Beside
from comorb.records.codes.coding import Coding
from comorb.records.codes.systems import PROCEDURES
from comorb.records.codes.vocabulary import Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import as_matrix
from comorb.records.keys import RECORD, Key, Match, joined_rows, kept, match, rows_of
from comorb.records.layouts.assembly import Encode, encoder
from comorb.records.layouts.coded import names_beside, system_of
from comorb.records.layouts.description import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import plan_reading
from comorb.records.sources.duck import OpenedSource, as_text, quoted
from comorb.records.sources.frames import register_table


@dataclass(frozen=True, eq=False)
class CodesBeside:
    """A table of codes of one kind that is joined to the records by a key.

    ``codes`` are the features, such as 'drug:A10B'; ``notes`` are for the ledger.
    """

    key: Key
    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    notes: tuple[str, ...]
    source: OpenedSource
    plan: Plan
    encode: Encode

    def features(self, keys: pa.Array) -> csr_array[Any]:
        """Return which features the records with these keys have, a row each."""
        rows = rows_of(self.source, self.plan.table, keys)
        if not len(rows):
            return as_matrix(np.zeros(len(keys) + 1, np.int64), np.empty(0, np.int32), self.width)
        with self.source.connection.cursor() as connection:
            own = OpenedSource(self.source.label, connection)
            table = register_table(own, self.plan.table.label, rows)
            plan = replace(self.plan, table=table)
            assembly = plan.reader.read(own, plan, self.encode)
        places = pc.index_in(keys, assembly.ids)
        known = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        picked = assembly.matrix[places.drop_null().to_numpy()]
        counts = np.zeros(len(keys), np.int64)
        counts[known] = np.diff(picked.indptr)
        return as_matrix(np.append(0, np.cumsum(counts)), picked.indices, self.width)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.codes)


def open_codes(
    source: OpenedSource, beside: Beside, keys: Sequence[Key], levels: tuple[str, ...]
) -> CodesBeside:
    """Find out how codes of a kind are read and joined, and which features they become."""
    plan = plan_reading(source, beside.table, beside.layout, None, whole=True, kind=beside.kind)
    table = plan.table
    if table.text:
        table = kept(source, table, f"SELECT * FROM {table.sql}", "beside_rows")
    found = match(source, table, beside, plan.layout, keys)
    titles = plan.titles
    (code, *more) = plan.layout.codes or ("",)
    if not more and plan.reader.kind in ("long", "delimited"):
        titles = {**names_beside(source, table, code), **titles}
    doubts = [*plan.notes, *source.notes, *plan.doubts(source)]
    plan = _joined(source, replace(plan, table=table), beside.kind, found)
    raws = plan.reader.count(source, plan)
    vocabulary = _vocabulary(plan, raws, beside, levels, titles)
    columns = ", ".join(map(repr, (plan.layout.codes or ())[:12]))
    if not vocabulary.codes:
        raise RecordsError(
            f"{table.label}: the columns {columns} hold no usable code of the kind "
            f"{beside.kind!r}; check the columns and the coding system."
        )
    return CodesBeside(
        found.key,
        tuple(f"{beside.kind}:{one}" for one in vocabulary.codes),
        vocabulary.names,
        f"{beside.kind}:{vocabulary.system}",
        (
            found.told(beside.kind),
            *(f"{beside.kind}: {note}" for note in doubts),
            *(f"{beside.kind}: {note}" for note in _losses(source, plan, raws, vocabulary)),
            *(f"{beside.kind}: {note}" for note in vocabulary.notes),
        ),
        source,
        plan,
        encoder(raws, vocabulary),
    )


def _joined(source: OpenedSource, plan: Plan, kind: str, found: Match) -> Plan:
    """Return how to read the codes of the rows that match, the key of a record as their id."""
    layout, columns = plan.layout, plan.table.columns
    picks = []
    for name in layout.codes or ():
        text = as_text(name, columns[name])
        # NDC has no code 0, which stands for none in exports.
        plain = f"CASE WHEN NOT regexp_full_match(trim({text}), '0+') THEN {text} END"
        picks.append(f"{plain if kind == 'drug' else text} AS {quoted(name)}")
    if plan.reader.kind == "binary":
        picks = [quoted(name) for name in layout.codes or ()]
    if layout.version is not None:
        picks.append(quoted(layout.version))
    table = kept(source, plan.table, joined_rows(plan.table, found, picks), "beside_joined")
    own = Layout(layout.kind, layout.codes, patient=RECORD, version=layout.version)
    own = replace(own, separator=layout.separator)
    return replace(plan, table=table, layout=own, unit="patient")


def _vocabulary(
    plan: Plan,
    raws: dict[Raw, int],
    beside: Beside,
    levels: tuple[str, ...],
    titles: Mapping[str, str],
) -> Vocabulary:
    """Return the features of the raw codes; a version of the ICD means that of its procedures."""

    def own(raw: Raw) -> Raw:
        said, code = raw
        return (PROCEDURES.get(said, said) if said and beside.kind == "procedure" else said, code)

    counts, texts = Counter[Raw](), Counter[str]()
    for raw, count in raws.items():
        counts[own(raw)] += count
        texts[raw[1]] += count
    system = beside.system or plan.system
    if system is None or "+" in system:
        system = system_of(beside.kind, texts)
    made = build_vocabulary(counts, system, Coding(levels), titles)
    number = {raw: place for place, raw in enumerate(counts)}
    return made.at([number[own(raw)] for raw in raws])


def _losses(
    source: OpenedSource, plan: Plan, raws: dict[Raw, int], vocabulary: Vocabulary
) -> list[str]:
    """Return what the ledger says of rows and codes that are of no use."""
    counts = np.fromiter(raws.values(), np.int64, len(raws))
    lost = {f"{count:,} rows {reason}": count for reason, count in plan.removed.items()}
    if plan.reader.by_code:
        ((rows,),) = source.rows(plan.table, f"SELECT count(*) FROM {plan.table.sql}")
        without = rows - int(counts[~vocabulary.missing].sum())
        lost[f"{without:,} rows that matched have no code"] = without
    for reason, count in vocabulary.lost(counts).items():
        lost[f"{count:,} codes left out: {reason}"] = count
    return [text for text, count in lost.items() if count]
