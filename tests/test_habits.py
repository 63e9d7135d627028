"""What is written in two places is the same in both: checks, Pythons, targets."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_the_checks_before_a_commit_are_those_of_make_lint():
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)[1]
    checks = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
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


def test_every_module_has_its_test_or_is_named_in_its_package_s_tests():
    source, tests = ROOT / "src" / "comorb", ROOT / "tests"
    untested = []
    for module in source.rglob("*.py"):
        place = tests / module.relative_to(source).parent
        if module.stem.startswith("__") or (place / f"test_{module.name}").exists():
            continue
        near = place.glob("*.py") if place.exists() else [place.parent / f"test_{place.name}.py"]
        if not any(re.search(rf"\b{module.stem}\b", file.read_text("utf-8")) for file in near):
            untested.append(str(module.relative_to(source)))
    assert untested == []


def test_no_function_is_over_60_lines():
    long = [
        f"{file.name}: {node.name}"
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= 60
    ]
    assert long == []
