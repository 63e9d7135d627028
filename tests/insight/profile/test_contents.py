"""The bits of a heat-map, read back."""

from __future__ import annotations

import base64

import numpy as np

from comorb.insight.profile.contents import Heatmap


def test_lines_are_whole_bytes_with_the_first_column_in_the_highest_bit() -> None:
    packed = bytes([0b10000000, 0b10000000, 0b01000001, 0b00000000])
    heatmap = Heatmap(tuple(range(9)), (1, 1), 1, base64.b64encode(packed).decode())
    expected = np.zeros((2, 9), dtype=bool)
    expected[0, [0, 8]] = expected[1, [1, 7]] = True
    np.testing.assert_array_equal(heatmap.rows(), expected)
