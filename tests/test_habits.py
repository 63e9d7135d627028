"""What is written in two places is the same in both: checks, Pythons, targets."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from tests.check_coverage import failures

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_the_checks_before_a_commit_are_those_of_make_lint():
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)[1]
    recipe = recipe.replace("$(BIN)", ".venv/bin").replace("$(MAKE)", "make")
    checks = [line.strip() for line in recipe.splitlines()]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert re.findall(r"^ +entry: (.+)$", hooks, re.MULTILINE) == checks


def test_the_matrix_tries_every_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    tried = re.search(r"^PYTHONS := (.+)$", MAKEFILE, re.MULTILINE)[1].split()
    assert tried == [f"python{version}" for version in promised]
    assert project["requires-python"] == f">={promised[0]}"


def test_every_target_is_explained():
    targets = set(re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split())
    explained = re.findall(
        r"^make ([\w-]+) +# ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M
    )
    assert set(explained) == targets - {"programs", "clean"}


def covered(functions: int, imports: int) -> dict[str, object]:
    """Return a file of a report: so many of 100 lines ran in functions, and outside them."""
    inside = {"covered_lines": functions, "num_statements": 100}
    outside = {"covered_lines": imports, "num_statements": 100}
    whole = {"covered_lines": functions + imports, "num_statements": 200}
    parts = {"": {"summary": outside}, "do": {"summary": inside}}
    return {"summary": whole, "functions": parts}


def test_a_module_that_is_only_imported_is_not_covered():
    files = {"src/comorb/model/em.py": covered(100, 100), "src/comorb/web/a.py": covered(100, 100)}
    assert failures(files) == []
    (missed,) = failures(files | {"src/comorb/web/b.py": covered(59, 100)})
    assert missed == "src/comorb/web/b.py: 59% of its functions ran, and 60% have to"


def test_the_core_and_the_rest_have_bounds_of_their_own():
    core, rest = "src/comorb/model/em.py", "src/comorb/web/a.py"
    assert failures({core: covered(90, 100), rest: covered(70, 100)}) == []
    assert failures({core: covered(89, 100), rest: covered(69, 100)}) == [
        "comorb.model: 94.5% ran, and 95% have to",
        "the rest: 84.5% ran, and 85% have to",
    ]


def test_no_function_is_over_60_lines():
    long = [
        f"{file.name}: {node.name}"
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= 60
    ]
    assert long == []
