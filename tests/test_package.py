from __future__ import annotations

import subprocess
import sys

import pytest

import comorb


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
