"""Every route's refusals, in Spanish and in Catalan: no English sentence is left in them."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from comorb.records.codes.system import LEVELS
from tests.messages.words import english_words
from tests.web.conftest import BASE, mounted, wait
from tests.web.server.test_protection import BODIES, ROLES, ROUTES

ORDER = ("viewer", "analyst", "exporter")
ODD = {"deep": [None]}
# Questions of an exporter that have no answer: of their run, of their data and of all.
OF_RUN = [
    ("GET", "slices?by=nothing", {}),
    ("GET", "slices?by=age:65,18", {}),
    ("GET", "slices?by=sex:q4", {}),
    ("GET", "slices/profile?by=sex&label=nobody", {}),
    ("GET", "map?by=nothing", {}),
    ("GET", "download/nothing", {}),
    ("GET", "worklist/nothing", {}),
    ("POST", "explain", {"json": {"codes": ["zzz"]}}),
    ("POST", "record", {"json": {"record": "nobody"}}),
    ("POST", "arrivals", {"json": {"data": "nothing"}}),
    ("POST", "assign?name=x.csv", {"content": b"one,two\nhello,world\n"}),
    ("POST", "assign?name=x.exe", {"content": b"x"}),
    ("POST", "restore", {}),
]
OF_DATA = [
    ("POST", "size", {"json": {"rules": {"having": ["zzz"]}}}),
    ("POST", "size", {"json": {"rules": {"dates": ["x", "y"]}}}),
    ("GET", "codes?level=nothing", {}),
    ("PUT", "maps?name=x.csv", {"content": b"\x00\x01"}),
    ("PUT", "maps?name=x.csv", {"content": b"code\n428\n"}),
    ("POST", "restore", {}),
    ("DELETE", "", {}),
]
OF_ALL = [
    ("PUT", "data?name=x.exe", {"content": b"x"}),
    ("PUT", "data?name=x.csv", {"content": b""}),
    ("PUT", "data?name=x.csv", {"content": b"<html>no</html>"}),
    ("PUT", "data?name=x.csv", {"content": b"visit_id,dx1\n"}),
    ("PUT", "data?name=x.csv", {"content": b"dx1,dx1\n428,250\n"}),
    ("PUT", "data?name=x.parquet", {"content": b"PAR1 not a table PAR1"}),
    ("PUT", "data?name=x.csv", {"content": b"x", "headers": {"content-length": "x"}}),
    ("POST", "definitions", {"json": {"name": "x"}}),
    ("POST", "definitions", {"json": {"name": "x", "codes": ["428"], "rules": {"sex": ["f"]}}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "k": 99}}),
    ("POST", "runs", {"json": {"data": "nothing"}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "parent": "nothing"}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "merge": [1, 2]}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "rules": {"age": [9, 1, 4]}}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "rules": {"at_least": -1}}}),
    ("POST", "runs", {"json": {"data": "heart-failure", "rules": {"drop_rare": "x"}}}),
    ("POST", "runs", {"json": {"data": "heart-failure"}, "headers": {"origin": "http://x.org"}}),
    ("POST", "runs", {"json": {"data": "heart-failure"}, "headers": {"host": "x.org"}}),
    ("POST", "runs", {"content": b"x" * 1_100_000}),
    ("GET", "nothing", {}),
]
Answers = Iterator[tuple[str, Any]]


@pytest.fixture(scope="module")
def people(app, tokens) -> dict[str, TestClient]:
    headers = {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}
    headers |= {"nobody": {}, "stranger": {"authorization": "Bearer nothing"}}
    return {name: TestClient(app, base_url=BASE, headers=own) for name, own in headers.items()}


def refused_by_role(people, language: str, run: str) -> Answers:
    """Yield what each route answers to nobody, to an unknown token, and to each lesser role."""
    for route, (least, _) in ROUTES.items():
        method, _, path = route.partition(" ")
        lesser = ORDER[: ORDER.index(least)] if least else ()
        names = [name for name in ("vera", "ana") if ROLES[name] in lesser]
        for place, key in (("{key}", run), ("{one}", run), ("{two}", run), ("{name}", "x")):
            path = path.replace(place, key)
        for name in [] if method == "MOUNT" else ["nobody", "stranger", *names]:
            headers = {"accept-language": language}
            yield route, people[name].request(method, path, headers=headers, json={})


def refused_by_content(people, language: str, run: str) -> Answers:
    """Yield what each route answers to keys, fields and bodies that make no sense."""
    eva, headers = people["eva"], {"accept-language": language}
    for route in ROUTES:
        method, _, path = route.partition(" ")
        if method == "MOUNT" or path in ("/login", "/api/v1/logout"):
            continue
        if "{" in path:
            nowhere = re.sub(r"\{\w+\}", "nothing", path)
            yield route, eva.request(method, nowhere, headers=headers, json=BODIES.get(route))
        here = re.sub(r"\{\w+\}", run, path)
        bodies = [{name: ODD} for name in BODIES.get(route, ())]
        for body in [*bodies, {"nothing_such": 1}, []] if bodies else []:
            yield route, eva.request(method, here, headers=headers, json=body)
        if bodies:
            own = headers | {"content-type": "application/json"}
            yield route, eva.request(method, here, headers=own, content=b"{no json")


def refused_questions(people, language: str, run: str) -> Answers:
    """Yield the answers to questions that are understood and have none."""
    eva, data = people["eva"], mounted(people["eva"])["id"]
    parts = ((f"runs/{run}/", OF_RUN), (f"data/{data}/", OF_DATA), ("", OF_ALL))
    for start, questions in parts:
        for method, path, given in questions:
            headers = {"accept-language": language} | given.get("headers", {})
            whole = f"/api/v1/{start}{path}".rstrip("/")
            answer = eva.request(method, whole, **(given | {"headers": headers}))
            yield f"{method} {start}{path}", answer


def text_of(answer: Any) -> str:
    """Return the words of a refusal: those of its JSON, or those of its page."""
    if answer.headers["content-type"].startswith("application/json"):
        return str(answer.json()["error"])
    page = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", " ", answer.text)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def fields_of(text: str) -> list[str]:
    """Return the names of the fields that a refusal begins its parts with."""
    return re.findall(r"[\w.]+(?=: )", text)


@pytest.mark.parametrize("ask", [refused_by_role, refused_by_content, refused_questions])
def test_no_refusal_of_a_route_is_english(people, run, ask) -> None:
    known = 0
    refused = set()
    for language in ("en", "es", "ca"):
        for route, answer in ask(people, language, run["id"]):
            assert answer.status_code < 500, (route, answer.text)
            if answer.status_code < 400:
                assert ask is not refused_questions, (route, answer.text)
                continue
            refused.add(route)
            text = text_of(answer)
            words = english_words(text, [*fields_of(text), ", ".join(LEVELS)])
            known += language == "en" and bool(words)
            assert language == "en" or words == [], (route, answer.status_code, text)
    assert known > 20  # so the word list finds these texts where they are English
    if ask is not refused_questions:
        api = {route for route, (least, _) in ROUTES.items() if least and "/api/" in route}
        assert {route for route in api if ask is refused_by_role or "{" in route} <= refused


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"k": 3, "rules": {"having": ["428"], "age": [1, 2]}}),
        ("", {"k": 3, "rules": {"having": ["428"], "without": ["*"]}}),
        ("/{run}/move", {"record": "nobody", "cluster": 1}),
    ],
)
def test_why_a_run_failed_is_not_english(people, run, path, body) -> None:
    eva = people["eva"]
    body = body if path else body | {"data": mounted(eva)["id"]}
    made = eva.post("/api/v1/runs" + path.format(run=run["id"]), json=body)
    assert made.status_code == 201, made.text
    assert wait(eva, made.json()["id"])["state"] == "failed"
    for language in ("es", "ca"):
        here, headers = f"/api/v1/runs/{made.json()['id']}", {"accept-language": language}
        text = eva.get(here, headers=headers).json()["message"]
        assert text
        assert english_words(text) == [], text
