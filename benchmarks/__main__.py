"""Print every figure with its target: ``make bench``, or ``python -m benchmarks engine``."""

from __future__ import annotations

import sys
from importlib import import_module

SECTIONS = (
    "engine",
    "startup",
    "plain_c",
    "records",
    "accuracy",
    "starts",
    "settings",
    "wide",
    "numbers",
    "sureness",
    "relate",
    "protection",
    "findings",
    "mixed",
    "peers",
    "burden",
    "scale",
    "relate_scale",
)

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        import_module(f"benchmarks.{section}").main()
