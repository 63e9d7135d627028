"""Tables: what a profile tells as tidy columns, and how a notebook shows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from comorb.errors import InputError
from comorb.model.tabular import Columns, frame, html_table
from comorb.profiles.outcomes import outcome_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from comorb.profiles.profile import Profile

What = Literal["clusters", "codes", "outcomes"]
_HEIGHT = 720  # of the report in a notebook


class Page:
    """The interactive report inside a notebook: everything is in it, and nothing is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self._text)}" sandbox="allow-scripts allow-downloads" '
            f'title="comorb" style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'
        )


class ProfileTables(ABC):
    """A profile as tables, charts and the report.

    The tables are ``"clusters"``, a row each; ``"codes"``, a row for each cluster and code, with
    its prevalence, interval, lift and relevance; ``"outcomes"``, a row for each cluster, outcome
    and value, as counted and corrected.
    """

    @abstractmethod
    def __repr__(self) -> str: ...

    def columns(self, what: What = "clusters") -> Columns:
        """Return one of the tables by its columns."""
        if what not in _TABLES:
            raise InputError("profile.table", tables=_TABLES, what=what)
        return _TABLES[what](cast("Profile", self))

    def to_pandas(self, what: What = "clusters") -> Any:
        """Return one of the tables as a pandas frame."""
        return frame(self.columns(what))

    def to_polars(self, what: What = "clusters") -> Any:
        """Return one of the tables as a polars frame."""
        return frame(self.columns(what), "polars")

    def to_arrow(self, what: What = "clusters") -> Any:
        """Return one of the tables as an Arrow table."""
        return frame(self.columns(what), "pyarrow")

    def plot_sizes(self, ax: Axes | None = None) -> Axes:
        """Draw how large the clusters are."""
        return self._drawn("sizes", ax)

    def plot_frequency(self, ax: Axes | None = None) -> Axes:
        """Draw how common each code is in each cluster: the paper's disease-frequency chart."""
        return self._drawn("frequency", ax)

    def plot_heatmap(self, ax: Axes | None = None) -> Axes:
        """Draw all records at a glance."""
        return self._drawn("heatmap", ax)

    def plot_burden(self, ax: Axes | None = None) -> Axes:
        """Draw what the clusters use beside how large they are."""
        return self._drawn("burden", ax)

    def show(self) -> Page:
        """Return the interactive report, for a notebook to show."""
        return Page(import_module("comorb.views.report").report(self))

    def _drawn(self, name: str, ax: Axes | None) -> Axes:
        axes: Axes = import_module("comorb.views.charts").draw(name, self, ax)
        return axes

    def _repr_html_(self) -> str:
        return html_table(self.columns(), repr(self))


def _clusters(profile: Profile) -> Columns:
    names = ("number", "name", "size", "share", "soft_share", "top", "margin", "entropy")
    columns = {name: [getattr(one, name) for one in profile.clusters] for name in names}
    columns["stability"] = [one.stability for one in profile.clusters]
    columns["marks"] = [
        "; ".join(profile.labels[i] for i in profile.top(j, n=5)) for j in range(profile.k)
    ]
    return columns


def _codes(profile: Profile) -> Columns:
    k, d = profile.prevalence.shape
    lift, relevance = profile.lift, profile.relevance()

    def told(values: Any) -> list[float | None]:
        return [None if value != value else float(value) for value in np.ravel(values)]

    return {
        "cluster": np.repeat(profile.numbers, d).tolist(),
        "name": [name for name in profile.cluster_names for _ in range(d)],
        "code": list(profile.codes) * k,
        "label": list(profile.labels) * k,
        "records": told(profile.counts),
        "prevalence": told(profile.prevalence),
        "low": told(profile.low),
        "high": told(profile.high),
        "overall": told(profile.overall) * k,
        "lift": told(lift),
        "relevance": told(relevance),
    }


def _outcomes(profile: Profile) -> Columns:
    rows = outcome_rows(profile)
    names = dict(zip(profile.numbers, profile.cluster_names, strict=True))
    keys = ("outcome", "value", "cluster")
    columns: dict[str, list[Any]] = {key: [row[key] for row in rows] for key in keys}
    columns["name"] = [names[row["cluster"]] for row in rows]
    columns["known"] = columns["records"] = [row["records"] for row in rows]
    for key in ("events", "observed", "observed_low", "observed_high", *_CORRECTED):
        columns[key] = [row[key] for row in rows]
    return columns


_CORRECTED = ("estimate", "low", "high", "naive")
_TABLES: dict[str, Callable[[Profile], Columns]] = {
    "clusters": _clusters,
    "codes": _codes,
    "outcomes": _outcomes,
}
