"""Drift: new records beside those that a model was fitted on, and whether it still fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erfc

from comorb.model.arrays import Floats, Indices
from comorb.model.blocks import Blocks, Rows, map_reduce, rounded
from comorb.model.columns import placed
from comorb.model.mixture import Mixture
from comorb.storage import SavedModel

FLOOR = -1e4  # no record counts as less probable than e to this
APART = 0.1  # of the spread of log-densities, by which their mean has to fall
SURE = 4.0  # standard errors
POINTS = 0.01  # by how much a share has to change to be told
MOST = 10  # codes that are told, at most


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
    """What changed since a model was fitted; what its file doesn't say isn't compared."""

    clusters: tuple[Change, ...]  # in the order of the model's
    codes: tuple[Change, ...]  # those that changed most, by places in ``places``
    places: tuple[int, ...]
    then: Density | None
    now: Density
    fits: bool | None  # None where the model's file doesn't say how well it fitted
    sentence: str


def density(
    mixture: Mixture, blocks: Blocks, executor: Executor | None, place: Indices | None = None
) -> tuple[Density, Floats]:
    """Return how probable records are under a mixture, and the prevalence of its codes in them.

    ``place`` has the mixture's column of each code, as `align` returns it. One pass, exact sums.
    """
    sums = map_reduce(partial(_sums, mixture, place, blocks.weight), blocks, executor)
    weight, total, squares = sums[:3]
    mean = total / weight
    spread = np.sqrt(max(squares / weight - mean**2, 0.0))
    return Density(blocks.n_rows, round(float(mean), 6), round(float(spread), 6)), sums[3:] / weight


def _sums(mixture: Mixture, place: Indices | None, total: float, rows: Rows) -> Floats:
    own = rows if place is None else placed(place, mixture.n_columns, rows)
    n = own.indptr.size - 1
    weights = own.weights if own.weights.size else np.ones(n)
    logs = np.maximum(mixture.posterior(own)[1], FLOOR)
    terms = (
        rounded(weights, total),
        rounded(weights * logs, total * -FLOOR),
        rounded(weights * logs**2, total * FLOOR**2),
    )
    each = np.repeat(terms[0], np.diff(own.indptr))
    carried = np.bincount(own.indices, each, mixture.n_columns)
    return np.concatenate([[one.sum() for one in terms], carried])


def density_facts(mixture: Mixture, blocks: Blocks, executor: Executor | None) -> dict[str, Any]:
    """Return what a model's file says of its own records, to compare new ones with."""
    found, prevalence = density(mixture, blocks, executor)
    told = [round(float(share), 9) for share in prevalence]
    return {"density": {"mean": found.mean, "spread": found.spread}, "prevalence": told}


def drift(saved: SavedModel, shares: Floats, now: Density, prevalence: Floats) -> Drift:
    """Compare new records, of which clusters have these shares, with those of a model."""
    run: Mapping[str, Any] = saved.run
    own: Sequence[float] = run.get("shares") or []
    n_then = int(run.get("records", 0))
    sizes = own if len(own) == shares.size else saved.mixture.weights.tolist()
    clusters = _changes(saved.clusters, np.array(sizes), shares, n_then, now.records)
    before = run.get("prevalence") or (saved.mixture.weights @ saved.mixture.means).tolist()
    every = _changes(saved.codes, np.array(before), prevalence, n_then, now.records)
    apart = [
        i for i, one in enumerate(every) if abs(one.now - one.then) >= POINTS and one.p < 0.001
    ]
    apart.sort(key=lambda i: (-abs(every[i].now - every[i].then), i))
    places = tuple(apart[:MOST])
    then = None
    if "density" in run:
        then = Density(n_then, run["density"]["mean"], run["density"]["spread"])
    fits, sentence = _judged(then, now)
    return Drift(clusters, tuple(every[i] for i in places), places, then, now, fits, sentence)


def _changes(
    names: Sequence[str], then: Floats, now: Floats, n_then: int, n_now: int
) -> tuple[Change, ...]:
    """Return shares then and now, each with the p of a two-sided test of their difference."""
    pooled = (then * n_then + now * n_now) / max(n_then + n_now, 1)
    error = np.sqrt(pooled * (1 - pooled) * (1 / max(n_then, 1) + 1 / max(n_now, 1)))
    z = np.abs(now - then) / np.maximum(error, 1e-12)
    p = np.where(now == then, 1.0, erfc(z / np.sqrt(2)))
    rows = zip(names, then.tolist(), now.tolist(), p.tolist(), strict=True)
    return tuple(Change(a, round(b, 6), round(c, 6), round(d, 9)) for a, b, c, d in rows)


def _judged(then: Density | None, now: Density) -> tuple[bool | None, str]:
    if then is None or then.spread <= 0:
        return None, (
            "The model's file doesn't say how probable its own records were, so whether it still "
            "fits can't be told; fit it again to know."
        )
    fall = then.mean - now.mean
    error = then.spread * np.sqrt(1 / max(now.records, 1) + 1 / max(then.records, 1))
    figures = f"log-likelihood a record {now.mean:.2f}, {then.mean:.2f} when it was fitted"
    if fall > APART * then.spread and fall > SURE * error:
        return False, f"The model no longer fits these records well ({figures}); fit it again."
    if -fall > APART * then.spread and -fall > SURE * error:
        return True, (
            f"The model fits; these records are more like each other than its own ({figures})."
        )
    return True, f"The model fits these records as it did its own ({figures})."
