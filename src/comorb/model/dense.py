"""Compiled loops over small dense tables: the means of clusters, and the slices of a tensor."""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats, Ints
from comorb.model.kernels import jit, log_all, part_of_loops


@part_of_loops
def log_gamma_all(values: Floats, shifts: Floats, bits: Ints, exponents: Ints, n: int) -> None:
    """Replace the first n ``values`` (all positive) by log Γ; the others are room for 2n.

    ``bits`` are those of ``shifts``.

    Γ(x) = Γ(x + 7) / (x (x + 1) … (x + 6)), and Stirling's series at x + 7, to 1e-12.
    """
    for t in range(n):
        x = values[t]
        shifts[t] = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0)
        shifts[n + t] = x + 7.0
    log_all(shifts, bits, exponents, 2 * n)
    for t in range(n):
        z = values[t] + 7.0
        r = 1.0 / z
        q = r * r
        series = ((q * (-1.0 / 1680.0) + 1.0 / 1260.0) * q - 1.0 / 360.0) * q + 1.0 / 12.0
        half_log_tau = 0.9189385332046728
        values[t] = (z - 0.5) * shifts[n + t] - z + half_log_tau + series * r - shifts[t]


def log_marginals(carriers: Floats, sizes: Floats, present: Floats, absent: Floats) -> Floats:
    """Return, for each pair of clusters, Σᵢ log B(c + a, n − c + b) of the two united, (K, K).

    On the diagonal it is each cluster alone. Upper triangle only. O(K²·d).
    """
    out = np.zeros((sizes.size, sizes.size))
    for u in range(sizes.size):
        out[u, u:] = log_marginals_with(0, carriers[u:], sizes[u:], present, absent)
    return out


def log_marginals_with(
    u: int, carriers: Floats, sizes: Floats, present: Floats, absent: Floats
) -> Floats:
    """Return row u of ``log_marginals``, whole: cluster u united with each, itself alone. (K,)."""
    k, d = carriers.shape
    out, values, shifts = np.empty(k), np.empty(3 * d), np.empty(6 * d)
    room = values, shifts, shifts.view(np.int64), np.empty(6 * d, np.int64)
    fill_marginals(u, carriers, sizes, present, absent, out, room)
    return out


@jit
def fill_marginals(
    u: int,
    carriers: Floats,
    sizes: Floats,
    present: Floats,
    absent: Floats,
    out: Floats,
    room: tuple[Floats, Floats, Ints, Ints],
) -> None:
    """Fill ``out`` (K,) for ``log_marginals_with``."""
    k, d = carriers.shape
    values, shifts, bits, exponents = room
    for v in range(k):
        n = sizes[u] if u == v else sizes[u] + sizes[v]
        for i in range(d):
            c = carriers[u, i] if u == v else carriers[u, i] + carriers[v, i]
            values[i] = c + present[i]
            values[d + i] = (n - c if n > c else 0.0) + absent[i]
            values[2 * d + i] = n + present[i] + absent[i]
        log_gamma_all(values, shifts, bits, exponents, 3 * d)
        total = 0.0
        for i in range(d):
            total += values[i] + values[d + i] - values[2 * d + i]
        out[v] = total


@jit
def rotate_jointly(slices: Floats, sweeps: int, still: float) -> int:
    """Make ``slices`` (K, K, d) as diagonal as one orthogonal change of basis can, in place.

    Jacobi rotations, pair by pair, each by the angle that leaves the least off the diagonals of
    all d matrices (Cardoso and Souloumiac 1996), until no angle exceeds ``still``. Returns the
    number of sweeps. O(K³·d) a sweep.
    """
    k, _, d = slices.shape
    for sweep in range(sweeps):
        largest = 0.0
        for p in range(k - 1):
            for q in range(p + 1, k):
                # g = (h_pp − h_qq, 2 h_pq); the angle comes from the 2 × 2 matrix Σ g gᵀ
                on = 0.0
                off = 0.0
                for i in range(d):
                    a = slices[p, p, i] - slices[q, q, i]
                    b = 2.0 * slices[p, q, i]
                    on += a * a - b * b
                    off += 2.0 * a * b
                angle = 0.5 * np.arctan2(off, on + np.sqrt(on * on + off * off))
                largest = max(largest, abs(angle))
                if abs(angle) <= still:
                    continue
                c, s = np.cos(angle), np.sin(angle)
                for i in range(d):
                    # the 2 × 2 block of p and q: cᵀ h c with c = [[c, −s], [s, c]]
                    x, y, z = slices[p, p, i], slices[p, q, i], slices[q, q, i]
                    slices[p, p, i] = c * c * x + 2.0 * c * s * y + s * s * z
                    slices[q, q, i] = s * s * x - 2.0 * c * s * y + c * c * z
                    slices[p, q, i] = c * s * (z - x) + (c * c - s * s) * y
                    slices[q, p, i] = slices[p, q, i]
                for r in range(k):
                    if r == p or r == q:  # noqa: SIM109 - a tuple takes long to compile
                        continue
                    for i in range(d):
                        x, y = slices[p, r, i], slices[q, r, i]
                        slices[p, r, i] = c * x + s * y
                        slices[q, r, i] = c * y - s * x
                        slices[r, p, i] = slices[p, r, i]
                        slices[r, q, i] = slices[q, r, i]
        if largest <= still:
            return sweep + 1
    return sweeps
