"""A cohort: its rules, its views and its records as tables of pandas, polars and Arrow."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comorb import datasets, read_records
from comorb.errors import InputError, RecordsError
from comorb.records.features import FeatureSpec
from comorb.records.ledger import Ledger
from tests.records.helpers import make


@pytest.fixture
def cohort():
    return make(
        [[1, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]],
        ("250", "428", "V58", "585"),
        age=[70, 40, None, 90],
        sex=["Female", "male", "male", None],
        date=[date(2009, 4, 12), date(2009, 8, 31), None, date(2010, 1, 1)],
        region=["west", "south", "west", None],
    )


def test_having_and_without_are_complements(cohort):
    with_it, without_it = cohort.having("428"), cohort.without("428")
    assert with_it.ids.to_pylist() == ["r0", "r1", "r3"]
    assert without_it.ids.to_pylist() == ["r2"]
    assert without_it.codes == ("V58", "585")
    assert without_it.names == ("name of V58", "name of 585")
    assert without_it.weights.tolist() == [3.0]
    assert without_it.matrix.toarray().tolist() == [[1, 1]]


def test_having_any_of_several(cohort):
    assert cohort.having("250", "V58").ids.to_pylist() == ["r0", "r2", "r3"]


def test_records_are_kept_by_their_ids(cohort):
    inside = cohort.among(pa.array(["r3", "r1", "other"]), "inside cluster 2")
    assert inside.ids.to_pylist() == ["r1", "r3"]
    assert inside.ledger.chain("records")[-1].rule == "inside cluster 2"


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        (slice(1, 3), ["r1", "r2"]),
        ([3, 0], ["r3", "r0"]),
        ([1, 1, 2], ["r1", "r1", "r2"]),
        (-1, ["r3"]),
        (np.array([True, False, False, True]), ["r0", "r3"]),
        ((np.array([2]), ...), ["r2"]),
    ],
)
def test_records_are_taken_by_their_places_with_all_codes(cohort, rows, ids):
    taken = cohort[rows]
    assert taken.ids.to_pylist() == ids
    assert taken.shape == (len(ids), 4)
    places = [int(one[1]) for one in ids]
    assert taken.matrix.toarray().tolist() == cohort.matrix.toarray()[places].tolist()
    assert taken.covariates["age"].to_pylist() == [[70, 40, None, 90][place] for place in places]


def test_a_finer_code_names_the_one_above_it_first(cohort):
    with pytest.raises(RecordsError, match=r"The nearest are 428"):
        cohort.having("428.0")


def test_a_prefix_matches_full_codes_only():
    rows = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    full = make(rows, ("428.0", "428.1", "250.00"), level="full")
    assert full.having("428").ids.to_pylist() == ["r0", "r1"]
    assert full.having("4281").ids.to_pylist() == ["r1"]
    opaque = make(rows, ("4281", "428", "250"), level="full", system="opaque")
    assert opaque.having("428").ids.to_pylist() == ["r1"]


def test_an_unknown_code_names_the_nearest(cohort):
    with pytest.raises(RecordsError, match=r"No record has the code '427' at .* nearest are 428"):
        cohort.having("427")


def test_the_nearest_codes_are_those_of_all_records():
    cohort = make([[1, 1, 0], [0, 0, 1]], ("428", "250", "427"))
    few = cohort.having("250")
    assert few.codes == ("428", "250")
    assert few.gone == ("427",)
    assert len(few.without("427")) == 1
    with pytest.raises(RecordsError, match="nearest are 428, 427"):
        few.having("429")


def test_where(cohort):
    assert cohort.where(age=(60, 80)).ids.to_pylist() == ["r0"]
    assert cohort.where(age=(60, None)).ids.to_pylist() == ["r0", "r3"]
    assert cohort.where(age=(None, 40)).ids.to_pylist() == ["r1"]
    assert cohort.where(sex="female").ids.to_pylist() == ["r0"]
    assert cohort.where(sex=["female", "male"], age=(0, 50)).ids.to_pylist() == ["r1"]
    assert cohort.where(dates=("2009-05-01", date(2009, 12, 31))).ids.to_pylist() == ["r1"]
    assert cohort.where(age=(60, None)).ledger.lines[-1].rule == "age from 60"


def test_where_without_the_column_or_with_dates_as_text(cohort):
    with pytest.raises(RecordsError, match="no covariate 'sex'; it has: none"):
        make([[1]]).where(sex="male")
    with pytest.raises(RecordsError, match="'date' doesn't hold dates as YYYY-MM-DD"):
        make([[1]], date=["Monday"]).where(dates=("2009-01-01", None))


def test_at_least(cohort):
    assert cohort.at_least(3).ids.to_pylist() == ["r0", "r3"]


def test_no_record_left(cohort):
    with pytest.raises(RecordsError, match="No record is left after the rule 'at least 9 codes'"):
        cohort.at_least(9)


def test_dropping_codes_keeps_every_record(cohort):
    assert cohort.drop_codes("428").codes == ("250", "V58", "585")
    assert cohort.drop_rare(3).codes == ("428", "585")
    universal = cohort.drop_universal()
    assert universal.codes == ("250", "428", "V58")
    assert universal.matrix.toarray().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert len(universal) == 4


def test_codes_in_a_list_are_refused(cohort):
    with pytest.raises(
        InputError, match=r"one after the other, such as \('428', '585'\), got list"
    ):
        cohort.drop_codes(["428", "585"])


def test_split(cohort):
    parts = cohort.split("region")
    assert list(parts) == ["south", "west", "missing"]
    assert [len(part) for part in parts.values()] == [1, 2, 1]
    assert parts["west"].ledger.lines[-1].rule == "region = west"


def test_a_cohort_checks_its_sizes(cohort):
    with pytest.raises(InputError, match="4 records × 4 codes needs 4 for names, not 1"):
        replace(cohort, names=("one",))
    with pytest.raises(InputError, match="needs 4 for the ledger's records, not 9"):
        replace(cohort, ledger=Ledger.start(9, 4))


def test_repr_holds_no_patient(cohort):
    assert repr(cohort) == "<Cohort: 4 records × 4 codes, icd9cm category>"


@given(
    st.lists(
        st.sampled_from(["having", "without", "at_least", "rare", "universal", "age"]), max_size=6
    ),
    st.integers(0, 2**32 - 1),
)
def test_the_ledger_adds_up_after_any_operations(steps, seed):
    rng = np.random.default_rng(seed)
    cohort = make(rng.random((20, 6)) < 0.5, age=rng.integers(0, 100, 20))
    for step in steps:
        try:
            match step:
                case "having":
                    cohort = cohort.having(cohort.codes[0]) if cohort.codes else cohort
                case "without":
                    cohort = cohort.without(cohort.codes[-1]) if cohort.codes else cohort
                case "at_least":
                    cohort = cohort.at_least(2)
                case "rare":
                    cohort = cohort.drop_rare(4)
                case "universal":
                    cohort = cohort.drop_universal()
                case "age":
                    cohort = cohort.where(age=(20, 80))
        except RecordsError as error:
            assert "No record is left" in str(error)  # noqa: PT017
        assert cohort.ledger.adds_up
        assert cohort.matrix.has_canonical_format
        assert cohort.matrix.dtype == np.uint8
        assert cohort.matrix.indices.dtype == np.int32
        removed = sum(line.removed for line in cohort.ledger.chain("records"))
        assert removed + len(cohort) == 20


def test_a_sex_is_asked_for_in_any_words():
    cohort = make([[1, 0], [0, 1], [1, 1]], sex=["Mujer", "Hombre", None])
    assert len(cohort.where(sex="F")) == len(cohort.where(sex="female")) == 1
    assert len(cohort.where(sex=["mujer", "male"])) == 1
    numbers = make([[1, 0], [0, 1]], sex=["1", "2"])
    assert len(numbers.where(sex="2")) == 1
    with pytest.raises(RecordsError, match="No record is left after the rule 'sex F'"):
        numbers.where(sex="F")


def test_ages_that_stayed_text_can_not_be_compared():
    cohort = make([[1, 0], [0, 1]], age=["adult", "child"])
    with pytest.raises(RecordsError, match="The column 'age' doesn't hold ages that can be"):
        cohort.where(age=(65, None))


def test_a_part_has_the_features_of_its_own_records(cohort):
    mixed = cohort.with_features(FeatureSpec("age", "number"))
    part = mixed.part(0, 1, 2)
    assert part.ids.to_pylist() == mixed.ids.to_pylist()[1:3]
    np.testing.assert_array_equal(part.features.values, mixed.features.values[1:3])
    kept = mixed.among(mixed.ids.slice(1, 2), "some")
    np.testing.assert_array_equal(kept.features.values, part.features.values)


@pytest.fixture(scope="module")
def sample():
    return read_records(pa.Table.from_batches(datasets.region(500))).having("585")


def test_the_records_are_a_table(sample):
    table = sample.to_arrow()
    assert table.column_names[:2] == ["id", "codes"]
    assert table["id"].to_pylist() == sample.ids.to_pylist()
    for row in (0, 11, len(sample) - 1):
        places = sample.matrix[[row]].indices
        assert table["codes"][row].as_py() == [sample.codes[i] for i in places]
    assert set(sample.covariates.column_names) <= set(table.column_names)
    assert len(sample.to_pandas()) == sample.to_polars().height == len(sample)


def test_weights_have_their_column(sample):
    weighted = replace(sample, weights=2.0 * (1 + sample.matrix.sum(axis=1)))
    assert weighted.to_arrow()["weight"].to_pylist() == weighted.weights.tolist()


def test_a_notebook_shows_common_codes_and_no_record(sample):
    marked = replace(sample, ids=pa.array([f"secret {i}" for i in range(len(sample))]))
    text = marked._repr_html_()
    assert "secret" not in text
    assert f"{len(sample):,} records" in text
    assert text.count("<tr>") == 11


def test_the_items_have_their_name_of_version_0_1(cohort):
    own = replace(cohort, items=(FeatureSpec("age", "number"),))
    with pytest.warns(DeprecationWarning, match=r"Cohort\.asked is Cohort\.items now"):
        assert own.asked == own.items
