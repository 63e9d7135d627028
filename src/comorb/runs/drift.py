"""Drift between new records and those that a model was fitted on, and whether it still fits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erfc

from comorb.messages import Message
from comorb.model.arrays import Floats, Indices
from comorb.model.blocks import Blocks, Rows, map_reduce, move_row_columns, snap_to_grid
from comorb.model.mixture import Mixture
from comorb.storage import SavedModel

MIN_LOG_DENSITY = -1e4  # no record counts as less probable than e to this
MIN_FALL = 0.1  # of the spread of log-densities, by which their mean has to fall
MIN_FALL_ERRORS = 4.0  # standard errors
MIN_CHANGE = 0.01  # by how much a share has to change to be listed
MAX_CODES = 10  # codes that are listed, at most


@dataclass(frozen=True)
class Density:
    """How probable records are under a model: the mean and spread of log P(x) over them."""

    records: int
    mean: float
    spread: float


@dataclass(frozen=True)
class Change:
    """A share then and now; ``p`` is the probability of such a change by chance."""

    name: str
    then: float
    now: float
    p: float


@dataclass(frozen=True)
class Drift:
    """What changed since a model was fitted; what its file lacks isn't compared."""

    clusters: tuple[Change, ...]  # in the order of the model's
    codes: tuple[Change, ...]  # those that changed most, by places in ``places``
    places: tuple[int, ...]
    then: Density | None
    now: Density
    fits: bool | None  # None where the model's file lacks how well it fitted
    sentence: str


def density(
    mixture: Mixture, blocks: Blocks, executor: Executor | None, place: Indices | None = None
) -> tuple[Density, Floats]:
    """Return how probable records are under a mixture, and the prevalence of its codes in them.

    ``place`` has the mixture's column of each code, as `align` returns it. One pass, exact sums.
    """
    sums = map_reduce(partial(_sum_densities, mixture, place, blocks.weight), blocks, executor)
    weight, total, squares = sums[:3]
    mean = total / weight
    spread = np.sqrt(max(squares / weight - mean**2, 0.0))
    return Density(blocks.n_rows, round(float(mean), 6), round(float(spread), 6)), sums[3:] / weight


def _sum_densities(mixture: Mixture, place: Indices | None, total: float, rows: Rows) -> Floats:
    own = rows if place is None else move_row_columns(place, mixture.n_columns, rows)
    n = own.indptr.size - 1
    weights = own.weights if own.weights.size else np.ones(n)
    logs = np.maximum(mixture.posterior(own)[1], MIN_LOG_DENSITY)
    terms = (
        snap_to_grid(weights, total),
        snap_to_grid(weights * logs, total * -MIN_LOG_DENSITY),
        snap_to_grid(weights * logs**2, total * MIN_LOG_DENSITY**2),
    )
    each = np.repeat(terms[0], np.diff(own.indptr))
    carried = np.bincount(own.indices, each, mixture.n_columns)
    return np.concatenate([[one.sum() for one in terms], carried])


def density_facts(mixture: Mixture, blocks: Blocks, executor: Executor | None) -> dict[str, Any]:
    """Return what a model's file keeps of its own records, to compare new ones with."""
    found, prevalence = density(mixture, blocks, executor)
    shares = [round(float(share), 9) for share in prevalence]
    return {"density": {"mean": found.mean, "spread": found.spread}, "prevalence": shares}


def drift(saved: SavedModel, shares: Floats, now: Density, prevalence: Floats) -> Drift:
    """Compare new records, of which clusters have these shares, with those of a model."""
    run, n_then = saved.run, int(saved.run.get("records", 0))
    own: Sequence[float] = run.get("shares") or []
    sizes = own if len(own) == shares.size else saved.mixture.weights.tolist()
    clusters = _test_changes(saved.clusters, np.array(sizes), shares, n_then, now.records)
    before = run.get("prevalence") or (saved.mixture.weights @ saved.mixture.means).tolist()
    every = _test_changes(saved.codes, np.array(before), prevalence, n_then, now.records)
    by = np.array([abs(one.now - one.then) for one in every])
    apart = [i for i, one in enumerate(every) if by[i] >= MIN_CHANGE and one.p < 0.001]
    places = tuple(sorted(apart, key=lambda i: (-by[i], i))[:MAX_CODES])
    then = Density(n_then, **run["density"]) if "density" in run else None
    fits, sentence = _judge_fit(then, now)
    return Drift(clusters, tuple(every[i] for i in places), places, then, now, fits, sentence)


def _test_changes(
    names: Sequence[str], then: Floats, now: Floats, n_then: int, n_now: int
) -> tuple[Change, ...]:
    """Return shares then and now, each with the p of a two-sided test of their difference."""
    pooled = (then * n_then + now * n_now) / max(n_then + n_now, 1)
    error = np.sqrt(pooled * (1 - pooled) * (1 / max(n_then, 1) + 1 / max(n_now, 1)))
    z = np.abs(now - then) / np.maximum(error, 1e-12)
    p = np.where(now == then, 1.0, erfc(z / np.sqrt(2)))
    rows = zip(names, then.tolist(), now.tolist(), p.tolist(), strict=True)
    return tuple(Change(a, round(b, 6), round(c, 6), round(d, 9)) for a, b, c, d in rows)


def _judge_fit(then: Density | None, now: Density) -> tuple[bool | None, str]:
    if then is None or then.spread <= 0:
        return None, Message("drift.unknown")
    fall = then.mean - now.mean
    error = then.spread * np.sqrt(1 / max(now.records, 1) + 1 / max(then.records, 1))
    figures = Message("drift.figures", now=now.mean, then=then.mean)
    if abs(fall) > max(MIN_FALL * then.spread, MIN_FALL_ERRORS * error):
        key = "drift.no_longer" if fall > 0 else "drift.more_alike"
        return fall < 0, Message(key, figures=figures)
    return True, Message("drift.fits", figures=figures)
