"""Alignment: new records over a model's codes, and what it does not know."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.insight.runs.alignment import Unknown, align
from comorb.model.columns import placed
from comorb.records.archive import CohortFile, save_cohort
from comorb.records.reading import read_records

RECORDS = pa.table(
    {
        "id": ["a", "b", "c"],
        "dx1": ["428.0", "250.00", "585.9"],
        "dx2": ["401.9", "585.9", "428.0"],
        "dx3": ["250.00", None, None],
    }
)
MODEL = ["428", "585", "491", "401"]


@pytest.fixture(params=["memory", "file"])
def cohort(request, tmp_path):
    read = read_records(RECORDS)
    if request.param == "memory":
        return read
    save_cohort(read, tmp_path / "cohort.parquet")
    return CohortFile.open(tmp_path / "cohort.parquet")


def test_the_columns_are_those_of_the_model_in_its_order(cohort):
    place, unknown = align(cohort, MODEL)
    (load,) = cohort.blocks().loaders
    rows = placed(place, len(MODEL), load())
    dense = np.zeros((3, 4), dtype=int)
    for row, (start, end) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
        ones = rows.indices[start:end]
        assert (np.diff(ones) > 0).all()
        dense[row, ones] = 1
    assert dense.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0]]
    assert unknown == (Unknown("250", "Diabetes mellitus", 2),)


def test_a_code_left_out_on_purpose_is_not_unknown(cohort):
    assert align(cohort, ["428", "585", "401"], {"250"})[1] == ()


def test_unknown_codes_come_most_common_first(cohort):
    _, unknown = align(cohort, ["428"])
    assert [(one.code, one.records) for one in unknown] == [("250", 2), ("585", 2), ("401", 1)]


def test_records_without_any_known_code_are_refused(cohort):
    with pytest.raises(
        RecordsError, match=r"knows none of the 4 codes of these records \(icd9cm, category\); are"
    ):
        align(cohort, ["I50"])
