"""No English sentence is left in what is shown in Spanish or Catalan."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from comorb.errors import ComorbError
from comorb.messages import Message, render
from comorb.profiles.profile import Profile
from comorb.records.layouts.layout import Layout
from comorb.records.ledger import Ledger
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.views.board import Board
from comorb.views.findings import page_json
from comorb.views.pack import board_pack
from comorb.views.words import Words
from tests.messages.words import english_words
from tests.small_cohort import cohort, full

__all__ = ["cohort", "full"]
LANGUAGES = ("es", "ca")


def wide(**columns: list[str]) -> str:
    names = ["visit_id", "dx1", "dx2", *columns]
    codes = ["4280", "25000", "5859", "40190", "2724", "V4582"]
    rows = [
        [f"v{i}", codes[i % 6], codes[(i + 1) % 6], *(c[i % len(c)] for c in columns.values())]
        for i in range(60)
    ]
    return "\n".join(",".join(row) for row in [names, *rows]) + "\n"


def long(n: int = 60) -> str:
    rows = [f"p{i % 20},v{i % 30},{['I50.9', 'E11.9', '', 'N18.3', '??'][i % 5]}" for i in range(n)]
    return "\n".join(["patient_id,visit_id,icd10", *rows, rows[0]]) + "\n"


READ = {
    "ages.csv": wide(age=["60-64", "90+", "3 months", "old"], sex=["F", "M", "x9"]),
    "dates.csv": wide(admission_date=["01/02/2019", "03/04/2019"], stay_weight=["1", "2.5"]),
    "died.csv": wide(discharge_status=["home", "dead", "other", "to another hospital"]),
    "numbers.csv": wide(cost=['"1,234"', '"5,678"'], length_of_stay=["1", "2", "x", "4"]),
    "long.csv": long(),
    "latin.csv": wide(ward=["Cardiología", "UCI"]),
}
REFUSED = {
    "empty.csv": b"",
    "header.csv": b"visit_id,dx1\n",
    "blank.csv": b"\n\n\n",
    "binary.csv": bytes(range(256)) * 9,
    "page.csv": b"<html><body>no</body></html>",
    "cut.csv": b"visit_id,dx1,dx2\nv1,4280,25000\nv2,4280\n",
    "quotes.csv": b'visit_id,dx1,dx2\nv1,"4280,25000\nv2,428,250\n',
    "ids.csv": wide(a=["1"]).replace("\nv1,", "\nv0,").encode(),
    "texts.csv": b"one,two\nhello,world\nmore,words\n",
    "twice.csv": b"dx1,DX1\n428,250\n",
    "data.parquet": b"PAR1 not a table PAR1",
    "data.xlsx": b"PK\x03\x04 no workbook",
    "data.sas7bdat": b"no file of SAS",
    "data.orc": b"ORC....",
    "data.zip": b"PK\x05\x06" + bytes(18),
    "rows.ndjson": b'{"resourceType": "Patient", "id": "1"}\n',
}


def in_values(message: str) -> Iterator[str]:
    """Yield the names that stay as they are in a message, such as those of files and columns."""
    for value in message.values.values() if isinstance(message, Message) else ():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Message):
                yield from in_values(one)
            elif isinstance(one, str):
                yield one


def check(text: str) -> None:
    assert isinstance(text, Message), text
    for language in LANGUAGES:
        shown = render(text, language)
        assert english_words(shown, [one for one in in_values(text) if one]) == [], shown
        assert shown != text, text


@pytest.mark.parametrize("name", READ)
def test_what_a_reading_notes(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(READ[name], encoding="latin-1" if name == "latin.csv" else "utf-8")
    for unit in ("visit", "patient") if name == "long.csv" else ("visit",):
        found = inspect_records(path, unit=unit)
        notes = [*found.ledger.notes, *(line.rule for line in found.ledger.lines)]
        assert notes
        for text in (*notes, *(one.reason for one in found.columns if one.reason)):
            check(text)


def test_what_the_rules_of_a_cohort_say(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(wide(age=["60", "70", "80"], sex=["F", "M"], admission_date=["2019-01-31"]))
    asked = CohortSpec(
        layout=Layout(date="admission_date"),
        having=("428", "250"),
        without=("V*",),
        age=(50, None),
        sex=("female", "male"),
        dates=("2018-01-01", "2020-01-01"),
        at_least=1,
        drop_codes=("272",),
        drop_rare=3,
    )
    lines = asked.drop(asked.select(asked.read(path))).ledger.lines
    assert len(lines) > 8
    for line in lines:
        check(line.rule)


@pytest.mark.parametrize("name", REFUSED)
def test_why_a_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    with pytest.raises(ComorbError) as refused:
        read_records(path)
    check(refused.value.message)


@pytest.mark.parametrize(
    "given",
    [
        {"layout": Layout(died="discharge_status", died_values=("no such",))},
        {"layout": Layout(codes=("nowhere",))},
        {"layout": Layout(kind="long")},
        {"unit": "patient"},
        {"system": "icd11"},
        {"having": ("999",)},
        {"having": ("428", "Q*")},
        {"age": (10, 20)},
    ],
)
def test_why_a_question_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(READ["died.csv"])
    asked = CohortSpec(**given)
    with pytest.raises(ComorbError) as refused:
        asked.select(asked.read(path))
    check(refused.value.message)


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if type(value) is list else ():
        yield from texts_of(one)


def with_notes(profile: Profile) -> Profile:
    """Return a profile whose source has a note and a line of the ledger as a reading makes them."""
    ledger = Ledger.start(600, 8).less("records", Message("ledger.having", codes=["428"]), 3)
    ledger = ledger.noted(Message("note.repaired", n=5732), Message("note.row_numbers"))
    reason = Message("run.as_asked", k=2)
    source = replace(profile.source, lines=ledger.lines, notes=ledger.notes, reason=reason)
    return replace(profile, source=source)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_and_its_profile(full: Profile, language: str) -> None:
    made = with_notes(full)
    again = Profile.from_json(made.to_json())
    assert [note.key for note in again.source.notes] == ["note.repaired", "note.row_numbers"]
    shown = json.loads(page_json(again, language))
    parts = [shown["findings"], shown["source"]["notes"], shown["source"]["reason"]]
    parts += [[line["rule"] for line in shown["source"]["lines"]]]
    parts += [one["notes"] for one in (shown["burden"], *shown["slices"]) if one]
    labels = [*shown["labels"], *(cluster["name"] for cluster in shown["clusters"])]
    said = [text for text in texts_of(parts) if " " in text]
    assert len(said) > 3
    for text in said:
        assert english_words(text, labels) == [], text
    assert "5.732" in str(parts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pack_of_a_board(full: Profile, language: str) -> None:
    pytest.importorskip("pptx")
    openpyxl = pytest.importorskip("openpyxl")
    board = Board(with_notes(full), Words(language), "Hospital", "2026-01-31")
    labels = [*board.profile.labels, *(one.name for one in board.profile.clusters), "Hospital"]
    labels += [label.lower() for label in labels] + list(full.names) + list(full.labels)
    with zipfile.ZipFile(io.BytesIO(board_pack(board))) as pack:
        books = [name for name in pack.namelist() if name.endswith(".xlsx")]
        book = openpyxl.load_workbook(io.BytesIO(pack.read(books[0])))
    texts = [
        cell
        for sheet in book
        for row in sheet.iter_rows(values_only=True)
        for cell in row
        if isinstance(cell, str)
    ]
    assert any(re.search(r"5\.732", text) for text in texts)
    for text in texts:
        if len(text.split()) > 3:
            assert english_words(text, labels) == [], text
