"""What docs/deploy.md shows: the files are as there, are sound, and the proxy's was tried."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode

import pytest

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "docs" / "deploy"
VISITS = "id,codes\n" + "".join(
    f"{n},{'428;585;403' if n % 2 else '250;401;272'}\n" for n in range(60)
)


@pytest.mark.parametrize("file", sorted(path.name for path in DEPLOY.iterdir()))
def test_the_page_shows_each_file_as_it_is(file):
    page = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    assert (DEPLOY / file).read_text("utf-8").rstrip() in page


def test_the_recipe_of_the_container_is_sound():
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    known = {"FROM", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in steps} <= known
    last = max(at for at, (name, _) in enumerate(steps) if name == "FROM")
    own = dict(steps[last:])
    assert own["USER"] == "comorb"
    assert "--from=build /venv /venv" in own["COPY"]
    for listed in re.findall(r"/source/(\S+\.txt)", text):
        assert (ROOT / listed).exists()
    assert all(":" in image and ":latest" not in image for image in re.findall(r"FROM (\S+)", text))
    assert_options_exist(json.loads(own["CMD"]))


def test_the_unit_of_the_service_is_sound():
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string((DEPLOY / "comorb.service").read_text("utf-8"))
    service = unit["Service"]
    program, *words = service["ExecStart"].split()
    assert program.endswith("/bin/comorb")
    assert service["User"] == "comorb"
    assert words[words.index("--workspace") + 1].startswith(service["ReadWritePaths"])
    assert_options_exist(words)


def assert_options_exist(words):
    assert words[0] == "serve"
    told = subprocess.run(
        [sys.executable, "-m", "comorb", "serve", "--help"], capture_output=True, text=True
    ).stdout
    for word in words:
        if word.startswith("--"):
            assert word.removeprefix("--no-").removeprefix("--") in told, word


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(*words, **given):
    started = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **given)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(30)


@pytest.fixture
def proxied(tmp_path):
    """Yield the address of an explorer behind nginx, a token, and trust in its certificate."""
    if not (shutil.which("nginx") and shutil.which("openssl")):
        pytest.skip("needs nginx and openssl")
    own, outer = free_port(), free_port()
    pem, key = tmp_path / "own.pem", tmp_path / "own.key"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout {key} -out {pem}"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made.split(), *named], check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    for old, new in {
        "443": str(outer),
        "8042": str(own),
        "explorer.hospital.example": "localhost",
        "/etc/ssl/certs/explorer.pem": str(pem),
        "/etc/ssl/private/explorer.key": str(key),
    }.items():
        assert old in text
        text = text.replace(old, new)
    paths = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = tmp_path / "nginx.conf"
    conf.write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors;\n"
        f"events {{}}\nhttp {{ access_log off; {paths}\n{text}}}\n"
    )
    work = ["--workspace", str(tmp_path / "work")]
    comorb = [sys.executable, "-m", "comorb"]
    added = subprocess.run(
        [*comorb, "user", "add", "ada", "--role", "analyst", *work],
        capture_output=True,
        text=True,
        check=True,
    )
    token = max(re.findall(r"\S+", added.stdout), key=len)
    words = [*comorb, "serve", "--no-browser", "--port", str(own), "--proxy", "127.0.0.1", *work]
    with running(*words), running("nginx", "-c", str(conf), "-p", str(tmp_path)):
        trust = ssl.create_default_context(cafile=str(pem))
        yield f"https://localhost:{outer}", token, trust


def test_an_explorer_behind_a_proxy_with_tls(proxied):
    address, token, trust = proxied
    cookies, secret = CookieJar(), ""
    client = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=trust), urllib.request.HTTPCookieProcessor(cookies)
    )

    def ask(path, data=None, method=None, kind="application/json"):
        given = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
        headers = {"content-type": kind, "x-csrf-token": secret}
        asked = urllib.request.Request(address + path, given, headers, method=method)
        return client.open(asked, timeout=120)

    for _ in range(240):
        try:
            page = ask("/login")
            break
        except URLError:
            time.sleep(0.5)
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    ask("/login", urlencode({"token": token}).encode(), kind="application/x-www-form-urlencoded")
    (cookie,) = cookies
    assert cookie.secure
    secret = re.search(r'data-csrf="(\w+)"', ask("/").read().decode())[1]
    uploaded = json.load(ask("/api/v1/data?name=visits.csv", VISITS.encode(), "PUT", "text/csv"))
    run = json.load(ask("/api/v1/runs", {"data": uploaded["id"], "k": 2}))
    told = ask(f"/api/v1/runs/{run['id']}/events").read().decode()
    states = [json.loads(line)["state"] for line in re.findall(r"data: (.+)", told)]
    assert states[-1] == "done"
    assert len(json.load(ask(f"/api/v1/runs/{run['id']}/profile"))["clusters"]) == 2
