"""The report: whole, safe, and drawn by a real browser without asking anyone for anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path

import pytest

from comorb.profiles.profile import Profile
from comorb.views.charts import palette
from comorb.views.findings import page_json
from comorb.views.report import asset, report, script
from comorb.views.words import page_texts, rendered

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGE = Path(str(resources.files("comorb.views").joinpath("page")))
MODULES = sorted(path.name for path in PAGE.glob("*.js"))


def _embedded(page: str, name: str) -> str:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert found
    return found[1]


def test_the_profile_stands_in_the_page(full: Profile) -> None:
    page = report(full)
    assert Profile.from_json(_embedded(page, "profile")).to_json() == rendered(full, "en").to_json()
    assert json.loads(_embedded(page, "palette")) == palette()


def test_nothing_points_outside(full: Profile) -> None:
    page = report(full).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|src=|@import|url\(", page)
    assert "default-src 'none'" in page
    assert "patient-" not in page


def test_a_name_cannot_break_out_of_its_element(full: Profile) -> None:
    evil = "</script><script>alert(1)</script>"
    page = report(full.renamed({0: evil}))
    assert evil not in page
    assert json.loads(_embedded(page, "profile"))["clusters"][0]["name"] == evil


def test_the_modules_are_all_there_once_and_each_after_its_imports() -> None:
    whole = script()
    assert not re.search(r"^(import|export)\b", whole, re.MULTILINE)
    for name in MODULES:
        first = asset(name).splitlines()[0]
        assert whole.count(first) == 1
    assert whole.index("function h(") < whole.index("function cards(")


def test_no_two_modules_use_one_name() -> None:
    names = re.findall(r"^(?:function|const|let|class) (\w+)", script(), re.MULTILINE)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", MODULES)
def test_the_modules_keep_to_a_strict_policy(name: str) -> None:
    text = asset(name)
    assert not re.search(r"innerHTML|eval\(|new Function|setAttribute\(\"style|\.on\w+ =", text)
    assert len(text.splitlines()) <= 300


def test_the_texts_of_the_page_stand_in_it_and_no_others(full: Profile) -> None:
    assert json.loads(_embedded(report(full), "texts")) == {"en": page_texts("en")}


needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="NO BROWSER: install Debian's chromium to test the page in it"
)
Browse = Callable[[str], str]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Return a function from an address to the page's document, once it has drawn itself."""

    def look(address: str) -> str:
        assert CHROMIUM
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr",
            "--virtual-time-budget=3000", "--window-size=1024,768", "--dump-dom", address,
        ]  # fmt: skip
        run = subprocess.run(
            [CHROMIUM, *options], capture_output=True, text=True, timeout=60, check=True
        )
        assert "CONSOLE" not in run.stderr, run.stderr
        return run.stdout

    return look


def _relevant(document: str) -> list[list[int]]:
    part = re.search(r'<section id="relevance".*?</section>', document, re.S)
    assert part
    lists = re.findall(r"<ol>(.*?)</ol>", part[0], re.S)
    return [[int(code) for code in re.findall(r'data-code="(\d+)"', text)] for text in lists]


@needs_browser
@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_the_browser_ranks_as_the_library_does(
    full: Profile, tmp_path: Path, browse: Browse, lam: float
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report(full), encoding="utf-8")
    document = browse(f"{path.as_uri()}#lambda={lam}")
    assert _relevant(document) == [full.top(j, lam).tolist() for j in range(full.k)]
    common = re.findall(r'<tr data-code="(\d+)"', document)
    assert [int(code) for code in common] == full.common(20).tolist()


@needs_browser
def test_the_browser_draws_a_protected_profile(
    full: Profile, tmp_path: Path, browse: Browse
) -> None:
    shown = full.protected(60)
    path = tmp_path / "report.html"
    path.write_text(report(shown), encoding="utf-8")
    document = browse(path.as_uri())
    assert "those from 0 to 59 are told as “&lt; 60”" in document
    assert "&lt; 60" in document
    assert _relevant(document) == [shown.top(j).tolist() for j in range(shown.k)]


class _Strict(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", "default-src 'self'")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path, full: Profile) -> Iterator[str]:
    """Serve the page's files one by one, as the explorer does, under its strict policy."""
    for path in PAGE.iterdir():
        shutil.copy(path, tmp_path)
    data = {
        "texts": json.dumps({"en": page_texts("en")}),
        "palette": asset("palette.json"),
        "profile": page_json(full),
    }
    blocks = "".join(
        f'<script type="application/json" id="{name}">{text}</script>'
        for name, text in data.items()
    )
    (tmp_path / "index.html").write_text(
        '<!doctype html><html lang="en"><link rel="icon" href="palette.json">'
        f'<link rel="stylesheet" href="style.css"><div id="page" class="comorb"></div>{blocks}'
        '<script type="module" src="report.js"></script></html>',
        encoding="utf-8",
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Strict, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    thread.join()
    server.server_close()


@needs_browser
def test_the_same_modules_run_as_files_under_a_strict_policy(
    full: Profile, address: str, browse: Browse
) -> None:
    document = browse(address)
    assert _relevant(document) == [full.top(j).tolist() for j in range(full.k)]


def test_a_report_of_a_mixed_cohort_holds_its_features(mixed) -> None:
    page = report(mixed[2])
    assert '"features":[{"name":"age"' in page
    assert "function features(" in page
