"""Survival: Kaplan–Meier curves per cluster, with the weights that correct outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.exact_sums import snap_to_grid
from comorb.model.relations.classification import CONFIG, Classification, Part
from comorb.model.tabular import Tabular


@dataclass(frozen=True, eq=False)
class SurvivalRelation(Tabular):
    """The share of each cluster without an event by each time.

    Attributes
    ----------
    times : ndarray of shape (m,)
        The times at which anyone had an event.
    survival, errors : ndarray of shape (k, m)
        Corrected, with Greenwood's standard errors for the effective number of records.
    naive : ndarray of shape (k, m)
        The curve of the records taken for each cluster.
    """

    times: Floats
    survival: Floats
    errors: Floats
    naive: Floats

    def medians(self) -> tuple[float | None, ...]:
        """Return the first time by which half of each cluster had the event; None where fewer."""
        found = [np.flatnonzero(curve <= 0.5) for curve in self.survival]
        return tuple(float(self.times[at[0]]) if at.size else None for at in found)

    def columns(self) -> dict[str, Any]:
        """Return a row for each cluster and time, by columns."""
        k, m = self.survival.shape
        columns = {
            "cluster": np.repeat(np.arange(1, k + 1), m).tolist(),
            "time": np.tile(self.times, k).tolist(),
        }
        return columns | self._figures(survival="survival", error="errors", naive="naive")


@dataclass(frozen=True, eq=False)
class Times:
    """Records by the time at which they leave and their assigned cluster, (k, m): Σ w², too."""

    times: Floats
    events: Floats
    leaving: Floats
    squares: Floats

    def __add__(self, other: Self) -> Times:
        times = np.union1d(self.times, other.times)
        tables = []
        for name in ("events", "leaving", "squares"):
            table = np.zeros((self.events.shape[0], times.size))
            for one in (self, other):
                table[:, np.searchsorted(times, one.times)] += getattr(one, name)
            tables.append(table)
        return Times(times, *tables)


def sum_times(time: int, event: int, total: float, largest: float, part: Part) -> Times:
    """Return records by their time: ``time`` and ``event`` (0 or 1) are columns; O(n log n)."""
    known = np.isfinite(part.columns[:, [time, event]]).all(axis=1)
    own, had = part.columns[known, time], part.columns[known, event]
    weights, labels = part.weights[known], part.labels[known]
    times, places = np.unique(own, return_inverse=True)
    k = part.posterior.shape[1]
    terms = ((weights * had, total), (weights, total), (weights**2, total * largest))
    flat = labels * times.size + places
    tables = [np.bincount(flat, snap_to_grid(*each), k * times.size) for each in terms]
    return Times(times, *np.reshape(tables, (3, k, times.size)).astype(np.float64))


def curves(found: Times, classification: Classification) -> SurvivalRelation:
    """Return the curves Π (1 − d_t / n_t) with BCH weights, of the times with an event.

    A step whose weighted events or records are negative is none; a curve never rises.
    """
    if not found.times.size:
        raise InputError("relate.no_times")
    if not found.events.any():
        raise InputError("relate.no_events")
    survival, errors = _product(found, classification.inverse)
    naive, _ = _product(found, np.eye(classification.k))
    shown = found.events.sum(axis=0) > 0
    return SurvivalRelation(
        found.times[shown], survival[:, shown], errors[:, shown], naive[:, shown]
    )


def _product(found: Times, weights: Floats) -> tuple[Floats, Floats]:
    events, leaving = weights.T @ found.events, weights.T @ found.leaving
    squares = (weights**2).T @ found.squares
    at_risk = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1]
    heavy = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
    effective = at_risk[:, 0] ** 2 / np.maximum(heavy[:, 0], 1e-300)
    few = int(np.argmin(effective))
    if effective[few] < CONFIG.min_effective or at_risk[few, 0] <= 0:
        raise InputError(
            "relate.few_times",
            cluster=few + 1,
            effective=effective[few],
            least=CONFIG.min_effective,
        )
    hazard = np.clip(events / np.where(at_risk > 0, at_risk, np.inf), 0, 1)
    survival = np.asarray(np.cumprod(1 - hazard, axis=1), dtype=np.float64)
    per = heavy / np.where(at_risk > 0, at_risk, np.inf) ** 2
    terms = per * hazard / np.where(hazard < 1, 1 - hazard, np.inf)
    errors = survival * np.sqrt(np.cumsum(terms, axis=1))
    return survival, np.asarray(errors, dtype=np.float64)
