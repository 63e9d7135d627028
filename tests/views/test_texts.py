"""Every text is there in every language, and those that scripts and templates ask for are all."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from comorb.messages import render
from comorb.model.select_k import Row, find_numbers, reason
from comorb.views.words import explorer_texts, languages, page_texts
from comorb.web.worker.downloads import AGGREGATES, PATIENTS
from tests.messages.words import english_words

VIEWS, WEB = (Path(str(resources.files(name))) for name in ("comorb.views", "comorb.web"))
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in VIEWS.glob("texts/*.json")}
PAGE = [VIEWS / "report.py", *VIEWS.glob("page/*.js")]
EXPLORER = [*WEB.glob("static/*.js"), *WEB.glob("templates/*.html")]
SECTION = re.compile(r"\bsection\(\s*\"(\w+)\"")
LITERAL = re.compile(r"[\"']([a-z][\w-]*(?:\.[\w-]+)*)[\"']")
CALL = re.compile(r"\bt\(\"([\w.-]+)\"|\bt\['([\w.-]+)'\]")
PATTERN = re.compile(r"`([a-z][\w.]*\.\$\{.*?)`")


def read(paths: list[Path]) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths)


def asked(text: str) -> set[str]:
    """Return the keys that a text asks for by name."""
    titles = {f"{name}.{part}" for name in SECTION.findall(text) for part in ("title", "how")}
    return titles | {one or two for one, two in CALL.findall(text)}


def possible(text: str) -> re.Pattern[str]:
    """Return a pattern of every key that a text may ask for, such as by `state.${row.state}`."""
    built = [
        r"[\w.-]+".join(map(re.escape, re.split(r"\$\{[^}]*\}", part)))
        for part in PATTERN.findall(text)
    ]
    sections = [rf"{name}\.(?:title|how|short)" for name in SECTION.findall(text)]
    names = map(re.escape, LITERAL.findall(text))
    return re.compile("|".join([*built, *sections, *names]))


@pytest.mark.parametrize("group", ["page", "explorer", "print"])
@pytest.mark.parametrize("language", sorted(FILES.keys() - {"en"}))
def test_every_language_has_the_same_texts_with_the_same_places(language: str, group: str) -> None:
    english, other = FILES["en"][group], FILES[language][group]
    assert other.keys() == english.keys()
    for key, text in english.items():
        places = sorted(re.findall(r"\{\w+\}", text))
        assert sorted(re.findall(r"\{\w+\}", other[key])) == places, key
        assert other[key].strip(), key


def test_a_file_is_a_language() -> None:
    assert languages().keys() == FILES.keys()
    assert next(iter(languages())) == "en"
    assert languages()["ca"] == "Català"
    assert all(file.keys() == {"language", "page", "explorer", "print"} for file in FILES.values())
    for file in FILES.values():
        own = [key for group in ("page", "explorer", "print") for key in file[group]]
        assert len(own) == len(set(own))


def test_every_text_that_is_asked_for_is_there() -> None:
    assert asked(read(PAGE)) <= page_texts("en").keys()
    assert asked(read(EXPLORER)) <= explorer_texts("en").keys()
    assert {f"{name}.short" for name in SECTION.findall(read(PAGE))} <= page_texts("en").keys()
    files = {name.partition(".")[0] for name in (*AGGREGATES, *PATIENTS)}
    assert {f"download.{name}" for name in files} <= explorer_texts("en").keys()


def test_every_text_that_is_there_can_be_asked_for() -> None:
    page, everything = possible(read(PAGE)), possible(read([*PAGE, *EXPLORER]))
    assert [key for key in FILES["en"]["page"] if not page.fullmatch(key)] == []
    assert [key for key in FILES["en"]["explorer"] if not everything.fullmatch(key)] == []


def test_no_script_writes_markup_from_data() -> None:
    for path in WEB.glob("static/*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert "https://" not in text


@pytest.mark.parametrize("seed", range(40))
def test_every_reason_for_a_number_can_be_said_in_every_language(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = tuple(
        Row(
            k=k,
            evidence=float(rng.normal()),
            bic=0.0,
            icl=0.0,
            held_out=float(rng.normal()),
            stability=0.5,
            smallest=float(rng.choice([0, 20], p=[0.1, 0.9])),
            reliability=tuple(rng.choice([0.2, 0.9], k, p=[0.3, 0.7]).tolist()),
            shares=tuple(np.full(k, 1 / k).tolist()),
        )
        for k in range(1, 3 + seed % 7)
    )[: 1 if seed % 13 == 0 else None]
    finest = find_numbers(rows)[1]
    told = reason(rows, next(row for row in rows if row.k == finest), finest + seed % 2)
    for language in ("es", "ca"):
        assert english_words(render(told, language)) == [], told


def test_every_print_that_is_asked_for_is_there_and_the_other_way() -> None:
    text = read([*VIEWS.glob("*.py"), *VIEWS.glob("charts/*.py")])
    keys = FILES["en"]["print"].keys()
    named = set(re.findall(r"[\"']((?:board|chart|finding|format|print|sheet)\.[\w.]+)[\"']", text))
    named -= {"board.pdf", "board.pptx", "board.xlsx"}
    built = {"sheet.": "sheet", "board.": "board", "finding.": "finding"}
    assert named <= keys
    parts = [re.compile(rf'f"{prefix}{{') for prefix in built]
    assert all(part.search(text) for part in parts)
    heads = set(re.findall(r"\"(\w+)\"", text))
    for key in keys - named:
        prefix, *rest = key.split(".")
        assert f"{prefix}." in built, key
        assert prefix == "finding" or set(rest) <= heads, key
