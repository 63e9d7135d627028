"""Hosts, foreign forms, headers, signing in, and refusals in the language of who asks."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request

from comorb.web.server.access import COOKIE
from comorb.web.server.app import Settings, create_app
from comorb.web.server.security import RefusedError, answer, language_of

BASE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An app without users, whose workers never start."""
    app = create_app(Settings(tmp_path_factory.mktemp("plain")))
    yield app
    app.state.store.close()


@pytest.fixture
def visitor(plain):
    return TestClient(plain, base_url=BASE, follow_redirects=False)


def enter(visitor, plain) -> str:
    """Begin the local session; return what its pages send along with a change."""
    assert visitor.get("/open", params={"key": plain.state.access.new_link()}).status_code == 200
    return plain.state.access.user_of_session(visitor.cookies[COOKIE]).csrf


def test_another_host_is_refused(visitor):
    page = visitor.get("/login", headers={"host": "evil.example"})
    assert page.status_code == 400
    assert "does not answer to that address" in page.text
    told = visitor.get("/api/v1/runs", headers={"host": "evil.example:80"})
    assert told.json() == {"error": "This server does not answer to that address."}


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}],
)
def test_a_form_of_another_site_is_refused(visitor, headers):
    page = visitor.post("/login", data={"token": "x"}, headers=headers)
    assert page.status_code == 403
    assert "came from another site" in page.text


def test_every_answer_has_a_strict_policy(visitor):
    for path in ("/login", "/static/frame.js", "/page/page.js", "/none", "/api/v1/runs"):
        headers = visitor.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["x-content-type-options"] == "nosniff"


def test_the_link_sets_a_cookie_that_scripts_and_other_sites_cannot_use(visitor, plain):
    key = plain.state.access.new_link()
    opened = visitor.get("/open", params={"key": key})
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert visitor.get("/").status_code == 200
    again = visitor.get("/open", params={"key": key})
    assert again.status_code == 403
    assert "used already" in again.text


@pytest.mark.parametrize(
    ("data", "to"), [("x", "/"), ("//evil.example", "/"), ("kept", "/data/kept")]
)
def test_the_link_opens_on_data_that_are_there(visitor, plain, data, to):
    if plain.state.store.get("data", "kept") is None:
        plain.state.store.add("data", "*", {"kind": "builtin"}, "kept")
    asked = {"key": plain.state.access.new_link(), "data": data}
    assert f'url={to}"' in visitor.get("/open", params=asked).text


def test_nobody_comes_in_without_signing_in(visitor):
    assert visitor.get("/").headers["location"] == "/login"
    assert visitor.get("/api/v1/runs").status_code == 401
    assert visitor.get("/runs/abc").headers["location"] == "/login"


def test_a_change_by_cookie_needs_the_secret_of_the_page(visitor, plain):
    secret = enter(visitor, plain)
    body = {"data": "heart-failure"}
    forged = visitor.post("/api/v1/runs", json=body)
    assert forged.status_code == 403
    assert "did not come from a page of ours" in forged.json()["error"]
    wrong = visitor.post("/api/v1/logout", headers={"x-csrf-token": "0" * 64})
    assert wrong.status_code == 403
    assert visitor.post("/api/v1/logout", headers={"x-csrf-token": secret}).status_code == 204
    assert visitor.get("/").status_code == 303


def test_what_is_not_there_is_said_plainly(visitor, plain):
    enter(visitor, plain)
    page = visitor.get("/runs/abc")
    assert page.status_code == 404
    assert "no such page" in page.text
    assert visitor.get("/api/v1/none").json()["error"].startswith("There is no such page")


def test_the_page_of_the_api_names_every_call_and_loads_nothing_from_elsewhere(visitor, plain):
    enter(visitor, plain)
    page = visitor.get("/docs").text
    for path in plain.openapi()["paths"]:
        assert path in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_description_of_the_api_is_for_those_signed_in_and_says_how(visitor, plain):
    assert visitor.get("/api/v1/openapi.json").status_code == 401
    enter(visitor, plain)
    told = visitor.get("/api/v1/openapi.json").json()
    schemes = told["components"]["securitySchemes"]
    assert schemes["token"] == {"type": "http", "scheme": "bearer"}
    assert schemes["session"] == {"type": "apiKey", "in": "cookie", "name": COOKIE}
    for path, calls in told["paths"].items():
        for call in calls.values():
            assert {name for way in call["security"] for name in way} == {"token", "session"}, path


def test_no_answer_of_the_api_is_stored_by_a_browser_or_proxy(visitor):
    assert visitor.get("/api/v1/runs").headers["cache-control"] == "no-store"
    assert visitor.get("/api/v1/none").headers["cache-control"] == "no-store"
    assert visitor.get("/static/frame.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(("language", "text"), [("es", "Explorar"), ("ca-ES", "Idioma")])
def test_pages_speak_the_language_of_the_browser(visitor, plain, language, text):
    page = visitor.get("/login", headers={"accept-language": language}).text
    assert f'lang="{language[:2]}"' in page
    assert text not in visitor.get("/login", headers={"accept-language": "de"}).text


class TestSigningIn:
    @pytest.fixture
    def guarded(self, tmp_path):
        app = create_app(Settings(tmp_path))
        yield app
        app.state.store.close()

    def test_a_token_opens_a_session(self, guarded):
        token = guarded.state.access.add_user("ana", "analyst")
        visitor = TestClient(guarded, base_url=BASE)
        page = visitor.post("/login", data={"token": f" {token} "})
        assert page.status_code == 200
        assert 'data-user="ana"' in page.text
        log = guarded.state.store.query("SELECT user, action FROM audit")
        assert log[1:] == [{"user": "ana", "action": "sign in"}]

    def test_wrong_tokens_are_told_and_then_have_to_wait(self, guarded):
        visitor = TestClient(guarded, base_url=BASE)
        for _ in range(5):
            page = visitor.post("/login", data={"token": "wrong"})
            assert page.status_code == 401
            assert "not known here" in page.text
        assert visitor.post("/login", data={"token": "wrong"}).status_code == 429
        bearer = {"authorization": "Bearer wrong"}
        assert visitor.get("/api/v1/runs", headers=bearer).status_code == 429

    def test_wrong_tokens_of_one_do_not_lock_out_others_behind_the_same_address(self, guarded):
        token = guarded.state.access.add_user("ana", "analyst")
        visitor = TestClient(guarded, base_url=BASE)
        for wrong in range(9):
            visitor.get("/api/v1/runs", headers={"authorization": f"Bearer wrong{wrong}"})
        right = {"authorization": f"Bearer {token}"}
        assert visitor.get("/api/v1/runs", headers=right).status_code == 200
        assert visitor.post("/login", data={"token": token}).status_code == 200

    def test_a_wrong_bearer_token_is_refused(self, guarded):
        visitor = TestClient(guarded, base_url=BASE)
        told = visitor.get("/api/v1/runs", headers={"authorization": "Bearer wrong"})
        assert (told.status_code, told.json()) == (401, {"error": "That token is not known here."})

    def test_a_form_that_is_too_long_is_refused(self, guarded):
        visitor = TestClient(guarded, base_url=BASE)
        assert visitor.post("/login", data={"token": "x" * 20_000}).status_code == 413


def request(path: str, **headers: str) -> Request:
    named = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": path, "headers": named})


def test_a_refusal_is_in_the_language_of_who_asks() -> None:
    error = RefusedError(413, "upload.too_large", mb=1500)
    spanish = answer(request("/api/v1/data", cookie="comorb_lang=es"), error)
    assert "más de 1.500 MB" in bytes(spanish.body).decode()
    assert "larger than 1,500 MB" in bytes(answer(request("/api/v1/data"), error).body).decode()
    page = bytes(answer(request("/runs/x", accept_language="ca-ES,en"), error).body).decode()
    assert 'lang="ca"' in page
    assert "Torna a la primera pàgina" in page
    assert language_of(request("/", accept_language="fr,de")) == "en"
