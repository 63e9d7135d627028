from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.records.codes.vocabulary import Vocabulary
from comorb.records.layouts.assembly import Assembly, build_matrix, have_feature, matrix_from_grids
from comorb.records.ledger import Ledger


def vocabulary(places, features):
    none = np.zeros(len(places), dtype=bool)
    names = tuple(str(j) for j in range(features))
    places = np.asarray(places, dtype=np.int32)
    return Vocabulary(names, names, "opaque", places, none, none, ())


def with_conditions(words, features):
    conditions = tuple(("charlson", code) for code in words.codes[features:])
    return replace(words, codes=words.codes[:features], conditions=conditions)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(1, 6))
def test_pairs_and_grids_agree_with_a_dense_matrix(seed, levels, width):
    rng = np.random.default_rng(seed)
    words = vocabulary(rng.integers(-1, 7, (9, levels)), 7)
    grid = rng.integers(-1, 9, (12, width)).astype(np.int32)
    dense, first = np.zeros((12, 7), dtype=int), set()
    for row, column in zip(*np.nonzero(grid >= 0), strict=True):
        for level, place in enumerate(words.places[grid[row, column]]):
            if place >= 0:
                dense[row, place] = 1
                if level == 0:
                    first.add((row, place))
    at, columns = np.nonzero(grid >= 0)
    pairs = [(at[::2], grid[at, columns][::2]), (at[1::2], grid[at, columns][1::2])]
    for matrix, once in (
        build_matrix(words, 12, len(at), pairs),
        matrix_from_grids(words, [grid[:5], grid[5:]]),
    ):
        assert np.array_equal(matrix.toarray(), dense)
        assert once == len(first)
        assert matrix.has_canonical_format
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        ids = pa.array(np.arange(12))
        for features in (7, 3):
            some = with_conditions(words, features)
            held = np.flatnonzero(dense[:, :features].any(axis=1))
            assert np.array_equal(np.flatnonzero(have_feature(matrix, some)), held)
            read = Assembly(matrix, ids, some, pa.table({"row": ids}), Ledger()).drop_empty()
            assert np.array_equal(read.matrix.toarray(), dense[held])
            assert read.matrix.has_sorted_indices
            assert read.ids.to_pylist() == read.covariates["row"].to_pylist() == held.tolist()
            assert read.ledger.left("records") == len(held)
            assert read.ledger.left("features") == features


def test_no_mentions_at_all():
    words = vocabulary(np.empty((0, 1)), 0)
    matrix, once = build_matrix(words, 3, 0, [])
    assert matrix.shape == (3, 0)
    assert not have_feature(matrix, words).any()
    assert once == 0


@pytest.mark.parametrize("features", [1, 2, 255, 256, 257])
def test_the_last_feature_fits_its_bits(features):
    words = vocabulary([[features - 1]], features)
    matrix, _ = build_matrix(words, 2, 2, [(np.array([0, 1]), np.array([0, 0]))])
    assert matrix.indices.tolist() == [features - 1, features - 1]
