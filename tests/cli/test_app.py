"""The front page, the way errors are told, and how soon help comes."""

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from comorb import __version__
from comorb.__main__ import main
from comorb.cli import group
from comorb.cli.app import COMMANDS, front_page
from comorb.errors import ComorbWarning

DOCS = Path(__file__).parents[2] / "docs"


def test_the_front_page_is_the_help(comorb):
    assert comorb("--help").stdout == front_page()
    assert comorb().output.strip() == front_page().strip()


def test_the_front_page_needs_no_other_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["comorb", "--help"])
    monkeypatch.setitem(sys.modules, "comorb.cli.group", None)
    main()
    assert capsys.readouterr().out == front_page()


def test_the_front_page_names_every_option_and_command():
    root = typer.main.get_command(group.app)
    for parameter in root.params:
        assert all(f"  {name} " in front_page() for name in parameter.opts)
    for name, summary in COMMANDS.items():
        assert root.commands[name].help.startswith(f"{summary}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_explains_its_options(name, comorb):
    told = comorb(name, "--help").stdout
    assert f"\n  Example: comorb {name}" in told
    command = typer.main.get_command(group.app).commands[name]
    assert all(getattr(parameter, "help", None) for parameter in command.params)


def test_the_page_in_the_docs_is_up_to_date():
    made = runpy.run_path(str(DOCS / "commands.py"))["reference"]()
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == made, (
        "make it again: python docs/commands.py > docs/cli.md"
    )


def test_the_version_is_told(comorb):
    assert comorb("--version").stdout == f"comorb {__version__}\n"


def test_a_wrong_command_is_exit_code_2(comorb):
    told = comorb("fitt")
    assert told.exit_code == 2
    assert "Did you mean 'fit'?" in told.stderr


def test_completion_is_offered():
    runner = CliRunner(
        env={"_COMORB_COMPLETE": "complete_bash", "COMP_WORDS": "comorb si", "COMP_CWORD": "1"}
    )
    assert runner.invoke(group.app, [], prog_name="comorb").stdout.split() == ["simulate"]


def raising(error: BaseException) -> typer.Typer:
    app = typer.Typer(cls=group.CommandGroup)

    @app.callback()
    def roof() -> None: ...

    @app.command()
    def work() -> None:
        raise error

    return app


def test_an_interruption_is_exit_code_130():
    told = CliRunner().invoke(raising(KeyboardInterrupt()), ["work"])
    assert told.exit_code == 130
    assert told.stderr == "comorb: interrupted; files that were there before are whole\n"


def test_a_warning_becomes_a_note():
    app = typer.Typer(cls=group.CommandGroup)

    @app.callback()
    def roof() -> None: ...

    @app.command()
    def work() -> None:
        warnings.warn("two systems are mixed", ComorbWarning, stacklevel=1)

    told = CliRunner().invoke(app, ["work"])
    assert told.exit_code == 0
    assert told.stderr == "note: two systems are mixed\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("words", [["--help"], ["profile", "RUN"], ["profile", "RUN", "--json"]])
def test_a_full_device_is_one_line(run, words):
    command = [sys.executable, "-m", "comorb", *(str(run) if w == "RUN" else w for w in words)]
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert told.stderr.startswith("comorb: ")
    assert "No space left on device" in told.stderr


@pytest.mark.parametrize("words", ["--help", "profile RUN", "profile RUN --json"])
def test_a_closed_output_and_a_reader_that_leaves_are_no_traceback(run, words):
    called = f"{sys.executable} -m comorb {words.replace('RUN', str(run))}"
    for script in (f"{called} >&-", f"{called} | head -c 1"):
        told = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert told.stderr == ""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="memory can't be limited here")
def test_little_memory_is_one_line_or_enough(records):
    script = f"ulimit -v 1500000; {sys.executable} -m comorb inspect {records}"
    # Measuring coverage takes memory too, of which little is left.
    plain = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=plain)
    assert told.returncode in (0, 1)
    assert "Traceback" not in told.stderr
    if told.returncode:
        assert told.stderr.count("\n") == 1
        assert "memory" in told.stderr
