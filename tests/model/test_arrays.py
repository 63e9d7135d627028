"""What can't be fitted is one line, before compiled code sees it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from comorb import BernoulliMixture, choose_k
from comorb.errors import InputError
from comorb.model import sweep
from comorb.model.blocks import from_csr
from comorb.model.mixture import Mixture
from comorb.model.select_k import choose
from comorb.model.subsample import Records
from comorb.runs.stability import stability
from tests.model.conftest import dense_to_blocks
from tests.settings import patch_config

pytestmark = pytest.mark.compiled


def drawn(n: int, d: int, seed: int = 1) -> sparse.csr_array:
    return sparse.csr_array((np.random.default_rng(seed).random((n, d)) < 0.4).astype(np.uint8))


DAMAGE = """
import sys
import numpy as np
from scipy import sparse
from comorb import BernoulliMixture
from comorb.errors import InputError
from tests.settings import patch_config
rng = np.random.default_rng(int(sys.argv[1]))
for _ in range(60):
    X = sparse.csr_array((rng.random((40, 6)) < 0.4).astype(np.uint8))
    X = X.tocsc() if rng.random() < 0.3 else X
    array = X.indices if rng.random() < 0.6 else X.indptr
    array[rng.integers(array.size)] = rng.choice([-1, 6, 40, 10**6, 2**31 - 1, -2**31])
    try:
        X.check_format(full_check=True)
    except ValueError:
        pass
    else:
        continue
    for k in (2, "auto"):
        try:
            BernoulliMixture(k).fit(X)
        except InputError:
            continue
        raise SystemExit("taken")
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_ones_outside_the_matrix_are_refused_and_touch_no_memory(seed: int) -> None:
    done = subprocess.run([sys.executable, "-c", DAMAGE, str(seed)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_blocks_of_ones_outside_are_refused() -> None:
    indptr = np.array([0, 1, 2])
    for ones, ends in (([0, 9], indptr), ([-1, 0], indptr), ([0, 1], indptr + 1), ([0], indptr)):
        with pytest.raises(InputError, match="expected a CSR matrix whose ones lie within its 3"):
            from_csr(ends, np.array(ones, dtype=np.int32), 3)


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_too_few_records_to_choose_is_told(n: int) -> None:
    for act in (lambda X: BernoulliMixture("auto").fit(X), choose_k):
        with pytest.raises(InputError, match=f"expected 12 records or more .* got {n}; ask for a"):
            act(drawn(n, 6))


@pytest.mark.parametrize("patterns", [1, 2, 3])
@pytest.mark.parametrize("n", [12, 13, 17, 300])
def test_few_patterns_and_few_records_have_an_answer(patterns: int, n: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        kinds = (rng.random((patterns, 8)) < 0.5).astype(np.uint8)
        found = choose_k(sparse.csr_array(kinds[rng.integers(0, patterns, n)]))
        assert 1 <= found.best <= 3


def test_thirds_are_never_empty() -> None:
    low, places = np.linspace(0.01, 0.3, 13), np.arange(13)
    thirds = sweep._thirds(Records(places, low, np.ones(13)), 13)
    assert sorted(thirds.sum(axis=1)) == [4, 4, 5]
    order = np.random.default_rng(1).permutation(13)
    again = sweep._thirds(Records(places, low[order], np.ones(13)), 13)
    np.testing.assert_array_equal(again, thirds[:, order])


def test_of_very_many_codes_the_most_common_ones_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    means = np.where(np.eye(3).repeat(6, axis=1), 0.8, 0.1)
    matrix, _ = Mixture(np.full(3, 1 / 3), means).sample(900, 2)
    rare = (rng.random((900, 60)) < 0.01).astype(np.uint8)
    wide = np.hstack([rare[:, :20], matrix.toarray(), rare[:, 20:]])
    every = choose(dense_to_blocks(wide))
    patch_config(monkeypatch, sweep, max_columns=18, min_columns=5)
    found = choose(dense_to_blocks(wide))
    assert found.best == every.best == 3
    model = found.models[3]
    assert model.n_columns == 78
    np.testing.assert_allclose(model.means[:, :20], wide.mean(axis=0)[:20] * np.ones((3, 1)))
    again = choose(dense_to_blocks(wide[:, ::-1]))
    assert [row.evidence for row in again.rows] == pytest.approx(
        [row.evidence for row in found.rows], abs=1e-9
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tol": "x"}, "expected tol to be zero or more, got 'x'"),
        ({"max_iter": "many"}, "expected max_iter to be zero or more, got 'many'"),
        ({"smoothing": "much"}, "expected smoothing to be 'auto' or zero or more, got 'much'"),
    ],
)
def test_texts_for_numbers_are_told(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        BernoulliMixture(2, **wrong).fit(drawn(50, 6))


@pytest.mark.parametrize("weight", [1e308, 1e200, 1e-320])
def test_weights_beyond_all_measure_are_told(weight: float) -> None:
    with pytest.raises(InputError, match="expected sample weights that add up to 1e-09 to 1e"):
        BernoulliMixture(2).fit(drawn(50, 6), sample_weight=np.full(50, weight))
    with pytest.raises(InputError, match="expected sample weights"):
        BernoulliMixture(2).fit(drawn(50, 6), sample_weight=np.r_[1e300, np.ones(49)])


def test_stability_refuses_ones_outside_the_matrix_too() -> None:
    matrix = drawn(60, 6)
    mixture = Mixture(np.array([0.5, 0.5]), np.repeat([[0.2], [0.6]], 6, axis=1))
    matrix.indices[3] = 10**6
    with pytest.raises(InputError, match="expected a whole sparse matrix, got one of which"):
        stability(matrix, mixture)
