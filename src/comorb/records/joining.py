"""Joining: what is read beside the records becomes features and covariates of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from scipy.sparse import hstack, vstack

from comorb.records.beside import Beside, in_the_records, refuse_the_same_twice, table_of
from comorb.records.beside_codes import CodesBeside, open_codes
from comorb.records.beside_covariates import BIRTHS, CovariatesBeside, ages, open_covariates
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.keys import keys_of
from comorb.records.layouts.covariates import shown_names
from comorb.records.layouts.plan import Plan
from comorb.records.ledger import Ledger
from comorb.records.sources.duck import OpenedSource
from comorb.records.sources.opening import open_source

C = TypeVar("C", bound=Cohort)

SLICE = 1 << 18
AGE_NOTE = (
    "ages are the full years from the date of birth to that of the record; ages under 0 or over "
    "130 are missing"
)
NO_AGE_NOTE = "a date of birth is there, but no date of the record, so ages are not known"


@dataclass(frozen=True, eq=False)
class Joining:
    """The sources beside some records, opened; see `open_joining`."""

    tables: tuple[CovariatesBeside, ...] = ()
    codes: tuple[CodesBeside, ...] = ()

    def join(self, cohort: C) -> C:
        """Return records with the features and covariates of the other sources.

        All features are there, also those that none of these records has.
        """
        if self.tables:
            cohort = self._with_covariates(cohort)
        return self._with_features(cohort) if self.codes else cohort

    def _with_covariates(self, cohort: C) -> C:
        columns = dict(zip(cohort.covariates.column_names, cohort.covariates.columns, strict=True))
        births: dict[str, pa.ChunkedArray] = {}
        notes: list[str] = []
        for one in self.tables:
            notes += one.notes
            table = pa.concat_tables(one.columns(keys) for keys in _slices(one.key.values(cohort)))
            columns |= {shown: table[name] for name, shown in one.names.items()}
            births |= {name: table[name] for name in BIRTHS if name in table.column_names}
            cohort = replace(cohort, covariates=pa.table(columns))
        if births and "age" not in columns:
            known = ages(columns | births)
            notes.append(NO_AGE_NOTE if known is None else AGE_NOTE)
            columns |= {} if known is None else {"age": known}
        ledger = cohort.ledger.noted(*notes)
        return replace(cohort, covariates=pa.table(columns), ledger=ledger)

    def _with_features(self, cohort: C) -> C:
        beside = (
            vstack([one.features(keys) for keys in _slices(one.key.values(cohort))], "csr")
            for one in self.codes
        )
        joined = hstack([cohort.matrix, *beside], "csr")
        codes = (*cohort.codes, *(code for one in self.codes for code in one.codes))
        lines = tuple(line for line in cohort.ledger.lines if line.unit != "features")
        ledger = Ledger(lines, cohort.ledger.problems, cohort.ledger.notes)
        ledger = ledger.noted(*(note for one in self.codes for note in one.notes))
        return replace(
            cohort,
            matrix=as_matrix(joined.indptr, joined.indices.astype(np.int32), len(codes)),
            codes=codes,
            names=(*cohort.names, *(name for one in self.codes for name in one.names)),
            system=" ".join([cohort.system, *(one.system for one in self.codes)]),
            ledger=ledger.open("features", "read", len(codes)),
        )


def _slices(keys: pa.Array) -> Iterator[pa.Array]:
    """Yield keys in slices, at least one, so that the rows of one at a time are in memory."""
    for start in range(0, max(len(keys), 1), SLICE):
        yield keys.slice(start, SLICE)


@contextmanager
def open_joining(
    records: Any,
    opened: OpenedSource,
    plan: Plan,
    besides: Sequence[Beside],
    levels: tuple[str, ...],
    memory: str | None = None,
) -> Iterator[Joining]:
    """Open the sources beside some records, and find out how each is joined to them.

    ``records`` is the source that was opened and planned; ``levels`` are those at which codes are
    features.
    """
    keys = keys_of(opened, plan) if besides else ()
    taken = set(shown_names(list(plan.table.columns), plan.layout).values())
    tables: list[CovariatesBeside] = []
    codes: list[CodesBeside] = []
    only = next(iter(opened.openers)) if len(opened.openers) == 1 else None
    places: list[tuple[str, Any, str | None]] = [("the records", records, only)]
    with ExitStack() as stack:
        for beside in (in_the_records(one, records, opened) for one in besides):
            source = stack.enter_context(open_source(beside.source, memory))
            table = beside.table or table_of(source, beside.kind)
            places.append((beside.kind, beside.source, table or next(iter(source.openers), None)))
            refuse_the_same_twice(places)
            found = replace(beside, table=table)
            if beside.of_covariates:
                one = open_covariates(source, found, keys, taken)
                tables.append(one)
                taken.update(one.names.values())
                keys = (*keys, one.patients) if one.patients else keys
            else:
                codes.append(open_codes(source, found, keys, levels))
        yield Joining(
            tuple(replace(one, notes=_new(one.notes, opened)) for one in tables),
            tuple(replace(one, notes=_new(one.notes, opened)) for one in codes),
        )


def _new(notes: Sequence[str], opened: OpenedSource) -> tuple[str, ...]:
    """Return the notes that aren't known of the records' source, which may be this one too."""
    return tuple(note for note in notes if note.partition(": ")[2] not in opened.notes)
