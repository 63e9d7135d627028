from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import comorb

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "comorb"
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


def loaded_by(code: str) -> set[str]:
    """Return the packages outside Python that some code loads, in a process of its own."""
    code = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    return names - sys.stdlib_module_names - {"comorb"}


def test_importing_the_package_loads_nothing_else():
    assert loaded_by("import comorb") == set()


def test_the_front_page_loads_nothing_else():
    code = "from comorb.__main__ import main; sys.argv = ['comorb', '--help']; main()"
    assert loaded_by(code) == set()


def test_the_library_alone_loads_no_web_or_database_package():
    code = (
        "sys.modules['pandas'] = None  # not of a plain install; scikit-learn would load it\n"
        "import numpy as np; from comorb import BernoulliMixture\n"
        "BernoulliMixture(2).fit(np.eye(4)[[0, 0, 0, 1, 2, 3]]).predict(np.eye(4))"
    )
    packages = loaded_by(code)
    assert {"numpy", "scipy", "numba", "sklearn", "threadpoolctl"} <= packages
    shown = {"duckdb", "pyarrow", "typer", "rich", "matplotlib", "jinja2"}
    assert not packages & (shown | {"fastapi", "starlette", "uvicorn", "pydantic", "distributed"})


def test_all_extras_are_in_all():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"comorb[{','.join(extras)}]"


def test_the_version_is_written_once():
    files = [ROOT / "pyproject.toml", *SOURCE.rglob("*.py")]
    holding = [file for file in files if f'"{comorb.__version__}"' in file.read_text("utf-8")]
    assert holding == [SOURCE / "__init__.py"]


@pytest.mark.parametrize("module", MODEL, ids=lambda module: module.stem)
def test_the_mathematics_needs_arrays_and_a_compiler_alone(module):
    manners = {"sklearn"} if module.stem == "estimators" else set()
    assert outside(module) <= {"numpy", "scipy", "numba", "threadpoolctl"} | manners
