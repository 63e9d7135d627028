"""Compiled loops over rows that have features beside their codes: see ``kernels``.

``values`` (n, p) are prepared, NaN where one is missing. ``members``, ``ends``, ``starts`` and
``dense`` are a ``traits.Plan``; ``cells`` (c, k) and ``numbers`` (q, 3, k) are its tables.
"""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.kernels import BATCH, Buffers, exp_all, jit, log_all, make_buffers

Walk = tuple[Ints, Ints, Ints, Ints]


def make_room(k: int, walk: Walk) -> tuple[Buffers, Ints]:
    """Return the working arrays of ``exp_joint_of``: the buffers and the places."""
    return make_buffers(k), np.empty((walk[1].size, BATCH), np.int64)


@jit
def exp_joint_of(
    rows: tuple[Ints, Indices, Floats],
    walk: Walk,
    tables: tuple[Floats, Floats, Floats, Floats],
    start: int,
    buffers: Buffers,
    places: Ints,
) -> None:
    """Fill the buffers as ``kernels.exp_joint`` does, with the features' part of the density.

    The cell of each group of features that are looked up goes to ``places`` (g, BATCH).
    """
    indptr, indices, values = rows
    members, ends, starts, dense = walk
    base, logits, cells, numbers = tables
    table, joint, totals, density, wholes, joint_bits, density_bits, exponents = buffers
    k = base.size
    m = min(BATCH, indptr.size - 1 - start)
    for g in range(ends.size - 1):
        for b in range(m):
            places[g, b] = starts[g]
        for f in range(ends[g], ends[g + 1]):
            column, stride, blank = np.uint64(members[0, f]), members[1, f], members[2, f]
            for b in range(m):
                x = values[np.uint64(start + b), column]
                places[g, b] += stride * (np.int64(x) if x == x else blank)
    for b in range(m):
        row = table[b]
        for j in range(k):
            row[j] = base[j]
        for p in range(np.uint64(indptr[start + b]), np.uint64(indptr[start + b + 1])):
            i = np.uint32(indices[p])
            for j in range(k):
                row[j] += logits[i, j]
        for g in range(ends.size - 1):
            place = np.uint64(places[g, b])
            for j in range(k):
                row[j] += cells[place, j]
        for q in range(dense.size):
            z = values[start + b, dense[q]]
            if z == z:
                for j in range(k):
                    row[j] += numbers[q, 0, j] + z * (numbers[q, 1, j] + z * numbers[q, 2, j])
        top = row[0]
        for j in range(1, k):
            top = row[j] if row[j] > top else top
        for j in range(k):
            row[j] -= top
        density[BATCH + b] = top
    exp_all(joint, joint_bits, wholes, exponents, m * k)
    for b in range(m):
        total = 0.0
        for j in range(b * k, b * k + k):
            total += joint[j]
        totals[b] = total
        density[b] = total
    log_all(density, density_bits, exponents, m)
    for b in range(m):
        density[b] += density[BATCH + b]


@jit
def posterior_of(
    rows: tuple[Ints, Indices, Floats],
    walk: Walk,
    tables: tuple[Floats, Floats, Floats, Floats],
    out: Floats,
    log_density: Floats,
    room: tuple[Buffers, Ints],
) -> None:
    """Fill ``out`` (n, k) with P(Y = j | x) and ``log_density`` (n,) with log P(x)."""
    n, k = out.shape
    buffers, places = room
    joint, totals, density = buffers[0], buffers[2], buffers[3]
    for start in range(0, n, BATCH):
        exp_joint_of(rows, walk, tables, start, buffers, places)
        for b in range(min(BATCH, n - start)):
            scale = 1.0 / totals[b]
            for j in range(k):
                out[start + b, j] = joint[b, j] * scale
            log_density[start + b] = density[b]


@jit
def expect_of(
    rows: tuple[Ints, Indices, Floats],
    weights: Floats,
    walk: Walk,
    tables: tuple[Floats, Floats, Floats, Floats],
    snaps: tuple[float, float],
    sums: tuple[Floats, Floats, Floats],
    room: tuple[Buffers, Ints],
) -> tuple[float, float]:
    """Add one block's E-step to ``sums`` and return its log-likelihood in two parts.

    As ``kernels.expect``: sums of the codes with the sizes last (d + 1, k), of the cells (c, k),
    and Σ r, Σ r·z, Σ r·z² of the numbers (q, 3, k). ``snaps`` are for weights and for squares.
    """
    indptr, indices, values = rows
    n = indptr.size - 1
    _, ends, _, dense = walk
    of_codes, of_cells, of_numbers = sums
    snap, wide = snaps
    k = tables[0].size
    sizes = of_codes[of_codes.shape[0] - 1]
    buffers, places = room
    table, totals, density = buffers[0], buffers[2], buffers[3]
    coarse_snap, fine_snap = snap * 2.0**14, snap * 2.0**-2
    coarse, fine = 0.0, 0.0
    for start in range(0, n, BATCH):
        exp_joint_of(rows, walk, tables, start, buffers, places)
        for b in range(min(BATCH, n - start)):
            w = weights[start + b] if weights.size else 1.0
            scale = w / totals[b]
            row = table[b]
            for j in range(k):
                row[j] = (row[j] * scale + snap) - snap
            for j in range(k):
                sizes[j] += row[j]
            for p in range(np.uint64(indptr[start + b]), np.uint64(indptr[start + b + 1])):
                i = np.uint32(indices[p])
                for j in range(k):
                    of_codes[i, j] += row[j]
            for g in range(ends.size - 1):
                place = np.uint64(places[g, b])
                for j in range(k):
                    of_cells[place, j] += row[j]
            for q in range(dense.size):
                z = values[start + b, dense[q]]
                if z == z:
                    for j in range(k):
                        of_numbers[q, 0, j] += row[j]
                    for j in range(k):
                        of_numbers[q, 1, j] += (row[j] * z + wide) - wide
                    for j in range(k):
                        of_numbers[q, 2, j] += (row[j] * (z * z) + wide) - wide
            whole = w * density[b]
            high = (whole + coarse_snap) - coarse_snap
            coarse += high
            fine += ((whole - high) + fine_snap) - fine_snap
    return coarse, fine
