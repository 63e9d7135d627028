from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comorb.model import kernels


def exp_of(values):
    out = np.array(values, dtype=float)
    wholes = np.empty(len(values))
    kernels.exp_all(out, out.view(np.int64), wholes, wholes.view(np.int64), len(values))
    return out


def log_of(values):
    out = np.array(values, dtype=float)
    kernels.log_all(out, out.view(np.int64), np.empty(len(values), np.int64), len(values))
    return out


@given(st.lists(st.floats(-700, 0), min_size=1, max_size=40))
def test_exp_is_exact_to_two_units_in_the_last_place(values):
    np.testing.assert_allclose(exp_of(values), np.exp(values), rtol=5e-16)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=40))
def test_log_is_exact_to_rounding(values):
    np.testing.assert_allclose(log_of(values), np.log(values), rtol=5e-16, atol=5e-16)


def test_exp_of_very_small_values_is_tiny_and_not_zero():
    assert 0 < exp_of([kernels.LOG_ZERO])[0] < 1e-300


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 31, 33, 100])
def test_a_value_has_the_same_bits_in_every_place_of_a_batch(size):
    values = np.linspace(-30, 0, 100)
    whole = exp_of(values)
    parts = np.concatenate([exp_of(values[i : i + size]) for i in range(0, 100, size)])
    assert whole.tobytes() == parts.tobytes()


def test_pairs_are_counted_on_the_upper_triangle():
    indptr, indices = np.array([0, 2, 3, 3]), np.array([0, 2, 1], dtype=np.int32)
    out = np.zeros((3, 3))
    kernels.co_occur(indptr, indices, np.array([2.0, 1.0, 5.0]), out)
    assert out.tolist() == [[2, 0, 2], [0, 1, 0], [0, 0, 2]]


def test_loops_are_compiled_where_nothing_can_be_kept(monkeypatch):
    def without_a_place(cache=False, **given):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**given)

    njit = kernels.numba.njit
    monkeypatch.setattr(kernels.numba, "njit", without_a_place)

    def twice(number):
        return 2 * number

    assert kernels.jit(twice)(4) == 8


def test_machine_code_counts_when_it_is_newer_than_the_loops(monkeypatch, tmp_path):
    code = tmp_path / "kernels.expect-1.py311.nbi"
    loop = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path)), __name__="expect")
    monkeypatch.setattr(kernels, "expect", loop)
    assert not kernels.is_compiled()
    code.touch()
    assert kernels.is_compiled()
    os.utime(code, (0, 0))
    assert not kernels.is_compiled()
