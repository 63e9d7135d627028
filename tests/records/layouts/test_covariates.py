from datetime import date

import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records import stream
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.covariates import (
    cast_columns,
    count_texts,
    covariate_names,
    read_weights,
)
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from comorb.records.sources.open import open_source
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort


def typed_column(values, name="x"):
    return cast_columns(pa.table({name: values}), Layout())[name].to_pylist()


@pytest.mark.parametrize(
    ("values", "result"),
    [
        (["1", "20", None], [1, 20, None]),
        (["1.50", "2", "NA"], [1.5, 2.0, None]),
        (["007", "12"], ["007", "12"]),
        (["1E11", "2"], ["1E11", "2"]),
        (["12345678901234567890"], ["12345678901234567890"]),
        (["", "NULL"], [None, None]),
        (["1", ".", "-", "null"], [1, None, None, None]),
        (["none", "Unknown"], ["none", "Unknown"]),
        (["20090412", "20081231"], [date(2009, 4, 12), date(2008, 12, 31)]),
        (["20090412", "20090231"], [20090412, 20090231]),
        (["20090412", "31"], [20090412, 31]),
    ],
)
def test_text_gets_a_type_only_when_nothing_is_lost(values, result):
    assert typed_column(pa.array(values)) == result


def test_texts_are_counted_without_the_time_of_day():
    texts = ["2009-04-12 10:00", "2009-04-12T23:15:01", "2009-04-12", "2010-01-01", None, ""]
    with open_source(pa.table({"day": texts * 3})) as source:
        (name,) = source.openers
        found = count_texts(source, source.table(name), "day")
    assert found == {"2009-04-12": 9, "2010-01-01": 3, "": 3}


def test_dates():
    assert typed_column(["2009-04-12 10:00", "20090412"], "date") == [date(2009, 4, 12)] * 2
    assert typed_column(["12/04/2009"], "date") == ["12/04/2009"]
    assert typed_column(["2009-13-45"], "date") == ["2009-13-45"]


@pytest.mark.parametrize("name", ["discharge_disposition_id", "DRG", "Entlassungsgrund", "payer"])
@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.int16(), pa.float64()])
def test_numbers_that_are_labels_are_text(name, kind):
    values = pa.array([1, 28, 3, None]).cast(kind)
    assert typed_column(values, name) == ["1", "28", "3", None]


def test_labels_of_a_float_column_lose_their_point():
    assert typed_column(["1.0", "28.0", "NA"], "discharge_status") == ["1", "28", None]


@pytest.mark.parametrize("name", ["days_of_care", "Verweildauer", "cost", "num_visits", "pulse"])
def test_amounts_stay_numbers(name):
    assert typed_column(["1", "28", None], name) == [1, 28, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.float64()])
def test_numbers_that_are_days_are_days(kind):
    values = pa.array([20090412, 20120229, None]).cast(kind)
    days = [date(2009, 4, 12), date(2012, 2, 29), None]
    assert typed_column(values, "CLM_FROM_DT") == days
    assert typed_column(["20090412.0"], "x") == [date(2009, 4, 12)]
    assert typed_column(values, "total_cost") != days
    assert typed_column([20090412.5, 20090413.0]) == [20090412.5, 20090413.0]
    for no_day in (20110229, 20091301, 7, 99999999):
        others = pa.array([20090412, no_day]).cast(kind)
        assert typed_column(others, "CLM_FROM_DT") == [20090412, no_day]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_part_has_the_types_of_the_whole(as_text, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 3)
    rows = 12
    columns = {
        "seen_on": [*[20100101 + row for row in range(rows - 1)], 5],
        "left_on": [20100101 + row for row in range(rows)],
        "drg": list(range(rows)),
        "pulse": [60 + row for row in range(rows)],
    }
    plain = {name: list(map(str, some)) if as_text else some for name, some in columns.items()}
    table = pa.table({"id": [f"v{row:02d}" for row in range(rows)], **plain})
    table = table.append_column("dx1", pa.array(["428.0"] * rows))
    table = table.append_column("dx2", pa.array(["250.00"] * rows))
    write_cohort(table, tmp_path / "c.parquet", CohortSpec(at_least=1), memory="1GB")
    whole = CohortSpec(at_least=1).cohort(table).covariates
    assert load_cohort(tmp_path / "c.parquet").covariates.equals(whole)
    assert [str(field.type) for field in whole.schema] == [
        "int64",
        "date32[day]",
        "string",
        "int64",
    ]


def test_ids_stay_text():
    table = cast_columns(pa.table({"patient_id": ["1", "2"]}), Layout(patient="patient_id"))
    assert table["patient_id"].to_pylist() == ["1", "2"]


def test_roles_give_names_and_leave_others_out_of_the_way():
    layout = Layout(age="age_years", part="segment", version="icd_version")
    assert covariate_names(["age_years", "age", "segment", "icd_version", "ward"], layout) == {
        "age_years": "age",
        "age": "age (column)",
        "ward": "ward",
    }


@pytest.mark.parametrize("values", [["a"], [1.0, None], [0.0], [-1.0]])
def test_weights_must_be_positive_numbers(values):
    with pytest.raises(RecordsError, match="weights in column 'w' must all be numbers above 0"):
        read_weights("file.csv", "w", pa.chunked_array([values]))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_impossible_ages_are_missing_however_they_are_stored(kind):
    ages = pa.array([999, -1, 45, 70, 18, 33] * 10).cast(kind)
    codes = {"dx1": ["I50", "E11", "N18"] * 20, "dx2": ["J44", "I10", "C50"] * 20}
    cohort = read_records(pa.table({"visit_id": list(map(str, range(60))), "age": ages, **codes}))
    assert cohort.covariates["age"].to_pylist() == [None, None, 45, 70, 18, 33] * 10
    assert any("20 ages of column 'age' are below 0 or above 120" in n for n in cohort.ledger.notes)
