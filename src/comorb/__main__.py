"""The ``comorb`` command, also as ``python -m comorb``."""

from __future__ import annotations

import sys

from comorb.cli.app import front_page


def main() -> None:
    """Run the command line; a character that a terminal can't show becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if sys.argv[1:] in ([], ["--help"]):
        sys.stdout.write(front_page())
        return
    from comorb.cli.group import app

    app(prog_name="comorb")


if __name__ == "__main__":
    main()
