"""The ``comorb`` command, also as ``python -m comorb``."""

from __future__ import annotations

import os
import sys

from comorb.cli.app import front_page


def main() -> None:
    """Run the command line; a character that a terminal can't show becomes a question mark."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        getattr(sys, name).reconfigure(errors="replace")
    try:
        try:
            if sys.argv[1:] in ([], ["--help"]):
                sys.stdout.write(front_page())
            else:
                from comorb.cli.group import app

                app(prog_name="comorb")
        finally:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"comorb: the output can't be written: {error.strerror}\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
