"""Built-in cohorts, the recipes they are made by, and what simulate draws."""

import csv
import tracemalloc
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from comorb.errors import RecordsError
from comorb.records import datasets

DOCS = Path(__file__).parents[3] / "docs"
SIZES = {
    "heart_failure": [7290, 2915, 4480, 2936, 5533],
    "tertiary": [4892, 3982, 1043, 3133, 819, 2442],
}
LEADING = {
    "heart_failure": [
        "401 272 427 250 278",
        "250 440 362 404",
        "416 397 424 402 427",
        "041 599 584 404 276 518",
        "403 585 250 285",
    ],
    "tertiary": [
        "411 401 413 272 414",
        "410 414 305 401 272",
        "403 585 414 250 410",
        "154 197 162 151 288",
        "585 403 279 285 599",
        "424 416 428 397 518",
    ],
}


@pytest.fixture(scope="module", params=SIZES)
def study(request):
    return request.param, getattr(datasets, request.param)()


def test_the_cohorts_have_the_sizes_of_the_papers_tables(study):
    name, cohort = study
    truth = cohort.covariates["true_cluster"].to_numpy()
    assert np.bincount(truth)[1:].tolist() == SIZES[name]
    assert len(cohort) == sum(SIZES[name])
    assert cohort.ledger.adds_up
    assert cohort.ledger.notes[0].startswith("true clusters: 1 ")


def test_records_have_three_to_ten_codes_of_a_long_tailed_vocabulary(study):
    _, cohort = study
    counts = np.diff(cohort.matrix.indptr)
    assert (counts.min(), counts.max()) == (3, 10)
    columns = np.bincount(cohort.matrix.indices, minlength=len(cohort.codes))
    assert columns.min() > 0
    assert len(cohort.codes) > 600
    assert np.median(columns) < 0.002 * len(cohort)
    assert all(cohort.names[i] != code for i, code in enumerate(cohort.codes))


def test_the_most_relevant_codes_are_those_of_the_papers_tables(study):
    name, cohort = study
    truth = cohort.covariates["true_cluster"].to_numpy()
    overall = cohort.matrix.mean(axis=0)
    for cluster, leading in enumerate(LEADING[name], start=1):
        means = cohort.matrix[truth == cluster].mean(axis=0)
        with np.errstate(divide="ignore"):
            relevance = 0.6 * np.log(means) + 0.4 * np.log(means / overall)
        top = {cohort.codes[column] for column in np.argsort(-relevance)[:15]}
        assert set(leading.split()) <= top


def test_the_covariates_depend_on_the_cluster(study):
    _, cohort = study
    truth = cohort.covariates["true_cluster"].to_numpy()
    for column, spread in (("age", 5), ("length_of_stay", 3), ("died", 0.05)):
        values = cohort.covariates[column].to_numpy()
        means = [values[truth == cluster].mean() for cluster in np.unique(truth)]
        assert max(means) - min(means) > spread
    assert set(cohort.covariates["sex"].to_pylist()) == {"female", "male"}


def test_the_cohorts_are_always_the_same(study):
    name, cohort = study
    again = getattr(datasets, name)()
    assert np.array_equal(cohort.matrix.indices, again.matrix.indices)
    assert cohort.covariates.equals(again.covariates)


def test_every_heart_failure_record_has_heart_failure():
    cohort = datasets.heart_failure()
    assert cohort.matrix[:, [cohort.codes.index("428")]].sum() == len(cohort)


def test_a_smaller_region_begins_a_larger_one():
    small, large = list(datasets.region(70_000)), list(datasets.region(140_000))
    assert [batch.num_rows for batch in small] == [65_536, 4_464]
    assert small[0].equals(large[0])
    assert small[1].equals(large[1].slice(0, 4_464))
    assert not small[0].slice(0, 1_000).column("dx1").equals(large[1].slice(0, 1_000).column("dx1"))


def test_the_two_layouts_of_a_region_hold_the_same_codes():
    (wide,), (long,) = datasets.region(500), datasets.region(500, layout="long")
    from_wide = {
        (row["record_id"], row[f"dx{place}"])
        for row in wide.to_pylist()
        for place in range(1, 11)
        if row[f"dx{place}"]
    }
    assert from_wide == {(row["record_id"], row["code"]) for row in long.to_pylist()}
    assert long.num_rows == len(from_wide)


def test_a_region_is_not_held_in_memory():
    tracemalloc.start()
    blocks = datasets.region(10**12)
    next(blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(("n", "layout"), [(0, "wide"), (5, "tall")])
def test_a_region_needs_a_size_and_a_layout(n, layout):
    message = (
        rf"positive number of records and the layout 'wide' or 'long'; got n={n}, layout='{layout}'"
    )
    with pytest.raises(RecordsError, match=message):
        datasets.region(n, layout)


def test_background_rates_hold_no_small_counts():
    table = resources.files("comorb.records.datasets").joinpath("background_rates.csv")
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert len(rows) > 700
    for group, records in (("adults", 114_087), ("heart_failure", 16_389)):
        rates = [float(row[group]) for row in rows if row[group]]
        assert min(rates) * records > 10.9
        assert max(rates) <= 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: datasets.paper(20_000, d=30, k=4, seed=seed),
        lambda seed: datasets.record_like(20_000, k=4, seed=seed),
    ],
)
def test_simulated_data_follow_their_parameters(draw):
    data = draw(1)
    assert set(np.unique(data.matrix.data)) == {1}
    assert data.matrix.has_canonical_format
    assert data.matrix.indices.dtype == np.int32
    assert data.weights.sum() == pytest.approx(1)
    shares = np.bincount(data.labels, minlength=4) / 20_000
    np.testing.assert_allclose(shares, data.weights, atol=0.02)
    for cluster in range(4):
        rows = data.matrix[data.labels == cluster]
        error = np.sqrt(data.means[cluster] * (1 - data.means[cluster]) / rows.shape[0])
        assert np.all(
            np.abs(rows.mean(axis=0) - data.means[cluster]) < 5 * error + 3 / rows.shape[0]
        )


def test_the_seed_decides():
    first, same, other = (datasets.paper(500, d=20, k=3, seed=s) for s in (7, 7, 8))
    assert np.array_equal(first.matrix.indices, same.matrix.indices)
    assert not np.array_equal(first.matrix.indices, other.matrix.indices)


def test_codes_within_a_cluster_are_independent():
    data = datasets.paper(100_000, d=6, k=2, seed=3)
    cluster = np.argmin(data.means.max(axis=1))
    correlation = np.corrcoef(data.matrix.toarray()[data.labels == cluster], rowvar=False)
    assert np.abs(correlation - np.eye(6)).max() < 0.03


def test_paper_parameters_are_scaled_as_in_the_appendix():
    data = datasets.paper(10, d=99, k=12)
    assert data.means.max() == 1
    assert data.means.shape == (12, 99)


def test_record_like_is_as_sparse_as_records():
    data = datasets.record_like(5_000, k=6)
    assert data.matrix.shape == (5_000, 696)
    assert 3 < data.matrix.nnz / 5_000 < 8
    assert data.means.max() <= 0.9


def test_sizes_must_be_positive():
    with pytest.raises(RecordsError, match=r"at least one record, code and cluster; got n=0, d=5"):
        datasets.paper(0, d=5, k=2)
