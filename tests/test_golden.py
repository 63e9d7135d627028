"""Published numbers: latent class fits of the carcinoma data (Agresti 2002)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from comorb import BernoulliMixture

CARCINOMA = Path(__file__).parents[2] / "shared" / "data" / "lca" / "carcinoma.csv"


@pytest.fixture(scope="module")
def carcinoma():
    if not CARCINOMA.exists():
        pytest.skip(f"needs {CARCINOMA.name} in ../shared/data/lca")
    with CARCINOMA.open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[value == "2" for value in row] for row in rows], dtype=int)


@pytest.mark.parametrize(("k", "log_likelihood"), [(2, -317.2568), (3, -293.7050)])
def test_the_published_optimum_is_reached_from_our_own_start(carcinoma, k, log_likelihood):
    model = BernoulliMixture(k, smoothing=0).fit(carcinoma)
    assert model.log_likelihood_ == pytest.approx(log_likelihood, abs=1e-3)


def test_the_published_bic(carcinoma):
    model = BernoulliMixture(3, smoothing=0).fit(carcinoma)
    assert model.bic(carcinoma) == pytest.approx(697.1357, abs=1e-3)
