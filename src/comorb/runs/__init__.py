"""Runs: from records to a folder of results, and what is done with such folders."""

from __future__ import annotations
