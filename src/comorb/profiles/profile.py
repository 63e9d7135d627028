"""Profile: what there is to know about the clusters, as one serialisable object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.diagnostics import temper
from comorb.model.tabular import Columns, frame, html_table
from comorb.profiles import codec, contents, protection
from comorb.profiles.assignment import UncertainRecords
from comorb.profiles.burden import Burden
from comorb.profiles.explain import (
    Explanation,
    explain,
    model_from_counts,
    model_from_profile,
    parse_values,
)
from comorb.profiles.outcomes import outcome_rows
from comorb.profiles.rules import Condition, RuleList
from comorb.profiles.slices import Slices
from comorb.records.codes.system import LEVELS
from comorb.records.codes.systems import SYSTEMS, systems_by_kind
from comorb.records.codes.vocabulary import featurise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TableName = Literal["clusters", "codes", "outcomes"]


class Page:
    """The interactive report inside a notebook: everything is in it, and nothing is loaded."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self._text)}" sandbox="allow-scripts allow-downloads" '
            f'title="comorb" style="width:100%;height:720px;border:0"></iframe>'
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Profile(contents.CodeTable):
    """The clusters of a cohort, ready to be shown; NaN and None are suppressed numbers.

    The table, the charts, the report and the explorer read nothing else. It holds counts and
    shares, and for the heat-map rows of bits without ids.

    As tables it has ``"clusters"``, a row each; ``"codes"``, a row for each cluster and code, with
    its prevalence, interval, lift and relevance; ``"outcomes"``, a row for each cluster, outcome
    and value, as counted and corrected.

    Attributes
    ----------
    source : Provenance
        What was clustered, and how.
    codes, names, labels : tuple of str
        Each code, its title, and its short name; behind the codes are the indicators of features.
    clusters : tuple of Cluster
        Names, sizes, confidence and stability.
    counts : ndarray of shape (k, d)
        Records of each cluster that carry each code.
    prevalence : ndarray of shape (k, d)
        Their weighted share of the cluster.
    totals, overall : ndarray of shape (d,)
        The same over all records.
    low, high : ndarray of shape (k, d)
        The 95% interval of each prevalence: it counts that labels are uncertain and that codes
        depend on each other, and holds the prevalence.
    weights, means : ndarray of shape (k,) and (k, d)
        The model's ω and μ.
    expected : ndarray of shape (d,)
        Σₕ μᵢₕ ωₕ.
    outcomes : tuple of Outcome
        Covariates per cluster.
    heatmap : Heatmap
        The records × the most common codes.
    caveats : Caveats
        What the model leaves unexplained.
    cells : Cells, optional
        The key of each set of records that is counted, for a profile that can be protected.
    min_cell : int
        The smallest count that is shown; 0 in a full profile, which is not protected.
    burden : Burden, optional
        What the records of each cluster use.
    slices : tuple of Slices
        Shares of the clusters by age, sex, site and time.
    rules : tuple of RuleList
        A short list of rules for each cluster.
    uncertain : UncertainRecords, optional
        The records that are in doubt, and between which clusters.
    """

    clusters: tuple[contents.Cluster, ...]
    weights: Floats
    outcomes: tuple[contents.Outcome, ...]
    heatmap: contents.Heatmap
    caveats: contents.Caveats
    cells: contents.Cells | None = None
    burden: Burden | None = None
    slices: tuple[Slices, ...] = ()
    rules: tuple[RuleList, ...] = ()
    uncertain: UncertainRecords | None = None

    @property
    def grey(self) -> UncertainRecords | None:
        """What ``uncertain`` was called until version 0.2; it goes with version 0.3."""
        return self.uncertain

    def __repr__(self) -> str:
        """Say how large the profile is, and nothing about patients."""
        return f"<Profile: {self.source.records:,} records in {self.k} clusters>"

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.clusters)

    @property
    def uses(self) -> list[tuple[str, Floats]]:
        """The amounts that are shown first, at most three, with each cluster's share of them."""
        used = self.burden
        names = () if used is None else used.main or used.columns[:3]
        return [] if used is None else [(n, used.shares[used.columns.index(n), :-1]) for n in names]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the clusters, in their order."""
        return tuple(cluster.number for cluster in self.clusters)

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """The names of the clusters, in their order."""
        return tuple(cluster.name for cluster in self.clusters)

    def place_of(self, number: int) -> int:
        """Return the place of the cluster that has a number, counted from 0."""
        if number not in self.numbers:
            known = ", ".join(map(str, self.numbers))
            raise InputError("profile.cluster", known=known, cluster=number)
        return self.numbers.index(number)

    def places_of(self, numbers: Ints) -> Ints:
        """Return the places of many numbers, all of which clusters have."""
        return np.searchsorted(self.numbers, numbers)

    def condition_text(self, condition: Condition) -> str:
        """Return a condition of a rule in words: of a code, or of a feature's indicator."""
        label = self.labels[condition.code]
        if condition.code >= self.n_codes:
            return label if condition.has else f"not {label}"
        return f"has {label}" if condition.has else f"doesn't have {label}"

    said = condition_text  # its name until version 0.2; it goes with version 0.3

    def automatic_names(self) -> tuple[str, ...]:
        """Return a name for each cluster, made from its most relevant diseases."""
        return self.names_of(self.numbers)

    def columns(self, what: TableName = "clusters") -> Columns:
        """Return one of the tables by its columns."""
        tables = {"clusters": _clusters, "codes": _codes, "outcomes": _outcomes}
        if what not in tables:
            raise InputError("profile.table", tables=tables, what=what)
        return tables[what](self)

    def to_pandas(self, what: TableName = "clusters") -> Any:
        """Return one of the tables as a pandas frame."""
        return frame(self.columns(what))

    def to_polars(self, what: TableName = "clusters") -> Any:
        """Return one of the tables as a polars frame."""
        return frame(self.columns(what), "polars")

    def to_arrow(self, what: TableName = "clusters") -> Any:
        """Return one of the tables as an Arrow table."""
        return frame(self.columns(what), "pyarrow")

    def plot_sizes(self, ax: Axes | None = None) -> Axes:
        """Draw how large the clusters are."""
        return self._draw("sizes", ax)

    def plot_frequency(self, ax: Axes | None = None) -> Axes:
        """Draw how common each code is in each cluster: the paper's disease-frequency chart."""
        return self._draw("frequency", ax)

    def plot_heatmap(self, ax: Axes | None = None) -> Axes:
        """Draw all records at a glance."""
        return self._draw("heatmap", ax)

    def plot_burden(self, ax: Axes | None = None) -> Axes:
        """Draw what the clusters use, and how large they are."""
        return self._draw("burden", ax)

    def _draw(self, name: str, ax: Axes | None) -> Axes:
        axes: Axes = import_module("comorb.views.charts").draw(name, self, ax)
        return axes

    def show(self) -> Page:
        """Return the interactive report, for a notebook to show."""
        return Page(import_module("comorb.views.report").report(self))

    def _repr_html_(self) -> str:
        return html_table(self.columns(), repr(self))

    def renamed(self, names: Mapping[int, str]) -> Profile:
        """Return the profile with other names for some clusters, counted from 0."""
        wrong = [place for place in names if not 0 <= place < self.k]
        if wrong or not all(name.strip() for name in names.values()):
            raise InputError("profile.names", k=self.k - 1, names=dict(names))
        return self._with_each(
            "name", [names.get(j, name) for j, name in enumerate(self.cluster_names)]
        )

    def _with_each(self, field: str, values: Sequence[Any]) -> Profile:
        """Return the profile with another value of a field of each cluster."""
        pairs = zip(self.clusters, values, strict=True)
        return replace(self, clusters=tuple(replace(one, **{field: value}) for one, value in pairs))

    def noted(self, notes: Mapping[int, Mapping[str, str]]) -> Profile:
        """Return the profile with what people wrote of some clusters, counted from 0.

        A note may have a ``note``, an ``owner`` and a ``pathway``; an empty one is taken off.
        """
        wrong = [place for place in notes if not 0 <= place < self.k]
        if wrong or not all(set(one) <= {"note", "owner", "pathway"} for one in notes.values()):
            raise InputError("profile.notes", k=self.k - 1)
        made = self
        for key in ("note", "owner", "pathway"):
            texts = [getattr(cluster, key) for cluster in self.clusters]
            own = [notes.get(j, {}).get(key, text).strip() for j, text in enumerate(texts)]
            made = made._with_each(key, own)
        return made

    def with_stability(self, stability: Sequence[float]) -> Profile:
        """Return the profile with the stability of each cluster filled in."""
        return self._with_each("stability", contents.round_stability(stability, self.k))

    def protected(self, min_cell: int = protection.MIN_CELL) -> Profile:
        """Return the profile that may be shared, by the cell-key method.

        Parameters
        ----------
        min_cell : int, default=11
            The smallest count that is shown, with a small noise; 11 is the strictest of the
            published rules.

        Returns
        -------
        Profile
            Counts under ``min_cell``, 0 among them, are NaN or None; codes, levels and slices of
            so few records are not listed. All other figures are made of the counts that are shown.
        """
        return protection.protect(self, min_cell)

    def explain(self, codes: Sequence[str]) -> Explanation:
        """Explain the posterior of a record with these codes, written as in the records.

        A feature is given as ``age=82`` or ``sex=female``; one that isn't given is missing.
        The posterior is tempered, as the confidence of the clusters is. That of a protected
        profile is by the model that its counts give, to the nearest 5%.
        """
        levels = self.source.level.split("+")
        features: Mapping[str, tuple[str, ...]] = {}
        own = systems_by_kind(self.source.system).get("")
        values, codes = parse_values(self, codes)
        if own in SYSTEMS and set(levels) <= set(LEVELS):
            features = featurise(codes, own, levels).of
        given = [feature for code in codes for feature in features.get(code) or (code,)]
        model = model_from_counts(self) if self.min_cell else model_from_profile(self)
        explained = explain(model, self.codes[: self.n_codes], given, values)
        posterior = temper(explained.posterior[None], self.caveats.temperature)[0]
        if self.min_cell:
            posterior = np.round(20 * posterior) / 20
        return replace(explained, posterior=posterior)

    def to_json(self) -> str:
        """Return the profile as versioned JSON, without the keys that protecting it takes."""
        return codec.encode(self)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Return the profile that `to_json` wrote; what is damaged or too new is an error."""
        return cls(**codec.decode(text))


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
    figures = {
        "records": profile.counts,
        "prevalence": profile.prevalence,
        "low": profile.low,
        "high": profile.high,
        "overall": np.tile(profile.overall, k),
        "lift": profile.lift,
        "relevance": profile.relevance(),
    }
    return {
        "cluster": np.repeat(profile.numbers, d).tolist(),
        "name": [name for name in profile.cluster_names for _ in range(d)],
        "code": list(profile.codes) * k,
        "label": list(profile.labels) * k,
    } | {
        name: [None if value != value else float(value) for value in np.ravel(values)]
        for name, values in figures.items()
    }


def _outcomes(profile: Profile) -> Columns:
    rows = outcome_rows(profile)
    names = dict(zip(profile.numbers, profile.cluster_names, strict=True))
    for row in rows:
        row |= {"name": names[row["cluster"]], "known": row["records"]}
    keys = ["outcome", "value", "cluster", "name", "known", "records", "events"]
    keys += ["observed", "observed_low", "observed_high", "estimate", "low", "high", "naive"]
    return {key: [row[key] for row in rows] for key in keys}
