"""Slices: how large each cluster is within every age, sex, site or time; the clusters are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from scipy.special import chdtrc, erfc

from comorb.errors import InputError
from comorb.insight.profile.cutting import By, Cut, cut
from comorb.insight.profile.intervals import wilson
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.group_sums import GroupSums

COVERED = 0.8  # of the whole's mix that a slice needs to have, at least, to be standardised
FEWEST = 5.0  # effective records of a slice whose share enters a test, at least


@dataclass(frozen=True, eq=False)
class SliceCells:
    """The keys of the sets that slices count, and what standardised shares are made of."""

    counts: Keys  # (s, k + 1)
    strata_keys: Keys  # (s, g, k + 1)
    strata: Floats  # (s, g, k + 1): records of each slice, stratum and cluster, the last of all
    strata_share: Floats  # (s, g, k): weighted
    mix: Floats  # (g,): the share of each stratum in the whole


@dataclass(frozen=True, eq=False)
class Slices:
    """Shares of the clusters within each slice; NaN isn't told."""

    by: str
    labels: tuple[str, ...]
    ordered: bool
    counts: Floats  # (s, k + 1): records of each cluster, the last of the whole slice
    effective: Floats  # (s,): Kish's effective number of records
    share: Floats  # (s, k): weighted, like both ends of the 95% interval
    low: Floats
    high: Floats
    z: Floats  # (k,): of the trend over ordered slices; NaN for others
    p: Floats  # (k,): of the trend, or of the shares being the same in all slices
    mix: tuple[str, ...]  # what shares are standardised by
    standardised: Floats  # (s, k): the share with the whole's mix; NaN where that isn't known
    covered: Floats  # (s,): the share of the whole's mix that the slice has records of
    notes: tuple[str, ...] = ()
    cells: SliceCells | None = None


def slice_records(  # noqa: PLR0913 - what goes with the data is given by name
    table: pa.Table,
    labels: Ints,
    k: int,
    by: By,
    *,
    weights: Floats | None = None,
    keys: Keys | None = None,
    records: Ints | None = None,
    cuts: Cut | None = None,
) -> Slices:
    """Return the shares of clusters within slices, with intervals, a test and standardised shares.

    The test is Cochran and Armitage's of a trend where slices have an order, and else χ² of equal
    shares, both with Kish's effective numbers. Shares are standardised directly, to the mix of age
    and sex of all records. ``records`` are how many each row stands for, where it isn't one; then
    there are no weights. ``cuts`` are slices that were cut already.
    """
    cuts = cuts or cut(table, by, records=records)
    n = np.ones(labels.size) if records is None else records.astype(np.float64)
    w = n if weights is None else weights
    s = len(cuts.labels)
    own = cuts.places >= 0
    cell = cuts.places[own] * k + labels[own]
    counts = _with_whole(_counts(cell, s * k, n[own]).reshape(s, k))
    squared = n if weights is None else w * w
    mass, squares = (_sums(terms[own], cell, s * k).reshape(s, k) for terms in (w, squared))
    whole = mass.sum(axis=1)
    share = mass / np.maximum(whole, 1e-300)[:, None]
    effective = whole**2 / np.maximum(squares.sum(axis=1), 1e-300)
    low, high = wilson(share, effective[:, None])
    z, p = trend(share, effective, cuts.ordered)
    missing = int(n[~own].sum())
    notes = [f"{missing:,} records have no {by.name} and are in no slice"] if missing else []
    made = Slices(
        by=cuts.by,
        labels=cuts.labels,
        ordered=cuts.ordered,
        counts=counts,
        effective=np.round(effective, 3),
        share=np.round(share, 6),
        low=np.round(low, 6),
        high=np.round(high, 6),
        z=z,
        p=p,
        mix=(),
        standardised=np.full((s, k), np.nan),
        covered=np.zeros(s),
        notes=tuple(notes),
    )
    if keys is not None:
        sums = _with_keys(_key_sums(keys[own], cell, s * k).reshape(s, k))
        empty = np.zeros((s, 0, k + 1))
        cells = SliceCells(sums, empty.astype(np.uint64), empty, empty[:, :, :k], np.zeros(0))
        made = replace(made, cells=cells)
    return _standardised(made, table, cuts, labels, k, (n, w), keys)


def trend(share: Floats, n: Floats, ordered: bool) -> tuple[Floats, Floats]:
    """Return z and p of each cluster's shares (s, k) over slices of n effective records.

    z = Σ nₛ(pₛ − p̄)(s − s̄) / √(p̄(1 − p̄) Σ nₛ(s − s̄)²), two-sided; without an order NaN, and p is
    that of χ² = Σ nₛ(pₛ − p̄)² / p̄(1 − p̄) with one degree less than slices. NaN where it can't be
    told.
    """
    some = (n >= FEWEST) & ~np.isnan(share).any(axis=1)
    nothing = np.full(share.shape[1], np.nan)
    if some.sum() < 2:
        return nothing, nothing
    p, size = share[some], n[some][:, None]
    mean = (size * p).sum(axis=0) / size.sum()
    spread = mean * (1 - mean)
    told = spread > 1e-12
    safe = np.where(told, spread, 1.0)
    if not ordered:
        chi = (size * (p - mean) ** 2).sum(axis=0) / safe
        return nothing, np.where(told, np.round(chdtrc(some.sum() - 1.0, chi), 9), np.nan)
    at = np.flatnonzero(some).astype(float)[:, None]
    at = at - (size * at).sum() / size.sum()
    z = (size * (p - mean) * at).sum(axis=0) / np.sqrt(safe * (size * at**2).sum())
    z = np.where(told, np.round(z, 6), np.nan)
    return z, np.round(erfc(np.abs(z) / np.sqrt(2)), 9)


def standardise(strata_share: Floats, present: Floats, mix: Floats) -> tuple[Floats, Floats]:
    """Return Σ_g mix_g · share_sg over the strata that a slice has, and how much they cover.

    ``strata_share`` is (s, g, k), ``present`` (s, g) marks strata with records; NaN where less
    than 80% of the mix is covered.
    """
    held = present * mix
    covered = held.sum(axis=1)
    shares = np.einsum("sg,sgk->sk", held, np.nan_to_num(strata_share))
    shares = shares / np.maximum(covered, 1e-300)[:, None]
    return np.where((covered >= COVERED)[:, None], np.round(shares, 6), np.nan), np.round(
        covered, 6
    )


def _standardised(
    made: Slices,
    table: pa.Table,
    cuts: Cut,
    labels: Ints,
    k: int,
    mass_of: tuple[Floats, Floats],
    keys: Keys | None,
) -> Slices:
    """Return slices with their shares at the whole's mix of age and sex, where these are known."""
    n, w = mass_of
    name = made.by.partition(":")[0]
    mixed = [one for one in ("age", "sex") if one in table.column_names and one != name]
    groups, mix_names, width = np.zeros(labels.size, dtype=np.int64), [], 1
    for one in mixed:
        try:
            other = cut(table, By(one))
        except InputError:
            continue
        groups = np.where(
            (groups < 0) | (other.places < 0), -1, groups * len(other.labels) + other.places
        )
        width *= len(other.labels)
        mix_names.append(one)
    own = (groups >= 0) & (cuts.places >= 0)
    if not mix_names or not own.any():
        return made
    s = len(cuts.labels)
    cell = (cuts.places[own] * width + groups[own]) * k + labels[own]
    shape = (s, width, k)
    counts = _counts(cell, s * width * k, n[own]).reshape(shape)
    mass = _sums(w[own], cell, s * width * k).reshape(shape)
    each = mass.sum(axis=2)
    share = mass / np.maximum(each, 1e-300)[:, :, None]
    mix = each.sum(axis=0) / each.sum()
    standardised, covered = standardise(share, (each > 0).astype(float), mix)
    notes = list(made.notes)
    few = [label for label, part in zip(cuts.labels, covered, strict=True) if part < COVERED]
    if few:
        notes.append(
            f"no standardised shares for {', '.join(few)}: fewer than {COVERED:.0%} of all records "
            f"are of an {' and '.join(mix_names)} that it has"
        )
    cells = made.cells
    if cells is not None and keys is not None:
        sums = _with_keys(_key_sums(keys[own], cell, s * width * k).reshape(shape))
        cells = SliceCells(cells.counts, sums, _with_whole(counts), np.round(share, 9), mix)
    return replace(
        made,
        mix=tuple(mix_names),
        standardised=standardised,
        covered=covered,
        notes=tuple(notes),
        cells=cells,
    )


def _sums(terms: Floats, cell: Ints, size: int) -> Floats:
    sums = GroupSums(size)
    sums.add(terms, cell)
    return sums.totals()


def _key_sums(keys: Keys, cell: Ints, size: int) -> Keys:
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, cell, keys)
    return sums


def _counts(cell: Ints, size: int, records: Floats) -> Floats:
    return np.bincount(cell, records, size).astype(np.float64)


def _with_whole(parts: Floats) -> Floats:
    """Return counts by cluster with those of all clusters at the end."""
    return np.concatenate([parts, parts.sum(axis=-1, keepdims=True)], axis=-1)


def _with_keys(parts: Keys) -> Keys:
    whole = parts.sum(axis=-1, keepdims=True, dtype=np.uint64)
    return np.concatenate([parts, whole], axis=-1)


def default_cuts(table: pa.Table, names: Sequence[By], records: Ints | None = None) -> list[By]:
    """Return those of the slices that can be made; sites and others of many values can't."""
    made = []
    for by in names:
        try:
            cut(table, by, records=records)
        except InputError:
            continue
        made.append(by)
    return made
