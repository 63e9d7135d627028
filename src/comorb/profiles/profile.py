"""Profile: what there is to know about the clusters, as one serialisable object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.diagnostics import temper
from comorb.profiles import codec, protection
from comorb.profiles.burden import Burden
from comorb.profiles.contents import (
    Caveats,
    Cells,
    Cluster,
    CodeTable,
    Heatmap,
    Outcome,
    round_stability,
)
from comorb.profiles.explain import (
    Explanation,
    explain,
    model_from_counts,
    model_from_profile,
    parse_values,
)
from comorb.profiles.rules import Condition, RuleList
from comorb.profiles.slices import Slices
from comorb.profiles.tables import ProfileTables
from comorb.profiles.uncertain import UncertainRecords
from comorb.records.codes.system import LEVELS
from comorb.records.codes.systems import SYSTEMS, systems_by_kind
from comorb.records.codes.vocabulary import featurise


@dataclass(frozen=True, eq=False, kw_only=True)
class Profile(CodeTable, ProfileTables):
    """The clusters of a cohort, ready to be shown; NaN and None are numbers that aren't told.

    The table, the charts, the report and the explorer read nothing else. It holds counts and
    shares, and for the heat-map rows of bits without ids.

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
        The smallest count that is told; 0 in a full profile, which is not protected.
    burden : Burden, optional
        What the records of each cluster use.
    slices : tuple of Slices
        Shares of the clusters by age, sex, site and time.
    rules : tuple of RuleList
        A short list of rules for each cluster.
    uncertain : UncertainRecords, optional
        The records that are in doubt, and between which clusters.
    """

    clusters: tuple[Cluster, ...]
    weights: Floats
    outcomes: tuple[Outcome, ...]
    heatmap: Heatmap
    caveats: Caveats
    cells: Cells | None = None
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

    def said(self, condition: Condition) -> str:
        """Return a condition of a rule in words: of a code, or of a feature's indicator."""
        label = self.labels[condition.code]
        if condition.code >= self.n_codes:
            return label if condition.has else f"not {label}"
        verb = "has" if condition.has else "doesn't have"
        return f"{verb} {label}"

    def automatic_names(self) -> tuple[str, ...]:
        """Return a name for each cluster, made from its most relevant diseases."""
        return self.names_of(self.numbers)

    def renamed(self, names: Mapping[int, str]) -> Profile:
        """Return the profile with other names for some clusters, counted from 0."""
        wrong = [place for place in names if not 0 <= place < self.k]
        if wrong or not all(name.strip() for name in names.values()):
            raise InputError("profile.names", k=self.k - 1, names=dict(names))
        clusters = tuple(
            replace(cluster, name=names.get(place, cluster.name))
            for place, cluster in enumerate(self.clusters)
        )
        return replace(self, clusters=clusters)

    def noted(self, notes: Mapping[int, Mapping[str, str]]) -> Profile:
        """Return the profile with what people wrote of some clusters, counted from 0.

        A note may have a ``note``, an ``owner`` and a ``pathway``; an empty one is taken off.
        """
        wrong = [place for place in notes if not 0 <= place < self.k]
        if wrong or not all(set(one) <= {"note", "owner", "pathway"} for one in notes.values()):
            raise InputError("profile.notes", k=self.k - 1)
        clusters = []
        for place, cluster in enumerate(self.clusters):
            own = notes.get(place, {})
            note, owner, pathway = (
                own.get(key, getattr(cluster, key)).strip() for key in ("note", "owner", "pathway")
            )
            clusters.append(replace(cluster, note=note, owner=owner, pathway=pathway))
        return replace(self, clusters=tuple(clusters))

    def with_stability(self, stability: Sequence[float]) -> Profile:
        """Return the profile with the stability of each cluster filled in."""
        measured = round_stability(stability, self.k)
        clusters = tuple(
            replace(cluster, stability=value)
            for cluster, value in zip(self.clusters, measured, strict=True)
        )
        return replace(self, clusters=clusters)

    def protected(self, min_cell: int = protection.MIN_CELL) -> Profile:
        """Return the profile that may be shared, by the cell-key method.

        Parameters
        ----------
        min_cell : int, default=11
            The smallest count that is told, with a small noise; 11 is the strictest of the
            published rules.

        Returns
        -------
        Profile
            Counts under ``min_cell``, 0 among them, are NaN or None; codes, levels and slices of
            so few records are not listed. All other figures are made of the counts that are told.
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
