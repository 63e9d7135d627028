"""Features: covariates that the model learns from, of every kind, and what can't be one."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.model.emissions.base import Feature
from comorb.records.cohort_file import CohortFile, load_cohort, save_cohort
from comorb.records.features import MISSING_NOTE, OTHERS, FeatureSpec, parse_features, write_feature
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import make

N = 40


def visits(**columns):
    """Records of three codes each, with columns beside them."""
    codes = [["428", "250", "401"], ["428", "585", "276"], ["250", "585", "496"]]
    rows = {f"dx{place + 1}": [codes[row % 3][place] for row in range(N)] for place in range(3)}
    return pa.table({"id": [f"r{row:02}" for row in range(N)], **rows, **columns})


AGES = [40.0 + row for row in range(N)]
SEXES = ["F" if row % 2 else "M" for row in range(N)]


def features_of(cohort):
    return {one.name: one for one in cohort.features.features}


def test_kinds_are_recognised_and_noted():
    table = visits(
        age=AGES,
        sex=SEXES,
        smoker=["yes" if row % 3 else "no" for row in range(N)],
        ventilated=[row % 2 for row in range(N)],
        visits=[row % 7 for row in range(N)],
        hba1c=[5.5 + row / 10 for row in range(N)],
        ward=["ABC"[row % 3] for row in range(N)],
    )
    names = ["age", "sex", "smoker", "ventilated", "visits", "hba1c", "ward"]
    cohort = read_records(table, features=names)
    found = features_of(cohort)
    kinds = {name: one.kind for name, one in found.items()}
    assert kinds == {
        "age": "number",
        "sex": "category",
        "smoker": "binary",
        "ventilated": "binary",
        "visits": "number",
        "hba1c": "number",
        "ward": "category",
    }
    assert found["ward"].levels == ("A", "B", "C")
    assert found["smoker"].levels == ("no", "yes")
    assert cohort.features.values[:3].tolist() == [
        [40, 1, 0, 0, 0, 5.5, 0],
        [41, 0, 1, 1, 1, 5.6, 1],
        [42, 1, 1, 0, 2, 5.7, 2],
    ]
    notes = cohort.ledger.notes
    assert (
        "the feature 'visits' is of the kind number, as recognised (its numbers are whole: say "
        "visits=count if it counts something); 0 of 40 records miss it"
    ) in notes
    assert (
        "the feature 'age' is of the kind number, as recognised; 0 of 40 records miss it" in notes
    )
    assert notes[-1] == MISSING_NOTE
    assert repr(cohort) == "<Cohort: 40 records × 6 codes and 7 features, icd9cm category>"


def test_what_is_missing_stays_missing_and_is_counted():
    ages = [None if row in (3, 4) else age for row, age in enumerate(AGES)]
    lab = [float("nan") if row == 9 else row + 0.5 for row in range(N)]
    sexes = ["" if row == 2 else sex for row, sex in enumerate(SEXES)]
    cohort = read_records(visits(age=ages, lab=lab, sex=sexes), features=["age", "lab", "sex"])
    gaps = np.argwhere(np.isnan(cohort.features.values)).tolist()
    assert gaps == [[2, 2], [3, 0], [4, 0], [9, 1]]
    assert any(
        "'age'" in note and "2 of 40 records miss it" in note for note in cohort.ledger.notes
    )


def test_said_kinds_stand():
    table = visits(
        stays=[row % 5 for row in range(N)],
        site=[row % 4 for row in range(N)],
        group=[1 + row % 2 for row in range(N)],
        cost=[10.0 ** (row % 4) for row in range(N)],
    )
    asked = {"stays": "count", "site": "category", "group": "binary", "cost": "number:log"}
    cohort = read_records(table, features=asked)
    found = features_of(cohort)
    assert [found[name].kind for name in asked] == ["count", "category", "binary", "number"]
    assert found["site"].levels == ("0", "1", "2", "3")
    assert found["group"].levels == ("1", "2")
    assert found["cost"].transform == "log"
    assert any("'2' was read as yes" in note for note in cohort.ledger.notes)


def test_a_category_of_many_levels_keeps_the_most_common():
    wards = [f"w{row:02}" if row > 29 else f"w{row % 7:02}" for row in range(N)]
    cohort = read_records(visits(ward=wards), features={"ward": "category"})
    (ward,) = cohort.features.features
    assert ward.levels[-1] == OTHERS
    assert len(ward.levels) == 8
    places = cohort.features.values[:, 0]
    assert (places[30:] == 7).all()
    assert (places[:30] == np.arange(30) % 7).all()
    assert any("10 of its 17 levels are rare" in note for note in cohort.ledger.notes)


TWENTY = [f"text {row}" for row in range(N)]
BAD = [
    (
        "hba1c=number",
        [float("inf"), *AGES[1:]],
        "'hba1c' holds numbers that are infinite; correct them",
    ),
    ("hba1c", [7.0] * N, "'hba1c' holds one value only, which can't tell records apart; leave it"),
    ("ward", ["A"] * N, "'ward' holds one value only"),
    (
        "hba1c",
        [1.0, 2.0, *[None] * (N - 2)],
        "'hba1c' holds a value in hardly any record, which can't tell",
    ),
    ("hba1c=number", ["<5", *map(str, AGES[1:])], "'hba1c' holds texts, and the kind 'number'"),
    ("visits=count", [-1, *range(1, N)], "'visits' holds numbers that are below 0 or not whole"),
    ("visits=count", [0.5, *AGES[1:]], "not whole, and a count has none; say visits=number"),
    ("ward=binary", ["ABC"[row % 3] for row in range(N)], "3 different values, and a binary"),
    ("ward", TWENTY, "a text of its own in most records, which is no kind of feature"),
    ("cost=number:log", [0.0, *AGES[1:]], "numbers of 0 or less, which have no logarithm"),
    ("day", [f"2010-01-{1 + row % 28:02}" for row in range(N)], "days or lists, which can't be"),
]


@pytest.mark.parametrize(("asked", "column", "message"), BAD)
def test_what_can_not_be_a_feature_is_refused(asked, column, message):
    table = visits(**{asked.partition("=")[0]: column})
    if asked == "day":
        table = table.rename_columns([*table.column_names[:-1], "date"])
        asked = "date"
    with pytest.raises(RecordsError, match=message):
        read_records(table, features=[asked])


def test_too_many_texts_are_refused(monkeypatch):
    monkeypatch.setattr("comorb.records.features._MAX_TEXTS", 30)
    with pytest.raises(RecordsError, match="'note' holds more than 30 different texts"):
        read_records(visits(note=TWENTY), features={"note": "category"})


def test_a_feature_that_is_no_column_is_refused_by_name():
    message = "No column 'agee' is there to be a feature; the nearest are 'age'"
    with pytest.raises(RecordsError, match=message):
        read_records(visits(age=AGES), features=["agee"])
    with pytest.raises(RecordsError, match="there are none"):
        read_records(visits(), features=["age"])


def test_a_column_is_found_by_its_own_name_and_by_its_role():
    table = visits(days_of_care=[1 + row % 9 for row in range(N)])
    for name in ("los", "days_of_care"):
        assert features_of(read_records(table, features={name: "count"})).keys() == {"los"}


def test_operations_carry_features():
    values = pa.array([1.0, 2.0, None, 4.0])
    groups = pa.array(["a", "b", "a", "b"])
    dense = [[1, 0], [1, 1], [0, 1], [1, 1]]
    cohort = make(dense, lab=values, g=groups).with_features(FeatureSpec("lab"), FeatureSpec("g"))
    assert cohort.having("251").features.values[:, 1].tolist() == [1, 0, 1]
    assert cohort.split("g")["a"].features.values[:, 0].tolist()[0] == 1.0
    assert cohort.drop_codes("250").features is cohort.features
    with pytest.raises(ValueError, match="needs 4 for features"):
        type(cohort)(**{**vars(cohort), "features": cohort.having("251").features})


def test_kinds_and_levels_are_those_of_the_records_that_are_kept():
    sexes = ["F" if row < 30 else "M" for row in range(N)]
    wards = ["ABC"[row % 3] if row < 30 else "D" for row in range(N)]
    table = visits(sex=sexes, ward=wards)
    kept = CohortSpec(sex=("F",), features=(FeatureSpec("ward"),)).cohort(table)
    assert kept.features.features[0].levels == ("A", "B", "C")
    with pytest.raises(RecordsError, match="'sex' holds one value only"):
        CohortSpec(sex=("F",), features=(FeatureSpec("sex"),)).cohort(table)


def test_a_level_unseen_at_fit_is_missing_with_a_note():
    model = Feature("ward", "category", ("A", "B"))
    table = visits(ward=["ABC"[row % 3] for row in range(N)])
    cohort = CohortSpec(features=(model,)).cohort(table)
    assert np.isnan(cohort.features.values[:, 0]).sum() == 13
    assert cohort.features.features == (model,)
    note = "13 records have a value of 'ward' that the model has not seen, which counts as missing"
    assert note in cohort.ledger.notes
    rare = Feature("ward", "category", ("A", OTHERS))
    cohort = CohortSpec(features=(rare,)).cohort(table)
    assert cohort.features.values[:3, 0].tolist() == [0, 1, 1]


def test_a_feature_of_a_model_that_became_text_is_refused():
    model = Feature("hba1c", "number")
    with pytest.raises(RecordsError, match="'hba1c' holds texts"):
        CohortSpec(features=(model,)).cohort(visits(hba1c=["high", "low"] * (N // 2)))


def test_a_table_of_features_alone_is_a_cohort():
    table = visits(age=AGES, lab=[row % 13 + 0.5 for row in range(N)]).select(["id", "age", "lab"])
    cohort = read_records(table, features=["age", "lab"])
    assert cohort.matrix.shape == (N, 0)
    assert list(features_of(cohort)) == ["age", "lab"]


def mixed(rows):
    return pa.table(
        {
            "id": [f"r{row:04}" for row in range(rows)],
            "dx1": ["428" if row % 2 else "250" for row in range(rows)],
            "dx2": ["401" if row % 3 else "585" for row in range(rows)],
            "dx3": ["496" if row % 5 else "276" for row in range(rows)],
            "age": [None if row % 11 == 0 else 30.5 + row % 60 for row in range(rows)],
            "sex": ["F" if row % 4 else "M" for row in range(rows)],
            "ward": [f"w{row % 17}" for row in range(rows)],
        }
    )


def test_parts_give_the_same_features_as_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("comorb.records.stream.PART_ROWS", 100)
    monkeypatch.setattr("comorb.engines.block_files.ROWS_A_GROUP", 128)
    asked = (FeatureSpec("age"), FeatureSpec("sex"), FeatureSpec("ward", "category"))
    preparation = CohortSpec(without=("585",), drop_codes=("276",), features=asked, at_least=2)
    table = mixed(1000)
    whole = preparation.cohort(table)
    write_cohort(table, tmp_path / "parts.parquet", preparation, "1GB")
    parts = load_cohort(tmp_path / "parts.parquet")
    assert parts.features.features == whole.features.features
    np.testing.assert_array_equal(parts.features.values, whole.features.values)
    assert parts.ledger.notes == whole.ledger.notes
    assert parts.digest() == whole.digest() == CohortFile.open(tmp_path / "parts.parquet").digest()
    assert parts.covariates.column_names == whole.covariates.column_names


def test_a_file_keeps_features(tmp_path):
    cohort = read_records(mixed(60), features=["age", "sex"])
    save_cohort(cohort, tmp_path / "cohort.parquet")
    again = load_cohort(tmp_path / "cohort.parquet")
    assert again.features.features == cohort.features.features
    np.testing.assert_array_equal(again.features.values, cohort.features.values)
    assert again.covariates.equals(cohort.covariates)
    older = read_records(mixed(60))
    assert older.digest() != cohort.digest()
    rules = CohortSpec(without=("585",)).apply(again)
    assert [one.name for one in rules.features.features] == ["age", "sex"]


def test_features_can_come_from_a_table_beside_the_records():
    rows = visits()
    stays = pa.table({"id": rows["id"], "weight_kg": [50.5 + row for row in range(N)]})
    cohort = read_records({"diagnosis": rows, "visit": stays}, features=["weight_kg"])
    assert cohort.features.values[:, 0].tolist() == [50.5 + row for row in range(N)]


@pytest.mark.parametrize("text", ["age=numbr", "=number", "age=count:log", "age=number:cube", "a="])
def test_a_feature_is_asked_for_in_one_way(text):
    with pytest.raises(RecordsError, match="Expected a feature as NAME, NAME=KIND"):
        FeatureSpec.parse(text)


def test_features_are_asked_for_by_words_that_read_back():
    asked = parse_features({"age": "number", "los": "number:log"}) + parse_features("sex")
    assert [write_feature(one) for one in asked] == ["age=number", "los=number:log", "sex"]
    assert tuple(map(FeatureSpec.parse, map(write_feature, asked))) == asked
    preparation = CohortSpec(features=asked)
    assert preparation.words() == [
        "--feature",
        "age=number",
        "--feature",
        "los=number:log",
        "--feature",
        "sex",
    ]
    assert CohortSpec.from_dict(preparation.to_dict()) == preparation
    fitted = CohortSpec(features=(Feature("sex", "category", ("F", "M")), Feature("age", "number")))
    assert CohortSpec.from_dict(fitted.to_dict()) == fitted
