"""What two parts answer becomes the answer of both."""

import pytest

from comorb.records.sources import merging


@pytest.mark.parametrize(
    ("merge", "one", "two", "both"),
    [
        (merging.first, [1], [2], [1]),
        (merging.either, [], [(1,)], [(1,)]),
        (merging.every, [(True, None, True)], [(False, True, None)], [(False, True, True)]),
        (merging.largest, [(None, 3)], [(2, 1)], [(2, 3)]),
        (merging.histograms, [({"a": 1},)], [({"a": 2, "b": 1},)], [({"a": 3, "b": 1},)]),
        (merging.summed, [(2, 3)], [(4, 5)], [(6, 8)]),
        (merging.summed_by_first, [("a", 1), (None, 2)], [("a", 3)], [("a", 4), (None, 2)]),
        (merging.summed_by_two, [("a", "x", 1)], [("a", "y", 3)], [("a", "x", 1), ("a", "y", 3)]),
    ],
)
def test_answers_are_merged(merge, one, two, both):
    assert merge(one, two) == both
