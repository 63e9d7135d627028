"""Protected burden, slices and rules: no small count, noise on totals, shares of told counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.profile.gathering import gathered
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.profile.protected_parts import protect_burden, protect_rules, protect_slices
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET, make_cohort

LEAST = 11


def with_columns(n: int = 900, seed: int = 3) -> Cohort:
    cohort = make_cohort(n, seed=seed)
    rng = np.random.default_rng(seed)
    table = cohort.covariates
    table = table.append_column("los", pa.array(rng.integers(0, 20, n)))
    table = table.append_column("cost", pa.array(rng.lognormal(7, 1.5, n)))
    table = table.append_column("readmitted", pa.array(rng.random(n) < 0.012))
    rare = np.where(rng.random(n) < 0.008, "rare", np.where(rng.random(n) < 0.5, "a", "b"))
    table = table.append_column("site", pa.array(rare))
    table = table.append_column("person", pa.array([f"p{i // 3}" for i in range(n)]))
    return replace(cohort, covariates=table, patient="person")


@pytest.fixture(scope="module")
def whole() -> Profile:
    return profile(MODEL, with_columns(), secret=SECRET)


def told(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def test_no_count_from_one_to_ten_is_told(whole: Profile) -> None:
    shown = whole.protected(LEAST)
    assert shown.burden is not None
    assert whole.burden is not None
    counts = [shown.burden.records, shown.burden.known, shown.burden.rate_known]
    counts += [shown.burden.rate_counts, shown.burden.patients]
    counts += [one.counts for one in shown.slices]
    figures = [[one.matched, one.right, one.members, one.review] for one in shown.rules]
    every = np.concatenate([told(np.ravel(one)) for one in (*counts, np.array(figures))])
    assert not ((every > 0) & (every < LEAST)).any()
    site = next(one for one in whole.slices if one.by == "site")
    assert ((site.counts > 0) & (site.counts < LEAST)).any()
    assert ((whole.burden.rate_counts > 0) & (whole.burden.rate_counts < LEAST)).any()


def test_shares_are_those_of_counts_that_are_told(whole: Profile) -> None:
    for one in whole.protected(LEAST).slices:
        parts, total = one.counts[:, :-1], one.counts[:, -1:]
        assert np.isnan(one.share[np.isnan(parts)]).all()
        some = ~np.isnan(parts)
        assert one.share[some] == pytest.approx((parts / total)[some], abs=2e-4)
        assert np.isnan(one.standardised[np.isnan(one.share)]).all()


def test_totals_move_by_what_the_largest_record_adds(whole: Profile) -> None:
    full, shown = whole.burden, whole.protected(LEAST).burden
    assert full is not None
    assert full.cells is not None
    assert shown is not None
    moved = np.abs(shown.totals - full.totals)
    assert (moved <= 5.5 * full.cells.largest + 1e-6).all()
    assert (moved > 0).any()
    assert shown.shares[:, -1].tolist() == [1.0, 1.0]


def test_one_patient_more_or_less_is_lost_in_the_noise() -> None:
    """The difference of two totals that differ by one record says nothing of that record."""
    cohort = with_columns()
    order = np.argsort(-np.asarray(cohort.covariates["cost"]))
    target = int(order[0])
    rest = np.delete(np.arange(len(cohort)), target)
    without = cohort.among(cohort.ids.take(pa.array(rest)), "one left out")
    true = float(cohort.covariates["cost"][target].as_py())
    labels, guesses = np.arange(len(cohort)) % 2, []
    for turn in range(200):
        secret = bytes([turn]) * 32
        full = (
            gathered(one, own, 2, secret).burden(())
            for one, own in ((cohort, labels), (without, labels[rest]))
        )
        totals = [protect_burden(one, LEAST).totals[1, -1] for one in full if one is not None]
        guesses.append(totals[0] - totals[1])
    assert np.std(guesses) > 2 * true


def test_a_rule_s_figures_follow_from_told_counts(whole: Profile) -> None:
    for full, shown in zip(whole.rules, whole.protected(LEAST).rules, strict=True):
        assert shown.precision == pytest.approx(full.precision, abs=0.06)
        assert (shown.conditions, shown.otherwise) == (full.conditions, full.otherwise)


def test_parts_without_keys_are_refused(whole: Profile) -> None:
    assert whole.burden is not None
    for part, protect in (
        (whole.burden, protect_burden),
        (whole.slices[0], protect_slices),
        (whole.rules[0], protect_rules),
    ):
        with pytest.raises(InputError, match="counted without keys; fit the clusters again"):
            protect(replace(part, cells=None), LEAST)  # type: ignore[type-var, operator]
