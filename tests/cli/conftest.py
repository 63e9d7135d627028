"""A small file of records and a run over it, made once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from comorb.cli.group import app

Comorb = Callable[..., Result]


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="comorb")


@pytest.fixture
def comorb(tmp_path, monkeypatch) -> Comorb:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture(scope="session")
def records(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("records") / "visits.csv"
    assert call("simulate", path, "-n", 2000, "--quiet").exit_code == 0
    return path


@pytest.fixture(scope="session")
def run(records, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "kidneys"
    told = call("fit", records, "--having", "585", "-k", 3, "--drop-codes", "428", "-o", path, "-q")
    assert told.exit_code == 0, told.output
    assert told.output == ""
    return path
