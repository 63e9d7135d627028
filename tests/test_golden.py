"""Published numbers: latent class fits of the carcinoma (Agresti 2002) and cheating data."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from comorb import BernoulliMixture

TABLES = Path(__file__).parents[2] / "shared" / "data" / "lca"


def table(name, items):
    path = TABLES / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"needs {path.name} in ../shared/data/lca")
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[value == "2" for value in row[:items]] for row in rows], dtype=int)


@pytest.fixture(scope="module")
def carcinoma():
    return table("carcinoma", 7)


@pytest.mark.parametrize(("k", "log_likelihood"), [(2, -317.2568), (3, -293.7050), (4, -289.2858)])
def test_the_published_optimum_is_reached_from_our_own_start(carcinoma, k, log_likelihood):
    model = BernoulliMixture(k, smoothing=0).fit(carcinoma)
    assert model.log_likelihood_ == pytest.approx(log_likelihood, abs=1e-4)
    assert model.weights_.min() * 118 > 1


def test_the_published_optimum_of_the_cheating_table():
    model = BernoulliMixture(2, smoothing=0).fit(table("cheating", 4))
    assert model.log_likelihood_ == pytest.approx(-440.0271, abs=1e-4)


def test_the_published_bic(carcinoma):
    model = BernoulliMixture(3, smoothing=0).fit(carcinoma)
    assert model.bic(carcinoma) == pytest.approx(697.1357, abs=1e-3)
