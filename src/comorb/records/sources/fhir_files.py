"""FHIR resources in JSON files: Bundles, lists and lines of any types become a table for each type.

The resources that records are made of are copied into DuckDB once.
"""

from __future__ import annotations

import codecs
import re
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, literals
from comorb.records.sources.kinds import HEAD_BYTES
from comorb.records.sources.text_files import check_unpacked, detect_compression, open_bytes

# The types that are kept; a Bundle is mostly others (observations, claims, practitioners).
TYPES = (
    *("Condition", "Patient", "Encounter", "MedicationRequest", "Procedure", "Medication"),
    *("MedicationStatement", "MedicationAdministration", "Immunization", "AllergyIntolerance"),
)
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
        names, sizes = zip(*some, strict=True)
        reads.append(
            f"SELECT json FROM read_json_objects([{literals(map(str, names))}], "
            f"format = {literal(form)}, compression = {literal(packed)}, "
            f"maximum_object_size = {max(sizes)})"
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
    table = "fhir_resources"
    source.rows(objects, f"CREATE TEMP TABLE fhir_objects AS SELECT json FROM {objects.sql}")
    source.rows(
        objects,
        f"CREATE TEMP TABLE {table} AS WITH resources AS (SELECT json FROM fhir_objects), "
        f"flat AS (SELECT json FROM resources WHERE {_RESOURCE_TYPE} <> 'Bundle' "
        f"UNION ALL {identified}) SELECT {_RESOURCE_TYPE} AS type, "
        "json_extract_string(json, '$.id') AS id, json FROM flat",
    )
    ((bundles, followed),) = source.rows(
        objects,
        "SELECT count(*), count(*) FILTER (list_contains(CAST(coalesce("
        "json_extract_string(json, '$.link[*].relation'), []) AS VARCHAR[]), 'next')) "
        f"FROM fhir_objects WHERE {_RESOURCE_TYPE} = 'Bundle'",
    )
    if bundles and bundles == followed:  # pages of a search without the last one
        source.note(Message("note.fhir_next_page"))
    source.rows(objects, "DROP TABLE fhir_objects")
    _drop_repeated(source, objects, table)
    counts: dict[str, int] = dict(
        source.rows(objects, f"SELECT type, count(*) FROM {table} GROUP BY type")
    )
    if not set(counts) & set(TYPES):
        held = ", ".join(sorted(str(name) for name in counts)[:12]) or Message("fhir.no_type")
        raise RecordsError("fhir.no_conditions", label=label, held=held)
    other = f"type IS NULL OR type NOT IN ({literals(TYPES)})"
    source.rows(objects, f"DELETE FROM {table} WHERE {other}")
    for name in (name for name in TYPES if name in counts):
        sql = f"SELECT json FROM {table} WHERE type = {literal(name)}"
        source.openers[name.lower()] = partial(source.view, label, sql, True)


def _drop_repeated(source: OpenedSource, objects: SourceTable, table: str) -> None:
    """Keep one of the resources with the same id, patient and code, and note how many went.

    Ids may repeat where a folder has exports of two systems, so that an id alone won't do.
    """
    subject = "regexp_replace(json_extract_string(json, '$.subject.reference'), '^.*[/:]', '')"
    key = f"type, id, {subject}, CAST(json_extract(json, '$.code') AS VARCHAR)"
    kept = f"SELECT max(rowid) FROM {table} WHERE id IS NOT NULL GROUP BY {key}"
    gone = f"FROM {table} WHERE id IS NOT NULL AND rowid NOT IN ({kept})"
    ((extra,),) = source.rows(objects, f"SELECT count(*) {gone}")
    if extra:
        source.rows(objects, f"DELETE {gone}")
        source.note(Message("note.fhir_twice", n=extra))


def _strip_mark(source: OpenedSource, file: Path) -> Path:
    """Return the file, or a copy of one that begins with a byte order mark."""
    with open_bytes(file, detect_compression(file)) as stream:
        if stream.read(3) != codecs.BOM_UTF8:
            return file
        copy = source.new_copy("json")
        with copy.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 22)
    return copy


def _detect_form(file: Path) -> tuple[str, str, int]:
    """Return the format of a JSON file, its compression and the largest size of its objects."""
    packed = detect_compression(file)
    with open_bytes(file, packed) as stream:
        start = stream.read(1 << 22)
        size, text = len(start), start.lstrip(b" \t\r\n")
        line = text.partition(b"\n")[0].rstrip()
        is_array = text.startswith(b"[")
        if not is_array and line.endswith(b"}") and line.count(b"{") == line.count(b"}"):
            return "newline_delimited", packed, 1 << 25
        while chunk := stream.read(1 << 22):
            size += len(chunk)
    return "array" if is_array else "unstructured", packed, max(size + 1024, 1 << 24)
