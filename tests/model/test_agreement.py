from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from comorb.model.agreement import adjusted_rand, contingency, jaccard

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60)


@given(labels)
def test_the_index_is_scikit_learn_s(pairs):
    one, other = np.array(pairs).T
    assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)


def test_the_table_counts_records():
    table = contingency(np.array([0, 0, 1]), np.array([2, 2, 0]))
    assert table.tolist() == [[0, 0, 2], [1, 0, 0]]


def test_the_overlap_finds_the_match_whatever_its_number():
    one = np.array([0, 0, 0, 1, 1, 2])
    other = np.array([2, 2, 1, 1, 1, 0])
    np.testing.assert_allclose(jaccard(one, other, 3), [2 / 3, 2 / 3, 1.0])
