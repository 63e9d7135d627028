"""Cells that aren't text in their file, written as a person reads them there."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any


def number_text(value: float, digits: int = 15) -> str | None:
    """Return a number without a needless '.0'; digits beyond those that were stored aren't told.

    Examples
    --------
    >>> number_text(428.0), number_text(250.1), number_text(250.10000610351562, 7)
    ('428', '250.1', '250.1')
    """
    if math.isnan(value):
        return None
    if value == int(value) and abs(value) < 1e15 if math.isfinite(value) else False:
        return str(int(value))
    return f"{value:.{digits}g}"


def cell_text(value: Any, number: Callable[[float], str | None] = number_text) -> str | None:
    """Return a value as text, None when it is blank: days as 2010-02-03, numbers by a function."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(float(value)) if abs(value) < 2**53 else str(value)
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else value.isoformat(" ", "seconds")
    return value.isoformat() if isinstance(value, date | time) else str(value)
