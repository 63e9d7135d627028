"""Messages: every key in every language, their values, and what they are as plain values."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from comorb.errors import ComorbWarning, InputError, RecordsError
from comorb.messages import (
    Message,
    catalogue,
    change_values,
    join,
    localise,
    pack,
    render,
    render_all,
    replace_text,
    unpack,
)
from tests.messages.words import english_words

SOURCE = Path(str(resources.files("comorb")))
LANGUAGES = ("en", "es", "ca")
KEY = re.compile(r"[a-z]\w*(\.\w+)+")
CODED = ("invalid.", "format.", "level.", "time.")  # keys that are put together


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)", text))


def values_of(key: str, number: int = 7) -> dict[str, object]:
    """Return values for each place of a text: a number where it is written as one."""
    text = catalogue("en")[key]
    lists = set(re.findall(r"\{(\w+):(?:and|or|;|\.)\}", text))
    numbers = set(re.findall(r"\{(\w+)(?::[^}]*[fdg%]\}|\|)", text)) - lists
    return {
        name: number if name in numbers else ["«a»", "«b»"] if name in lists else f"«{name}»"
        for name in names_in(text)
    }


def keys_in_source() -> Iterator[tuple[str, str, frozenset[str] | None]]:
    """Yield the first text of each call that looks like a key, its place, the names it gives."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if not (name == "Message" or name.endswith(("Error", "Warning"))):
                continue
            for one in node.args[:2]:
                if isinstance(one, ast.Constant) and KEY.fullmatch(str(one.value)):
                    given = [keyword.arg for keyword in node.keywords]
                    named = None if None in given else frozenset(map(str, given))
                    yield f"{path.name}:{node.lineno}", str(one.value), named


def texts_in_source() -> set[str]:
    return {
        node.value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_language_has_every_key_with_the_same_values() -> None:
    english = catalogue("en")
    for language in LANGUAGES:
        assert list(catalogue(language)) == sorted(english), language
        for key, text in catalogue(language).items():
            assert names_in(text) == names_in(english[key]), (language, key)
            assert text.strip() == text, (language, key)


def test_every_key_of_the_source_is_there_with_all_of_its_values() -> None:
    found = list(keys_in_source())
    assert len(found) > 60
    for place, key, given in found:
        assert key in catalogue("en"), (place, key)
        if given is not None:
            assert given == names_in(catalogue("en")[key]), (place, key)


def test_no_key_is_unused() -> None:
    texts = texts_in_source()
    unused = [key for key in catalogue("en") if key not in texts and not key.startswith(CODED)]
    assert unused == []


@pytest.mark.parametrize("number", [0, 1, 2, 1234567])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_renders_with_all_of_its_values(language: str, number: int) -> None:
    for key in catalogue("en"):
        if key.startswith("format."):
            continue
        values = values_of(key, number)
        text = render(Message(key, **values), language)
        assert not re.search(r"[{}|]", text), (key, text)
        for value in values.values():
            if isinstance(value, str):
                assert value in text, (key, text)


@pytest.mark.parametrize("language", ["es", "ca"])
def test_no_text_is_english(language: str) -> None:
    for key, text in catalogue(language).items():
        bare = re.sub(r"\{[^{}]*\}", "7", text)
        assert english_words(bare) == [], (key, text)


def test_the_word_list_finds_what_is_half_english() -> None:
    assert english_words("Clusters are merged o split of a run") != []
    assert english_words("5.732 codes repaired: lost leading zeros, o the '.0' of a number") != []
    assert english_words("la columna 'the end' falta en 7 registros", ["of the"]) == []


def test_a_message_is_its_english_text_and_keeps_its_key() -> None:
    message = Message("run.rare_code", code="428", least=np.int64(11))
    assert (
        message
        == "Too few records have the code '428', under 11 or none; choose codes of the list."
    )
    assert str(message) == f"{message}"
    for again in (
        pickle.loads(pickle.dumps(message)),
        copy.deepcopy(message),
        unpack(json.loads(json.dumps(pack(message)))),
    ):
        assert again == message
        assert (again.key, again.values) == (message.key, message.values)
    assert pack(message) == {"key": "run.rare_code", "values": {"code": "428", "least": 11}}
    assert "Demasiado pocos registros" in render(message, "es")
    with pytest.raises(AttributeError):
        message.key = "other"  # type: ignore[misc]


def test_a_plain_text_renders_as_itself() -> None:
    assert render("as it was", "es") == "as it was"
    assert unpack("as it was") == "as it was"
    assert unpack({"key": "of.a.newer.version", "values": {}}) == "of.a.newer.version"
    plain = {"notes": ["plain", Message("session.sign_in")], "n": 3}
    assert render_all(plain, "ca") == {"notes": ["plain", "Primer entreu."], "n": 3}
    assert unpack(json.loads(json.dumps(pack(plain)))) == plain


def test_values_are_numbers_lists_messages_and_names() -> None:
    inner = Message("count.few", n=1100)
    assert inner == "fewer than 1,100"
    outer = Message("request.not_understood", bad=[inner, "x"])
    assert outer == "The request was not understood: fewer than 1,100; x"
    assert render(outer, "es") == "La petición no se entendió: menos de 1.100; x"
    assert render(Message("task.memory", gb=1.5), "es").startswith("Esto necesita más de 1,5 GB")
    nested = pickle.loads(pickle.dumps(outer))
    assert render(nested, "ca") == "La petició no s'ha entès: menys de 1.100; x"
    assert change_values(outer, lambda name, value: 5 if name == "n" else value).endswith("5; x")
    assert replace_text(outer, "x", "y").endswith("; y")


def test_numbers_and_lists_are_written_as_the_language_does() -> None:
    assert localise("12.5%", "ca") == "12,5\u00a0%"
    assert localise("1,234.5", "en") == "1,234.5"
    assert join(["1"], "es", "and") == "1"
    assert join(["1", "2", "3"], "es", "and") == "1, 2 y 3"
    assert join(["1", "2"], "ca", "or") == "1 o 2"


def test_an_error_carries_its_message() -> None:
    error = InputError("serve.min_cell", min_cell=0)
    assert str(error) == "expected 1 or more as the smallest count that is shown, got 0"
    again = pickle.loads(pickle.dumps(error))
    assert render(again.message, "es").startswith("se esperaba 1 o más")
    assert RecordsError("a plain text").message == "a plain text"
    assert str(ComorbWarning("count.few", n=3)) == "fewer than 3"
    assert str(InputError("serve.port", host="h", port=8000, reason=error)).count("h:8000") == 1
