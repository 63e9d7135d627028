"""Sums by group against exact fractions, in any order and split."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from comorb.model.exact_sums import GroupSums


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_sums_are_the_exact_ones_rounded_once(scale: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, scale, 4000) * 10.0 ** rng.integers(-6, 6, 4000)
    groups = rng.integers(0, 3, 4000)
    sums = GroupSums(4)
    sums.add(values, groups)
    exact = [sum(map(Fraction, values[groups == g].tolist()), Fraction()) for g in range(4)]
    assert sums.totals().tolist() == [float(one) for one in exact]
    assert sums.total() == float(sum(exact))


def test_neither_order_nor_split_changes_a_bit() -> None:
    rng = np.random.default_rng(4)
    values, groups = rng.lognormal(3, 4, 5000), rng.integers(0, 2, 5000)
    whole, parts = GroupSums(2), GroupSums(2)
    whole.add(values, groups)
    order = rng.permutation(5000)
    for some in np.array_split(order, 7):
        parts.add(values[some], groups[some])
    assert whole.totals().tobytes() == parts.totals().tobytes()
    assert whole.total() == parts.total()


def test_nothing_adds_up_to_zero() -> None:
    sums = GroupSums(2)
    sums.add(np.empty(0), np.empty(0, dtype=np.int64))
    assert sums.totals().tolist() == [0.0, 0.0]
    assert sums.total() == 0.0
