"""Compiled loops over the rows of one block, on one thread, without the interpreter lock.

Rows are CSR arrays of a 0/1 matrix: ``indptr`` (int64) and sorted ``indices`` (int32); the
ones themselves are not stored. ``weights`` holds one number a row, or nothing at all for
weight 1. Sums are exact: each term is first rounded to a multiple of 2⁻ˢ by adding and
taking away ``snap`` = 1.5·2⁵²⁻ˢ, and s is such that every partial sum fits a double's 53 bits
(see ``blocks.snap_for``). Exact sums do not depend on the order of the rows, on the blocks
or on the threads. ``exp`` and ``log`` are polynomials of plain IEEE operations, so that a row
has the same bits in every lane of every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

from comorb.model.arrays import Floats, Indices, Ints, Keys

F = TypeVar("F", bound=Callable[..., Any])
Buffers = tuple[Floats, Floats, Floats, Floats, Floats, Ints, Ints, Ints]

BATCH = 64
NEVER = -1e30  # stands for log 0: finite, so that no NaN can come of it

_MAGIC = 1.5 * 2.0**52
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_LN2 = 0.6931471805599453
_ONE_BITS = 0x3FF0000000000000
_MANTISSA = 0x000FFFFFFFFFFFFF
_SQRT2_MANTISSA = 0x0006A09E667F3BCD


def jit(function: F) -> F:
    """Compile without the interpreter lock and keep the machine code on disk, if it can be.

    To allocate or view an array takes as long to compile as a loop: that is left to callers.
    """
    try:
        return cast("F", numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # there is no place to write, neither beside the file nor at home
        return cast("F", numba.njit(nogil=True)(function))


def part_of_loops(function: F) -> F:
    """Compile as a part of each loop that calls it, and never for itself."""
    return cast("F", numba.njit(nogil=True, inline="always")(function))


def make_buffers(k: int) -> Buffers:
    """Return the working arrays of ``exp_joint``: joint, totals, density, exponents, their bits.

    Last come the bits of joint and of density, and the exponents as numbers.
    """
    joint, density, exponents = np.empty((BATCH, k)), np.empty(2 * BATCH), np.empty(BATCH * k)
    flat = joint.reshape(-1)
    bits = flat.view(np.int64), density.view(np.int64), exponents.view(np.int64)
    return joint, flat, np.empty(BATCH), density, exponents, *bits


@part_of_loops
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


@part_of_loops
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


@jit
def exp_joint(
    indptr: Ints,
    indices: Indices,
    base: Floats,
    logits: Floats,
    start: int,
    buffers: Buffers,
) -> None:
    """Fill the buffers for rows ``start`` to ``start + BATCH``: what eq. 1 is proportional to.

    log ωⱼ + Σᵢ log(1 − μᵢⱼ) + Σ_{i in x} logit μᵢⱼ, less its maximum over j, exponentiated,
    into ``joint``; its sum over j into ``totals``; the log of that sum, with the maximum added
    again, into ``density``: log P(x).
    """
    table, joint, totals, density, wholes, joint_bits, density_bits, exponents = buffers
    k = base.size
    m = min(BATCH, indptr.size - 1 - start)
    for b in range(m):
        row = table[b]
        for j in range(k):
            row[j] = base[j]
        for p in range(np.uint64(indptr[start + b]), np.uint64(indptr[start + b + 1])):
            i = np.uint32(indices[p])
            for j in range(k):
                row[j] += logits[i, j]
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
    coarse_snap = snap * 2.0**14
    fine_snap = snap * 2.0**-2
    coarse = 0.0
    fine = 0.0
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
    """Tell whether the loop of EM is on disk as machine code, from this version of it."""
    stats = getattr(expect, "stats", None)
    if stats is None or stats.cache_path is None:
        return stats is None
    here = Path(__file__)
    kept = Path(stats.cache_path).glob(f"{here.stem}.{expect.__name__}-*.nbi")
    return any(one.stat().st_mtime > here.stat().st_mtime for one in kept)


def mixed(keys: Keys) -> Keys:
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
    """Add the term of each column that a row carries to the sum of the row, modulo 2⁶⁴."""
    for n in range(sums.size):
        for p in range(indptr[n], indptr[n + 1]):
            sums[n] += terms[np.uint32(indices[p])]


@jit
def add_to_columns(indptr: Ints, indices: Indices, terms: Keys, sums: Keys) -> None:
    """Add the term of each row to the sums of the columns it carries, modulo 2⁶⁴."""
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

    L_jl = total_j − total_l of the row: the log-ratio of two clusters, but for what all rows
    share. O(N·k²).
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
def third_moments(
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
