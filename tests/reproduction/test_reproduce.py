import pytest
import typer
from typer.testing import CliRunner

from comorb.cli.reproduce import reproduce as command
from comorb.errors import InputError
from comorb_reproduction.reproduce import PARTS, reproduce
from comorb_reproduction.results import revision


def test_page_says_how_it_was_made(tmp_path):
    told = []
    page = reproduce(["exact"], quick=True, out=tmp_path, progress=lambda *now: told.append(now))
    text = page.read_text()
    assert "`comorb reproduce exact --quick`" in text
    assert revision() in text
    assert "SVTD produces the correct model | **confirmed** |" in text
    assert told[-1] == ("exact", 10, 10)


def test_a_second_run_makes_nothing_again(tmp_path):
    first = reproduce(["exact"], quick=True, out=tmp_path).read_text()
    rows = (tmp_path / "exact.csv").read_text()
    assert reproduce(["exact"], quick=True, out=tmp_path).read_text() == first
    assert (tmp_path / "exact.csv").read_text() == rows


def test_unknown_part_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"among exact, ari, .*, got 'figure 1'"):
        reproduce(["figure 1"], out=tmp_path)


def test_command_prints_the_page(tmp_path):
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, ["exact", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "reproduction.md" in result.stdout


def test_help_names_every_part():
    app = typer.Typer()
    app.command()(command)
    text = CliRunner().invoke(app, ["--help"]).output
    assert all(part in text for part in PARTS)
