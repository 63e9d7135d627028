"""Signs: features as shares beside those of codes: levels as they are, numbers in three parts.

A sign has its place behind the codes, so that it is ranked, named, compared and protected as a
code is. Its share is that of the records whose value is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, hstack

from comorb.insight.profile.contents import FeatureProfile, Outcome
from comorb.insight.profile.feature_models import feature_models
from comorb.insight.profile.intervals import effective, nine_digits, wilson
from comorb.insight.profile.outcomes import summarise
from comorb.insight.profile.profile import Profile
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.features import Feature, FeatureTable
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger

PARTS = 3
_SAID = {"los": "length of stay"}  # roles whose names say little


@dataclass(frozen=True)
class Sign:
    """A level of a feature, or a part of its numbers: a code of its own, its name and label."""

    feature: int
    code: str
    label: str


@dataclass(frozen=True, eq=False)
class Signs:
    """The signs of the records of a cohort."""

    table: FeatureTable
    signs: tuple[Sign, ...]
    edges: tuple[tuple[float, ...], ...]  # of each feature
    ones: csr_array[Any]  # (n, signs)

    @classmethod
    def of(cls, table: FeatureTable, weights: Floats) -> Signs:
        """Return the signs of features; numbers are cut where about a third of the weight lies."""
        signs: list[Sign] = []
        columns: list[Mask] = []
        edges = []
        for place, feature in enumerate(table.features):
            values = table.values[:, place]
            ends: tuple[float, ...] = () if feature.levels else _edges(values, weights)
            edges.append(ends)
            for number, (code, label) in enumerate(_worded(feature, ends)):
                level = number + 1 if feature.kind == "binary" else number
                signs.append(Sign(place, code, label))
                columns.append(values == level if feature.levels else part_of(values, ends, number))
        stacked = np.column_stack(columns).astype(np.uint8)
        return cls(table, tuple(signs), tuple(edges), csr_array(stacked))

    @property
    def known(self) -> Mask:
        """Which records have a value of each sign's feature, (n, signs)."""
        return ~np.isnan(self.table.values[:, [sign.feature for sign in self.signs]])

    def columns(self, feature: int, first: int) -> tuple[int, ...]:
        """Return the places of a feature's signs, where the signs begin at a place."""
        return tuple(first + i for i, sign in enumerate(self.signs) if sign.feature == feature)

    def beside(self, cohort: Cohort) -> Cohort:
        """Return a cohort that has the signs behind its codes."""
        codes = (*cohort.codes, *(sign.code for sign in self.signs))
        return replace(
            cohort,
            matrix=csr_array(hstack([cohort.matrix, self.ones], "csr")),
            codes=codes,
            names=(*cohort.names, *(sign.label for sign in self.signs)),
            ledger=Ledger.start(len(cohort), len(codes)),
        )

    def shares(self, labels: Ints, weights: Floats, k: int) -> tuple[Floats, Floats, Floats]:
        """Return the share of each sign in each cluster and over all (k + 1, signs), with ends."""
        groups = [*(labels == place for place in range(k)), np.ones(labels.size, dtype=bool)]
        ones, known = self.ones.toarray().astype(bool), self.known
        share = np.zeros((k + 1, len(self.signs)))
        sizes = np.zeros_like(share)
        for row, group in enumerate(groups):
            for column in range(len(self.signs)):
                own = weights[group & known[:, column]]
                carried = weights[group & ones[:, column]].sum()
                share[row, column] = carried / own.sum() if own.size else 0.0
                sizes[row, column] = effective(own)
        return share, *wilson(share, sizes)


def with_signs(
    made: Profile, cohort: Cohort, model: Mixture, labels: Ints, weights: Floats, keys: Keys | None
) -> tuple[Profile, Cohort]:
    """Return a profile and its cohort with the signs of the features behind the codes."""
    table = cohort.features
    if table is None:
        return made, cohort
    signs, k = Signs.of(table, weights), made.k
    share, low, high = (nine_digits(one) for one in signs.shares(labels, weights, k))
    counts = np.array([signs.ones[labels == j].sum(axis=0) for j in range(k)], dtype=np.float64)
    texts = {
        "codes": [sign.code for sign in signs.signs],
        "names": [sign.label for sign in signs.signs],
        "labels": [sign.label for sign in signs.signs],
    }
    arrays = {
        "counts": counts,
        "prevalence": share[:-1],
        "totals": counts.sum(axis=0),
        "overall": share[-1],
        "low": low[:-1],
        "high": high[:-1],
        "means": share[:-1],
        "expected": share[-1],
    }
    changed: dict[str, Any] = {key: (*getattr(made, key), *own) for key, own in texts.items()}
    changed |= {
        key: np.concatenate([getattr(made, key), own], axis=-1) for key, own in arrays.items()
    }
    summaries = summarise_features(table, labels, k, weights, keys)
    features = tuple(
        FeatureProfile(
            feature.name,
            feature.kind,
            signs.columns(place, made.n_codes),
            signs.edges[place],
            0.0,
            summaries[place],
            kept,
        )
        for place, (feature, kept) in enumerate(
            zip(table.features, feature_models(model), strict=True)
        )
    )
    return replace(made, features=features, **changed), signs.beside(cohort)


def outcomes_beside(cohort: Cohort, wanted: Sequence[str] | None) -> Sequence[str] | None:
    """Return the covariates to sum up beside the features, unless some are named."""
    if wanted is not None or cohort.features is None:
        return wanted
    own = {feature.name for feature in cohort.features.features}
    return [name for name in cohort.covariates.column_names if name not in own]


def summarise_features(
    table: FeatureTable, labels: Ints, k: int, weights: Floats, keys: Keys | None
) -> tuple[Outcome, ...]:
    """Return means of numbers and counts, and shares of levels, per cluster and over all."""
    columns: dict[str, Any] = {}
    for feature, values in zip(table.features, table.values.T, strict=True):
        gaps = np.isnan(values)
        if feature.levels:
            places = np.where(gaps, 0, values).astype(np.int64)
            columns[feature.name] = pa.array(np.array(feature.levels)[places], mask=gaps)
        else:
            columns[feature.name] = pa.array(values, mask=gaps)
    return summarise(pa.table(columns), labels, k, weights, None, keys)


def part_of(values: Floats, edges: Sequence[float], part: int) -> Mask:
    """Tell which values lie in a part: above the edge before it, up to its own."""
    bounds = [-np.inf, *edges, np.inf]
    return np.asarray((values > bounds[part]) & (values <= bounds[part + 1]))


def _edges(values: Floats, weights: Floats) -> tuple[float, ...]:
    """Return where numbers are cut, rounded: an exact value may be that of one patient."""
    there = ~np.isnan(values)
    order = np.argsort(values[there], kind="stable")
    ordered, reached = values[there][order], np.cumsum(weights[there][order])
    if not ordered.size:
        return ()
    shares = np.arange(1, PARTS) / PARTS * reached[-1]
    cuts = ordered[np.minimum(np.searchsorted(reached, shares * (1 - 1e-12)), ordered.size - 1)]
    spread = float(cuts[-1] - cuts[0]) or float(ordered[-1] - ordered[0]) or 1.0
    step = 10.0 ** np.floor(np.log10(spread / 5))
    whole = bool(np.all(ordered == np.round(ordered)))
    step = max(step, 1.0) if whole else step
    rounded = np.unique(np.round(np.round(cuts / step) * step, 9))
    return tuple(rounded[(rounded >= ordered[0]) & (rounded < ordered[-1])].tolist())


def _worded(feature: Feature, edges: Sequence[float]) -> list[tuple[str, str]]:
    """Return the code and the label of each sign of a feature."""
    plain = _SAID.get(feature.name, feature.name.replace("_", " "))
    name = plain[:1].upper() + plain[1:]
    if feature.kind == "binary":
        yes = feature.levels[1]
        return [(f"{feature.name}={yes}", name if yes == "yes" else f"{name}: {yes}")]
    if feature.levels:
        return [(f"{feature.name}={level}", f"{name}: {level}") for level in feature.levels]
    texts = [f"{edge:,.10g}" for edge in edges]
    if not texts:
        return [(f"{feature.name}=known", f"{name} known")]
    parts = [f"≤ {texts[0]}", *(f"{a} – {b}" for a, b in pairwise(texts))]
    parts.append(f"> {texts[-1]}")
    return [(f"{feature.name} {part}", f"{name} {part}") for part in parts]
