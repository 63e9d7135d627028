"""Requests that no browser sends: odd bytes in every place are refused, and never an error of ours.

What refuses them is in app, data_api, guard and session.
"""

import json

import pytest
from fastapi.testclient import TestClient

from tests.web.conftest import BASE
from tests.web.server.test_protection import BODIES, ROUTES

ODD = ["%00", "a%00b", "%ff%fe", "%ed%a0%80", "%", "%zz", "%0d%0a", "%F0%9F%98%80" * 60]
TEXTS = [
    "\0",
    "a\0.csv",
    "é.csv",
    "\ud800.csv",
    "😀" * 190 + ".csv",
    "../../x.csv",
    "x." + "é" * 190,
]


@pytest.fixture
def eva(app, tokens):
    header = {"authorization": f"Bearer {tokens['eva']}"}
    return TestClient(app, base_url=BASE, headers=header, raise_server_exceptions=False)


def asked(client, method: str, path: str, **given) -> int:
    headers = {"content-type": "application/json"} | given.pop("headers", {})
    status = client.request(method, path, headers=headers, **given).status_code
    assert status < 500, (method, path, given)
    return status


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_address_is_refused(eva, odd):
    for route in ROUTES:
        method, _, path = route.partition(" ")
        if "{" in path:
            for place in ("{key}", "{one}", "{two}", "{name}"):
                path = path.replace(place, odd)
            assert 400 <= asked(eva, method, path, json=BODIES.get(route, {})) < 500, route
    for folder in ("/static/", "/page/", "/api/v1/", "/"):
        assert 400 <= asked(eva, "GET", f"{folder}{odd}x") < 500


@pytest.mark.parametrize(
    "header",
    [
        {"authorization": "Bearer é".encode("latin-1")},
        {"authorization": "Bearer ключ".encode()},
        {"authorization": b"Bearer \xff\xfe"},
        {"authorization": b"", "cookie": b"comorb_session=\xff\xe9"},
        {"host": "[::1"},
        {"host": "]"},
        {"host": b"\xff"},
        {"origin": "http://[::1"},
    ],
)
def test_an_odd_header_is_refused(app, header):
    client = TestClient(app, base_url=BASE, raise_server_exceptions=False)
    assert 400 <= asked(client, "POST", "/api/v1/runs", headers=header, json={}) < 500


def test_an_odd_secret_of_a_page_is_refused(app, tokens):
    client = TestClient(app, base_url=BASE, raise_server_exceptions=False)
    client.post("/login", data={"token": tokens["eva"]})
    headers = {"x-csrf-token": "é".encode("latin-1")}
    assert asked(client, "POST", "/api/v1/logout", headers=headers) == 403


@pytest.mark.parametrize("body", [b"token=\xff", b"token=%ff%00", b"\x00", b"token=%", b"%=%&&="])
def test_an_odd_form_is_refused(app, body):
    client = TestClient(app, base_url=BASE, raise_server_exceptions=False)
    assert asked(client, "POST", "/login", content=body) in (401, 429)
    assert asked(client, "GET", "/open?key=%ff%00") in (403, 429)


@pytest.mark.parametrize("text", TEXTS)
def test_an_odd_name_is_refused_or_taken_as_it_is(eva, run, text):
    name = {"name": text.encode("utf-8", "surrogatepass")}
    key = f"/api/v1/runs/{run['id']}"
    assert 400 <= asked(eva, "PUT", "/api/v1/data", params=name, content=b"x") < 500
    assert 400 <= asked(eva, "POST", f"{key}/assign", params=name, content=b"x") < 500
    data = f"/api/v1/data/{run['data']}"
    asked(eva, "PUT", f"{data}/maps", params=name, content=b"code,group\n428,hf\n")
    for path, body in (("record", {"record": text}), ("explain", {"codes": [text]})):
        assert 400 <= asked(eva, "POST", f"{key}/{path}", content=json.dumps(body)) < 500
    asked(eva, "PUT", f"{key}/names", content=json.dumps({"2": text}))
    asked(eva, "PATCH", key, content=json.dumps({"title": text}))
    eva.patch(key, json={"title": run["title"]})


@pytest.mark.parametrize("length", ["x", "-1", "1e9", "²"])
def test_an_odd_length_is_refused(eva, length):
    headers = {"content-length": length.encode("latin-1")}
    assert 400 <= asked(eva, "PUT", "/api/v1/data?name=x.csv", headers=headers, content=b"x") < 500
