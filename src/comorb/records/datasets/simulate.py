"""Simulated data: cohorts after the paper's studies, and mixtures whose truth is known."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy import sparse

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Floats, Ints
from comorb.model.mixture import Mixture, draw
from comorb.records.codes.systems import coding_system
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger


@dataclass(frozen=True)
class ClusterRecipe:
    """One cluster: its size, its patients and the probability of its leading categories."""

    name: str
    size: int
    age: float
    female: float
    stay: float
    died: float
    codes: dict[str, float]


@dataclass(frozen=True)
class CohortRecipe:
    """A cohort to simulate: its clusters, and the column with the rates of all other codes."""

    name: str
    background: str
    clusters: tuple[ClusterRecipe, ...]


_TABLES = tomllib.loads(
    resources.files("comorb.records.datasets").joinpath("recipes.toml").read_text(encoding="utf-8")
)
HEART_FAILURE, TERTIARY = (
    CohortRecipe(**table | {"clusters": tuple(ClusterRecipe(**one) for one in table["clusters"])})
    for table in (_TABLES["heart_failure"], _TABLES["tertiary"])
)


MIN_CODES, MAX_CODES = 3, 10  # of a record, as in the paper
_TAIL = 2.5  # codes of a record that lead no cluster
_BLOCK = 65_536


def heart_failure() -> Cohort:
    """Simulate a cohort after the paper's heart-failure study (its table 1).

    Returns
    -------
    Cohort
        23,154 records in 5 clusters, 3 to 10 ICD-9 categories each, with age, sex,
        length_of_stay, died and the true_cluster as covariates. Always the same.

    Examples
    --------
    >>> len(heart_failure())
    23154
    """
    return _cohort(HEART_FAILURE, seed=428)


def tertiary() -> Cohort:
    """Simulate a cohort after the paper's study of tertiary patients (its table 2).

    Returns
    -------
    Cohort
        16,311 records in 6 clusters, as in `heart_failure`.

    Examples
    --------
    >>> len(tertiary())
    16311
    """
    return _cohort(TERTIARY, seed=410)


def region(n: int, layout: Literal["wide", "long"] = "wide") -> Iterator[pa.RecordBatch]:
    """Simulate the visits of a region, block by block.

    The records are a mixture of the eleven clusters of `heart_failure` and `tertiary`. A
    block depends on its position alone, so that a smaller region is the beginning of a
    larger one.

    Parameters
    ----------
    n
        Number of records; memory does not grow with it.
    layout
        'wide': record_id, the covariates and dx1 to dx10; 'long': record_id and code.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        Each holds the visits of at most 65,536 records.

    Examples
    --------
    >>> sum(batch.num_rows for batch in region(100_000))
    100000
    """
    if n < 1 or layout not in ("wide", "long"):
        raise RecordsError("demo.arguments", n=n, layout=layout)
    return (_block(start, min(n - start, _BLOCK), layout) for start in range(0, n, _BLOCK))


def _cohort(recipe: CohortRecipe, seed: int) -> Cohort:
    rng = np.random.default_rng(seed)
    codes, means = _parameters(recipe)
    labels = rng.permutation(
        np.repeat(np.arange(len(recipe.clusters)), [cluster.size for cluster in recipe.clusters])
    )
    matrix = _records(labels, means, rng)
    seen = np.flatnonzero(np.bincount(matrix.indices, minlength=len(codes)))
    kept = tuple(codes[column] for column in seen)
    ledger = Ledger.start(labels.size, len(kept), Message("ledger.simulated", recipe=recipe.name))
    truth = "; ".join(f"{i} {cluster.name}" for i, cluster in enumerate(recipe.clusters, start=1))
    return Cohort(
        matrix=matrix[:, seen],
        ids=pa.array([str(number) for number in range(1, labels.size + 1)]),
        codes=kept,
        names=tuple(coding_system("icd9cm").name(code) for code in kept),
        system="icd9cm",
        level="category",
        covariates=pa.table(_covariates(recipe.clusters, labels, rng)),
        ledger=ledger.noted(Message("ledger.truth", truth=truth)),
    )


def _block(start: int, length: int, layout: str) -> pa.RecordBatch:
    rng = np.random.default_rng([2016, start // _BLOCK])
    clusters, codes, means = _region_parameters()
    sizes = np.array([cluster.size for cluster in clusters])
    labels = rng.choice(len(clusters), size=_BLOCK, p=sizes / sizes.sum())
    matrix = _records(labels, means, rng)[:length]
    ids = pa.array([str(number) for number in range(start + 1, start + length + 1)])
    vocabulary = pa.array(codes)
    if layout == "long":
        rows = pa.array(np.repeat(np.arange(length), np.diff(matrix.indptr)))
        return pa.record_batch(
            {"record_id": ids.take(rows), "code": vocabulary.take(pa.array(matrix.indices))}
        )
    covariates = _covariates(clusters, labels, rng)
    columns = {"record_id": ids} | {key: whole[:length] for key, whole in covariates.items()}
    slots = np.full((length, MAX_CODES), -1, dtype=np.int32)
    slots[np.arange(MAX_CODES) < np.diff(matrix.indptr)[:, None]] = matrix.indices
    for place, slot in enumerate(slots.T, start=1):
        columns[f"dx{place}"] = vocabulary.take(pa.array(slot, mask=slot < 0))
    return pa.record_batch(columns)


@lru_cache(maxsize=1)
def _region_parameters() -> tuple[tuple[ClusterRecipe, ...], list[str], Floats]:
    """Return the clusters of both recipes over the union of their codes."""
    recipes = (HEART_FAILURE, TERTIARY)
    parameters = [_parameters(recipe) for recipe in recipes]
    codes = sorted({code for own, _ in parameters for code in own})
    means = []
    for own, rates in parameters:
        wide = np.zeros((len(rates), len(codes)))
        wide[:, np.searchsorted(codes, own)] = rates
        means.append(wide)
    return tuple(one for recipe in recipes for one in recipe.clusters), codes, np.vstack(means)


def _parameters(recipe: CohortRecipe) -> tuple[list[str], Floats]:
    """Return the codes of a recipe and the (k, d) probability of each in each cluster.

    A category that leads a cluster has the probability of the recipe, and half of its background
    rate in the other clusters. All other categories are scaled to 2.5 codes a record. One that is
    too rare in the background of the recipe has a fifth of its rate among all adults.
    """
    table = resources.files("comorb.records.datasets").joinpath("background_rates.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    rates = {
        row["code"]: float(row[recipe.background] or 0.2 * float(row["adults"] or 0))
        for row in rows
    }
    leading = {code for cluster in recipe.clusters for code in cluster.codes}
    scale = _TAIL / sum(rate for code, rate in rates.items() if code not in leading)
    codes = sorted(rates | dict.fromkeys(leading, 0.0))
    shared = [0.5 if code in leading else scale for code in codes]
    base = np.array([rates.get(code, 0.0) for code in codes]) * shared
    means = np.array(
        [
            [cluster.codes.get(code, rate) for code, rate in zip(codes, base, strict=True)]
            for cluster in recipe.clusters
        ]
    )
    return codes, means


def _records(labels: Ints, means: Floats, rng: np.random.Generator) -> sparse.csr_array[Any]:
    """Draw a record for each label, again and again until each has 3 to 10 codes."""
    matrix = draw(labels, means, rng)
    while True:
        counts = np.diff(matrix.indptr)
        right = (counts >= MIN_CODES) & (counts <= MAX_CODES)
        if right.all():
            return matrix
        drawn = sparse.vstack([matrix[right], draw(labels[~right], means, rng)], format="csr")
        order = np.argsort(~right, kind="stable")
        matrix = drawn[np.argsort(order)]


def _covariates(
    clusters: tuple[ClusterRecipe, ...], labels: Ints, rng: np.random.Generator
) -> dict[str, pa.Array]:
    n = labels.size
    age, female, stay, died = (
        np.array([getattr(cluster, field) for cluster in clusters])[labels]
        for field in ("age", "female", "stay", "died")
    )
    years = np.clip(np.rint(rng.normal(age, 10)), 18, 104).astype(np.int16)
    days = 1 + rng.poisson(rng.gamma(1.5, (stay - 1) / 1.5))
    return {
        "age": pa.array(years),
        "sex": pa.array(np.where(rng.random(n) < female, "female", "male")),
        "length_of_stay": pa.array(days.astype(np.int16)),
        "died": pa.array(rng.random(n) < died),
        "true_cluster": pa.array((labels + 1).astype(np.int16)),
    }


@dataclass(frozen=True)
class Simulated:
    """A drawn 0/1 matrix with the truth behind it.

    Attributes
    ----------
    matrix
        ``(n, d)`` sparse 0/1 matrix, a record to the row.
    labels
        ``(n,)`` cluster of each record.
    weights
        ``(k,)`` true cluster weights ω, summing to 1.
    means
        ``(k, d)`` true probability of each code in each cluster (the paper's M, transposed).
    """

    matrix: sparse.csr_array
    labels: Ints
    weights: Floats
    means: Floats


def paper(n: int, d: int, k: int, seed: int = 0) -> Simulated:
    """Draw the synthetic data of the paper's appendix E.

    M and ω are exponential random numbers, M divided by its maximum and ω by its sum.

    Parameters
    ----------
    n, d, k
        Records, codes and clusters.
    seed
        The same seed gives the same data.

    Returns
    -------
    Simulated
        The matrix, the labels and the true parameters.

    Examples
    --------
    >>> paper(1000, d=99, k=4).matrix.shape
    (1000, 99)
    """
    rng = _seeded(n, d, k, seed)
    means = rng.exponential(size=(k, d))
    weights = rng.exponential(size=k)
    return _simulate(n, weights / weights.sum(), means / means.max(), rng)


def record_like(n: int, k: int, d: int = 696, seed: int = 0) -> Simulated:
    """Draw data as sparse and as long-tailed as hospital records.

    In each cluster the probability of code j is proportional to Gamma(0.4) / j, scaled to
    6 × U(0.7, 1.3) codes a record and capped at 0.9; the weights are Dirichlet(3). Parameters and
    returned value are those of `paper`.

    Examples
    --------
    >>> record_like(1000, k=5).matrix.shape
    (1000, 696)
    """
    rng = _seeded(n, d, k, seed)
    means = rng.gamma(0.4, size=(k, d)) / np.arange(1, d + 1)
    means *= 6 * rng.uniform(0.7, 1.3, size=(k, 1)) / means.sum(axis=1, keepdims=True)
    return _simulate(n, rng.dirichlet(np.full(k, 3.0)), np.minimum(means, 0.9), rng)


def _seeded(n: int, d: int, k: int, seed: int) -> np.random.Generator:
    if min(n, d, k) < 1:
        raise RecordsError("demo.simulate", n=n, d=d, k=k)
    return np.random.default_rng(seed)


def _simulate(n: int, weights: Floats, means: Floats, rng: np.random.Generator) -> Simulated:
    matrix, labels = Mixture(weights, means).sample(n, rng)
    return Simulated(matrix, labels, weights, means)
