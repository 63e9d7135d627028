"""Frames: columns as a pandas frame, for who has pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from comorb.errors import InputError


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return columns as a pandas frame; pandas is loaded when this is first asked for."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise InputError(
            "a frame needs pandas, which is not installed; install it with: pip install pandas"
        ) from None
    return pandas.DataFrame(dict(columns))
