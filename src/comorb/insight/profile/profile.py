"""Profile: what there is to know about the clusters, as one serialisable object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile import codec, protection
from comorb.insight.profile.burden import Burden
from comorb.insight.profile.contents import (
    Caveats,
    Cells,
    Cluster,
    FeatureProfile,
    Heatmap,
    Outcome,
    Provenance,
)
from comorb.insight.profile.explain import Explanation, explain
from comorb.insight.profile.feature_models import full_model, given_values, told_model
from comorb.insight.profile.intervals import wilson
from comorb.insight.profile.labels import automatic_names
from comorb.insight.profile.relevance import LAMBDA, relevance
from comorb.insight.profile.rules import Condition, RuleList
from comorb.insight.profile.slices import Slices
from comorb.insight.profile.tables import Told
from comorb.model.arrays import Floats, Ints
from comorb.model.tempering import tempered
from comorb.records.codes.features import featurise
from comorb.records.codes.system import LEVELS
from comorb.records.codes.systems import SYSTEMS, systems_by_kind

FLOOR, FEWEST, NAMING = 0.02, 5, 0.5
MORE = 1.1  # times as common as over all a sign is at least, to be relevant


@dataclass(frozen=True, eq=False)
class Profile(Told):
    """The clusters of a cohort, ready to be shown; NaN and None are numbers that aren't told.

    The table, the charts, the report and the explorer read nothing else. It holds counts and
    shares, and for the heat-map rows of bits without ids.

    Attributes
    ----------
    source : Provenance
        What was clustered, and how.
    codes, names, labels : tuple of str
        Each code, its title, and its short name; behind the codes are the signs of the features.
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
        The smallest count that is told; 0 in a full profile, which is not protected.
    ranks : tuple
        In a protected profile, the most relevant codes of each cluster by the true figures, for
        each λ of `protection.LAMBDAS`.
    burden : Burden, optional
        What the records of each cluster use.
    slices : tuple of Slices
        Shares of the clusters by age, sex, site and time.
    rules : tuple of RuleList
        A short list of rules for each cluster.
    """

    source: Provenance
    codes: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    counts: Floats
    prevalence: Floats
    totals: Floats
    overall: Floats
    low: Floats
    high: Floats
    weights: Floats
    means: Floats
    expected: Floats
    outcomes: tuple[Outcome, ...]
    heatmap: Heatmap
    caveats: Caveats
    cells: Cells | None = None
    min_cell: int = 0
    ranks: tuple[tuple[tuple[int, ...], ...], ...] = ()
    features: tuple[FeatureProfile, ...] = ()
    burden: Burden | None = None
    slices: tuple[Slices, ...] = ()
    rules: tuple[RuleList, ...] = ()

    def __repr__(self) -> str:
        """Say how large the profile is, and nothing about patients."""
        return f"<Profile: {self.source.records:,} records in {self.k} clusters>"

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.clusters)

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
            raise InputError(f"expected one of the clusters {known}, got {number}")
        return self.numbers.index(number)

    def places_of(self, numbers: Ints) -> Ints:
        """Return the places of many numbers, all of which clusters have."""
        return np.searchsorted(self.numbers, numbers)

    @property
    def lift(self) -> Floats:
        """How many times likelier each code is in each cluster than overall, (k, d)."""
        return np.asarray(self.prevalence / np.where(self.overall > 0, self.overall, np.nan))

    @property
    def universal(self) -> tuple[int, ...]:
        """The codes that every record has, as places in ``codes``: they tell nothing apart."""
        return tuple(np.flatnonzero(self.totals == self.source.records).tolist())

    def said(self, condition: Condition) -> str:
        """Return a condition of a rule in words: a code is had or not, a feature's sign is so."""
        label = self.labels[condition.code]
        if condition.code >= self.n_codes:
            return label if condition.has else f"not {label}"
        verb = "has" if condition.has else "doesn't have"
        return f"{verb} {label}"

    @property
    def n_codes(self) -> int:
        """How many of ``codes`` are codes: the others are signs of features."""
        return min(
            (place for one in self.features for place in one.columns), default=len(self.codes)
        )

    @property
    def influence(self) -> dict[str, float]:
        """The shares of 'codes' and of each feature in what sets the clusters apart."""
        own = {one.name: one.influence for one in self.features}
        return {"codes": max(1 - sum(own.values()), 0.0), **own}

    def overall_intervals(self) -> tuple[Floats, Floats]:
        """Return the ends of the 95% interval of each overall prevalence, (d,) each."""
        return wilson(self.overall, np.array(self.source.effective))

    def common(self, n: int = 20) -> Ints:
        """Return the n most frequent codes, as places in ``codes``, without universal ones.

        These are the rows of the paper's disease-frequency chart; signs of features are among them
        where there are no codes.
        """
        among = self.overall[: self.n_codes or None]
        order = np.argsort(-np.nan_to_num(among), kind="stable")
        shown = [i for i in order if self.overall[i] > 0 and i not in self.universal]
        return np.array(shown[:n], dtype=np.int64)

    def relevance(self, lam: float = LAMBDA) -> Floats:
        """Return the relevance of each code for each cluster, (k, d); see `relevance`."""
        return relevance(self.means, self.expected, lam)

    def top(self, cluster: int, lam: float = LAMBDA, n: int = 10, floor: float = FLOOR) -> Ints:
        """Return the n most relevant codes of a cluster, as places in ``codes``.

        Parameters
        ----------
        cluster : int
            From 0.
        lam : float, default=0.6
            λ: 0 for the most specific codes first, 1 for the most frequent.
        n : int, default=10
            How many, at most.
        floor : float, default=0.02
            The least that the lower end of the interval of the prevalence must reach; a code
            of fewer than five records of the cluster never wins.

        Returns
        -------
        ndarray of int
            Without universal codes and those that are not told. A sign of a feature, of which
            every record has one, is there where it is surely a tenth more common than over all.
        """
        if not 0 <= cluster < self.k:
            raise InputError(f"expected a cluster from 0 to {self.k - 1}, got {cluster}")
        if self.ranks:
            nearest = min(range(len(self.ranks)), key=lambda i: abs(protection.LAMBDAS[i] - lam))
            ranked = np.array(self.ranks[nearest][cluster], dtype=np.int64)
            return np.asarray(ranked[self.low[cluster][ranked] >= floor][:n])
        scores = self.relevance(lam)[cluster].copy()
        low = self.low[cluster]
        scores[list(self.universal)] = np.nan
        scores[~((low >= floor) & (self.counts[cluster] >= FEWEST))] = np.nan
        scores[self.n_codes :][low[self.n_codes :] < MORE * self.overall[self.n_codes :]] = np.nan
        order = np.argsort(-scores, kind="stable")
        return np.asarray(order[: min(n, int(np.sum(~np.isnan(scores))))])

    def automatic_names(self) -> tuple[str, ...]:
        """Return a name for each cluster, made from its most relevant diseases."""
        ranked = {n: self.top(j, NAMING, 30).tolist() for j, n in enumerate(self.numbers)}
        signs = self.codes[self.n_codes :]
        return automatic_names(ranked, self.codes, self.labels, self.source.system, signs)

    def renamed(self, names: Mapping[int, str]) -> Profile:
        """Return the profile with other names for some clusters, counted from 0."""
        wrong = [place for place in names if not 0 <= place < self.k]
        if wrong or not all(name.strip() for name in names.values()):
            raise InputError(
                f"expected names that are not empty, for clusters from 0 to {self.k - 1}, "
                f"got {dict(names)!r}"
            )
        clusters = tuple(
            replace(cluster, name=names.get(place, cluster.name))
            for place, cluster in enumerate(self.clusters)
        )
        return replace(self, clusters=clusters)

    def with_stability(self, stability: Sequence[float]) -> Profile:
        """Return the profile with the stability of each cluster filled in."""
        if len(stability) != self.k:
            raise InputError(
                f"expected the stability of {self.k} clusters, got that of {len(stability)}; "
                "measure it on the same model"
            )
        clusters = tuple(
            replace(cluster, stability=round(float(value), 6))
            for cluster, value in zip(self.clusters, stability, strict=True)
        )
        return replace(self, clusters=clusters)

    def protected(self, min_cell: int = protection.LEAST) -> Profile:
        """Return the profile that may be shared, by the cell-key method.

        Parameters
        ----------
        min_cell : int, default=11
            The smallest count that is told, with a small noise; 11 is the strictest of the
            published rules.

        Returns
        -------
        Profile
            Zero stays zero, and counts from 1 to ``min_cell`` − 1 are NaN or None. A line of the
            heat-map stands for ``min_cell`` records or more.
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
        values, codes = given_values(self, codes)
        if own in SYSTEMS and set(levels) <= set(LEVELS):
            features = featurise(codes, own, levels).of
        given = [feature for code in codes for feature in features.get(code) or (code,)]
        model = told_model(self) if self.min_cell else full_model(self)
        explained = explain(model, self.codes[: self.n_codes], given, values)
        posterior = tempered(explained.posterior[None], self.caveats.temperature)[0]
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
