"""Beside: the sources that are read beside the records, each of a kind, checked and found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from comorb.errors import RecordsError
from comorb.records.codes.systems import SYSTEMS, systems_by_kind
from comorb.records.layouts.description import Layout
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import OpenedSource

MAIN = "diagnosis"
COVARIATES = ("visit", "patient")

_KIND = re.compile(r"[a-z][a-z0-9_-]*")
# What tables of a kind are called in folders and databases, the usual ones first.
_TABLES = {
    "diagnosis": (
        "condition_occurrence",
        "condition_era",
        r"conditions?|diagnos[ei]s(_?icd)?|\w*diagnos\w*",
    ),
    "drug": (
        "drug_exposure",
        "drug_era",
        "medicationrequest",
        r"prescriptions?|medications?|drugs?|medikamente|rx",
    ),
    "procedure": ("procedure_occurrence", r"procedures?(_?icd)?|prozeduren"),
    "visit": ("visit_occurrence", r"admissions?|encounters?|visits?|stays?"),
    "patient": ("person", r"patients?|persons?"),
}


@dataclass(frozen=True)
class Beside:
    """A source to read beside the records: its kind, and what is known of it."""

    kind: str
    source: Any
    table: str | None = None
    layout: Layout = field(default_factory=Layout)
    system: str | None = None

    @property
    def of_covariates(self) -> bool:
        """Whether a row is a visit or a patient, and its columns are covariates."""
        return self.kind in COVARIATES


def arranged(
    source: Any,
    kinds: Sequence[str] = (),
    layouts: Mapping[str, Layout] | None = None,
    system: str | None = None,
) -> tuple[str, Any, tuple[Beside, ...]]:
    """Return the kind of the records, where they lie, and what is to be read beside them.

    ``source`` is one source, or a mapping of kinds to sources; ``kinds`` are tables of the records'
    own source. The records are those of the kind 'diagnosis', or else of the first.
    """
    given = dict(source) if isinstance(source, Mapping) else {}
    if isinstance(source, Mapping) and not given:
        raise RecordsError("Expected sources by their kind, such as {'diagnosis': …}; got none.")
    for kind in (*given, *kinds):
        _check_kind(kind)
    names = list(given or kinds)
    main = MAIN if MAIN in names or not names else names[0]
    if main in COVARIATES:
        raise RecordsError(f"Records need codes, and a table of the kind {main!r} has none.")
    records = given.pop(main) if given else source
    twice = [kind for kind in kinds if kind in given or kinds.count(kind) > 1]
    if twice:
        raise RecordsError(
            f"The kind {twice[0]!r} is given more than once; give each source a kind of its own."
        )
    own = {kind: records for kind in kinds if kind != main}
    layouts = dict(layouts or {})
    systems = {kind: keys for kind, keys in systems_by_kind(system or "").items() if kind}
    for kind in (*layouts, *systems):
        if kind not in (*given, *own):
            have = f" beside {', '.join((*given, *own))}" if given or own else ""
            raise RecordsError(
                f"A source of the kind {kind!r} is expected{have}; give it beside the records."
            )
    besides = [
        Beside(kind, one, None, layouts.get(kind, Layout()), systems.get(kind))
        for kind, one in (given | own).items()
    ]
    return main, records, tuple(sorted(besides, key=_order))


def main_and_beside(source: Any) -> tuple[Any, dict[str, Any]]:
    """Return the records' own source, and the others by their kinds."""
    if not isinstance(source, Mapping):
        return source, {}
    beside = dict(source)
    return beside.pop(MAIN if MAIN in beside else next(iter(beside), ""), None), beside


def _order(beside: Beside) -> int:
    """Covariates first, and visits before patients, who may be found by their visits."""
    return COVARIATES.index(beside.kind) if beside.of_covariates else len(COVARIATES)


def _check_kind(kind: str) -> None:
    if not _KIND.fullmatch(kind):
        raise RecordsError(
            f"Expected a kind of small letters, digits, - and _, such as 'drug'; got {kind!r}."
        )
    if kind in SYSTEMS:
        raise RecordsError(
            f"{kind!r} is a coding system; name the kind of what is coded, such as 'drug'."
        )


def in_the_records(beside: Beside, records: Any, opened: OpenedSource) -> Beside:
    """Return a source by the name of a table of the records' own source, where no file has it."""
    asked = beside.source
    if not isinstance(asked, str) or "://" in asked or Path(asked).exists():
        return beside
    if is_query(asked) or opened.name_of(asked) is not None:
        return replace(beside, source=records, table=asked)
    return beside


def table_of(opened: OpenedSource, kind: str) -> str | None:
    """Return the table of a source with several that is called after a kind."""
    if len(opened.openers) < 2:
        return None
    for pattern in _TABLES.get(kind, (rf"{re.escape(kind)}s?",)):
        named = [name for name in opened.openers if re.fullmatch(pattern, name.lower())]
        if len(named) == 1:
            return named[0]
    have = ", ".join(list(opened.openers)[:12])
    raise RecordsError(
        f"{opened.label} has no table that is called after the kind {kind!r}; it has {have}. Name "
        "the table, or its file."
    )


def refuse_the_same_twice(given: Sequence[tuple[str, Any, str | None]]) -> None:
    """Refuse two kinds that are one and the same table, each given with its source and table."""
    seen: dict[tuple[str, str | None], str] = {}
    for kind, source, table in given:
        if not isinstance(source, str | Path):
            continue
        text = str(source)
        place = (text if "://" in text else str(Path(text).resolve()), table)
        if place in seen:
            raise RecordsError(
                f"{Path(text).name} is given for {seen[place]!r} and for {kind!r}; give each "
                "kind a source of its own."
            )
        seen[place] = kind
