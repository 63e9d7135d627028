"""What the documentation shows is true: its examples run, and its links lead somewhere."""

from __future__ import annotations

import csv
import doctest
import gzip
import re
import runpy
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from comorb.cli.app import COMMANDS
from comorb.cli.group import app
from comorb.records.datasets import heart_failure

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "src").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def named_files(page: Path) -> list[str]:
    """Return the paths of files that a page names in code, in a drawing or in backticks."""
    return re.findall(r"(?<![\w/.<>-])((?:\w+/)+\w+\.(?:py|js|json))", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Put the files that examples name into a folder, and go there."""
    monkeypatch.chdir(tmp_path)
    cohort = heart_failure()
    columns = [f"diag{i}" for i in range(1, 12)]
    with Path("visits.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["visit", "age", "survey_weight", *columns])
        for row in range(600):
            ones = cohort.matrix.indices[cohort.matrix.indptr[row] : cohort.matrix.indptr[row + 1]]
            codes = [cohort.codes[one] for one in ones][: len(columns)]
            codes += [""] * (len(columns) - len(codes))
            table.writerow([f"v{row}", 60 + row % 30, 1 + row % 3, *codes])
    drugs = [f"v{row},{('A10BA02', 'C07AB02')[row % 2]}" for row in range(700)]
    Path("medications.csv").write_text("\n".join(["visit,atc", *drugs]) + "\n")
    with Path("visits.csv").open("rb") as plain, gzip.open("discharges.csv.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)


def commands() -> list[str]:
    """Return the commands of shell blocks, and those between backticks that name a file."""
    pages = [*PAGES, *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
    found = []
    for page in pages:
        text = page.read_text("utf-8").replace("\\\n", " ")
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            found += [line.partition(" #")[0].strip() for line in block.splitlines()]
        found += re.findall(rf"`(comorb (?:{'|'.join(COMMANDS)}) \w[^`\n]+)`", text)
    return sorted({one for one in found if re.match(r"comorb \w", one) and "…" not in one})


@pytest.mark.parametrize("line", commands())
def test_commands_of_pages_are_ones_that_there_are(line):
    _, name, *words = shlex.split(line.partition(" > ")[0])
    command = get_command(app).commands[name]
    with command.make_context(name, list(words)):
        pass


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    assert doctest.testmod(import_module(name)).failed == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_examples_of_pages(page, files):
    if page.name == "files.md":
        from comorb.runs.run import Request, run

        run(heart_failure(), Request(2, repeats=0), "run")
        shutil.copy("run/model.comorb", "model.comorb")
    if page.name == "scale.md":
        from pyarrow import csv as arrow
        from pyarrow import parquet

        parquet.write_table(arrow.read_csv("visits.csv"), "visits.parquet")
    if ">>> " in page.read_text("utf-8"):
        assert doctest.testfile(str(page), module_relative=False).failed == 0
        return
    space: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        exec(block, space)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_map_has_every_module_as_it_is():
    page = runpy.run_path(str(ROOT / "docs" / "modules.py"))["page"]
    assert (ROOT / "docs" / "architecture.md").read_text("utf-8") == page(), (
        "make it again: make docs"
    )


def test_the_map_holds_the_first_sentence_alone(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""Two | ``marks`` (Ann et al. 2014). And more.\n\nEven more.\n"""\n')
    sentence = runpy.run_path(str(ROOT / "docs" / "modules.py"))["sentence"]
    assert sentence(module) == r"Two \| `marks` (Ann et al. 2014)"


@pytest.mark.parametrize("page", [ROOT / "docs" / "architecture.md"], ids=lambda page: page.name)
def test_files_that_pages_name_are_there(page):
    assert named_files(page)
    for name in named_files(page):
        assert any((place / name).exists() for place in (ROOT / "src" / "comorb", ROOT)), name
