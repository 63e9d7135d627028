"""Limits: how much a source may unpack to, how many rows and columns it may have, in a process.

A process without limits reads what there is; the explorer imposes them on those that read for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from comorb.errors import RecordsError


@dataclass(frozen=True)
class Limits:
    """The most that is read; 0 is without a limit.

    Attributes
    ----------
    expanded : int
        Bytes of a source once it is unpacked.
    rows, columns : int
        Of a table.
    memory : int
        Bytes of memory of a reader that runs apart.
    """

    expanded: int = 0
    rows: int = 0
    columns: int = 0
    memory: int = 0


_limits = Limits()


def impose(limits: Limits) -> None:
    """Put limits into force for whatever this process opens from now on."""
    global _limits
    _limits = limits


def in_force() -> Limits:
    """Return the limits of this process."""
    return _limits


def check_expanded(name: str, size: int) -> None:
    """Refuse a source that unpacks to more bytes than are read."""
    if 0 < _limits.expanded < size:
        raise RecordsError(
            f"{name} unpacks to more than {_limits.expanded / 1e9:.3g} GB, which is the most here; "
            "give fewer records, or ask for a higher limit."
        )


def check_rows(name: str, rows: int) -> None:
    """Refuse a table of more rows than are read."""
    if 0 < _limits.rows < rows:
        raise RecordsError(
            f"{name} has more than {_limits.rows:,} rows, which is the most here; give fewer "
            "records, or ask for a higher limit."
        )


def check_columns(name: str, columns: int) -> None:
    """Refuse a table of more columns than are read."""
    if 0 < _limits.columns < columns:
        raise RecordsError(
            f"{name} has {columns:,} columns, and {_limits.columns:,} is the most here; give those "
            "that are needed, or ask for a higher limit."
        )
