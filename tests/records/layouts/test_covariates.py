from datetime import date

import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.covariates import shown_names, typed, weights_of
from comorb.records.layouts.layout import Layout


def typed_column(values, name="x"):
    return typed(pa.table({name: values}), Layout())[name].to_pylist()


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


def test_dates():
    assert typed_column(["2009-04-12 10:00", "20090412"], "date") == [date(2009, 4, 12)] * 2
    assert typed_column(["12/04/2009"], "date") == ["12/04/2009"]
    assert typed_column(["2009-13-45"], "date") == ["2009-13-45"]


def test_ids_stay_text():
    table = typed(pa.table({"patient_id": ["1", "2"]}), Layout(patient="patient_id"))
    assert table["patient_id"].to_pylist() == ["1", "2"]


def test_roles_give_names_and_leave_others_out_of_the_way():
    layout = Layout(age="age_years", part="segment", version="icd_version")
    assert shown_names(["age_years", "age", "segment", "icd_version", "ward"], layout) == {
        "age_years": "age",
        "age": "age (column)",
        "ward": "ward",
    }


@pytest.mark.parametrize("values", [["a"], [1.0, None], [0.0], [-1.0]])
def test_weights_must_be_positive_numbers(values):
    with pytest.raises(RecordsError, match="weights in column 'w' must all be numbers above 0"):
        weights_of("file.csv", "w", pa.chunked_array([values]))
