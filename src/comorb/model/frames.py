"""Frames: columns as a pandas frame, for who has pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from comorb.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return columns as a pandas frame; pandas is loaded when this is first asked for."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            "a frame needs pandas, which is not installed; install it with: pip install pandas"
        ) from None
    return pd.DataFrame(dict(columns))
