"""FHIR resources in JSON files: Bundles, lists and lines of any types become a table for each type.

The resources that records are made of are copied into DuckDB once, whatever files they come in.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literal
from comorb.records.sources.kinds import HEAD_BYTES
from comorb.records.sources.text_files import check_unpacked, detect_compression, open_bytes

# The types that are kept; a Bundle is mostly others (observations, claims, practitioners).
TYPES = (
    *("Condition", "Patient", "Encounter", "MedicationRequest", "Procedure", "Medication"),
    *("MedicationStatement", "MedicationAdministration", "Immunization", "AllergyIntolerance"),
)
_BLANKS = b" \t\r\n"
_TYPE = re.compile(rb'"resourceType"\s*:\s*"(\w+)"')
_RESOURCE_TYPE = "json_extract_string(json, '$.resourceType')"


def types_at_start(file: Path) -> set[str]:
    """Return the types of FHIR resources that the first bytes of a file mention."""
    with open_bytes(file, detect_compression(file)) as stream:
        return {match.decode() for match in _TYPE.findall(stream.read(HEAD_BYTES))}


def open_objects(source: OpenedSource, label: str, files: Sequence[Path]) -> SourceTable:
    """Open JSON files as one table with a column 'json': objects in lines, in a list, or one."""
    forms: dict[tuple[str, str], list[tuple[Path, int]]] = {}
    for file in files:
        check_unpacked(file)
    for file in (_strip_mark(source, file) for file in files):
        form, packed, size = _detect_form(file)
        forms.setdefault((form, packed), []).append((file, size))
    reads = []
    for (form, packed), some in forms.items():
        names = ", ".join(literal(str(file)) for file, _ in some)
        reads.append(
            f"SELECT json FROM read_json_objects([{names}], format = {literal(form)}, compression "
            f"= {literal(packed)}, maximum_object_size = {max(size for _, size in some)})"
        )
    return source.view(label, " UNION ALL ".join(reads), text=True)


def add_resources(source: OpenedSource, label: str, files: Sequence[Path]) -> None:
    """Make a table for each type of FHIR resource that the files hold."""
    objects = open_objects(source, label, files)
    entries = (
        "SELECT unnest(CAST(json_extract(json, '$.entry[*]') AS JSON[])) AS entry FROM resources "
        f"WHERE {_RESOURCE_TYPE} = 'Bundle'"
    )
    identified = (
        "SELECT CASE WHEN json_extract_string(entry, '$.resource.id') IS NULL AND "
        "json_extract_string(entry, '$.fullUrl') IS NOT NULL THEN json_merge_patch("
        "json_extract(entry, '$.resource'), json_object('id', "
        "regexp_replace(json_extract_string(entry, '$.fullUrl'), '^.*[/:]', ''))) "
        f"ELSE json_extract(entry, '$.resource') END AS json FROM ({entries})"
    )
    kept = ", ".join(map(literal, TYPES))
    table = "fhir_resources"
    source.rows(objects, f"CREATE TEMP TABLE fhir_objects AS SELECT json FROM {objects.sql}")
    source.rows(
        objects,
        f"CREATE TEMP TABLE {table} AS WITH resources AS (SELECT json FROM fhir_objects), "
        f"flat AS (SELECT json FROM resources WHERE {_RESOURCE_TYPE} <> 'Bundle' "
        f"UNION ALL {identified}) SELECT {_RESOURCE_TYPE} AS type, "
        "json_extract_string(json, '$.id') AS id, json FROM flat",
    )
    _note_missing_pages(source, objects)
    source.rows(objects, "DROP TABLE fhir_objects")
    _drop_repeated(source, objects, table)
    counts = dict(source.rows(objects, f"SELECT type, count(*) FROM {table} GROUP BY type"))
    if not set(counts) & set(TYPES):
        held = ", ".join(sorted(str(name) for name in counts)[:12]) or Message("fhir.no_type")
        raise RecordsError("fhir.no_conditions", label=label, held=held)
    source.rows(objects, f"DELETE FROM {table} WHERE type IS NULL OR type NOT IN ({kept})")
    for name in (name for name in TYPES if name in counts):
        sql = f"SELECT json FROM {table} WHERE type = {literal(name)}"
        source.openers[name.lower()] = partial(source.view, label, sql, True)


def _drop_repeated(source: OpenedSource, objects: SourceTable, table: str) -> None:
    """Keep one of the resources that say the same of one patient, and note how many went.

    Ids may repeat where exports of two systems lie side by side, so that an id alone won't do.
    """
    subject = "regexp_replace(json_extract_string(json, '$.subject.reference'), '^.*[/:]', '')"
    key = f"type, id, {subject}, CAST(json_extract(json, '$.code') AS VARCHAR)"
    kept = f"SELECT max(rowid) FROM {table} WHERE id IS NOT NULL GROUP BY {key}"
    gone = f"FROM {table} WHERE id IS NOT NULL AND rowid NOT IN ({kept})"
    ((extra,),) = source.rows(objects, f"SELECT count(*) {gone}")
    if extra:
        source.rows(objects, f"DELETE {gone}")
        source.note(Message("note.fhir_twice", n=extra))


def _note_missing_pages(source: OpenedSource, objects: SourceTable) -> None:
    """Note when the Bundles are pages of a search and the last page isn't among them."""
    ((bundles, going_on),) = source.rows(
        objects,
        "SELECT count(*), count(*) FILTER (list_contains(CAST(coalesce("
        "json_extract_string(json, '$.link[*].relation'), []) AS VARCHAR[]), 'next')) "
        f"FROM fhir_objects WHERE {_RESOURCE_TYPE} = 'Bundle'",
    )
    if bundles and bundles == going_on:
        source.note(Message("note.fhir_next_page"))


def _strip_mark(source: OpenedSource, file: Path) -> Path:
    """Return the file, or a copy of one that begins with a byte order mark."""
    with open_bytes(file, detect_compression(file)) as stream:
        if stream.read(3) != codecs.BOM_UTF8:
            return file
        copy = source.copies() / f"json_{len(list(source.copies().iterdir()))}"
        with copy.open("wb") as out:
            while chunk := stream.read(1 << 22):
                out.write(chunk)
    return copy


def _detect_form(file: Path) -> tuple[str, str, int]:
    """Return how the objects of a JSON file stand, its compression and their largest size."""
    packed = detect_compression(file)
    with open_bytes(file, packed) as stream:
        start = stream.read(1 << 22)
        if start.lstrip(_BLANKS).startswith(b"[") or not _ends_in_first_line(start):
            size = len(start)
            while chunk := stream.read(1 << 22):
                size += len(chunk)
            form = "array" if start.lstrip(_BLANKS).startswith(b"[") else "unstructured"
            return form, packed, max(size + 1024, 1 << 24)
    return "newline_delimited", packed, 1 << 25


def _ends_in_first_line(start: bytes) -> bool:
    """Tell lines with an object each from an object that goes over lines."""
    line = start.lstrip(_BLANKS).partition(b"\n")[0].rstrip()
    return line.endswith(b"}") and line.count(b"{") == line.count(b"}")
