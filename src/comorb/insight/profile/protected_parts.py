"""Burden, slices and rules from protected counts: every figure is one of counts that are told."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.burden import Burden, BurdenCells
from comorb.insight.profile.noise import (
    changed,
    digits,
    noise,
    parts_of,
    protected_counts,
    shares_of,
)
from comorb.insight.profile.protected_outcomes import TOTALS
from comorb.insight.profile.rough import rough_notes
from comorb.insight.profile.rules import RuleCells, RuleList
from comorb.insight.profile.slices import SliceCells, Slices, standardise, trend
from comorb.model.arrays import Floats

Cells = TypeVar("Cells", BurdenCells, SliceCells, RuleCells)


def protect_burden(full: Burden, least: int) -> Burden:
    """Return a burden that may be shared.

    A total moves by a few times what the record that adds most to it adds, and has no digits below
    that; shares are those of totals that are told.
    """
    cells = _needed(full.cells)
    records = protected_counts(full.records, cells.records, least)
    records[-1] = np.fmax(records[-1], least)
    known = parts_of(full.known, cells.known, full.records, records, least)
    totals = _totals(full, cells, known)
    whole = totals[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.clip(np.where(whole != 0, totals / whole, np.nan), -1, 1)
        moved = full.share * changed(records, full.records)
    said = parts_of(full.rate_known, cells.rate_known, full.records, records, least)
    yes = parts_of(full.rate_counts, cells.rate_counts, full.rate_known, said, least)
    rate = shares_of(full.rate, full.rate_counts, yes, full.rate_known, said)
    shift = rate - full.rate
    patients = full.patients
    if patients.size:
        patients = np.fmin(protected_counts(patients, cells.patients, least), records)
    return replace(
        full,
        records=records,
        share=digits(np.clip(moved / moved[-1], 0, 1)),
        patients=patients,
        known=known,
        totals=totals,
        shares=digits(shares),
        rate_known=said,
        rate_counts=yes,
        rate=rate,
        low=digits(np.clip(full.low + shift, 0, rate)),
        high=digits(np.clip(full.high + shift, rate, 1)),
        notes=rough_notes(full.notes, least),
        cells=None,
    )


def _totals(full: Burden, cells: BurdenCells, known: Floats) -> Floats:
    drawn = noise(cells.known ^ TOTALS) * cells.largest
    step = 10.0 ** np.floor(np.log10(np.where(cells.largest > 0, cells.largest, 1.0)))
    told = np.round((full.totals + drawn) / step) * step
    told = np.where(full.totals >= 0, np.maximum(told, 0), told)
    return np.where(np.isnan(known), np.nan, np.where(full.known == 0, 0.0, np.round(told, 6)))


def protect_slices(full: Slices, least: int) -> Slices:
    """Return slices that may be shared; tests and standardised shares are made again of them."""
    cells = _needed(full.cells)
    whole = protected_counts(full.counts[:, -1], cells.counts[:, -1], least)
    parts = parts_of(
        full.counts[:, :-1], cells.counts[:, :-1], full.counts[:, -1:], whole[:, None], least
    )
    share = shares_of(full.share, full.counts[:, :-1], parts, full.counts[:, -1:], whole[:, None])
    share = np.where(np.isnan(parts), np.nan, share)
    moved = share - full.share
    effective = np.round(full.effective * changed(whole, full.counts[:, -1]))
    z, p = _tested(share, np.nan_to_num(effective), full.ordered)
    standardised, covered = full.standardised, full.covered
    if full.mix:
        standardised, covered = _standardised(cells, least)
        standardised = np.where(np.isnan(share), np.nan, standardised)
    return replace(
        full,
        counts=np.column_stack([parts, whole]),
        effective=effective,
        share=share,
        low=digits(np.clip(full.low + moved, 0, share)),
        high=digits(np.clip(full.high + moved, share, 1)),
        z=np.round(z, 1),
        p=np.array([float(f"{one:.1g}") for one in p]),
        standardised=standardised,
        covered=covered,
        notes=rough_notes(full.notes, least),
        cells=None,
    )


def _tested(share: Floats, n: Floats, ordered: bool) -> tuple[Floats, Floats]:
    """Return the tests of each cluster over the slices in which its share is told."""
    each = [trend(share[:, [j]], n, ordered) for j in range(share.shape[1])]
    return np.array([z[0] for z, _ in each]), np.array([p[0] for _, p in each])


def _standardised(cells: SliceCells, least: int) -> tuple[Floats, Floats]:
    """Return standardised shares of strata that are told; other parts stand in the middle."""
    counts, keys = cells.strata, cells.strata_keys
    whole = protected_counts(counts[..., -1:], keys[..., -1:], least)
    parts = parts_of(counts[..., :-1], keys[..., :-1], counts[..., -1:], whole, least)
    middle = np.minimum((least - 1) / 2, np.nan_to_num(whole) / 2) / np.maximum(whole, 1)
    share = shares_of(cells.strata_share, counts[..., :-1], parts, counts[..., -1:], whole)
    share = np.where(np.isnan(parts), middle, share)
    present = (np.nan_to_num(whole[..., 0]) > 0).astype(float)
    made, covered = standardise(share, present, digits(cells.mix))
    return np.clip(np.round(made, 3), 0, 1), np.round(covered, 2)


def protect_rules(full: RuleList, least: int) -> RuleList:
    """Return a list of rules whose figures are those of protected counts."""
    cells = _needed(full.cells)
    sizes = np.array([full.matched, full.members])
    matched, members = protected_counts(
        sizes, np.concatenate([cells.matched, cells.members]), least
    )
    right = parts_of(
        np.array([full.right, full.right]),
        np.concatenate([cells.right, cells.right]),
        sizes,
        np.array([matched, members]),
        least,
    )
    review = parts_of(np.array([full.review]), cells.review, sizes[1:], np.array([members]), least)
    of = np.array([full.precision, full.recall])
    told = shares_of(of, np.array([full.right] * 2), right, sizes, np.array([matched, members]))
    precision, recall = np.round(np.where(np.isnan(right), np.nan, told), 2)
    lower = np.nan if np.isnan(right).any() else float(right.min())
    return replace(
        full,
        matched=float(matched),
        right=lower,
        members=float(members),
        review=float(review[0]),
        precision=float(precision),
        recall=float(recall),
        cells=None,
    )


def _needed(cells: Cells | None) -> Cells:
    if cells is None:
        raise InputError("these figures were counted without keys; fit the clusters again")
    return cells
