from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comorb.errors import InputError
from comorb.model.blocks import from_csr, map_blocks, map_reduce, snap_for, workers
from tests.model.conftest import dense_to_blocks


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.randoms())
def test_rounded_terms_add_up_to_the_same_bits_in_any_order(values, random):
    snap = snap_for(float(len(values)))
    rounded = [(v + snap) - snap for v in values]
    shuffled = random.sample(rounded, len(rounded))
    assert sum(rounded) == sum(shuffled)
    assert sum(rounded) == pytest.approx(sum(values), abs=1e-12 * len(values))


@dataclass(frozen=True)
class Words:
    text: str

    def __add__(self, other):
        return Words(self.text + other.text)


def test_partials_are_folded_in_block_order_whoever_ends_first():
    blocks = dense_to_blocks(np.eye(40, dtype=int), block_rows=1)

    def name(rows):
        return Words(f"{rows.indices[0]} ")

    expected = "".join(f"{i} " for i in range(40))
    assert map_reduce(name, blocks).text == expected
    with ThreadPoolExecutor(4) as pool:
        assert map_reduce(name, blocks, pool).text == expected


def test_only_a_bounded_number_of_blocks_is_under_way():
    blocks = dense_to_blocks(np.eye(100, dtype=int), block_rows=1)
    started = []
    with workers(2) as pool:
        results = map_blocks(lambda rows: started.append(rows.indices[0]), blocks, pool)
        next(results)
    assert len(started) <= 4


def test_the_blocks_cover_the_rows_without_copying_them():
    indptr, indices = np.arange(11, dtype=np.int32), np.zeros(10, dtype=np.int32)
    blocks = from_csr(indptr, indices, 1, block_rows=4)
    rows = [load() for load in blocks.loaders]
    assert [r.indptr.tolist() for r in rows] == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2]]
    assert all(np.shares_memory(r.indices, indices) for r in rows)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "expected one weight for each of the 3 rows, got an array of shape \\(1,\\)"),
        ([1.0, -1.0, 1.0], "sample weights must be finite, not negative and not all zero"),
        ([0.0, 0.0, 0.0], "sample weights must be finite, not negative and not all zero"),
        ([1.0, np.nan, 1.0], "sample weights must be finite, not negative and not all zero"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        dense_to_blocks(np.eye(3), np.array(weights))
