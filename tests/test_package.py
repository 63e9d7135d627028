from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import comorb

SOURCE = Path(__file__).parents[1] / "src" / "comorb"
MODEL = sorted((SOURCE / "model").rglob("*.py"))


def outside(module: Path) -> set[str]:
    """Return the packages that a module imports and that neither Python nor comorb brings."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "comorb").partition(".")[0])
    return names - sys.stdlib_module_names - {"comorb"}


@pytest.mark.parametrize("name", comorb.__all__)
def test_every_public_name_is_there(name):
    assert getattr(comorb, name) is not None
    assert name in dir(comorb)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'comorb' has no attribute 'kmeans'"):
        comorb.kmeans  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import comorb, sys; print({'numpy', 'numba', 'sklearn', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("module", MODEL, ids=lambda module: module.stem)
def test_the_mathematics_needs_arrays_and_a_compiler_alone(module):
    manners = {"sklearn"} if module.stem == "estimator" else set()
    assert outside(module) <= {"numpy", "scipy", "numba", "threadpoolctl"} | manners
