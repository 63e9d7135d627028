"""Results that are tables: columns as frames of several packages, and as HTML in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from comorb.errors import InputError

Columns = Mapping[str, Sequence[Any]]
MAX_ROWS = 20  # that a notebook shows


class Tabular(ABC):
    """A result that is a table of columns of one length, with a name each."""

    @abstractmethod
    def columns(self) -> Columns:
        """Return the columns of the table by their names."""

    def to_pandas(self) -> Any:
        """Return the table as a pandas frame."""
        return frame(self.columns())

    def to_polars(self) -> Any:
        """Return the table as a polars frame."""
        return frame(self.columns(), "polars")

    def to_arrow(self) -> Any:
        """Return the table as an Arrow table."""
        return frame(self.columns(), "pyarrow")

    def _repr_html_(self) -> str:
        return html_table(self.columns(), type(self).__name__)

    def _figures(self, **attributes: str) -> dict[str, Any]:
        """Return arrays of the result as columns, a row after another, by the columns' names."""
        found = {name: getattr(self, attribute) for name, attribute in attributes.items()}
        return {name: array.ravel().tolist() for name, array in found.items()}


_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame(columns: Columns, package: str = "pandas") -> Any:
    """Return columns as a frame of a package, which is imported on first use."""
    maker = getattr(import_package(package), _MAKERS[package])
    return maker({name: list(values) for name, values in columns.items()})


def import_package(package: str) -> Any:
    """Return a package that frames need, or raise an error that names how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError("install.package", package=package) from None


def html_table(columns: Columns, caption: str) -> str:
    """Return the first rows of columns as HTML, with how many there are in the caption."""
    rows = list(zip(*columns.values(), strict=True))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = [
        "".join(f"<td>{escape(_format(cell))}</td>" for cell in row) for row in rows[:MAX_ROWS]
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = f", the first {MAX_ROWS} of {len(rows):,}" if len(rows) > MAX_ROWS else ""
    return (
        f"<table><caption>{escape(caption)}{more}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _format(cell: Any) -> str:
    if cell is None or cell != cell:  # NaN
        return ""
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, list | tuple):
        return ", ".join(map(_format, cell))
    return str(cell)
