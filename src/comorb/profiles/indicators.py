"""Indicators: the levels of features, and numbers cut in thirds, as columns like codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, hstack

from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.mixture import Mixture
from comorb.profiles.contents import CodeColumns, FeatureProfile, Outcome
from comorb.profiles.explain import feature_models
from comorb.profiles.intervals import effective_size, round_nine_digits, wilson_interval
from comorb.profiles.outcomes import summarise
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger

N_PARTS = 3
_LONG_NAMES = {"los": "length of stay"}  # roles whose names say little


@dataclass(frozen=True)
class Indicator:
    """A level of a feature, or a part of its numbers: a code of its own, its name and label."""

    feature: int
    code: str
    label: str


@dataclass(frozen=True, eq=False)
class Indicators:
    """The indicators of the records of a cohort."""

    table: FeatureTable
    indicators: tuple[Indicator, ...]
    edges: tuple[tuple[float, ...], ...]  # of each feature
    ones: csr_array[Any]  # (n, indicators)

    @classmethod
    def of(cls, table: FeatureTable, weights: Floats) -> Indicators:
        """Return the indicators of features; numbers are cut at about each third of the weight."""
        indicators: list[Indicator] = []
        columns: list[Mask] = []
        edges = []
        for place, feature in enumerate(table.features):
            values = table.values[:, place]
            ends: tuple[float, ...] = () if feature.levels else _cut_points(values, weights)
            edges.append(ends)
            for number, (code, label) in enumerate(_name_indicators(feature, ends)):
                level = number + 1 if feature.kind == "binary" else number
                indicators.append(Indicator(place, code, label))
                columns.append(values == level if feature.levels else in_part(values, ends, number))
        stacked = np.column_stack(columns).astype(np.uint8)
        return cls(table, tuple(indicators), tuple(edges), csr_array(stacked))

    def columns(self, feature: int, first: int) -> tuple[int, ...]:
        """Return the places of a feature's indicators, where the first of all is at a place."""
        return tuple(first + i for i, one in enumerate(self.indicators) if one.feature == feature)

    def append_to(self, cohort: Cohort) -> Cohort:
        """Return a cohort that has the indicators behind its codes."""
        codes = (*cohort.codes, *(one.code for one in self.indicators))
        return replace(
            cohort,
            matrix=csr_array(hstack([cohort.matrix, self.ones], "csr")),
            codes=codes,
            names=(*cohort.names, *(one.label for one in self.indicators)),
            ledger=Ledger.start(len(cohort), len(codes)),
        )

    def code_columns(self, labels: Ints, weights: Floats, k: int) -> CodeColumns:
        """Return the indicators as columns of a profile, with Wilson's intervals."""
        share, low, high = (round_nine_digits(one) for one in self.shares(labels, weights, k))
        counts = np.array([self.ones[labels == j].sum(axis=0) for j in range(k)], dtype=np.float64)
        texts = tuple(one.label for one in self.indicators)
        return CodeColumns(
            codes=tuple(one.code for one in self.indicators),
            names=texts,
            labels=texts,
            counts=counts,
            prevalence=share[:-1],
            totals=counts.sum(axis=0),
            overall=share[-1],
            low=low[:-1],
            high=high[:-1],
            means=share[:-1],
            expected=share[-1],
        )

    def shares(self, labels: Ints, weights: Floats, k: int) -> tuple[Floats, Floats, Floats]:
        """Return each share in each cluster and over all (k + 1, indicators), with ends."""
        groups = [*(labels == place for place in range(k)), np.ones(labels.size, dtype=bool)]
        ones = self.ones.toarray().astype(bool)
        known = ~np.isnan(self.table.values[:, [one.feature for one in self.indicators]])
        share = np.zeros((k + 1, len(self.indicators)))
        sizes = np.zeros_like(share)
        for row, group in enumerate(groups):
            for column in range(len(self.indicators)):
                own = weights[group & known[:, column]]
                carried = weights[group & ones[:, column]].sum()
                share[row, column] = carried / own.sum() if own.size else 0.0
                sizes[row, column] = effective_size(own)
        return share, *wilson_interval(share, sizes)


def feature_profiles(
    indicators: Indicators,
    model: Mixture,
    influence: Sequence[float],
    first: int,
    summaries: Sequence[Outcome],
) -> tuple[FeatureProfile, ...]:
    """Return what a profile holds of each feature, whose indicators begin at a place."""
    parts = zip(indicators.table.features, influence, summaries, feature_models(model), strict=True)
    return tuple(
        FeatureProfile(
            name=feature.name,
            kind=feature.kind,
            columns=indicators.columns(place, first),
            edges=indicators.edges[place],
            influence=round(share, 6),
            summary=summary,
            model=kept,
        )
        for place, (feature, share, summary, kept) in enumerate(parts)
    )


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
    return summarise(pa.table(columns), labels, k, weights, None, keys, amounts=True)


def in_part(values: Floats, edges: Sequence[float], part: int) -> Mask:
    """Return which values lie in a part: above the edge before it, up to its own."""
    bounds = [-np.inf, *edges, np.inf]
    return np.asarray((values > bounds[part]) & (values <= bounds[part + 1]))


def _cut_points(values: Floats, weights: Floats) -> tuple[float, ...]:
    """Return where numbers are cut, rounded: an exact value may be that of one patient."""
    there = ~np.isnan(values)
    order = np.argsort(values[there], kind="stable")
    ordered, reached = values[there][order], np.cumsum(weights[there][order])
    if not ordered.size:
        return ()
    shares = np.arange(1, N_PARTS) / N_PARTS * reached[-1]
    cuts = ordered[np.minimum(np.searchsorted(reached, shares * (1 - 1e-12)), ordered.size - 1)]
    spread = float(cuts[-1] - cuts[0]) or float(ordered[-1] - ordered[0]) or 1.0
    step = 10.0 ** np.floor(np.log10(spread / 5))
    whole = bool(np.all(ordered == np.round(ordered)))
    step = max(step, 1.0) if whole else step
    rounded = np.unique(np.round(np.round(cuts / step) * step, 9))
    return tuple(rounded[(rounded >= ordered[0]) & (rounded < ordered[-1])].tolist())


def _name_indicators(feature: Feature, edges: Sequence[float]) -> list[tuple[str, str]]:
    """Return the code and the label of each indicator of a feature."""
    plain = _LONG_NAMES.get(feature.name, feature.name.replace("_", " "))
    name = plain[:1].upper() + plain[1:]
    if feature.kind == "binary":
        yes = feature.levels[1]
        return [(f"{feature.name}={yes}", name if yes == "yes" else f"{name}: {yes}")]
    if feature.levels:
        return [(f"{feature.name}={level}", f"{name}: {level}") for level in feature.levels]
    texts = [f"{edge:,.10g}" for edge in edges]
    if not texts:
        return [(f"{feature.name}=known", f"{name} known")]
    between = (f"{a} – {b}" for a, b in pairwise(texts))
    parts = [f"≤ {texts[0]}", *between, f"> {texts[-1]}"]
    return [(f"{feature.name} {part}", f"{name} {part}") for part in parts]
