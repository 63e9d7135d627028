"""The real server and a real Chromium; screenshots go to results/browser, or to the docs as well.

``COMORB_DOCS_IMAGES=1`` also writes the pictures of docs/explorer.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from comorb.profiles.noise import HOME_VARIABLE
from comorb.records.datasets import region
from comorb.records.export import export

ROOT = Path(__file__).parents[2]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_AXE = "axe-core@4.14.0"
_VIOLATIONS = """
window.violations = (part) => axe.run(part ?? document, { resultTypes: ["violations"] })
  .then(({ violations }) => ({ violations }));
"""
missing: list[str] = []
expect.set_options(timeout=40_000)


def pytest_terminal_summary(terminalreporter) -> None:
    for line in missing:
        terminalreporter.write_line(f"NOT TESTED IN A BROWSER: {line}", yellow=True)


@dataclass
class Server:
    """A running ``comorb serve``."""

    process: subprocess.Popen[str]
    base: str
    link: str
    workspace: Path

    def stop(self) -> None:
        if self.process.stdout.closed:
            return
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start servers that are stopped when the test ends."""
    servers = []

    def begin(workspace: Path, *words: str) -> Server:
        servers.append(serve(workspace, *words))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


def serve(workspace: Path, *words: str) -> Server:
    command = [sys.executable, "-m", "comorb", "serve", *words, "--no-browser"]
    command += ["--workspace", str(workspace), "--port", "0"]
    own = os.environ | {HOME_VARIABLE: str(workspace / "home")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
    link = re.search(r"http\S+", process.stdout.readline())[0]
    return Server(process, link.partition("/open")[0].removesuffix("/login"), link, workspace)


@pytest.fixture(scope="session")
def records(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("records") / "visits.csv"
    export(region(4000), path)
    return path


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        missing.append("there is no Chromium here; install it and run the tests again")
        pytest.skip(missing[-1])
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(chromium, tmp_path_factory) -> Iterator[Server]:
    server = serve(tmp_path_factory.mktemp("workspace"), "--upload-limit", "20")
    yield server
    server.stop()


@pytest.fixture
def new_page(chromium) -> Iterator[Callable[..., Page]]:
    """Open a page of its own session; its errors and requests to elsewhere fail the test."""
    contexts, wrong, expected = [], [], []

    def make(base: str, *, width: int = 1440, height: int = 900, expect: str = "") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, locale="en-GB")
        contexts.append(context)
        context.set_default_timeout(60_000)
        context.on(
            "request",
            lambda each: each.url.startswith((base, "blob:", "data:")) or wrong.append(each.url),
        )
        page = context.new_page()
        expected.append(expect)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda told: (
                told.type == "error"
                and not (expect and expect in told.text)
                and wrong.append(told.text)
            ),
        )
        page.on("dialog", lambda dialog: dialog.accept())
        return page

    yield make
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="package")
def local(chromium, server):
    """The cookies of the local user's session, from the one-time link."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_url(f"{server.base}/")
    cookies = context.cookies()
    context.close()
    return cookies


@pytest.fixture
def page(new_page, server, local) -> Page:
    page = new_page(server.base)
    page.context.add_cookies(local)
    return page


@pytest.fixture(scope="session")
def picture() -> Callable[[Page, str], None]:
    """Keep a screenshot as an artefact, and small in the docs when they are being made."""

    def take(page: Page, name: str) -> None:
        page.mouse.move(0, 0)
        whole = page.screenshot(animations="disabled")
        folder = ROOT / "results" / "browser"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").write_bytes(whole)
        if os.environ.get("COMORB_DOCS_IMAGES"):
            image = Image.open(BytesIO(whole)).convert("RGB")
            small = image.quantize(256, Image.Quantize.MAXCOVERAGE)
            target = ROOT / "docs" / "images" / "explorer"
            target.mkdir(parents=True, exist_ok=True)
            small.save(target / f"{name}.png", optimize=True)

    return take


@pytest.fixture(scope="session")
def axe(tmp_path_factory) -> str:
    """The script of axe, which is fetched for the tests and shipped nowhere."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    done = npm and subprocess.run([npm, "pack", _AXE], cwd=folder, capture_output=True, timeout=120)
    if not done or done.returncode:
        missing.append("axe-core can't be fetched, so accessibility is not checked")
        pytest.skip(missing[-1])
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode() + _VIOLATIONS
