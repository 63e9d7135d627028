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


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def name_of(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def message_classes(modules: list[ast.Module]) -> dict[str, int]:
    """Return the exceptions and warnings that carry a message, and which argument it is."""
    nodes = [node for tree in modules for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {"ComorbError": 0, "ComorbWarning": 0}
    while True:
        new = {
            node.name: 0
            for node in nodes
            if node.name not in found and {name_of(base) for base in node.bases} & found.keys()
        }
        if not new:
            return found | {"RefusedError": 1}  # after its status
        found |= new


def messages_of(tree: ast.Module, classes: dict[str, int]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield each text that an exception or a warning gets, and the function it is in."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for home in (*functions, tree):
        for node in ast.walk(home):
            if not isinstance(node, ast.Call):
                continue
            name, arguments = name_of(node.func), node.args
            if name == "warn" and len(arguments) > 1 and name_of(arguments[1]) in classes:
                yield home, arguments[0]
            elif len(arguments) > classes.get(name, len(arguments)):
                yield home, arguments[classes[name]]


def is_plain(node: ast.expr | None, home: ast.AST, tree: ast.Module) -> bool:
    """Return whether a text is, or may be, a sentence rather than a key or a message."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value not in catalogue("en")
    if isinstance(node, ast.JoinedStr | ast.BinOp):
        return True
    if isinstance(node, ast.IfExp):
        return is_plain(node.body, home, tree) or is_plain(node.orelse, home, tree)
    if isinstance(node, ast.BoolOp):
        return any(is_plain(one, home, tree) for one in node.values)
    if isinstance(node, ast.Call):  # what a function of the same module returns
        name = name_of(node.func)
        made = [one for one in ast.walk(tree) if getattr(one, "name", "") == name]
        return name in ("join", "format") or any(
            is_plain(one.value, function, tree)
            for function in made
            for one in ast.walk(function)
            if isinstance(one, ast.Return)
        )
    if isinstance(node, ast.Name):  # what the function, or the module, assigns to it
        homes = [one for one in (home, tree) if node.id in assigned(one)]
        return (
            any(is_plain(one, home, tree) for one in assigned(homes[0])[node.id])
            if homes
            else False
        )
    return False


def assigned(home: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the expressions that are assigned to each name."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(home):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


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


def test_no_error_or_warning_is_a_plain_text() -> None:
    modules = dict(trees())
    classes = message_classes(list(modules.values()))
    assert {"RefusedError", "TaskError", "EmptyCohortError", "StorageError"} <= classes.keys()
    found = [(path, text) for path, tree in modules.items() for text in messages_of(tree, classes)]
    assert len(found) > 400
    plain = {
        f"{path}:{text.lineno}"
        for path, (home, text) in found
        if is_plain(text, home, modules[path])
    }
    assert plain == set()


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("raise InputError('count.few', n=3)", 0),
        ("raise InputError('no such key')", 1),
        ("raise errors.InputError(f'{n} rows')", 1),
        ("raise InputError('expected ' + ', '.join(names))", 1),
        ("raise RefusedError(404, 'request.no_page')", 0),
        ("raise RefusedError(404, 'There is nothing.')", 1),
        ("raise OwnError('this is new')", 1),
        ("def f(n):\n    text = f'{n} rows'\n    warnings.warn(text, ComorbWarning)", 1),
        ("def f(n):\n    warnings.warn(Message('count.few', n=n), ComorbWarning)", 0),
        ("def f(n):\n    return 'a sentence'\nraise InputError(f(1))", 1),
        ("raise InputError('count.few' if n else 'nothing there', n=n)", 1),
        ("raise ValueError('number')", 0),
    ],
)
def test_the_scan_finds_a_plain_text(source: str, plain: int) -> None:
    tree = ast.parse(f"class OwnError(InputError): ...\n{source}")
    classes = message_classes([tree, *(one for _, one in trees())])
    places = {
        text.lineno for home, text in messages_of(tree, classes) if is_plain(text, home, tree)
    }
    assert len(places) == plain


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
