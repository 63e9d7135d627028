"""Slices: the shares of the clusters by age, sex, site or time; small slices are pooled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import chdtrc, erfc

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.exact_sums import GroupSums
from comorb.profiles.burden import is_number
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.outcomes import OTHER
from comorb.records.layouts.columns import MAX_VALUES
from comorb.records.layouts.names import find_role, is_label

AGE_CUTS = (18.0, 45.0, 65.0, 80.0)  # where ages are cut by default
TIME_UNITS = ("year", "quarter", "month")
MAX_SLICES = 24  # slices, at most
_QUANTILES = re.compile(r"q(\d{1,2})")


@dataclass(frozen=True)
class By:
    """What records are sliced by: a column or a time, with cut points or a number of quantiles."""

    name: str
    cuts: tuple[float, ...] = ()
    quantiles: int = 0

    @classmethod
    def of(cls, text: str) -> By:
        """Return what a text names, such as 'sex', 'age:18,45,65' or 'age:q4'.

        >>> By.of("age:18,65").cuts
        (18.0, 65.0)
        """
        name, _, how = (part.strip() for part in text.partition(":"))
        quantiles = _QUANTILES.fullmatch(how)
        if quantiles and name and 2 <= int(quantiles[1]) <= MAX_SLICES:
            return cls(name, quantiles=int(quantiles[1]))
        try:
            cuts = tuple(float(cut) for cut in how.split(",")) if how else ()
        except ValueError:
            cuts = (0.0, 0.0)
        if not name or list(cuts) != sorted(set(cuts)) or len(cuts) >= MAX_SLICES:
            raise InputError("slices.form", text=text)
        return cls(name, cuts)

    def __str__(self) -> str:
        how = ",".join(f"{cut:g}" for cut in self.cuts) or (self.quantiles and f"q{self.quantiles}")
        return f"{self.name}:{how}" if how else self.name


@dataclass(frozen=True, eq=False)
class Cut:
    """The slice of each record, −1 where it isn't known, and what the slices are called."""

    by: str
    places: Ints
    labels: tuple[str, ...]
    ordered: bool  # whether they have an order, so that a trend can be tested


def cut(table: pa.Table, by: By, most: int = MAX_SLICES, records: Ints | None = None) -> Cut:
    """Return the slices of records by one of their covariates; what can't be is an InputError.

    ``records`` are how many each row of the table stands for, by default one.
    """
    names = table.column_names
    timed = by.name in TIME_UNITS and by.name not in names
    wanted = "date" if timed else by.name
    found = wanted if wanted in names else find_role(wanted)
    if found not in names:
        raise InputError("slices.no_column", have=", ".join(names) or "none", name=by.name)
    column = table[found]
    if timed:
        made = _times(column, by, most)
    elif is_number(column.type):
        made = _numbers(pc.cast(column, pa.float64()).to_numpy().astype(np.float64), by, records)
    else:
        made = _texts(column, by, most)
    held = np.unique(made.places[made.places >= 0])
    if held.size < 2:
        problem = Message("slices.one_value") if held.size else Message("slices.no_value")
        raise InputError("slices.nothing", name=by.name, problem=problem)
    places = np.where(made.places < 0, -1, np.searchsorted(held, made.places))
    return Cut(str(by), places, tuple(made.labels[i] for i in held), made.ordered)


def default_slices(
    table: pa.Table, ends: tuple[Any, Any] | None = None, records: Ints | None = None
) -> tuple[By, ...]:
    """Return what records are sliced by by default: age, sex, site and time, where that can be.

    ``ends`` are the first and the last date, where the table's own aren't; ``records`` are how many
    each row stands for. A site of too many values is left out.

    >>> default_slices(pa.table({"sex": ["f", "m"], "los": [3, 4]}))
    (By(name='sex', cuts=(), quantiles=0),)
    """
    names = [name for name in ("age", "sex", "site") if name in table.column_names]
    if "date" in table.column_names and pa.types.is_temporal(table["date"].type):
        first, last = ends or date_ends(table["date"])
        if first is not None:
            days = (last - first).days
            names.append("year" if days > 1500 else "quarter" if days > 300 else "month")
    made = []
    for by in map(By, names):
        with suppress(InputError):
            cut(table, by, records=records)
            made.append(by)
    return tuple(made)


def date_ends(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the first and the last date of a column, None where it has none."""
    ends = pc.min_max(column).as_py()
    return ends["min"], ends["max"]


def coarsen(table: pa.Table) -> pa.Table:
    """Return a table with one age for each band of ages, and one date for each month.

    It is sliced as the table itself by the default cuts.
    """
    for place, name in enumerate(table.column_names):
        column = table[name]
        if name == "age" and is_number(column.type):
            ages = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
            known = np.isfinite(ages)
            bands = np.searchsorted(AGE_CUTS, np.where(known, ages, 0), "right")
            coarse = np.array([AGE_CUTS[0] - 1, *AGE_CUTS])[bands]
            coarse += np.where(ages == np.round(ages), 0, 0.5)
            table = table.set_column(place, name, pa.array(coarse, mask=~known))
        elif name == "date" and pa.types.is_temporal(column.type):
            table = table.set_column(place, name, pc.floor_temporal(column, unit="month"))
    return table


def _times(column: pa.ChunkedArray, by: By, most: int) -> Cut:
    if not pa.types.is_temporal(column.type):
        raise InputError("slices.no_dates", name=by.name)
    years, step = pc.year(column), {"year": 1, "quarter": 4, "month": 12}[by.name]
    parts = {"year": 0, "quarter": pc.quarter(column), "month": pc.month(column)}[by.name]
    within = pc.subtract(parts, 1) if by.name != "year" else 0
    numbers = pc.fill_null(pc.add(pc.multiply(years, step), within), -1).to_numpy()
    different = np.unique(numbers[numbers >= 0])
    _check_number(by, different.size, most)
    form = {"year": "{0}", "quarter": "{0} Q{1}", "month": "{0}-{1:02}"}[by.name]
    places = np.where(numbers < 0, -1, np.searchsorted(different, numbers))
    labels = tuple(form.format(n // step, n % step + 1) for n in different.tolist())
    return Cut(str(by), places, labels, True)


def _numbers(values: Floats, by: By, records: Ints | None) -> Cut:
    known = np.isfinite(values)
    cuts = by.cuts
    if by.quantiles:
        shares = np.arange(1, by.quantiles) / by.quantiles
        every = values if records is None else np.repeat(values, records)
        some = every[np.isfinite(every)] if known.any() else np.zeros(1)
        cuts = tuple(np.unique(np.quantile(some, shares, method="nearest")).tolist())
    elif not cuts:
        different = np.unique(values[known])
        if by.name == "age":
            cuts = AGE_CUTS
        elif different.size <= MAX_SLICES:
            places = np.where(known, np.searchsorted(different, values), -1)
            return Cut(str(by), places, tuple(f"{one:g}" for one in different), True)
        else:
            return _numbers(values, By(by.name, quantiles=4), records)
    places = np.where(known, np.searchsorted(cuts, np.where(known, values, 0), "right"), -1)
    every = np.append(values[known], cuts)
    return Cut(str(by), places, _bands(cuts, bool(np.all(every == np.round(every)))), True)


def _bands(cuts: Sequence[float], whole: bool) -> tuple[str, ...]:
    """Return what lies between cut points: '≤ 17', '18–44', '≥ 45'; of others '18.5 – 44'."""
    if not whole:
        ends = ("…", *(f"{cut:g}" for cut in cuts), "…")
        return tuple(f"{low} – {high}" for low, high in pairwise(ends))
    between = (
        f"{low:g}" if high - low == 1 else f"{low:g}–{high - 1:g}" for low, high in pairwise(cuts)
    )
    return (f"≤ {cuts[0] - 1:g}", *between, f"≥ {cuts[-1]:g}")


def _texts(column: pa.ChunkedArray, by: By, most: int) -> Cut:
    if by.cuts or by.quantiles:
        raise InputError("slices.texts", name=by.name)
    texts = pc.cast(column, pa.string())
    kinds = sorted(pc.unique(texts.drop_null()).to_pylist())
    _check_number(by, len(kinds), most)
    found = pc.index_in(texts, pa.array(kinds, pa.string()))
    places = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return Cut(str(by), places, tuple(kinds), False)


def _check_number(by: By, number: int, most: int) -> None:
    if number > most:
        raise InputError("slices.too_many", limit=most, name=by.name, n=number)


MIN_POOLED_RECORDS = 30  # records of a slice that is shown by itself, at least
MAX_UNORDERED = 12  # slices without an order
MAX_TIMES = 48  # points in time
MAX_VALUES_READ = 5000  # different texts that are looked at


def splits(table: pa.Table, features: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what records can be split by: times, age, sex, categories and features.

    A text of many values is one where it is named as a label, such as a hospital.

    >>> splits(pa.table({"sex": ["f", "m"], "age": [30, 40], "los": [3.5, 4.0]}))
    ('age', 'sex')
    """
    names = list(table.column_names)
    dated = "date" in names and pa.types.is_temporal(table["date"].type)
    times = TIME_UNITS[::-1] if dated and table["date"].null_count < table.num_rows else ()
    first = [name for name in ("age", "sex", "site", "region") if name in names]
    rest = [name for name in names if name not in first]
    found = (name for name in (*first, *rest) if _can_split(name, table[name], name in features))
    return (*(name for name in times if name not in names), *found)


def pool_slices(table: pa.Table, by: By, min_cell: int = 0) -> tuple[Cut, tuple[str, ...]]:
    """Return slices of 30 records or more each, or ``min_cell``, and notes on what was pooled.

    A time of too many points is taken more coarsely; small neighbours in an order become one
    slice, and so do the rarest of others.
    """
    made = cut(table, by, MAX_VALUES_READ)
    notes: tuple[str, ...] = ()
    if by.name in TIME_UNITS and by.name not in table.column_names:
        coarser = list(TIME_UNITS[: TIME_UNITS.index(by.name)])
        while len(made.labels) > MAX_TIMES and coarser:
            made = cut(table, By(coarser.pop()), MAX_VALUES_READ)
        if made.by != by.name:
            units = {"name": Message(f"time.{by.name}"), "other": Message(f"time.{made.by}")}
            notes = (Message("note.coarser", limit=MAX_TIMES, **units),)
    fewest, before = max(MIN_POOLED_RECORDS, min_cell), len(made.labels)
    counts = np.bincount(made.places[made.places >= 0], minlength=before).astype(np.float64)
    joined = (_pool_neighbours if made.ordered else _pool_rarest)(counts, fewest)
    labels = []
    for place in range(joined.max() + 1):
        several = np.flatnonzero(joined == place)
        first, last = (made.labels[int(several[end])] for end in (0, -1))
        pooled = f"{first} … {last}" if made.ordered else OTHER
        labels.append(first if several.size == 1 else pooled)
    if len(labels) < 2:
        raise InputError("slices.too_few", least=fewest, name=by.name)
    if len(labels) < before:
        notes += (Message("note.pooled", before=before, after=len(labels)),)
    places = np.where(made.places < 0, -1, joined[made.places])
    return Cut(made.by, places, tuple(labels), made.ordered), notes


def _can_split(name: str, column: pa.ChunkedArray, feature: bool) -> bool:
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        return False
    different = pc.count_distinct(column, mode="only_valid").as_py()
    if different < 2 or name == "age" or feature:
        return bool(different >= 2)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return False
    most = (
        MAX_SLICES if pa.types.is_integer(kind) else min(MAX_VALUES_READ, len(column) // 2)
    )  # more are ids
    return bool(different <= (most if is_label(name) else MAX_VALUES))


def _pool_neighbours(counts: Floats, fewest: int) -> Ints:
    """Return the slice of each slice in an order, when small ones join the next or the last."""
    joined, place, held = np.zeros(counts.size, np.int64), 0, 0.0
    for at, count in enumerate(counts):
        if held >= fewest:
            place, held = place + 1, 0.0
        joined[at], held = place, held + count
    if held < fewest and place:
        joined[joined == place] = place - 1
    return joined


def _pool_rarest(counts: Floats, fewest: int) -> Ints:
    """Return the slice of each slice, when the rarest become one, the last of all."""
    order = np.argsort(-counts, kind="stable")
    small = counts[order] < fewest
    if counts.size > MAX_UNORDERED:
        small[MAX_UNORDERED - 1 :] = True
    kept = sorted(order[~small].tolist())
    if small.any() and counts[order[small]].sum() < fewest and kept:
        kept.remove(min(kept, key=lambda place: counts[place]))
    joined = np.full(counts.size, len(kept), np.int64)
    joined[kept] = np.arange(len(kept))
    return joined


MIN_COVERED = 0.8  # of the whole's mix that a slice needs to have, at least, to be standardised
MIN_SLICE_RECORDS = 5.0  # effective records of a slice whose share enters a test, at least


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
    """Shares of the clusters within each slice; NaN is suppressed."""

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
    cell, shape = cuts.places[own] * k + labels[own], (s, k)
    counts = _with_whole(_sum_cells(n[own], cell, shape))
    mass = _sum_exactly(w[own], cell, shape)
    squares = _sum_exactly((n if weights is None else w * w)[own], cell, shape)
    whole = mass.sum(axis=1)
    share = mass / np.maximum(whole, 1e-300)[:, None]
    effective = whole**2 / np.maximum(squares.sum(axis=1), 1e-300)
    low, high = wilson_interval(share, effective[:, None])
    z, p = trend(share, effective, cuts.ordered)
    missing = int(n[~own].sum())
    cells = None
    if keys is not None:
        empty = np.zeros((s, 0, k + 1))
        sums = _with_whole(_sum_cells(keys[own], cell, shape))
        cells = SliceCells(sums, empty.astype(np.uint64), empty, empty[:, :, :k], np.zeros(0))
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
        notes=(Message("note.no_slice", n=missing, name=by.name),) if missing else (),
        cells=cells,
    )
    return _standardise_slices(made, table, cuts, labels, k, (n, w), keys)


def trend(share: Floats, n: Floats, ordered: bool) -> tuple[Floats, Floats]:
    """Return z and p of each cluster's shares (s, k) over slices of n effective records.

    z = Σ nₛ(pₛ − p̄)(s − s̄) / √(p̄(1 − p̄) Σ nₛ(s − s̄)²), two-sided; without an order NaN, and p is
    that of χ² = Σ nₛ(pₛ − p̄)² / p̄(1 − p̄) with one degree less than slices. NaN where all or no
    records are in a cluster.
    """
    some = (n >= MIN_SLICE_RECORDS) & ~np.isnan(share).any(axis=1)
    nothing = np.full(share.shape[1], np.nan)
    if some.sum() < 2:
        return nothing, nothing
    p, size = share[some], n[some][:, None]
    mean = (size * p).sum(axis=0) / size.sum()
    spread = mean * (1 - mean)
    varies = spread > 1e-12
    safe = np.where(varies, spread, 1.0)
    if not ordered:
        chi = (size * (p - mean) ** 2).sum(axis=0) / safe
        return nothing, np.where(varies, np.round(chdtrc(some.sum() - 1.0, chi), 9), np.nan)
    at = np.flatnonzero(some).astype(float)[:, None]
    at = at - (size * at).sum() / size.sum()
    z = (size * (p - mean) * at).sum(axis=0) / np.sqrt(safe * (size * at**2).sum())
    z = np.where(varies, np.round(z, 6), np.nan)
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
    enough = (covered >= MIN_COVERED)[:, None]
    return np.where(enough, np.round(shares, 6), np.nan), np.round(covered, 6)


def _standardise_slices(
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
    groups, mix_names, width = np.zeros(labels.size, dtype=np.int64), [], 1
    for one in ("age", "sex"):
        if one not in table.column_names or one == made.by.partition(":")[0]:
            continue
        try:
            other = cut(table, By(one))
        except InputError:
            continue
        unknown = (groups < 0) | (other.places < 0)
        groups = np.where(unknown, -1, groups * len(other.labels) + other.places)
        width *= len(other.labels)
        mix_names.append(one)
    own = (groups >= 0) & (cuts.places >= 0)
    if not mix_names or not own.any():
        return made
    cell = (cuts.places[own] * width + groups[own]) * k + labels[own]
    shape = (len(cuts.labels), width, k)
    mass = _sum_exactly(w[own], cell, shape)
    each = mass.sum(axis=2)
    share = mass / np.maximum(each, 1e-300)[:, :, None]
    mix = each.sum(axis=0) / each.sum()
    standardised, covered = standardise(share, (each > 0).astype(float), mix)
    few = [label for label, part in zip(cuts.labels, covered, strict=True) if part < MIN_COVERED]
    notes, cells = made.notes, made.cells
    if few:
        names = {"names": few, "share": MIN_COVERED, "mix": mix_names}
        notes += (Message("note.not_standardised", **names),)
    if cells is not None and keys is not None:
        sums, counts = (_with_whole(_sum_cells(one[own], cell, shape)) for one in (keys, n))
        cells = SliceCells(cells.counts, sums, counts, np.round(share, 9), mix)
    mixed: Any = {"mix": tuple(mix_names), "standardised": standardised, "covered": covered}
    return replace(made, **mixed, notes=notes, cells=cells)


def _sum_exactly(terms: Floats, cell: Ints, shape: tuple[int, ...]) -> Floats:
    """Return the sums of terms by cell, the same bits in any order of them."""
    sums = GroupSums(int(np.prod(shape)))
    sums.add(terms, cell)
    return sums.totals().reshape(shape)


def _sum_cells(terms: Any, cell: Ints, shape: tuple[int, ...]) -> Any:
    """Return the sums of counts or keys by cell."""
    sums = np.zeros(int(np.prod(shape)), terms.dtype)
    np.add.at(sums, cell, terms)
    return sums.reshape(shape)


def _with_whole(parts: Any) -> Any:
    """Return counts or keys by cluster with those of all clusters at the end."""
    whole = parts.sum(axis=-1, keepdims=True, dtype=parts.dtype)
    return np.concatenate([parts, whole], axis=-1)
