"""The paper's heat-map: records ordered by cluster × the most common codes, as bits."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from comorb.insight.profile.contents import Heatmap
from comorb.model.arrays import Floats, Ints, Mask

COLUMNS = 40
MOST_LINES = 50_000


def heatmap(matrix: csr_array[Any], labels: Ints, top: Floats, columns: Ints, k: int) -> Heatmap:
    """Return the heat-map of some columns of a 0/1 matrix.

    Inside a cluster the surest records come first, and ties are in an order made from their
    bits: nothing depends on the order of the file. More than 50,000 records are drawn several
    to a line.
    """
    places = np.zeros(matrix.shape[1], dtype=np.int64)
    places[columns] = 1 << np.arange(len(columns))
    keys = (matrix.astype(np.int64) @ places).astype("<u8")
    mixed = keys * np.uint64(0x9E3779B97F4A7C15)
    order = np.lexsort((mixed, -top, labels))
    bits = np.unpackbits(keys[order, None].view(np.uint8), axis=1, bitorder="little")
    rows = bits[:, : len(columns)].astype(bool)
    sizes = np.bincount(labels, minlength=k)
    whole = pack(rows, tuple(int(c) for c in columns), sizes.tolist(), 1)
    return thin(whole, -(-len(labels) // MOST_LINES)) if len(labels) > MOST_LINES else whole


def pack(rows: Mask, columns: tuple[int, ...], lines: Sequence[int], per_line: int) -> Heatmap:
    """Return lines of bits as a heat-map."""
    bits = base64.b64encode(np.packbits(rows, axis=1).tobytes()).decode("ascii")
    return Heatmap(columns, tuple(int(n) for n in lines), per_line, bits)


def thin(whole: Heatmap, times: int, lines: Sequence[int] | None = None) -> Heatmap:
    """Return a heat-map in which a line stands for at least ``times`` lines of the first.

    ``lines`` are how many each cluster has, by default as many as there may be.

    A line has a code where the running count of its carriers passes a multiple of the line's
    height: the shade of every stretch of lines stays right to within one line, and no dot
    stands for fewer records than a line has.
    """
    rows = whole.rows()
    ends = np.cumsum(whole.lines)
    parts = []
    lines = [max(size // times, 1) for size in whole.lines] if lines is None else lines
    lines = [min(count, size) for count, size in zip(lines, whole.lines, strict=True)]
    for end, size, count in zip(ends, whole.lines, lines, strict=True):
        if count:
            edges = (np.arange(count + 1) * size) // count
            carriers = np.add.reduceat(rows[end - size : end], edges[:-1], axis=0, dtype=np.int64)
            passed = (2 * np.cumsum(carriers, axis=0) * count + size) // (2 * size)
            parts.append(np.diff(passed, axis=0, prepend=0) > 0)
    dots = np.concatenate(parts) if parts else rows[:0]
    return pack(dots, whole.columns, lines, whole.per_line * times)


def masked(whole: Heatmap, hidden: Mask) -> Heatmap:
    """Return a heat-map without the dots of some codes (k, d) in some clusters.

    A cluster that is hidden whole has no line left.
    """
    gone = hidden.all(axis=1)
    dots = whole.rows() & ~np.repeat(hidden[:, list(whole.columns)], whole.lines, axis=0)
    lines = np.where(gone, 0, whole.lines).tolist()
    return pack(dots[~np.repeat(gone, whole.lines)], whole.columns, lines, whole.per_line)
