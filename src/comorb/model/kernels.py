"""Compiled loops: over rows, their codes and other features, and over small dense tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

from comorb.model.arrays import Floats, Indices, Ints, Keys

F = TypeVar("F", bound=Callable[..., Any])
Buffers = tuple[Floats, Floats, Floats, Floats, Floats, Ints, Ints, Ints]

BATCH = 64  # rows whose joint densities are held at once: 6 kB with 12 clusters, in the first cache
LOG_ZERO = -1e30  # stands for log 0: finite, so that no NaN can come of it

_MAGIC = 1.5 * 2.0**52
_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ONE_BITS, _MANTISSA, _SQRT2_MANTISSA = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF, 0x0006A09E667F3BCD


def jit(function: F) -> F:
    """Compile without the interpreter lock, and cache the machine code on disk where possible.

    To allocate or view an array takes as long to compile as a loop: callers do that.
    """
    try:
        return cast("F", numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no folder can be written to
        return cast("F", numba.njit(nogil=True)(function))


def inline(function: F) -> F:
    """Compile as a part of each loop that calls it, and never for itself."""
    return cast("F", numba.njit(nogil=True, inline="always")(function))


def make_buffers(k: int) -> Buffers:
    """Return the working arrays of ``exp_joint``.

    These are joint, (BATCH, k) and flat, totals, density, exponents, and the bits of joint, density
    and exponents.
    """
    joint, density, exponents = np.empty((BATCH, k)), np.empty(2 * BATCH), np.empty(BATCH * k)
    flat = joint.reshape(-1)
    bits = flat.view(np.int64), density.view(np.int64), exponents.view(np.int64)
    return joint, flat, np.empty(BATCH), density, exponents, *bits


@inline
def exp_all(values: Floats, bits: Ints, wholes: Floats, exponents: Ints, n: int) -> None:
    """Replace the first n ``values`` (all ≤ 0) by eᵛ; below −700 they become e⁻⁷⁰⁰.

    eᵛ = 2ʷ·eᶠ with w = round(v / ln 2); ``bits`` are those of ``values``, ``exponents`` those of
    ``wholes``, which is room for w. Two loops, the second one in integers alone, so that both
    become vector instructions.
    """
    for t in range(n):
        v = values[t] if values[t] > -700.0 else -700.0
        shifted = v * _LOG2_E + _MAGIC
        w = shifted - _MAGIC
        f = (v - w * _LN2_HIGH) - w * _LN2_LOW
        # eᶠ for |f| ≤ ln 2 / 2 by the polynomial through it at 11 Chebyshev points: to 3e-16
        p = f * 2.7626357241447223e-07 + 2.764018079620985e-06
        p = p * f + 2.4801504346997686e-05
        p = p * f + 0.00019841170270440067
        p = p * f + 0.0013888888932488599
        p = p * f + 0.008333333385667782
        p = p * f + 0.04166666666657314
        p = p * f + 0.16666666666554406
        p = p * f + 0.5000000000000006
        p = p * f + 1.0000000000000067
        values[t] = p * f + 1.0
        wholes[t] = shifted
    for t in range(n):
        # the low bits of `shifted` hold w: adding it to the exponent multiplies by 2ʷ
        bits[t] += exponents[t] << 52


@inline
def log_all(values: Floats, bits: Ints, exponents: Ints, n: int) -> None:
    """Replace the first n ``values`` (all positive) by their natural logarithms.

    v = 2ᵉ·m with √½ ≤ m < √2; log m = 2·atanh((m − 1) / (m + 1)), a series in odd powers.
    """
    for t in range(n):
        mantissa = bits[t] & _MANTISSA
        high = 1 if mantissa >= _SQRT2_MANTISSA else 0
        exponents[t] = (bits[t] >> 52) - 1023 + high
        bits[t] = mantissa + _ONE_BITS - (high << 52)
    for t in range(n):
        s = (values[t] - 1.0) / (values[t] + 1.0)
        q = s * s
        p = q * (2.0 / 21.0) + 2.0 / 19.0
        p = p * q + 2.0 / 17.0
        p = p * q + 2.0 / 15.0
        p = p * q + 2.0 / 13.0
        p = p * q + 2.0 / 11.0
        p = p * q + 2.0 / 9.0
        p = p * q + 2.0 / 7.0
        p = p * q + 2.0 / 5.0
        p = p * q + 2.0 / 3.0
        values[t] = exponents[t] * _LN2 + (p * q * s + 2.0 * s)


@inline
def exp_batch(buffers: Buffers, m: int, k: int) -> None:
    """Subtract from m rows of a batch their maxima, exponentiate, and fill totals and densities."""
    table, joint, totals, density, wholes, joint_bits, density_bits, exponents = buffers
    for b in range(m):
        row = table[b]
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
def exp_joint(
    indptr: Ints, indices: Indices, base: Floats, logits: Floats, start: int, buffers: Buffers
) -> None:
    """Fill the buffers for rows ``start`` to ``start + BATCH``: what eq. 1 is proportional to.

    log ωⱼ + Σᵢ log(1 − μᵢⱼ) + Σ_{i in x} logit μᵢⱼ, less its maximum over j, exponentiated,
    into ``joint``; its sum over j into ``totals``; the log of that sum, with the maximum added
    again, into ``density``: log P(x).
    """
    table, k = buffers[0], base.size
    m = min(BATCH, indptr.size - 1 - start)
    for b in range(m):
        row = table[b]
        for j in range(k):
            row[j] = base[j]
        for p in range(np.uint64(indptr[start + b]), np.uint64(indptr[start + b + 1])):
            i = np.uint32(indices[p])
            for j in range(k):
                row[j] += logits[i, j]
    exp_batch(buffers, m, k)


@jit
def posterior(
    indptr: Ints,
    indices: Indices,
    base: Floats,
    logits: Floats,
    out: Floats,
    log_density: Floats,
    buffers: Buffers,
) -> None:
    """Fill ``out`` (n, k) with P(Y = j | x) and ``log_density`` (n,) with log P(x): paper eq. 1.

    ``base`` (k,) is the part of the log-density that all rows share, ``logits`` is (d, k), as
    ``Mixture.tables`` gives them. Cost O(nnz·k).
    """
    n, k = out.shape
    joint, totals, density = buffers[0], buffers[2], buffers[3]
    for start in range(0, n, BATCH):
        exp_joint(indptr, indices, base, logits, start, buffers)
        for b in range(min(BATCH, n - start)):
            scale = 1.0 / totals[b]
            for j in range(k):
                out[start + b, j] = joint[b, j] * scale
            log_density[start + b] = density[b]


@jit
def expect(  # noqa: PLR0913 - compiled code takes arrays, not objects
    indptr: Ints,
    indices: Indices,
    weights: Floats,
    base: Floats,
    logits: Floats,
    snap: float,
    sums: Floats,
    buffers: Buffers,
) -> tuple[float, float]:
    """Add one block's E-step to ``sums`` (d + 1, k) and return its log-likelihood in two parts.

    sums[i, j] += Σₙ wₙ·P(Y = j | xₙ)·xₙᵢ, and the last row the same without x: all that the
    M-step needs, in one pass. The log-likelihood is a sum on a coarse grid plus one on a fine
    grid of what that rounding left: exact for |log P(x)| < 2¹⁴ and fewer than 2³⁶ rows.
    """
    n = indptr.size - 1
    k = base.size
    sizes = sums[sums.shape[0] - 1]
    table, totals, density = buffers[0], buffers[2], buffers[3]
    coarse_snap, fine_snap = snap * 2.0**14, snap * 2.0**-2
    coarse, fine = 0.0, 0.0
    for start in range(0, n, BATCH):
        exp_joint(indptr, indices, base, logits, start, buffers)
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
                    sums[i, j] += row[j]
            whole = w * density[b]
            high = (whole + coarse_snap) - coarse_snap
            coarse += high
            fine += ((whole - high) + fine_snap) - fine_snap
    return coarse, fine


def is_compiled() -> bool:
    """Return whether the machine code of EM's loop is on disk, newer than this file."""
    stats = getattr(expect, "stats", None)
    if stats is None or stats.cache_path is None:
        return stats is None
    here = Path(__file__)
    kept = Path(stats.cache_path).glob(f"{here.stem}.{expect.__name__}-*.nbi")
    return any(one.stat().st_mtime > here.stat().st_mtime for one in kept)


def splitmix64(keys: Keys) -> Keys:
    """Return a hash of each key: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    out = keys + np.uint64(0x9E3779B97F4A7C15)
    out ^= out >> np.uint64(30)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    out ^= out >> np.uint64(27)
    out *= np.uint64(0x94D049BB133111EB)
    out ^= out >> np.uint64(31)
    return out


def row_keys(indptr: Ints, indices: Indices, keys: Keys) -> Keys:
    """Return the sum of each row's column keys, modulo 2⁶⁴."""
    sums = np.zeros(indptr.size - 1, np.uint64)
    add_to_rows(indptr, indices, keys, sums)
    return sums


@jit
def add_to_rows(indptr: Ints, indices: Indices, terms: Keys, sums: Keys) -> None:
    """Add the terms of a row's positive columns to the sum of the row, modulo 2⁶⁴."""
    for n in range(sums.size):
        for p in range(indptr[n], indptr[n + 1]):
            sums[n] += terms[np.uint32(indices[p])]


@jit
def add_to_columns(indptr: Ints, indices: Indices, terms: Keys, sums: Keys) -> None:
    """Add the term of each row to the sums of its positive columns, modulo 2⁶⁴."""
    for n in range(indptr.size - 1):
        for p in range(indptr[n], indptr[n + 1]):
            sums[np.uint32(indices[p])] += terms[n]


@jit
def add_logits(indptr: Ints, indices: Indices, logits: Floats, totals: Floats) -> None:
    """Add Σ_{i in x} logit μ_ij of each row to ``totals`` (n, k). O(nnz·k)."""
    for n in range(indptr.size - 1):
        total = totals[n]
        for p in range(indptr[n], indptr[n + 1]):
            for j in range(total.size):
                total[j] += logits[np.uint32(indices[p]), j]


@jit
def add_contrasts(
    totals: Floats, weights: Floats, posterior: Floats, snap: float, sums: Floats
) -> None:
    """Add Σₙ w·r_j·L_jl, Σₙ w·r_j·L_jl² and Σₙ w·r_j·r_l to ``sums`` (3, k, k).

    L_jl = total_j − total_l of the row: the log-ratio of two clusters but for a constant. O(N·k²).
    """
    k = totals.shape[1]
    for n in range(totals.shape[0]):
        w = weights[n] if weights.size else 1.0
        total = totals[n]
        for j in range(k):
            r = w * posterior[n, j]
            for m in range(k):
                ratio = total[j] - total[m]
                sums[0, j, m] += (r * ratio + snap) - snap
                sums[1, j, m] += (r * ratio * ratio + snap) - snap
                sums[2, j, m] += (r * posterior[n, m] + snap) - snap


@jit
def co_occur(indptr: Ints, indices: Indices, weights: Floats, out: Floats) -> None:
    """Add Σₙ wₙ·xₙ xₙᵀ to the upper triangle of ``out`` (d, d). Cost O(Σₙ nnzₙ²)."""
    for n in range(indptr.size - 1):
        w = weights[n] if weights.size else 1.0
        last = indptr[n + 1]
        for p in range(indptr[n], last):
            row = out[np.uint32(indices[p])]
            for q in range(p, last):
                row[np.uint32(indices[q])] += w


@jit
def add_third_moments(
    indptr: Ints, indices: Indices, weights: Floats, whitener: Floats, snap: float, out: Floats
) -> None:
    """Add Σₙ wₙ·xₙᵢ·vec(yₙ yₙᵀ) to row i of ``out`` (d, k(k+1)/2), where yₙ = whitenerᵀ xₙ.

    All the H_i of Algorithm 2 in one pass over the rows, upper triangles only. O(nnz·k²).
    """
    k = whitener.shape[1]
    y = np.empty(k)
    pairs = np.empty(out.shape[1])
    for n in range(indptr.size - 1):
        w = weights[n] if weights.size else 1.0
        for j in range(k):
            y[j] = 0.0
        for p in range(indptr[n], indptr[n + 1]):
            i = np.uint32(indices[p])
            for j in range(k):
                y[j] += whitener[i, j]
        t = 0
        for a in range(k):
            scaled = w * y[a]
            for b in range(a, k):
                pairs[t + b - a] = (scaled * y[b] + snap) - snap
            t += k - a
        for p in range(indptr[n], indptr[n + 1]):
            row = out[np.uint32(indices[p])]
            for t in range(pairs.size):
                row[t] += pairs[t]


@inline
def log_gamma_all(values: Floats, shifts: Floats, bits: Ints, exponents: Ints, n: int) -> None:
    """Replace the first n ``values`` (all positive) by log Γ; other arrays are room for 2n.

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


def log_marginals(positives: Floats, sizes: Floats, present: Floats, absent: Floats) -> Floats:
    """Return, for each pair of clusters, Σᵢ log B(c + a, n − c + b) of the two united, (K, K).

    On the diagonal it is each cluster alone. Upper triangle only. O(K²·d).
    """
    out = np.zeros((sizes.size, sizes.size))
    for u in range(sizes.size):
        out[u, u:] = log_marginals_with(0, positives[u:], sizes[u:], present, absent)
    return out


def log_marginals_with(
    u: int, positives: Floats, sizes: Floats, present: Floats, absent: Floats
) -> Floats:
    """Return row u of ``log_marginals``, whole: cluster u united with each, itself alone. (K,)."""
    k, d = positives.shape
    out, values, shifts = np.empty(k), np.empty(3 * d), np.empty(6 * d)
    room = values, shifts, shifts.view(np.int64), np.empty(6 * d, np.int64)
    fill_marginals(u, positives, sizes, present, absent, out, room)
    return out


@jit
def fill_marginals(
    u: int,
    positives: Floats,
    sizes: Floats,
    present: Floats,
    absent: Floats,
    out: Floats,
    room: tuple[Floats, Floats, Ints, Ints],
) -> None:
    """Fill ``out`` (K,) for ``log_marginals_with``."""
    k, d = positives.shape
    values, shifts, bits, exponents = room
    for v in range(k):
        n = sizes[u] if u == v else sizes[u] + sizes[v]
        for i in range(d):
            c = positives[u, i] if u == v else positives[u, i] + positives[v, i]
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
                on, off = 0.0, 0.0
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


Lookup = tuple[Ints, Ints, Ints, Ints]
CodedRows = tuple[Ints, Indices, Floats]  # indptr, indices and the features' values
Tables = tuple[Floats, Floats, Floats, Floats]  # base, logits, cells and numbers


def make_mixed_buffers(k: int, lookup: Lookup) -> tuple[Buffers, Ints]:
    """Return the working arrays of ``exp_joint_mixed``: the buffers and the places."""
    return make_buffers(k), np.empty((lookup[1].size, BATCH), np.int64)


@jit
def exp_joint_mixed(
    rows: CodedRows, lookup: Lookup, tables: Tables, start: int, buffers: Buffers, places: Ints
) -> None:
    """Fill the buffers as ``exp_joint`` does, with the features' part of the density.

    The cell of each group of features that are looked up goes to ``places`` (g, BATCH).
    """
    indptr, indices, values = rows
    members, ends, starts, dense = lookup
    base, logits, cells, numbers = tables
    table, k = buffers[0], base.size
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
    exp_batch(buffers, m, k)


@jit
def posterior_mixed(
    rows: CodedRows,
    lookup: Lookup,
    tables: Tables,
    out: Floats,
    log_density: Floats,
    room: tuple[Buffers, Ints],
) -> None:
    """Fill ``out`` (n, k) with P(Y = j | x) and ``log_density`` (n,) with log P(x)."""
    n, k = out.shape
    buffers, places = room
    joint, totals, density = buffers[0], buffers[2], buffers[3]
    for start in range(0, n, BATCH):
        exp_joint_mixed(rows, lookup, tables, start, buffers, places)
        for b in range(min(BATCH, n - start)):
            scale = 1.0 / totals[b]
            for j in range(k):
                out[start + b, j] = joint[b, j] * scale
            log_density[start + b] = density[b]


@jit
def expect_mixed(
    rows: CodedRows,
    weights: Floats,
    lookup: Lookup,
    tables: Tables,
    snaps: tuple[float, float],
    sums: tuple[Floats, Floats, Floats],
    room: tuple[Buffers, Ints],
) -> tuple[float, float]:
    """Add one block's E-step to ``sums`` and return its log-likelihood in two parts.

    As ``expect``: sums of the codes with the sizes last (d + 1, k), of the cells (c, k),
    and Σ r, Σ r·z, Σ r·z² of the numbers (q, 3, k). ``snaps`` are for weights and for squares.
    """
    indptr, indices, values = rows
    n = indptr.size - 1
    _, ends, _, dense = lookup
    of_codes, of_cells, of_numbers = sums
    snap, wide = snaps
    k = tables[0].size
    sizes = of_codes[of_codes.shape[0] - 1]
    buffers, places = room
    table, totals, density = buffers[0], buffers[2], buffers[3]
    coarse_snap, fine_snap = snap * 2.0**14, snap * 2.0**-2
    coarse, fine = 0.0, 0.0
    for start in range(0, n, BATCH):
        exp_joint_mixed(rows, lookup, tables, start, buffers, places)
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


@jit
def fill_length_tables(means: Floats, table: Floats) -> None:
    """Fill the chance of 0, 1, ... ones among the first 0, 1, ..., d columns, (d + 1, L, k).

    The Poisson-binomial distribution of ``means`` (d, k), a column at a time; ``table[0]`` is set.
    """
    d, k = means.shape
    for i in range(d):
        for j in range(k):
            table[i + 1, 0, j] = table[i, 0, j] * (1.0 - means[i, j])
        for s in range(1, table.shape[1]):
            for j in range(k):
                p = means[i, j]
                table[i + 1, s, j] = table[i, s, j] * (1.0 - p) + table[i, s - 1, j] * p


@jit
def add_length_counts(means: Floats, before: Floats, after: Floats, counts: Floats) -> None:
    """Add to ``counts`` (d, k) how many records of each column the lengths let expect.

    ``before`` is of ``fill_length_tables``, ``after`` (L, k) how many records there are of each
    length over their chance; it is changed.
    """
    d, k = means.shape
    longest = after.shape[0] - 1
    for i in range(d - 1, -1, -1):
        for s in range(longest):
            for j in range(k):
                p = means[i, j]
                counts[i, j] += p * after[s + 1, j] * before[i, s, j]
                after[s, j] = after[s, j] * (1.0 - p) + after[s + 1, j] * p
        for j in range(k):
            after[longest, j] *= 1.0 - means[i, j]
