"""The page docs/cli.md, made from the commands' own help: ``python docs/commands.py``."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from comorb.cli.app import COMMANDS
from comorb.cli.group import app

_INTRODUCTION = """\
# The command line

Every command reads files, makes one call into the library and prints what it found. Each
answers `--help` with an example. `comorb --install-completion` teaches the shell to complete
commands and options.

- Results go to standard output, progress and notes to standard error. `--json` prints one JSON
  document for scripts, `--quiet` prints notes and errors alone.
- A file is written under a temporary name and renamed when it is complete, so that an
  interrupted command leaves what was there before. Results that are there are replaced only
  with `--force`; those of `comorb demo`, which are always the same, without asking.
- An error is one line: what was expected, what came and what to do. It names files, columns,
  codes and counts, never a patient.

This page is made by `python docs/commands.py > docs/cli.md`.
"""


def reference() -> str:
    """Return the page."""
    runner = CliRunner()
    parts = [_INTRODUCTION]
    for words in ([], *([name] for name in COMMANDS)):
        page = runner.invoke(app, [*words, "--help"], prog_name="comorb", terminal_width=80)
        title = " ".join(["comorb", *words])
        parts.append(f"## {title}\n\n```text\n{page.stdout.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
