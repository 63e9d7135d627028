"""Make each attack and print its closing line: ``python -m torture [--share S] [PART ...]``."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

PARTS = ("bits", "routes", "bombs", "disks", "markers", "kills", "users", "fuzz")


def main() -> None:
    """Make the parts that are named, or all; exit with 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m torture")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--share", type=float, default=1.0, help="of the full counts")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"expected parts out of {', '.join(PARTS)}; got {', '.join(unknown)}")
    found = False
    for name in given.parts or PARTS:
        started = time.monotonic()
        verdict = import_module(f"torture.{name}").run(given.share)
        for finding in verdict.findings:
            print(f"  FOUND: {finding}")
        print(f"{verdict.line(name)} [{time.monotonic() - started:,.0f} s]", flush=True)
        found = found or bool(verdict.findings)
    sys.exit(found)


if __name__ == "__main__":
    main()
