"""A small cohort with two clear clusters, covariates and a universal code."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from comorb.model.estimators import LatentClassModel
from comorb.model.mixture import Mixture
from comorb.profiles.build import profile
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from tests.mixed import PREPARATION, mixed_table

CODES = ("428", "250", "585", "401", "272", "V45", "491", "038")
NAMES = (
    "Heart failure",
    "Diabetes mellitus",
    "Chronic kidney disease (CKD)",
    "Essential hypertension",
    "Disorders of lipoid metabolism",
    "Other postprocedural states",
    "Chronic bronchitis",
    "Septicemia",
)
SECRET = bytes(range(32))
MODEL = Mixture(
    np.array([0.6, 0.4]),
    np.array(
        [
            [1.0, 0.70, 0.60, 0.20, 0.15, 0.10, 0.05, 0.04],
            [1.0, 0.10, 0.05, 0.70, 0.60, 0.12, 0.30, 0.01],
        ]
    ),
)


def make_cohort(n: int = 600, weighted: bool = False, seed: int = 1) -> Cohort:
    matrix, _ = MODEL.sample(n, seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, n).astype(float) if weighted else None
    table = pa.table(
        {
            "age": pa.array(rng.normal(70, 10, n)),
            "sex": pa.array(np.where(rng.random(n) < 0.5, "female", "male")),
            "died": pa.array(rng.random(n) < 0.1),
            "region": pa.array(rng.integers(1, 5, n)),
        }
    )
    return Cohort(
        matrix=matrix,
        ids=pa.array([f"patient-{i}" for i in range(n)]),
        codes=CODES,
        names=NAMES,
        system="icd9cm",
        level="category",
        covariates=table,
        ledger=Ledger.start(n, len(CODES), "made for a test"),
        weights=weights,
    )


def dense(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the posterior, worked out the long way."""
    x = cohort.matrix.toarray().astype(float)
    mu = np.clip(MODEL.means, 1e-9, 1 - 1e-9)
    logs = np.log(MODEL.weights) + x @ np.log(mu).T + (1 - x) @ np.log(1 - mu).T
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return x, p / p.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def cohort() -> Cohort:
    return make_cohort()


@pytest.fixture(scope="session")
def full(cohort: Cohort) -> Profile:
    return profile(
        MODEL,
        cohort,
        title="Test",
        reason="asked for",
        command="comorb fit x.csv",
        secret=SECRET,
    )


def sampled(k: int, d: int = 60, n: int = 3000) -> Profile:
    """Return a profile of k clusters of different sizes over d codes."""
    rng = np.random.default_rng(k)
    weights = np.sort(rng.random(k) + 0.05)[::-1]
    model = Mixture(weights / weights.sum(), rng.beta(0.4, 3, (k, d)))
    matrix, _ = model.sample(n, k)
    codes = tuple(f"C{i:02d}" for i in range(d))
    return profile(
        model,
        Cohort(
            matrix=sparse.csr_array(matrix),
            ids=pa.array([str(i) for i in range(n)]),
            codes=codes,
            names=tuple(f"Condition number {i} of a long list of conditions" for i in range(d)),
            system="opaque",
            level="category",
            covariates=pa.table({}),
            ledger=Ledger.start(n, d),
        ),
        secret=SECRET,
    )


@pytest.fixture(scope="session")
def mixed() -> tuple[Cohort, Mixture, Profile]:
    """A cohort with codes and features, its model and its profile."""
    cohort = PREPARATION.cohort(mixed_table()[0])
    model = LatentClassModel(3).fit_blocks(cohort.blocks()).mixture_
    return cohort, model, profile(model, cohort, secret=SECRET)
