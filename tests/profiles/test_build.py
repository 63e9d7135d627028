"""A profile is that of dense re-derivations, and the same block by block and from a file."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.model.blocks import fold_partials
from comorb.model.diagnostics import intervals, temper
from comorb.model.mixture import Mixture
from comorb.profiles import build
from comorb.profiles.assignment import Assignment
from comorb.profiles.build import RecordAccumulator, accumulate_records, check_model, profile
from comorb.profiles.noise import record_keys
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, save_cohort
from comorb.records.spec import CohortSpec
from comorb.runs.assign import BlockAccumulator, SampledAssignments, Totals
from tests.model.conftest import dense_to_blocks, draw
from tests.small_cohort import MODEL, SECRET, dense, make_cohort


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, 600)


def told(accumulator: RecordAccumulator) -> list[bytes]:
    burden = accumulator.burden(())
    assert burden is not None
    arrays = [burden.records, burden.share, burden.rate, burden.low]
    for one in accumulator.slices():
        arrays += [one.counts, one.share, one.p, one.standardised]
    return [array.tobytes() for array in arrays]


def test_blocks_of_a_file_tell_what_the_whole_does(
    labels: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = make_cohort(weighted=True)
    monkeypatch.setattr("comorb.engines.block_files.ROWS_A_GROUP", 170)
    save_cohort(cohort, tmp_path / "cohort.parquet")
    file = CohortFile.open(tmp_path / "cohort.parquet")
    parts, start = RecordAccumulator(2, SECRET), 0
    for number, size in enumerate((170, 170, 170, 90)):
        part = file.part(number, start, size)
        assert len(part) == size
        parts.add(part, labels[start : start + size])
        start += size
    assert told(parts) == told(accumulate_records(cohort, labels, 2, SECRET))
    assert [one.by for one in parts.slices()] == ["age", "sex"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sites", [5, 40])
@pytest.mark.parametrize("days", [200, 900, 3000])
def test_what_is_gathered_apart_tells_what_the_whole_does(
    labels: np.ndarray, weighted: bool, sites: int, days: int, tmp_path: Path
) -> None:
    rng, n = np.random.default_rng(days + sites), 600
    ages = rng.integers(0, 99, n) + (days == 900) * rng.integers(0, 2, n) * 0.25
    table = pa.table(
        {
            "age": pa.array(ages, mask=rng.random(n) < 0.1),
            "sex": rng.choice(["f", "m"], n),
            "site": rng.integers(0, sites, n),
            "date": pa.array(18_000 + rng.integers(0, days, n), pa.int32()).cast(pa.date32()),
            "los": rng.integers(0, 30, n),
            "died": rng.choice(["yes", "no"], n),
            "patient": rng.integers(0, 80, n).astype(str),
        }
    )
    cohort = replace(make_cohort(weighted=weighted), covariates=table, patient="patient")
    whole = accumulate_records(cohort, labels, 2, SECRET)
    picks = SampledAssignments(str(tmp_path), 7, np.array([0, 200, 400]))
    gatherer = BlockAccumulator(cohort, 2, SECRET, None, picks)
    found: list[list[Any]] = []
    for start in (400, 0, 200):
        part = assigned(labels[start : start + 200])
        one_block = replace(gatherer, cohort=Only(cohort.part(0, start, 200)))
        sent = pickle.dumps(one_block.of(start // 200, part))
        assert SECRET not in sent
        found.append(pickle.loads(sent))
    some = picks.read(Totals(np.zeros(2), np.zeros(2), np.array([7.0, 14.0]), np.eye(2)))
    assert (some.labels.tolist(), some.soft.tolist()) == (labels[::7].tolist(), [1.0, 2.0])
    assert some.second.tolist() == (1 - labels[::7]).tolist()
    assert some.keys.tolist() == record_keys(cohort, SECRET)[::7].tolist()
    back, *people = map(gatherer.finish, fold_partials(found))
    first = RecordAccumulator(2, SECRET, narrow=True)
    first += back
    assert repr(SECRET)[2:-1] not in repr(gatherer)
    assert weighted or sum(table.num_rows for table in first._tables) < n + (days == 3000)
    first.sums.counted = tuple(np.sum(some, axis=0) for some in zip(*people, strict=True))
    if not weighted:
        assert told(first) == told(whole)
    one, two = first.burden(()), whole.burden(())
    assert one.patients.tolist() == two.patients.tolist()
    assert one.totals.tobytes() == two.totals.tobytes()
    for name in ("records", "patients", "known", "rate_known", "rate_counts", "largest"):
        assert getattr(one.cells, name).tobytes() == getattr(two.cells, name).tobytes()
    for some, every in zip(first.slices(), whole.slices(), strict=True):
        assert (some.by, some.labels, some.notes) == (every.by, every.labels, every.notes)
        assert some.counts.tobytes() == every.counts.tobytes()
        assert some.cells.counts.tobytes() == every.cells.counts.tobytes()
        assert some.cells.strata_keys.tobytes() == every.cells.strata_keys.tobytes()


class Only:
    """A cohort that is one block."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort

    def part(self, block: int, start: int, size: int) -> Cohort:
        return self.cohort


def assigned(labels: np.ndarray) -> Assignment:
    nothing = np.zeros(labels.size)
    sums = np.zeros(2), np.zeros((2, 2))
    return Assignment(labels, nothing, nothing, nothing, *sums, second=1 - labels)


def test_a_part_of_a_cohort_is_those_rows(cohort: Cohort) -> None:
    part = cohort.part(1, 100, 50)
    assert part.ids.to_pylist() == cohort.ids.to_pylist()[100:150]
    assert part.matrix.toarray().tolist() == cohort.matrix[100:150].toarray().tolist()
    assert not part.numbered


def test_nothing_gathered_tells_nothing() -> None:
    empty = RecordAccumulator(2, None)
    assert empty.burden(()) is None
    assert empty.slices() == ()


def test_a_profile_has_all_three_parts(full: Profile) -> None:
    assert full.burden is not None
    assert full.burden.rates == ("died",)
    assert [one.by for one in full.slices] == ["age", "sex"]
    assert len(full.rules) == full.k


def test_records_without_covariates_have_a_burden_of_counts_alone(cohort: Cohort) -> None:
    bare = replace(cohort, covariates=pa.table({}))
    made = profile(MODEL, bare, secret=SECRET)
    assert made.burden is not None
    assert (made.burden.columns, made.burden.rates, made.slices) == ((), (), ())
    assert made.protected().burden is not None


@pytest.mark.parametrize("weighted", [False, True])
def test_sizes_shares_and_prevalence(weighted: bool) -> None:
    cohort = make_cohort(weighted=weighted)
    made = profile(MODEL, cohort)
    x, posterior = dense(cohort)
    w = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    hard = posterior.argmax(axis=1)
    for j, cluster in enumerate(made.clusters):
        rows = hard == j
        assert cluster.size == rows.sum()
        assert cluster.share == pytest.approx(w[rows].sum() / w.sum())
        assert cluster.soft_share == pytest.approx((w @ posterior)[j] / w.sum(), abs=1e-8)
        assert cluster.effective == pytest.approx(w[rows].sum() ** 2 / (w[rows] ** 2).sum(), 1e-6)
        cooler = temper(posterior, made.caveats.temperature)[rows, j]
        assert cluster.top == pytest.approx(np.average(cooler, weights=w[rows]), 1e-5)
        np.testing.assert_array_equal(made.counts[j], x[rows].sum(axis=0))
        np.testing.assert_allclose(made.prevalence[j], np.average(x[rows], axis=0, weights=w[rows]))
    np.testing.assert_allclose(made.overall, np.average(x, axis=0, weights=w))
    np.testing.assert_allclose(made.lift, made.prevalence / made.overall)
    assert made.source.weight == (w.sum() if weighted else None)


def test_a_fitted_estimator_stands_for_its_mixture(cohort: Cohort) -> None:
    fitted = BernoulliMixture(2).fit(cohort)
    assert profile(fitted, cohort).to_json() == profile(fitted.mixture_, cohort).to_json()
    for model, records in ((BernoulliMixture(2), cohort), (fitted, cohort.matrix)):
        with pytest.raises(InputError, match="fit the estimator first, and give the Cohort"):
            profile(model, records)  # type: ignore[arg-type]


def test_a_single_cluster_has_no_doubts(cohort: Cohort) -> None:
    made = profile(Mixture(np.ones(1), cohort.matrix.toarray().mean(axis=0)[None]), cohort)
    (only,) = made.clusters
    assert (only.size, only.top, only.margin, only.entropy) == (len(cohort), 1, 1, 0)


def test_source_says_what_was_clustered(full: Profile, cohort: Cohort) -> None:
    source = full.source
    assert (source.records, source.features) == (600, 8)
    assert (source.title, source.reason, source.command) == (
        "Test",
        "asked for",
        "comorb fit x.csv",
    )
    assert source.lines == cohort.ledger.lines
    assert source.digest == profile(MODEL, make_cohort()).source.digest
    assert source.digest != profile(MODEL, make_cohort(weighted=True)).source.digest


def test_the_order_of_the_records_does_not_matter(cohort: Cohort) -> None:
    order = np.random.default_rng(3).permutation(len(cohort))
    shuffled = replace(
        cohort,
        matrix=cohort.matrix[order],
        ids=cohort.ids.take(pa.array(order)),
        covariates=cohort.covariates.take(pa.array(order)),
    )
    one, two = profile(MODEL, cohort), profile(MODEL, shuffled)
    assert one.heatmap == two.heatmap
    assert one.clusters == two.clusters
    np.testing.assert_array_equal(one.prevalence, two.prevalence)


def test_an_empty_cluster_has_no_confidence_and_no_lines(cohort: Cohort) -> None:
    weights, means = np.append(MODEL.weights, 0), np.vstack([MODEL.means, np.full(8, 0.5)])
    made = profile(Mixture(weights, means), cohort, secret=SECRET)
    empty = made.clusters[2]
    assert (empty.name, empty.size, empty.share, empty.top) == ("Cluster 3", 0, 0, None)
    assert made.heatmap.lines[2] == 0
    assert made.protected(11).clusters[2].size is None
    assert Profile.from_json(made.to_json()).clusters == made.clusters


def test_deaths_and_readmissions_of_a_file_are_those_that_pandas_counts() -> None:
    rng = np.random.default_rng(8)
    n = 900
    sick = rng.random(n) < 0.4
    draw = lambda p: rng.random(n) < np.where(sick, p, 1 - p)  # noqa: E731 - one line a column
    codes = {f"dx{i}": np.where(draw(p), code, "") for i, (code, p) in enumerate(
        [("4280", 0.9), ("5849", 0.8), ("4019", 0.2), ("2724", 0.1), ("25000", 0.6)]
    )}  # fmt: skip
    table = pd.DataFrame(
        {
            "visit_id": [f"v{i}" for i in range(n)],
            "tipalt": np.where(rng.random(n) < np.where(sick, 0.2, 0.02), "4", "1"),
            "reingreso": rng.choice(["NO", ">30", "<30"], n, p=[0.5, 0.3, 0.2]),
            "muerte": rng.choice(["1", "2"], n),
            "days_of_care": rng.poisson(np.where(sick, 9, 4)),
            **codes,
        }
    )
    cohort = CohortSpec(at_least=1).cohort(table)
    made = profile(BernoulliMixture(2).fit(cohort), cohort)
    burden = made.burden
    assert burden is not None
    assert burden.rates == ("died", "readmitted")
    whole = table[table["visit_id"].isin(cohort.ids.to_pylist())]
    assert burden.rate_counts[0, -1] == (whole["tipalt"] == "4").sum()
    assert burden.rate_counts[1, -1] == (whole["reingreso"] == "<30").sum()
    assert burden.rate_known[:, -1].tolist() == [len(whole)] * 2
    assert burden.totals[0, -1] == whole["days_of_care"].sum()
    kinds = {one.name: (one.kind, one.values) for one in made.outcomes}
    assert kinds["muerte"] == ("share", ("1", "2"))
    assert any("column 'muerte' may say who died" in note for note in made.source.notes)


def with_twins(cohort: Cohort) -> Cohort:
    """Return the cohort with its second code carried by all who carry its last."""
    matrix = cohort.matrix.toarray()
    matrix[:, 1] = np.maximum(matrix[:, 1], matrix[:, 2])
    return replace(cohort, matrix=sparse.csr_array(matrix))


def test_codes_that_come_together_are_told_and_make_the_model_less_sure(cohort: Cohort) -> None:
    plain, twins = (
        check_model(MODEL, cohort.blocks()),
        check_model(MODEL, with_twins(cohort).blocks()),
    )
    (first, *_) = twins.caveats.pairs
    x = with_twins(cohort).matrix.toarray()
    assert (first.first, first.second) == (1, 2)
    assert first.observed == (x[:, 1] * x[:, 2]).sum()
    assert first.expected < first.observed
    assert twins.caveats.temperature < plain.caveats.temperature <= 1


def test_intervals_are_for_the_effective_number_of_records(cohort: Cohort) -> None:
    plain = check_model(MODEL, cohort.blocks())
    np.testing.assert_array_equal(plain.low, intervals(MODEL, cohort.blocks())[0])
    even = check_model(MODEL, replace(cohort, weights=np.full(len(cohort), 50.0)).blocks())
    np.testing.assert_allclose(even.high - even.low, plain.high - plain.low, rtol=0.01)
    uneven = np.where(np.arange(len(cohort)) % 2, 99.0, 1.0)
    wide = check_model(MODEL, replace(cohort, weights=uneven).blocks())
    assert np.median((wide.high - wide.low) / (plain.high - plain.low)) > 1.2


def test_the_order_of_records_and_the_blocks_change_no_bit() -> None:
    model = Mixture(np.array([0.5, 0.5]), np.array([[0.6, 0.2, 0.1], [0.1, 0.5, 0.4]]))
    matrix, _ = draw(model, 400)
    rows = np.random.default_rng(0).permutation(400)
    one = check_model(model, dense_to_blocks(matrix))
    other = check_model(model, dense_to_blocks(matrix[rows], block_rows=90))
    assert one.caveats == other.caveats
    assert one.low.tobytes() == other.low.tobytes()
    assert one.lengths.tobytes() == other.lengths.tobytes()


def test_no_pairs_are_looked_for_among_very_many_codes(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "DENSE_COLUMNS", 7)
    assert check_model(MODEL, with_twins(cohort).blocks()).caveats.pairs == ()


def test_lengths_go_to_the_clusters_of_the_profile(full: Profile, cohort: Cohort) -> None:
    lengths = cohort.matrix.toarray().sum(axis=1)
    assert full.caveats.length == pytest.approx(lengths.mean(), abs=1e-3)
    assert all(cluster.length > 0 and 0 <= cluster.of_length <= 1 for cluster in full.clusters)


def test_pairs_are_told_in_protected_counts(cohort: Cohort) -> None:
    made = profile(MODEL, with_twins(cohort), secret=SECRET)
    least = sorted(pair.observed for pair in made.caveats.pairs)[0] + 1
    assert made.caveats.pairs
    shown = made.protected(least).caveats.pairs
    assert all(pair.observed >= least for pair in shown)
    assert len(shown) < len(made.caveats.pairs)
    weighted = replace(with_twins(cohort), weights=np.full(len(cohort), 2.0))
    assert profile(MODEL, weighted, secret=SECRET).protected(11).caveats.pairs == ()
