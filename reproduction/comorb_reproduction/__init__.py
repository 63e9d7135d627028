"""The paper's comparators, figures and tables, made again with this package."""

from __future__ import annotations
