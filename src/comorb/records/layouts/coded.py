"""Coded: which columns of a table of drugs, procedures or other things hold codes and their names.

Tables of diagnoses are recognised by `Columns` itself; here it is said of which kind a table is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from comorb.errors import RecordsError
from comorb.records.codes.recognition import fits, recognise
from comorb.records.codes.systems import SYSTEMS
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.long import titles_of
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, quoted

# How columns with codes are called, the surest first, in small letters with _ between words.
_CODES = {
    "drug": (
        r"(^|_)atc",
        r"(^|_)(rxcui|rxnorm|rx_?norm)",
        r"(^|_)(ndc|din|pzn|cip(7|13)?|cis|gtin|dmd|dm_d|vmp|amp|zindex)(_|\d|$)",
        r"(^|_)(drug|med|medication|medicine|substance|product|wirkstoff|arzneimittel|medikament"
        r"|medicament\w*|farmac\w*|geneesmiddel|prescription)s?_?(source_)?(code|cd|value|concept_id)",
    ),
    "procedure": (
        r"(^|_)(icd(_?(9|10))?(cm)?_?)?(proc|procs|prcdr|procedure|procedures|px|pcs|cpt4?|hcpcs"
        r"|ops|opcs4?|ccam|prozedur\w*|procedimient\w*|procediment\w*|procedur\w*|intervent\w*"
        r"|operation\w*|operacion\w*|verrichting\w*|actes?)(_|\d|$)",
        r"(^|_)(icd(_?(9|10))?(cm)?|i9|i10)(_|\d|$)",
    ),
}
_ANY = (r"(^|_)(loinc|snomed|sct)(_|\d|$)", r"^(codes?|codigos?|codis?|codice|kode)(_?\d+)?$")
# Names where there are no codes: they are then the codes.
_TEXTS = {
    "drug": r"^(drug|medication|medicine|med|wirkstoff|arzneimittel|medikament|medicament\w*"
    r"|farmac\w*|geneesmiddel|generic|substance)s?(_name|_generic|_generic_name|name)?$",
    "procedure": r"^(procedure|prozedur|procedimient\w*|intervent\w*)s?(_name|name)?$",
}
_BESIDE = re.compile(
    r"(^|_)(date|dt|time|datetime|desc\w*|names?|title|text|label|display|seq|num|number|type"
    r"|version|vers|vrsn|system|status|count|cost|flag|start|stop|end|offset|priority|order|rank"
    r"|unit|dose|strength|route|form|reason\w*|diag\w*|dx|indication\w*|provider|location|adm"
    r"|orderdate|startdate|enddate|chartdate|chapter|group|modifier)(_|\d|$)|(_|^)id$"
)
_NAMING = re.compile(
    r"(^|_)(desc\w*|names?|title|text|string|label|display|term|libelle|bezeichnung|omschrijving)(_|$)"
)
_CONCEPT = re.compile(r"[a-z]+_concept_id", re.IGNORECASE)  # a table of OMOP, read as one
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}.*")


def with_codes_of(columns: Columns, kind: str) -> Columns:
    """Return the columns of a table of some kind with those named that hold its codes."""
    if columns.given.codes or any(_CONCEPT.fullmatch(name) for name in columns.names):
        return columns
    for pattern in (*_CODES.get(kind, (rf"^{re.escape(kind)}s?(_?code|_?cd)?(_?\d+)?$",)), *_ANY):
        if codes := _alike([c for c in _coded(columns) if re.search(pattern, _plain(c))]):
            return replace(columns, given=replace(columns.given, codes=codes))
    known = {key for key, system in SYSTEMS.items() if system.kind == kind}
    fitting = [c for c in _coded(columns) if recognise(columns.sample[c]).system in known]
    if codes := _alike(fitting):
        return replace(columns, given=replace(columns.given, codes=codes))
    texts = [c for c in columns.names if re.search(_TEXTS.get(kind, "^$"), _plain(c))]
    if texts and columns.sample[texts[0]]:
        given = replace(columns.given, codes=(texts[0],), kind=columns.given.kind or "long")
        return replace(columns, given=given)
    if len(columns.flags) > 1 or (kind not in _CODES and columns.codes):
        return columns
    shown = ", ".join(map(repr, columns.names[:12]))
    more = f" and {len(columns.names) - 12:,} more" if len(columns.names) > 12 else ""
    raise RecordsError(
        f"{columns.label}: no column was recognised as holding codes of the kind {kind!r}. Its "
        f"columns are {shown}{more}; name those with the codes."
    )


def system_of(kind: str, codes: Mapping[str, int]) -> str | None:
    """Return the coding system of codes of a kind, None where the codes alone have to tell it.

    Drugs and procedures are of a system of their kind that lists them, or are kept as written.
    """
    known = [key for key, system in SYSTEMS.items() if system.kind == kind]
    if kind == "diagnosis" or not known:
        return None
    fit = fits(codes)
    best = max(known, key=lambda key: (fit[key].listed, fit[key].written))
    return best if fit[best].written > 0.8 and fit[best].listed > 0.5 else "opaque"


def names_beside(source: OpenedSource, table: SourceTable, code: str) -> dict[str, str]:
    """Return what a table calls each code: the most common text of the columns that name codes.

    The column in which a code has the fewest names comes first, and the others where it has none.
    """
    texts = [c for c in table.columns if c != code and table.columns[c] == "VARCHAR"]
    pattern = "|".join(_TEXTS.values())
    naming = [c for c in texts if _NAMING.search(_plain(c)) or re.search(pattern, _plain(c))]
    key = f"trim({as_text(code, table.columns[code])})"
    ranked = []
    for column in naming:
        name = f"trim({quoted(column)})"
        ((pairs, codes, worded),) = source.rows(
            table,
            f"SELECT count(DISTINCT ({key}, {name})), count(DISTINCT {key}), "
            f"avg(CAST(regexp_matches({name}, '[^\\W\\d_]{{3}}') AS INTEGER)) FROM {table.sql} "
            f"WHERE {key} <> '' AND {name} <> ''",
        )
        if codes and worded > 0.8 and pairs <= 2 * codes:
            ranked.append((pairs / codes, len(column), column))
    titles: dict[str, str] = {}
    for _, _, column in sorted(ranked, reverse=True):
        titles |= titles_of(source, table, code, column)
    return titles


def _coded(columns: Columns) -> list[str]:
    """Return the columns that may hold codes: no ids, dates and descriptions of them."""
    taken = set(columns.given.roles.values())
    return [
        name
        for name in columns.names
        if name not in taken
        and not _BESIDE.search(_plain(name))
        and columns.sample[name]
        and not all(map(_DATE.fullmatch, columns.sample[name]))
    ]


def _alike(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first name and those that differ from it in their number alone."""
    stems = [re.sub(r"\d+", "", _plain(name)) for name in names]
    return tuple(name for name, stem in zip(names, stems, strict=True) if stem == stems[0])


def _plain(name: str) -> str:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
