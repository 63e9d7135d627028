"""The registry: wide, delimited, binary, long, OMOP and FHIR, each recognised by its own reader."""

import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.readers import READERS, plan_table
from comorb.records.read import read_records
from comorb.records.sources.duck import SourceTable
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

SAMPLES = {
    "wide": {"id": ["1", "1"], "dx1": ["428.0", "250.00"], "dx2": ["401.9", "585.6"]},
    "delimited": {"id": ["1", "2"], "diagnoses": ["428.0;250.00", "401.9"]},
    "binary": {"id": ["7", "8"], "CHF": ["yes", "no"], "COPD": ["no", "no"]},
    "long": {"id": ["1", "1"], "icd_code": ["428.0", "250.00"]},
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_table_is_recognised_by_one_reader(kind):
    columns = SAMPLES[kind]
    table = SourceTable("file.csv", "t", dict.fromkeys(columns, "VARCHAR"))
    known = Columns(table.label, list(columns), Layout(), lambda: columns)
    assert plan_table(None, table, known).reader is READERS[kind]
    takers = [
        name
        for name, reader in READERS.items()
        if not reader.of_json and reader.plan(None, table, known)
    ]
    assert takers == [kind]


def test_every_reader_is_registered_by_its_kind():
    assert all(reader.kind == kind for kind, reader in READERS.items())


def test_yes_and_no_are_read_as_flags_and_something_else_is_refused():
    table = pa.table({"id": ["a", "b"], "CHF": ["yes", "no"], "COPD": ["No", "no"]})
    assert sets(read_records(table, system="opaque")) == {"a": {"CHF"}, "b": set()}
    stages = [str(stage) for stage in range(1, 10)]
    ids = [f"p{stage}" for stage in stages]
    rows = pa.table({"id": ids, "CHF": ["1", "0", "1"] * 3, "COPD": stages})
    layout = Layout("binary", codes=("CHF", "COPD"))
    message = "row 2: the column 'COPD' of a binary layout holds something other than 0 and 1"
    with pytest.raises(RecordsError, match=message):
        read_records(rows, layout=layout)


def test_ids_that_a_layout_needs():
    table = pa.table({"icd_code": ["I10"], "ward": ["7"]})
    with pytest.raises(RecordsError, match="which a long layout needs; name it"):
        read_records(table, layout="long")
    with pytest.raises(RecordsError, match="the patient's id, which unit='patient' needs"):
        read_records(table, unit="patient")


@pytest.mark.parametrize("unit", ["visit", "patient"])
@pytest.mark.parametrize("kind", ["long", "delimited"])
@pytest.mark.parametrize("ids", [{}, {"visit_id": ["1", "2"]}, {"patient_id": ["1", "1"]}])
def test_a_wide_table_is_not_read_as_one_column(kind, unit, ids, tmp_path):
    table = pa.table(ids | {"dx1": ["428.0", "250.00"], "dx2": ["401.9", None]})
    message = (
        rf"^the Table has codes in 2 columns \('dx1', 'dx2'\), and the layout '{kind}' in one; "
        r"name that one, or leave the layout out\.$"
    )
    with pytest.raises(RecordsError, match=message):
        read_records(table, layout=kind, unit=unit)
    preparation = CohortSpec(layout=Layout(kind=kind), unit=unit)
    with pytest.raises(RecordsError, match=message):
        write_cohort(table, tmp_path / "cohort.parquet", preparation, "2GB")


def test_a_layout_that_it_is_not():
    message = "doesn't have the columns of the layout 'binary'; leave it out, and the layout is rec"
    with pytest.raises(RecordsError, match=message):
        read_records(pa.table({"id": ["1"], "dx1": ["I10"]}), layout="binary")
