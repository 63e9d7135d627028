"""Protection: a profile that tells nothing about one patient, by the cell-key method.

Every set of records has a key, the sum of the keys of its records (`keys`), and a small noise of
mean 0 is looked up by it (`noise`): the same set is counted alike wherever it is shown, and the
difference of two nearly equal sets is noise. Zero stays zero, and fewer than ``least`` are never
told. After Thompson, Broadfoot and Elazar (2013) and Giessing and Tent (2019).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile import heatmap
from comorb.insight.profile.contents import (
    Caveats,
    Cluster,
    FeatureProfile,
    Heatmap,
    Outcome,
    Pair,
    Provenance,
)
from comorb.insight.profile.grey import protect_grey
from comorb.insight.profile.noise import changed, digits, parts_of, protected_counts, shares_of
from comorb.insight.profile.protected_outcomes import protect_corrected, protect_outcome
from comorb.insight.profile.protected_parts import (
    protect_burden,
    protect_rules,
    protect_slices,
)
from comorb.insight.profile.rough import rough_lines, rough_notes
from comorb.model.arrays import Floats, Keys, Mask

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile

LEAST = 11  # the strictest of the published rules: counts from 1 to 10 are not told
LAMBDAS = tuple(step / 20 for step in range(21))  # the λ at which the order of codes is kept
RANKED = 30  # the codes of a cluster whose order is


def protect(full: Profile, least: int = LEAST) -> Profile:
    """Return the profile that may be shared: every number comes from protected counts.

    Names and the order of codes are those of the full profile.
    """
    if full.min_cell == least and least:
        return full
    if full.min_cell or least < 1:
        raise InputError(
            "expected a full profile and a smallest count of 1 or more, got one that is protected "
            f"below {full.min_cell}, and {least}; protect the full one"
        )
    if full.cells is None:
        raise InputError(
            "these clusters can't be protected: they were described without a secret, or by an "
            "earlier version of comorb; fit them again, or give profile() secret=own_secret()"
        )
    sizes = np.array([*(float(c.size or 0) for c in full.clusters), float(full.source.records)])
    told = protected_counts(sizes, full.cells.clusters, least)
    told[-1] = np.fmax(told[-1], least)
    true = np.vstack([full.counts, full.totals])
    counts = parts_of(true, full.cells.codes, sizes[:, None], told[:, None], least)
    before = np.vstack([full.prevalence, full.overall])
    shares = shares_of(before, true, counts, sizes[:, None], told[:, None])
    moved = (shares - before)[:-1]
    return replace(
        full,
        source=_source(full.source, told[-1], least),
        clusters=tuple(
            _cluster(one, size, told[-1] / sizes[-1])
            for one, size in zip(full.clusters, told[:-1], strict=True)
        ),
        counts=counts[:-1],
        totals=counts[-1],
        prevalence=shares[:-1],
        overall=shares[-1],
        low=digits(np.clip(full.low + moved, 0, shares[:-1])),
        high=digits(np.clip(full.high + moved, shares[:-1], 1)),
        weights=_weights(full, changed(told, sizes)[:-1]),
        means=shares[:-1],
        expected=shares[-1],
        outcomes=tuple(_corrected(one, sizes, told, least, full) for one in full.outcomes),
        heatmap=_heatmap(full, counts[:-1], told[:-1], least),
        caveats=_caveats(full, full.cells.pairs, told[:-1], least),
        ranks=tuple(
            tuple(_ranked(full, j, lam, ~np.isnan(counts[j])) for j in range(full.k))
            for lam in LAMBDAS
        ),
        cells=None,
        min_cell=least,
        features=tuple(_feature(one, sizes, told, least) for one in full.features),
        burden=None if full.burden is None else protect_burden(full.burden, least),
        slices=tuple(protect_slices(one, least) for one in full.slices),
        rules=tuple(protect_rules(one, least) for one in full.rules),
        grey=None if full.grey is None else protect_grey(full.grey, least),
        **_texts(full, least),
    )


def _ranked(full: Profile, cluster: int, lam: float, told: Mask) -> tuple[int, ...]:
    """Return the codes of a cluster in their order, of those whose counts are told."""
    ranked = full.top(cluster, lam, RANKED)
    return tuple(ranked[told[ranked]].tolist())


def _weights(full: Profile, ratio: Floats) -> Floats:
    weights = np.array([cluster.share or 0.0 for cluster in full.clusters]) * ratio
    return digits(weights / np.nansum(weights))


def _outcome(outcome: Outcome, sizes: Floats, told: Floats, least: int) -> Outcome:
    if outcome.cells is None:
        raise InputError("this outcome was counted without keys; fit the clusters again")
    return protect_outcome(outcome, outcome.cells, sizes, told, least)


def _corrected(outcome: Outcome, sizes: Floats, told: Floats, least: int, full: Profile) -> Outcome:
    """Return a protected outcome, corrected by what is told of the clusters."""
    made = _outcome(outcome, sizes, told, least)
    shares = _weights(full, changed(told, sizes)[:-1])
    taken = np.array(_classification(full, told[:-1]))
    each = shares / np.where(told[:-1] > 0, told[:-1], np.nan)
    return protect_corrected(outcome, made, each, taken, least)


def _classification(full: Profile, told: Floats) -> tuple[tuple[float, ...], ...]:
    """Return how often records are taken for another cluster's, in two digits; none of hidden ones.

    Rows add up to 1 again.
    """
    taken = np.array(full.caveats.classification)
    if not taken.size or np.isnan(told).any():
        return ()
    rough = np.round(taken, 2)
    np.fill_diagonal(rough, 0)
    np.fill_diagonal(rough, 1 - rough.sum(axis=1))
    return tuple(tuple(row) for row in np.round(rough, 2).tolist())


def _texts(full: Profile, least: int) -> dict[str, tuple[str, ...]]:
    """Return codes and names in which levels of few records are not told, as these name them."""
    texts = {key: list(getattr(full, key)) for key in ("codes", "names", "labels")}
    for one in full.features:
        rare = [place for place in one.columns if full.totals[place] < least]
        for number, place in enumerate(rare, 1):
            for key, sign in (("codes", "="), ("names", ": "), ("labels", ": ")):
                texts[key][place] = f"{one.name}{sign}few {number}"
    return {key: tuple(own) for key, own in texts.items()}


def _feature(full: FeatureProfile, sizes: Floats, told: Floats, least: int) -> FeatureProfile:
    """Return a feature with protected means and shares, and without what the model knows of it."""
    summary = _outcome(full.summary, sizes, told, least)
    return replace(full, influence=round(full.influence, 2), summary=summary, model=None)


def _cluster(cluster: Cluster, told: float, of_all: float) -> Cluster:
    """Return a cluster with sizes from its protected count, and what is measured in few digits."""
    if np.isnan(told):
        hidden = Cluster(cluster.number, f"Cluster {cluster.number}", *[None] * 8)
        return replace(hidden, owner=cluster.owner, pathway=cluster.pathway, note=cluster.note)
    ratio = told / max(cluster.size or 0, 1)

    def share(value: float | None, places: int) -> float | None:
        return None if value is None else round(min(value * ratio / of_all, 1.0), places)

    def few(value: float | None, places: int = 2) -> float | None:
        return None if value is None else round(value, places)

    return replace(
        cluster,
        size=int(told),
        share=share(cluster.share, 4),
        soft_size=None,
        soft_share=share(cluster.soft_share, 2),
        effective=few((cluster.effective or 0) * ratio, 0),
        top=few(cluster.top),
        margin=few(cluster.margin),
        entropy=few(cluster.entropy),
        stability=few(cluster.stability),
        length=few(cluster.length, 1),
        of_length=few(cluster.of_length),
    )


def _source(source: Provenance, told: float, least: int) -> Provenance:
    """Return where the profile comes from, without the fingerprint that would confirm a guess."""
    ratio = told / source.records
    return replace(
        source,
        records=int(told),
        weight=None if source.weight is None else float(f"{source.weight * ratio:.3g}"),
        effective=round(source.effective * ratio),
        lines=rough_lines(source.lines, least),
        notes=rough_notes(source.notes, least),
        digest="",
    )


def _heatmap(full: Profile, counts: Floats, told: Floats, least: int) -> Heatmap:
    """Return the heat-map with ``least`` records a line or more, as many lines as sizes tell."""
    times = -(-least // full.heatmap.per_line)
    per_line = times * full.heatmap.per_line
    lines = [int(max(size // per_line, 1)) for size in np.nan_to_num(told)]
    return heatmap.masked(heatmap.thin(full.heatmap, times, lines), np.isnan(counts))


def _caveats(full: Profile, keys: Keys, sizes: Floats, least: int) -> Caveats:
    """Return what is left unexplained; of weighted records no pairs, as these tell no count."""
    caveats = full.caveats
    pairs = caveats.pairs if full.source.weight is None else ()
    observed = np.array([float(pair.observed) for pair in pairs])
    told = protected_counts(observed, keys[: len(pairs)], least)
    length, explained = caveats.length, caveats.explained_by_length
    return Caveats(
        temperature=round(caveats.temperature, 2),
        length=None if length is None else round(length, 1),
        explained_by_length=None if explained is None else round(explained, 2),
        pairs=tuple(
            Pair(pair.first, pair.second, int(number), float(f"{pair.expected:.2g}"))
            for pair, number in zip(pairs, told, strict=True)
            if not np.isnan(number)
        ),
        classification=_classification(full, sizes),
    )
