"""The whole way of a mixed cohort: read, fit, choose, describe, assign, compare, out of memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from comorb.errors import RecordsError
from comorb.model.diagnostics import adjusted_rand
from comorb.profiles.profile import Profile
from comorb.records.cohort_file import CohortFile, save_cohort
from comorb.records.spec import CohortSpec
from comorb.runs.assign import assign_records
from comorb.runs.choose import splits
from comorb.runs.cohorts import open_cohort
from comorb.runs.compare import compare_runs
from comorb.runs.edit import Revision, merge_components
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.run import Request, choose_number, fit_records
from comorb.runs.stability import stability
from comorb.storage import load_model
from tests.mixed import PREPARATION, SECRET, mixed_table

REQUEST = Request(3, PREPARATION, repeats=0, secret=SECRET)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "visits.csv"
    pacsv.write_csv(mixed_table()[0], path)
    return path


@pytest.fixture(scope="module")
def fitted(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit_records(records, folder, REQUEST)
    return folder


def test_a_run_finds_the_clusters_by_codes_and_features(fitted):
    found = RunFolder(fitted).load_assignments()["cluster"].to_numpy()
    assert adjusted_rand(mixed_table()[1], found) > 0.85
    profile = load_profile(fitted)
    assert [one.name for one in profile.features] == ["age", "sex", "visits", "hba1c"]
    assert sum(profile.influence.values()) == pytest.approx(1)
    assert [outcome.name for outcome in profile.outcomes] == ["died"]
    assert "--feature age --feature sex --feature visits=count" in REQUEST.words("visits.csv")


def test_out_of_memory_gives_the_same_bits(records, fitted, tmp_path):
    profile = fit_records(records, tmp_path / "file", REQUEST, memory="1GB")
    one, two = (load_model(folder / "model.comorb") for folder in (fitted, tmp_path / "file"))
    assert one.mixture.key == two.mixture.key
    assert one.data_hash == two.data_hash
    assert profile.to_json() == (fitted / "profile.json").read_text()
    assignments = [folder / "assignments.csv" for folder in (fitted, tmp_path / "file")]
    assert assignments[0].read_bytes() == assignments[1].read_bytes()


def test_the_order_of_rows_does_not_matter(records, fitted, tmp_path):
    table = pacsv.read_csv(records)
    turned = table.take(np.random.default_rng(0).permutation(len(table)))
    fit_records(turned, tmp_path / "run", REQUEST)
    one, two = (load_model(folder / "model.comorb") for folder in (fitted, tmp_path / "run"))
    assert one.mixture.key == two.mixture.key
    assert one.data_hash == two.data_hash


def test_new_records_are_assigned_as_they_were_prepared(records, fitted, tmp_path):
    tally = assign_records(fitted, records, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (fitted / "assignments.csv").read_bytes()
    assign_records(fitted, records, tmp_path / "parts.csv", memory="1GB")
    assert (tmp_path / "parts.csv").read_bytes() == (fitted / "assignments.csv").read_bytes()
    assert tally.sizes.sum() == 360


def test_a_level_that_the_model_has_not_seen_is_missing(fitted, tmp_path):
    table = mixed_table(50, seed=8)[0]
    place = table.column_names.index("sex")
    other = table.set_column(place, "sex", pa.array(["X"] * 20 + ["F"] * 30))
    tally = assign_records(fitted, other, tmp_path / "new.csv")
    note = "20 records have a value of 'sex' that the model has not seen, which counts as missing"
    assert note in tally.ledger.notes
    with pytest.raises(RecordsError, match="No column 'hba1c' is there to be a feature"):
        assign_records(fitted, table.drop_columns(["hba1c"]), tmp_path / "less.csv")
    texts = table.set_column(place, "sex", table["sex"])
    text = texts.set_column(texts.column_names.index("hba1c"), "hba1c", pa.array(["high"] * 50))
    with pytest.raises(RecordsError, match="The column 'hba1c' holds texts"):
        assign_records(fitted, text, tmp_path / "text.csv")


def test_choosing_a_number_looks_at_features(records):
    with open_cohort(records, PREPARATION) as cohort:
        choice = choose_number(cohort, [2, 3, 4])
        assert choice.best == 3
        assert splits(choice, cohort.codes, cohort.names, cohort.system)


def test_clusters_come_out_again_with_their_features(records, fitted):
    with open_cohort(records, PREPARATION) as cohort:
        model = load_model(fitted / "model.comorb").mixture
        found = stability(cohort.matrix, model, repeats=1, features=cohort.features)
    assert min(found.jaccard) > 0.8


def test_runs_are_compared_by_codes_and_signs(fitted, records, tmp_path):
    plain = replace(REQUEST, preparation=CohortSpec(at_least=1))
    fit_records(records, tmp_path / "codes", plain)
    compared = compare_runs(fitted, tmp_path / "codes")
    assert compared.comparison.ari is not None
    assert compared.followed == 360
    assert set(compared.comparison.codes) == {"250", "272", "401", "428", "496", "585"}
    same = compare_runs(fitted, fitted, 0, True, SECRET)
    assert "sex=F" in same.comparison.codes
    others = replace(REQUEST, preparation=replace(PREPARATION, without=("496",)))
    fit_records(records, tmp_path / "others", others)
    assert compare_runs(fitted, tmp_path / "others").comparison.ari is None


def test_clusters_are_merged_by_hand_with_their_features(fitted, records, tmp_path):
    with open_cohort(records, PREPARATION) as cohort:
        made, groups = Revision(RunFolder(fitted), cohort, secret=SECRET).merge(
            (1, 2), tmp_path / "merged"
        )
    assert (made.k, sorted(set(groups))) == (2, [1, 3])
    assert isinstance(load_profile(tmp_path / "merged"), Profile)
    whole = load_model(fitted / "model.comorb").mixture
    model = merge_components(whole, [1, 1, 1])
    for variable, of_all in zip(model.variables, whole.variables, strict=True):
        assert variable == of_all
    rates = model.described()["visits"]["mean"]
    each = whole.described()["visits"]["mean"]
    assert rates[0] == pytest.approx(whole.weights @ each)


def test_a_later_run_keeps_numbers(fitted, records, tmp_path):
    request = replace(REQUEST, earlier=(load_profile(fitted),))
    again = fit_records(records, tmp_path / "later", request)
    assert again.numbers == load_profile(fitted).numbers


def test_a_cohort_file_with_features_is_a_source(records, fitted, tmp_path):
    with open_cohort(records, PREPARATION) as cohort:
        save_cohort(cohort, tmp_path / "cohort.parquet")
        assert CohortFile.open(tmp_path / "cohort.parquet").digest() == cohort.digest()
    plain = replace(REQUEST, preparation=CohortSpec())
    fit_records(tmp_path / "cohort.parquet", tmp_path / "run", plain)
    one, two = (load_model(folder / "model.comorb") for folder in (fitted, tmp_path / "run"))
    assert one.mixture.key == two.mixture.key


def test_features_alone_are_enough(tmp_path):
    table = mixed_table()[0].select(["id", "age", "sex", "visits", "hba1c"])
    preparation = CohortSpec(features=PREPARATION.features)
    profile = fit_records(table, tmp_path / "run", replace(REQUEST, preparation=preparation))
    assert profile.n_codes == 0
    assert profile.influence["codes"] == pytest.approx(0, abs=1e-6)
    assert all(name for name in profile.cluster_names)
    assert profile.heatmap.columns
