"""Codes of a system that isn't known: kept as they are written."""

from __future__ import annotations

from comorb.records.codes.system import CodingSystem

SYSTEM = CodingSystem("opaque", "")
