"""Protection: a profile computed from protected counts alone, by the cell-key method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.relations.classification import CONFIG
from comorb.profiles import contents
from comorb.profiles.assignment import protect_uncertain
from comorb.profiles.burden import Burden, BurdenCells
from comorb.profiles.intervals import Z, wilson_interval
from comorb.profiles.noise import (
    NOISE_VARIANCE,
    CountProtector,
    append_whole,
    noise,
    round_shares,
    round_two_digits,
)
from comorb.profiles.outcomes import OTHER, correct_estimates
from comorb.profiles.rounded import round_lines, round_notes
from comorb.profiles.rules import RuleCells, RuleList
from comorb.profiles.slices import SliceCells, Slices, standardise, trend
from comorb.records.values import yes_no

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

TOTAL_NOISE = np.uint64(0x5851F42D4C957F2D)  # sets the noise of totals apart from that of counts


@dataclass(frozen=True, eq=False)
class ClusterSizes:
    """The records of each cluster, and all of them last: (k + 1,) each."""

    true: Floats
    published: Floats
    design: Floats  # Kish's design effect: records for one effective record; 1 without weights


def protect_outcome(
    full: contents.Outcome, wholes: ClusterSizes, protector: CountProtector
) -> contents.Outcome | None:
    """Return an outcome of clusters whose sizes are published; None where nothing of it may be.

    It is made of protected counts and noisy means alone.
    """
    if full.cells is None:
        raise InputError("protect.outcome_keys")
    known = protector.part_table(full.known, full.cells.known, wholes.published, wholes.true, 0)
    if full.kind == "number":
        means, spread, medians = _noisy_means(full, full.cells, known, protector)
        # The noise of a record far from the mean can exceed chance: the interval holds both.
        moved = round_two_digits(full.cells.reach) * np.sqrt(NOISE_VARIANCE)
        half = Z * np.hypot(spread / np.sqrt(np.where(known > 0, known, np.nan)), moved)
        intervals = zip((means, means - half, means + half), medians, strict=True)
        centre, low, high = (
            np.where(np.isnan(known), np.nan, _round_by_interval(np.vstack(rows), half, means))
            for rows in intervals
        )
        none = np.empty((0, known.size))
        return contents.Outcome(full.name, "number", full.values, known, none, centre, low, high)
    values, true, shares, keys = _pool_rare_values(full, full.cells.counts, protector.min_cell)
    counts = protector.part_table(true, keys, known, full.known)
    weighted = shares if (wholes.design != 1).any() else None
    shares = protector.shares(counts, known, true, full.known, weighted)
    low, high = wilson_interval(shares, np.nan_to_num(known / wholes.design))
    kept = _list_values(values, counts[:, -1], known[-1], protector.min_cell)
    if not kept:
        return None
    counts, shares, low, high = (one[kept] for one in (counts, shares, low, high))
    low, high, own = round_shares(low), round_shares(high), tuple(values[i] for i in kept)
    return contents.Outcome(full.name, "share", own, known, counts, shares, low, high)


def _list_values(values: tuple[str, ...], totals: Floats, known: float, min_cell: int) -> list[int]:
    """Return the values that are listed: those of few records are not, as if there were none.

    Of two, one is enough. One that all records have, or all but few, is not listed.
    """
    kept = [place for place in range(len(values)) if not np.isnan(totals[place])]
    if len(kept) == 2 and OTHER not in values:
        kept = ([place for place in kept if yes_no(values[place])] or kept)[:1]
    return [] if len(kept) == 1 and known - totals[kept[0]] < min_cell else kept


def _noisy_means(
    full: contents.Outcome, cells: contents.OutcomeCells, known: Floats, protector: CountProtector
) -> tuple[Floats, Floats, Floats]:
    """Return means with noise, spreads in two digits, and medians with their intervals.

    The noise of a total is that of a count times what the record that is farthest from the mean
    adds to it. The noise of all clusters adds up to that of all records.
    """
    drawn = noise(protector.keys(cells.known) ^ TOTAL_NOISE) * cells.reach
    n = full.known[:-1]
    drawn[:-1] += (full.known[-1] * drawn[-1] - (n * drawn[:-1]).sum()) / max(n.sum(), 1)
    half = (full.high - full.low)[0] / 2
    spread = round_two_digits(np.nan_to_num(half) * np.sqrt(full.known) / Z)
    medians = np.array([full.estimate[1], full.low[1], full.high[1]])
    figures = (full.estimate[0] + drawn, spread, medians)
    means, spread, medians = (np.where(np.isnan(known), np.nan, one) for one in figures)
    return means, spread, medians


def protect_corrected(
    made: contents.Outcome, shares: Floats, taken: Floats, min_cell: int
) -> contents.Outcome:
    """Return a protected outcome with corrected figures, made of what is published of it alone.

    ``shares`` is that of each cluster for one of its records, as published; ``taken`` how often
    records are taken for another cluster's. A suppressed share, of a count below ``min_cell``,
    stays so; the others are corrected as if it were half of the most that it can be. Where the
    number of known records of a cluster is suppressed, none is corrected.
    """
    k = len(made.known) - 1
    known, rows = made.known[:k], slice(None) if made.kind == "share" else slice(0, 1)
    if taken.shape != (k, k) or not (known > 0).all():
        return made
    naive, half = made.estimate[rows, :k], np.nan_to_num(made.high - made.low)[rows, :k] / 2
    hidden, middle = np.isnan(naive), np.minimum(min_cell / known, 1) / 2
    missing = hidden.any() if made.kind == "number" else hidden.all()
    if missing or np.linalg.cond(taken) > CONFIG.max_condition:
        return made
    naive, half = np.where(hidden, middle, naive), np.where(hidden, middle, half)
    means, wide = correct_estimates(naive, half, known, shares * known, taken)
    figures = [made.estimate.copy(), made.low.copy(), made.high.copy()]
    for figure, own in zip(figures, (means, means - wide, means + wide), strict=True):
        if made.kind == "share":
            own = round_shares(np.clip(own, 0, 1))
        else:
            own = _round_by_interval(own, wide, means)
        figure[rows, :k] = np.where(hidden, np.nan, own)
    return replace(made, corrected=contents.CorrectedFigures(*figures))


def _pool_rare_values(
    full: contents.Outcome, keys: Keys, min_cell: int
) -> tuple[tuple[str, ...], Floats, Floats, Keys]:
    """Return values, counts, shares and keys in which rare categories are one, the others."""
    rare = np.array([value == OTHER for value in full.values]) | (full.counts[:, -1] < min_cell)
    if full.counts[rare, -1].sum() < min_cell:
        return full.values, full.counts, full.estimate, keys
    kept = ~rare
    return (
        (*(value for value, stays in zip(full.values, kept, strict=True) if stays), OTHER),
        np.vstack([full.counts[kept], full.counts[rare].sum(axis=0)]),
        np.vstack([full.estimate[kept], full.estimate[rare].sum(axis=0)]),
        np.vstack([keys[kept], keys[rare].sum(axis=0, dtype=np.uint64)]),
    )


def _round_by_interval(values: Floats, half: Floats, centre: Floats) -> Floats:
    """Round to the power of ten that half an interval supports: to tenths for 0.34.

    Without an interval, to three digits of the centre.
    """
    scale = np.where(half > 0, half, np.abs(centre) / 100)
    step = 10.0 ** np.floor(np.log10(np.where(scale > 0, scale, 1.0)))
    return np.asarray(np.round(np.round(values / step) * step, 6))


AnyCells = TypeVar("AnyCells", BurdenCells, SliceCells, RuleCells)


def protect_burden(full: Burden, min_cell: int, design: Floats | float = 1.0) -> Burden:
    """Return a burden that may be shared.

    A total moves by a few times what the record that adds most to it adds, and has no digits below
    that; shares are those of published totals. ``design`` is Kish's design effect of clusters.
    """
    cells = _require_cells(full.cells)
    protector = CountProtector(min_cell, cells.records[-1])
    records = protector.table(full.records, cells.records)
    records[-1] = np.fmax(records[-1], min_cell)
    known = protector.part_table(full.known, cells.known, records, full.records, 0)
    totals = _noisy_totals(full, cells, known, protector)
    whole = totals[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.clip(np.where(whole != 0, totals / whole, np.nan), -1, 1)
        mass = known * round_two_digits(np.where(full.known > 0, full.mass / full.known, 1.0))
    rate_known = protector.part_table(full.rate_known, cells.rate_known, records, full.records, 0)
    yes = protector.part_table(full.rate_counts, cells.rate_counts, rate_known, full.rate_known)
    share, rate = None, None
    if (full.mass != full.known).any():
        share, rate = full.share, full.rate
    rate = protector.shares(yes, rate_known, full.rate_counts, full.rate_known, rate)
    low, high = wilson_interval(rate, np.nan_to_num(rate_known / design))
    patients = full.patients
    if patients.size:
        patients = protector.part_counts(patients, cells.patients, records, full.records, 0)
    return replace(
        full,
        records=records,
        share=protector.shares(records, records[-1:], full.records, full.records[-1:], share),
        patients=patients,
        known=known,
        mass=np.round(mass, 1),
        totals=totals,
        shares=round_shares(shares),
        rate_known=rate_known,
        rate_counts=yes,
        rate=rate,
        low=round_shares(low),
        high=round_shares(high),
        notes=_round_notes(full.notes, min_cell),
        cells=None,
    )


def _noisy_totals(
    full: Burden, cells: BurdenCells, known: Floats, protector: CountProtector
) -> Floats:
    """Return totals with noise; that of all clusters adds up to that of all records."""
    drawn = noise(protector.keys(cells.known) ^ TOTAL_NOISE) * cells.largest
    k = max(drawn.shape[-1] - 1, 1)
    drawn[:, :-1] += ((drawn[:, -1] - drawn[:, :-1].sum(axis=1)) / k)[:, None]
    step = 10.0 ** np.floor(np.log10(np.where(cells.largest > 0, cells.largest, 1.0)))
    published = np.round((full.totals + drawn) / step) * step
    published = np.where(full.totals >= 0, np.maximum(published, 0), published)
    return np.where(np.isnan(known), np.nan, np.round(published, 6))


def protect_slices(full: Slices, min_cell: int) -> Slices:
    """Return slices that may be shared; tests and standardised shares are made again of them.

    Those of few records are left out.
    """
    cells = _require_cells(full.cells)
    keys = cells.counts[:, -1]
    protector = CountProtector(min_cell, keys.sum(dtype=np.uint64))
    whole = protector.table(*append_whole(full.counts[:, -1], keys))[:-1]
    kept = np.flatnonzero(~np.isnan(whole))
    rows = ("counts", "effective", "share", "low", "high", "standardised", "covered")
    labels, arrays = tuple(full.labels[i] for i in kept), {n: getattr(full, n)[kept] for n in rows}
    keyed = ("counts", "strata_keys", "strata", "strata_share")
    cells = replace(cells, **{name: getattr(cells, name)[kept] for name in keyed})
    full, whole = replace(full, labels=labels, **arrays), whole[kept]
    true, size = full.counts[:, :-1], full.counts[:, -1:]
    noisy = protector.table(full.counts, cells.counts, whole)[:, :-1]
    parts = protector.fit_within(noisy, true, whole[:, None], size)
    design = round_two_digits(size[:, 0] / np.maximum(full.effective, 1e-300))
    weighted = full.share if (design != 1).any() else None
    share = protector.shares(parts, whole[:, None], true, size, weighted)
    effective = np.round(whole / design)
    low, high = wilson_interval(share, effective[:, None])
    # Each cluster is tested over the slices in which its share is published.
    tests = [trend(share[:, [j]], effective, full.ordered) for j in range(share.shape[1])]
    z, p = np.array(tests).reshape(-1, 2).T
    standardised, covered = full.standardised, full.covered
    if full.mix:
        standardised, covered = _standardise_protected(cells, protector)
        standardised = np.where(np.isnan(share), np.nan, standardised)
    return replace(
        full,
        counts=np.column_stack([parts, whole]),
        effective=effective,
        share=share,
        low=round_shares(low),
        high=round_shares(high),
        z=np.round(z, 1),
        p=round_two_digits(p),
        standardised=standardised,
        covered=covered,
        notes=_round_notes([note for note in full.notes if note[:1].isdigit()], min_cell),
        cells=None,
    )


def protect_strata(cells: SliceCells, protector: CountProtector) -> tuple[Floats, Floats]:
    """Return the records of each slice by stratum (s, g), 0 if suppressed, and the strata's mix.

    The mix is that of the slices together.
    """
    whole = np.nan_to_num(protector.counts(cells.strata[..., -1], cells.strata_keys[..., -1]))
    every = whole.sum(axis=0)
    return whole, every / max(every.sum(), 1)


def _standardise_protected(cells: SliceCells, protector: CountProtector) -> tuple[Floats, Floats]:
    """Return standardised shares of published strata; other parts stand in the middle."""
    counts, keys = cells.strata, cells.strata_keys
    whole, mix = protect_strata(cells, protector)
    published, true = np.where(whole > 0, whole, np.nan)[..., None], counts[..., -1:]
    parts = protector.table(counts, keys, published[..., 0])[..., :-1]
    parts = protector.fit_within(parts, counts[..., :-1], published, true)
    middle = np.minimum((protector.min_cell - 1) / 2, whole / 2) / np.maximum(whole, 1)
    share = protector.shares(parts, published, counts[..., :-1], true, cells.strata_share)
    share = np.where(np.isnan(parts), middle[..., None], share)
    made, covered = standardise(share, (whole > 0).astype(float), mix)
    return np.clip(np.round(made, 3), 0, 1), np.round(covered, 2)


def protect_rules(full: Sequence[RuleList], min_cell: int) -> tuple[RuleList, ...]:
    """Return the lists of all clusters with the figures of protected counts."""
    if not full:
        return ()
    cells = [_require_cells(one.cells) for one in full]
    members = np.array([one.members for one in full])
    keys = np.concatenate([one.members for one in cells])
    protector = CountProtector(min_cell, keys.sum(dtype=np.uint64))
    published = protector.table(*append_whole(members, keys))[:-1]
    return tuple(
        _protect_rule(one, own, float(size), protector)
        for one, own, size in zip(full, cells, published, strict=True)
    )


def _protect_rule(
    full: RuleList, cells: RuleCells, members: float, protector: CountProtector
) -> RuleList:
    wholes = np.array([full.matched, full.members])
    matched = float(protector.counts(wholes[:1], cells.matched)[0])
    published = np.array([matched, members])
    true = np.array([full.right, full.right])
    right = protector.part_counts(true, np.repeat(cells.right, 2), published, wholes)
    review = protector.part_counts(np.array([full.review]), cells.review, published[1:], wholes[1:])
    of = np.array([full.precision, full.recall])
    precision, recall = np.round(protector.shares(right, published, true, wholes, of), 2)
    counts: Any = {"matched": matched, "members": members, "review": float(review[0])}
    counts["right"] = float(right.min())  # NaN where either is suppressed
    return replace(full, **counts, precision=float(precision), recall=float(recall), cells=None)


def _round_notes(notes: Sequence[str], min_cell: int) -> tuple[str, ...]:
    """Return notes in rounded numbers; one of fewer than ``min_cell`` records is as if of none."""
    rough = round_notes(notes, min_cell)
    return tuple(note for note in rough if f"fewer than {min_cell}" not in note)


def _require_cells(cells: AnyCells | None) -> AnyCells:
    if cells is None:
        raise InputError("protect.no_keys")
    return cells


MIN_CELL = 11  # the strictest of the published rules: counts from 1 to 10 are suppressed


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """What leaves the true counts of codes and clusters: protected counts, and shares of them."""

    wholes: ClusterSizes  # the sizes of the clusters, all records last
    counts: Floats  # (k + 1, d): protected, all records last
    shares: Floats  # (k + 1, d): of the protected counts
    sizes: Floats  # (k,): the shares of clusters
    soft_ratio: Floats  # (k,): of soft shares to shares, in two digits
    information: Floats  # (k,): how much of the records' information intervals have, in two digits
    pairs: Floats  # records with both codes of each pair, protected


def protect(full: Profile, min_cell: int = MIN_CELL) -> Profile:
    """Return the profile that may be shared: every number comes from protected counts."""
    if full.min_cell == min_cell and min_cell:
        return full
    if full.min_cell or min_cell < 1:
        raise InputError("protect.arguments", min_cell=full.min_cell, least=min_cell)
    if full.cells is None:
        raise InputError("protect.no_secret")
    protector = CountProtector(min_cell, full.cells.clusters[-1])
    released = _release_counts(full, full.cells, protector)
    wholes = released.wholes
    bare = replace(
        full,
        source=_protect_source(full.source, wholes, min_cell),
        caveats=_protect_caveats(full, released),
        burden=full.burden and protect_burden(full.burden, min_cell, wholes.design),
        slices=tuple(protect_slices(one, min_cell) for one in full.slices),
        rules=protect_rules(full.rules, min_cell),
        uncertain=full.uncertain and protect_uncertain(full.uncertain, min_cell),
        cells=None,
        min_cell=min_cell,
    )
    features = _protect_features(full, released, protector)
    made = _list_features(_apply_counts(bare, released), features)
    weights = made.weights / np.where(wholes.published > 0, wholes.published, np.nan)[:-1]
    outcomes = [protect_outcome(one, wholes, protector) for one in full.outcomes]
    taken = np.array(made.caveats.classification)
    sizes = [cluster.size for cluster in made.clusters]
    columns = made.common(contents.HEATMAP_COLUMNS)
    made = replace(
        made,
        outcomes=tuple(
            protect_corrected(one, weights, taken, min_cell) for one in outcomes if one is not None
        ),
        heatmap=contents.draw_heatmap(made.prevalence, columns, sizes, min_cell),
    )
    # A name that a person or an earlier run gave stays; others are made of published codes.
    before, now = full.automatic_names(), made.automatic_names()
    names = {
        place: f"Cluster {cluster.number}"
        if cluster.size is None
        else (now if cluster.name == before[place] else full.cluster_names)[place]
        for place, cluster in enumerate(made.clusters)
    }
    return made.renamed(names)


def _release_counts(
    full: Profile, cells: contents.Cells, protector: CountProtector
) -> ReleasedCounts:
    """Return protected counts of clusters and codes, and nothing else of them."""
    sizes = np.array([*(float(c.size or 0) for c in full.clusters), float(full.source.records)])
    published = protector.table(sizes, cells.clusters)
    published[-1] = np.fmax(published[-1], protector.min_cell)
    true = np.vstack([full.counts, full.totals])
    counts = protector.table(true.T, cells.codes.T).T
    counts = protector.fit_within(counts, true, published[:, None], sizes[:, None])
    effective = np.array([*(c.effective or 0 for c in full.clusters), full.source.effective])
    weighted = full.source.weight is not None
    design = round_two_digits(sizes / np.where(effective > 0, effective, np.nan))
    design = np.where(np.isfinite(design) & weighted, design, 1.0)
    before = np.vstack([full.prevalence, full.overall]) if weighted else None
    share = np.array([cluster.share or 0.0 for cluster in full.clusters])
    soft = np.array([cluster.soft_share or 0.0 for cluster in full.clusters])
    # Of weighted records, pairs are no counts.
    pairs = [0.0 if weighted else float(pair.observed) for pair in full.caveats.pairs]
    observed = np.array(pairs)
    return ReleasedCounts(
        wholes=ClusterSizes(sizes, published, design),
        counts=counts,
        shares=protector.shares(counts, published[:, None], true, sizes[:, None], before),
        sizes=protector.shares(
            published[:-1], published[-1:], sizes[:-1], sizes[-1:], share if weighted else None
        ),
        soft_ratio=round_two_digits(soft / np.where(share > 0, share, np.nan)),
        information=_information(full, counts[:-1], effective[:-1]),
        pairs=protector.counts(observed, cells.pairs[: observed.size]),
    )


def _information(full: Profile, counts: Floats, effective: Floats) -> Floats:
    """Return how much of the records' information the intervals of each cluster's codes have.

    The rest is lost to labels that are uncertain and codes that depend on each other. It is the
    middle of what published codes have, in two digits.
    """
    d = full.n_codes
    low, high = wilson_interval(full.prevalence[:, :d], effective[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = ((high - low) / (full.high - full.low)[:, :d]) ** 2
    share = np.where(np.isnan(counts[:, :d]), np.nan, share)
    middle = [np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else 1.0 for row in share]
    return round_two_digits(np.clip(np.array(middle), 0.01, 1.0))


def _apply_counts(bare: Profile, released: ReleasedCounts) -> Profile:
    """Return the profile with all that follows from the published counts."""
    published, shares = released.wholes.published, released.shares
    effective = np.nan_to_num(published[:-1] / released.wholes.design[:-1])
    n = np.repeat((effective * released.information)[:, None], shares.shape[1], axis=1)
    n[:, bare.n_codes :] = effective[:, None]
    low, high = wilson_interval(shares[:-1], n)
    figures = zip(published[:-1], released.sizes, released.soft_ratio, effective, strict=True)
    return replace(
        bare,
        clusters=tuple(
            _protect_cluster(one, *own) for one, own in zip(bare.clusters, figures, strict=True)
        ),
        counts=released.counts[:-1],
        totals=released.counts[-1],
        prevalence=shares[:-1],
        overall=shares[-1],
        low=round_shares(low),
        high=round_shares(high),
        weights=round_shares(released.sizes / np.nansum(released.sizes)),
        means=shares[:-1],
        expected=shares[-1],
    )


def _list_features(made: Profile, features: tuple[contents.FeatureProfile, ...]) -> Profile:
    """Return the profile with the codes and levels alone whose totals are published."""
    gone = {place for one in made.features for place in one.columns}
    gone -= {place for one in features for place in one.columns}
    published = ~np.isnan(made.totals)
    published[list(gone)] = False
    kept, place = np.flatnonzero(published), np.cumsum(published) - 1
    columns = ("counts", "prevalence", "low", "high", "means", "totals", "overall", "expected")
    texts = ("codes", "names", "labels")
    moved = (
        replace(pair, first=int(place[pair.first]), second=int(place[pair.second]))
        for pair in made.caveats.pairs
        if published[pair.first] and published[pair.second]
    )
    features = tuple(
        replace(one, columns=tuple(int(place[old]) for old in one.columns)) for one in features
    )
    own: dict[str, Any] = {name: getattr(made, name)[..., kept] for name in columns}
    own |= {name: tuple(getattr(made, name)[i] for i in kept) for name in texts}
    shown = replace(
        made,
        **own,
        caveats=replace(made.caveats, pairs=tuple(moved)),
        rules=tuple(_renumber_rule(one, kept, place) for one in made.rules),
        features=features,
    )
    return replace(shown, source=replace(shown.source, features=shown.n_codes))


def _renumber_rule(rule: RuleList, kept: Ints, place: Ints) -> RuleList:
    """Return a list whose conditions are by codes that are listed; without any if one isn't."""
    if not {condition.code for condition in rule.conditions} <= set(kept.tolist()):
        unknown: Any = dict.fromkeys(("matched", "right", "precision", "recall"), np.nan)
        return replace(rule, conditions=(), otherwise=False, **unknown)
    conditions = (replace(one, code=int(place[one.code])) for one in rule.conditions)
    return replace(rule, conditions=tuple(conditions))


def _protect_features(
    full: Profile, released: ReleasedCounts, protector: CountProtector
) -> tuple[contents.FeatureProfile, ...]:
    """Return features with protected means and shares, and without what the model knows of them.

    Levels of few records are not listed; a feature of which too little is left isn't either.
    """
    made = []
    for one in full.features:
        published = tuple(i for i in one.columns if not np.isnan(released.counts[-1, i]))
        levels = one.kind in ("category", "ordinal")
        enough = len(published) >= 2 if levels else published == one.columns
        summary = protect_outcome(one.summary, released.wholes, protector) if enough else None
        if summary is not None:
            influence = round(one.influence, 2)
            own = replace(one, columns=published, influence=influence, summary=summary, model=None)
            made.append(own)
    return tuple(made)


def _protect_cluster(
    cluster: contents.Cluster, published: float, share: float, soft_ratio: float, effective: float
) -> contents.Cluster:
    """Return a cluster with sizes from its protected count, and what is measured in few digits."""
    if np.isnan(published):
        hidden = contents.Cluster(cluster.number, cluster.name, *[None] * 8)
        return replace(hidden, owner=cluster.owner, pathway=cluster.pathway, note=cluster.note)
    digits = dict.fromkeys(("top", "margin", "entropy", "stability", "of_length"), 2)
    measured = {name: getattr(cluster, name) for name in (*digits, "length")}
    few: Any = {
        name: None if value is None else round(value, digits.get(name, 1))
        for name, value in measured.items()
    }
    return replace(
        cluster,
        size=int(published),
        share=float(share),
        soft_size=None,
        soft_share=None if np.isnan(soft_ratio) else round(min(share * soft_ratio, 1.0), 2),
        effective=round(effective),
        **few,
    )


def _protect_source(
    source: contents.Provenance, wholes: ClusterSizes, min_cell: int
) -> contents.Provenance:
    """Return where the profile comes from, without the fingerprint that would confirm a guess.

    How many different codes there are before and after each rule isn't published: one more would be
    that of one patient.
    """
    published, weight = wholes.published[-1], source.weight
    return replace(
        source,
        records=int(published),
        weight=weight and float(published * round_two_digits(weight / source.records)),
        effective=round(published / wholes.design[-1]),
        lines=round_lines(source.lines, min_cell),
        notes=round_notes(source.notes, min_cell),
        digest="",
    )


def _protect_caveats(full: Profile, released: ReleasedCounts) -> contents.Caveats:
    """Return what is left unexplained, the least expected pairs first by their published counts."""
    caveats, hidden = full.caveats, np.isnan(released.wholes.published).any()
    length, explained = caveats.length, caveats.explained_by_length
    # How often records are taken for another cluster's, in rows that add up to 1 again.
    taken = np.round(np.array(caveats.classification), 2)
    if taken.size:
        np.fill_diagonal(taken, 0)
        np.fill_diagonal(taken, 1 - taken.sum(axis=1))
    pairs = [
        contents.Pair(pair.first, pair.second, int(number), float(f"{pair.expected:.2g}"))
        for pair, number in zip(caveats.pairs, released.pairs, strict=True)
        if not np.isnan(number)
    ]
    pairs.sort(key=lambda pair: (-pair.observed / max(pair.expected, 1e-9), pair.first))
    return contents.Caveats(
        temperature=round(caveats.temperature, 2),
        length=None if length is None else round(length, 1),
        explained_by_length=None if explained is None else round(explained, 2),
        pairs=tuple(pairs),
        classification=() if hidden else tuple(map(tuple, np.round(taken, 2).tolist())),
    )
