"""Latent classes against published fits, and the bootstrap test on records that have none more."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from comorb import BernoulliMixture, Mixture, choose_k
from comorb.model import lca
from comorb.model.blocks import from_csr
from comorb.model.select_k import choose

pytestmark = pytest.mark.compiled
DATA = Path(__file__).parents[3] / "shared" / "data" / "lca"


def items(name: str, width: int) -> np.ndarray:
    path = DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"needs {path.name}, which is not here")
    with path.open() as file:
        return np.array(
            [[cell == "2" for cell in row[:width]] for row in list(csv.reader(file))[1:]]
        )


@pytest.fixture(scope="module")
def carcinoma():
    return choose_k(items("carcinoma", 7), [1, 2, 3], lca=True)


def test_the_published_fits_of_carcinoma(carcinoma):
    one, two, three = carcinoma.classes
    assert two.log_likelihood == pytest.approx(-317.2568, abs=1e-4)
    assert three.log_likelihood == pytest.approx(-293.7050, abs=1e-4)
    assert three.bic == pytest.approx(697.1357, abs=1e-4)
    assert [row.parameters for row in carcinoma.classes] == [7, 15, 23]
    assert three.aic == pytest.approx(-2 * three.log_likelihood + 46)
    assert three.caic - three.bic == pytest.approx(23)
    assert three.adjusted_bic == pytest.approx(three.aic - 46 + 23 * np.log(120 / 24))
    assert sum(three.sizes) == 118
    assert three.smallest == min(three.sizes)
    assert three.held_out == pytest.approx(118 * carcinoma.rows[2].held_out)
    assert one.odds_correct == ()


def test_the_published_fit_of_cheating():
    found = choose_k(items("cheating", 4), [2], lca=True).classes[0]
    assert found.log_likelihood == pytest.approx(-440.0271, abs=1e-4)


@pytest.mark.parametrize("n", [15_000, 30_000])
def test_each_number_has_the_likelihood_of_a_fit(n):
    rare = [0.02, 0.01, 0.03, 0.01, 0.05, 0.01, 0.1, 0.05]
    common = [0.4, 0.05, 0.03, 0.03, 0.6, 0.15, 0.3, 0.1]
    matrix = Mixture(np.array([0.9, 0.1]), np.array([rare, common])).sample(n, 1)[0].toarray()
    found = choose_k(matrix, [1, 2, 3], lca=True)
    for row in found.classes:
        fitted = BernoulliMixture(row.k, smoothing=0).fit(matrix)
        assert row.log_likelihood > fitted.log_likelihood_ - 0.05
        assert row.smallest > 0
    likelihoods = [row.log_likelihood for row in found.classes]
    assert likelihoods == sorted(likelihoods)


def test_sureness_by_hand(carcinoma):
    matrix = items("carcinoma", 7)
    blocks = from_csr(*_csr(matrix))
    choice = choose(blocks, [1, 2, 3])
    again, models = lca.latent_classes(choice, blocks)
    assert again.classes == carcinoma.classes
    model = models[3]
    logs = (
        np.log(model.weights) + matrix @ np.log(model.means).T + ~matrix @ np.log1p(-model.means).T
    )
    posterior = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    labels = posterior.argmax(axis=1)
    precise = [posterior[labels == c, c].mean() for c in range(3)]
    row = again.classes[2]
    np.testing.assert_allclose(row.average_posterior, precise, atol=1e-9)
    entropy = -np.sum(posterior * np.log(posterior))
    assert row.entropy == pytest.approx(1 - entropy / (118 * np.log(3)), abs=1e-9)
    odds = [p / (1 - p) / (w / (1 - w)) for p, w in zip(precise, model.weights, strict=True)]
    np.testing.assert_allclose(row.odds_correct, odds, rtol=1e-6)


def _csr(matrix):
    indptr = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    return indptr, np.nonzero(matrix)[1], matrix.shape[1]


def test_a_choice_as_a_frame(carcinoma):
    frame = carcinoma.to_pandas()
    assert frame["k"].tolist() == [1, 2, 3]
    assert frame["bic"][2] == carcinoma.classes[2].bic
    plain = choose_k(np.eye(4)[[0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3]], [1, 2]).to_pandas()
    assert "evidence" in plain.columns


def test_the_bootstrap_test_tells_two_classes_from_three(monkeypatch):
    truth = Mixture(np.array([0.5, 0.5]), np.array([[0.9] * 5, [0.1] * 5]))
    matrix = truth.sample(150, 1)[0].toarray()
    told = []
    choice = choose_k(matrix, [1, 2, 3], lca=True)
    models = lca.latent_classes(choice, from_csr(*_csr(matrix)))[1]
    found = lca.bootstrap_test(choice, models, 9, tell=lambda *words: told.append(words))
    one, two, three = found.classes
    assert one.ratio is None
    assert two.ratio_p == 0.1
    assert three.ratio_p > 0.1
    assert told[0] == (2, 1, 9)
    assert found.classes == lca.bootstrap_test(choice, models, 9).classes
    none = lca.bootstrap_test(choice, models, 9, seconds=-1).classes[1]
    assert (none.ratio_p, none.ratio_draws) == (None, 0)
