"""Refusals: every sentence that the server or a worker refuses with is there in every language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from starlette.requests import Request

from comorb.insight.views.words import Words
from comorb.web.server.refusals import RefusedError, answer, language_of

WEB = Path(str(resources.files("comorb.web")))
ERRORS = {"RefusedError", "TaskError", "StoppedError", "OutOfMemoryError", "RecordsError"}
STARTING = {"access.py", "serving.py", "store.py", "isolation.py"}  # said at the command line
AMONG = ("_NO_MEMORY", "said", "message")


def template(node: ast.AST | None) -> str | None:
    """Return the text of a string, with a number in the place of each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "7" for part in node.values)
    return None


def refusals() -> Iterator[str]:
    for path in sorted(WEB.glob("*/*.py")):
        if path.name in STARTING:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            found: list[ast.AST | None] = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS | {
                "InputError"
            }:
                found = [node.args[-1]] if node.args else []
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in AMONG:
                value = node.value
                found = list(value.values) if isinstance(value, ast.Dict) else [value]
            elif isinstance(node, ast.FunctionDef) and node.name in ("_too_large", "_too_few"):
                found = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
            texts = [text for one in found if (text := template(one))]
            yield from (text for text in texts if re.search(r"[a-z]{3} ", text))


def test_there_are_refusals_to_find() -> None:
    told = set(refusals())
    assert len(told) > 35
    assert "Sign in first." in told
    assert "The file is larger than 7 MB; ask for it to be mounted instead." in told


@pytest.mark.parametrize("language", ["es", "ca"])
def test_every_refusal_is_said_in_every_language(language: str) -> None:
    words = Words(language)
    left = [text for text in refusals() if words.said(text) == text and "expected 1" not in text]
    assert left == []


def request(path: str, **headers: str) -> Request:
    named = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": path, "headers": named})


def test_a_refusal_is_in_the_language_of_who_asks() -> None:
    error = RefusedError(413, "The file is larger than 1,500 MB; ask for it to be mounted instead.")
    spanish = answer(request("/api/v1/data", cookie="comorb_lang=es"), error)
    assert "más de 1.500 MB" in bytes(spanish.body).decode()
    assert "larger than 1,500 MB" in bytes(answer(request("/api/v1/data"), error).body).decode()
    page = bytes(answer(request("/runs/x", accept_language="ca-ES,en"), error).body).decode()
    assert 'lang="ca"' in page
    assert "Torna a la primera pàgina" in page
    assert language_of(request("/", accept_language="fr,de")) == "en"
