"""Every layout from every kind of source gives one cohort; counting gives its numbers."""

import gzip
import json
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.errors import EmptyCohortError, RecordsError
from comorb.records.datasets import heart_failure
from comorb.records.features import FeatureSpec
from comorb.records.layouts.layout import Layout
from comorb.records.read import count_left, inspect_records, read_records
from comorb.records.spec import CohortSpec
from tests.records.helpers import sets

DATA = Path(__file__).parents[3] / "shared" / "data"
RECORDS = {
    "000123": ["428.0", "250.00", "V58.61"],
    "0124": ["428.1"],
    "125": ["001.0", "E819.0", "428.0", "401.9"],
}
SETS = {"000123": {"428", "250", "V58"}, "0124": {"428"}, "125": {"001", "E819", "428", "401"}}


def need(name):
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name} beside the project, which is absent")
    return path


def long_rows(records):
    return [(visit, code) for visit, codes in records.items() for code in codes]


def wide_table(records):
    width = max(map(len, records.values()))
    padded = [codes + [None] * (width - len(codes)) for codes in records.values()]
    columns = {
        f"dx{j + 1}": pa.array(col, pa.string()) for j, col in enumerate(zip(*padded, strict=True))
    }
    return pa.table({"visit_id": list(records), **columns})


def long_table(records):
    rows = long_rows(records)
    return pa.table({"visit_id": [row[0] for row in rows], "icd_code": [row[1] for row in rows]})


def delimited_table(records):
    texts = [";".join(codes) for codes in records.values()]
    return pa.table({"visit_id": list(records), "diagnoses": texts})


def binary_table(records):
    codes = sorted({code for several in records.values() for code in several})
    flags = {code: [int(code in several) for several in records.values()] for code in codes}
    return pa.table({"visit_id": list(records), **flags})


def write_csv(table, path, delimiter=",", encoding="utf-8", pack=lambda data: data):
    def cell(value):
        return "" if value is None else str(value)

    columns = table.to_pydict()
    lines = [delimiter.join(columns)]
    lines += [delimiter.join(map(cell, row)) for row in zip(*columns.values(), strict=True)]
    path.write_bytes(pack(("\n".join(lines) + "\n").encode(encoding)))
    return path


def write_parquet(table, path):
    pq.write_table(table, path)
    return path


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def write_ndjson(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def write_duckdb(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("incoming", table)
        connection.execute("CREATE TABLE diagnoses AS FROM incoming")
    return path


def write_sqlite(table, path):
    connection = sqlite3.connect(path)
    names = ", ".join(f'"{name}"' for name in table.column_names)
    marks = ", ".join("?" for _ in table.column_names)
    connection.execute(f"CREATE TABLE diagnoses ({names})")
    rows = [tuple(row.values()) for row in table.to_pylist()]
    connection.executemany(f"INSERT INTO diagnoses VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return path


def write_zstd(table, path):
    return write_csv(table, path, pack=lambda data: pa.compress(data, "zstd", asbytes=True))


def write_gzip(table, path):
    return write_csv(table, path, pack=gzip.compress)


LAYOUTS: dict[str, Callable[..., pa.Table]] = {
    "wide": wide_table,
    "long": long_table,
    "delimited": delimited_table,
    "binary": binary_table,
}
WRITERS = {
    "csv": write_csv,
    "tsv": lambda table, path: write_csv(table, path, "\t"),
    "pipes": lambda table, path: write_csv(table, path, "|"),
    "gzip": write_gzip,
    "zstd": write_zstd,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "ndjson": write_ndjson,
    "duckdb": write_duckdb,
    "sqlite": write_sqlite,
    "table": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_from_every_source(layout, writer, tmp_path):
    source = WRITERS[writer](LAYOUTS[layout](RECORDS), tmp_path / "records.data")
    cohort = read_records(source)
    assert inspect_records(source).layout.kind == layout
    assert sets(cohort) == SETS
    assert cohort.system == "icd9cm"
    assert cohort.ledger.adds_up
    assert cohort.matrix.has_canonical_format
    assert cohort.matrix.indices.dtype == np.int32
    assert cohort.matrix.data.dtype == np.uint8


codes = st.sampled_from(["428.0", "428.1", "250.00", "V58.61", "E819.0", "001.0", "401.9", "585.6"])
ids = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(ids, st.lists(codes, min_size=2, max_size=5), min_size=2, max_size=8))
def test_a_cohort_survives_every_layout(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("layouts")
    wanted = {key: {code.replace(".", "") for code in several} for key, several in records.items()}
    for name, build in LAYOUTS.items():
        path = write_csv(build(records), folder / "records.csv")
        cohort = read_records(path, layout=Layout(name), system="icd9cm", level="full")
        assert sets(cohort) == wanted, name
        assert cohort.ledger.adds_up


@pytest.fixture
def visits():
    return pa.table(
        {
            "visit_id": ["v1", "v2", "v3", "v4"],
            "patient_id": ["p1", "p1", "p2", "p3"],
            "admission_date": ["2009-04-12", "2009-01-02", "20090305", None],
            "age": ["70", "69", "80", "NA"],
            "gender": ["F", "F", "M", "M"],
            "weight_kg": ["61.5", "61", "80", "75"],
            "ward": ["007", "007", "012", "012"],
            "sampled": ["1.5", "1.5", "2", "1"],
            "dx1": ["428.0", "250.00", "428.0", "585.6"],
            "dx2": ["401.9", "", "250.01", ""],
        }
    )


def test_covariates_have_types_and_ids_stay_text(visits):
    cohort = read_records(visits)
    table = cohort.covariates
    assert table["age"].to_pylist() == [70.0, 69.0, 80.0, None]
    assert [str(day) for day in table["date"].to_pylist()[:3]] == [
        "2009-04-12",
        "2009-01-02",
        "2009-03-05",
    ]
    assert table["sex"].to_pylist() == ["F", "F", "M", "M"]
    assert table["weight_kg"].to_pylist() == [61.5, 61.0, 80.0, 75.0]
    assert table["ward"].to_pylist() == ["007", "007", "012", "012"]
    assert table["patient_id"].to_pylist() == ["p1", "p1", "p2", "p3"]
    assert cohort.weights is None
    assert cohort.where(age=(70, None)).ids.to_pylist() == ["v1", "v3"]


def test_by_patient_codes_are_united_and_covariates_are_the_first(visits):
    cohort = read_records(visits, unit="patient")
    assert sets(cohort) == {"p1": {"428", "401", "250"}, "p2": {"428", "250"}, "p3": {"585"}}
    assert cohort.covariates["age"].to_pylist() == [69.0, 80.0, None]
    assert cohort.ledger.left("rows") == 4
    assert cohort.ledger.left("records") == 3


def test_weights_from_a_column(visits):
    cohort = read_records(visits, layout=Layout(weight="sampled"))
    assert np.asarray(cohort.weights).tolist() == [1.5, 1.5, 2.0, 1.0]
    assert "sampled" not in cohort.covariates.column_names
    with pytest.raises(RecordsError, match="the weights in column 'ward' must all be numbers abov"):
        read_records(visits, layout=Layout(weight="ward"))


AGES = {
    "age": ["90+", "[70-80)", "3 months", "44", "nobody knows", ""],
    "sex": ["F", "M", "F", "M", "F", "M"],
    "admission_date": ["13/04/2009", "01/02/2010", "03/04/2009 10:15", "NA", "31/12/2009", "x"],
}
NOTES = (
    "1 ages of column 'age' are ranges, read as the middle",
    "1 ages of column 'age' have an open end, read as that end",
    "1 ages of column 'age' are in months, weeks, days or hours, read as parts of a year",
    "1 values of column 'age' can't be read as an age and are missing",
    "1 values of column 'admission_date' can't be read as a date and are missing",
)


@pytest.mark.parametrize(
    "codes",
    [
        {"dx1": ["428.0"] * 6, "dx2": ["250.00"] * 6},
        {"diagnoses": ["428.0;250.00"] * 6},
        {"428": ["1"] * 6, "250": ["1"] * 5 + ["0"]},
        {"icd_code": ["428.0"] * 6},
    ],
    ids=["wide", "delimited", "binary", "long"],
)
def test_ages_and_dates_mean_the_same_in_every_layout(codes):
    cohort = read_records(pa.table({"visit_id": list("abcdef"), **AGES, **codes}), system="icd9cm")
    table = cohort.covariates
    assert table["age"].to_pylist() == [90, 75, 0.25, 44, None, None]
    assert table["sex"].to_pylist() == ["F", "M", "F", "M", "F", "M"]
    days = [None if day is None else day.isoformat() for day in table["date"].to_pylist()]
    assert days == ["2009-04-13", "2010-02-01", "2009-04-03", None, "2009-12-31", None]
    assert cohort.ledger.notes == NOTES
    assert cohort.where(age=(65, None)).ids.to_pylist() == ["a", "b"]


def test_numbers_are_dates_and_labels_in_typed_tables():
    table = pa.table(
        {
            "visit_id": ["a", "b"],
            "admission_date": [20090412, 20100101],
            "sex_cd": [1, 2],
            "age": pa.array(["90+", "44"]).dictionary_encode(),
            "dx1": ["4280", "25000"],
            "dx2": ["585", "4019"],
        }
    )
    table = read_records(table).covariates
    assert [day.isoformat() for day in table["date"].to_pylist()] == ["2009-04-12", "2010-01-01"]
    assert table["sex"].to_pylist() == ["1", "2"]
    assert table["age"].to_pylist() == [90, 44]


def test_long_covariates_are_those_that_a_record_has_once(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(
        "subject_id,hadm_id,seq_num,icd_code,icd_version,age\n"
        "1,10,1,4280,9,70\n1,10,2,I10,10,70\n1,11,1,25000,9,71\n2,12,1,I10,10,50\n"
    )
    cohort = read_records(path)
    assert sets(cohort) == {
        "10": {"icd9cm:428", "icd10cm:I10"},
        "11": {"icd9cm:250"},
        "12": {"icd10cm:I10"},
    }
    assert cohort.system == "icd10cm+icd9cm"
    assert cohort.covariates["subject_id"].to_pylist() == ["1", "1", "2"]
    assert cohort.covariates["age"].to_pylist() == [70.0, 71.0, 50.0]
    assert cohort.covariates.num_columns == 2
    assert "column 'seq_num' differs within records and isn't a covariate" in cohort.ledger.notes
    assert cohort.having("428").ids.to_pylist() == ["10"]
    assert sets(read_records(path, unit="patient")).keys() == {"1", "2"}


def test_wide_with_a_version(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("visit_id,icd_version,dx1,dx2\na,9,V5861,4280\nb,10,V58,I10\nc,,4280,\n")
    assert sets(read_records(path)) == {
        "a": {"icd9cm:V58", "icd9cm:428"},
        "b": {"icd10cm:V58", "icd10cm:I10"},
        "c": {"icd9cm:428"},
    }


def test_mixed_editions_without_a_version_are_a_note():
    rows = pa.table(
        {"id": list("abcdef"), "icd_code": ["4280", "25000", "V5861", "I10", "J44", "4019"]}
    )
    cohort = read_records(rows)
    (note,) = cohort.ledger.notes
    assert note.startswith("icd9cm and icd10cm are mixed and no column says which is which: 0 ")
    assert "taken as icd9cm, 1 by the list that has them; name the column" in note
    assert "icd10cm:I10" in cohort.codes


def test_several_levels_at_once():
    rows = pa.table({"id": ["a", "a", "b"], "icd_code": ["428.0", "428.1", "250.00"]})
    cohort = read_records(rows, level=("category", "chapter"))
    assert sets(cohort) == {"a": {"428", "390-459"}, "b": {"250", "240-279"}}
    assert cohort.level == "category+chapter"
    assert cohort.ledger.left("rows") == 2
    wide = read_records(
        wide_table({"a": ["428.0", "428.1"], "b": ["250.00"]}), level=("full", "category")
    )
    assert wide.ledger.left("codes") == 3


def test_the_ledger_accounts_for_every_row_of_a_wide_table():
    table = pa.table(
        {
            "record_id": ["a", "b", "b", "c", None, "d"],
            "dx1": ["428.0", "250.00", "250.00", "", "401.9", "nonsense code"],
            "dx2": ["428.1", "V58.61", "V58.61", None, "428.0", "?"],
        }
    )
    cohort = read_records(table, system="icd9cm")
    assert [(line.unit, line.rule, line.before, line.after) for line in cohort.ledger.lines] == [
        ("rows", "read", 6, 6),
        ("rows", "without an id", 6, 5),
        ("rows", "the same row again", 5, 4),
        ("rows", "without a usable code", 4, 2),
        ("codes", "found", 5, 5),
        ("codes", "malformed", 5, 4),
        ("codes", "again in one record", 4, 3),
        ("records", "read", 4, 4),
        ("records", "without a usable code", 4, 2),
        ("features", "read", 3, 3),
    ]
    assert [(p.row, p.column, p.reason) for p in cohort.ledger.problems] == [
        (6, "dx1", "not a code of icd9cm")
    ]


def test_the_ledger_accounts_for_every_row_of_a_long_table(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("id,icd_code\na,428.0\na,428.1\na,nonsense\n,250.00\nb,\nb,NA\nc,250.00\n")
    cohort = read_records(path, system="icd9cm")
    assert [(line.unit, line.rule, line.before, line.after) for line in cohort.ledger.lines] == [
        ("rows", "read", 7, 7),
        ("rows", "without an id", 7, 6),
        ("rows", "without a code", 6, 4),
        ("rows", "malformed code", 4, 3),
        ("rows", "again in one record", 3, 2),
        ("records", "read", 3, 3),
        ("records", "without a usable code", 3, 2),
        ("features", "read", 2, 2),
    ]
    assert [problem.row for problem in cohort.ledger.problems] == [4]


def test_the_parts_of_a_claim_are_one_record():
    table = pa.table(
        {
            "clm_id": ["a", "a", "b"],
            "segment": [1, 2, 1],
            "dx1": ["428", "250", "401"],
            "dx2": ["428", None, "401"],
            "paid": [5, 6, 7],
        }
    )
    cohort = read_records(table)
    assert sets(cohort) == {"a": {"428", "250"}, "b": {"401"}}
    assert cohort.covariates.to_pydict() == {"paid": [5, 7]}


def test_without_an_id_records_go_by_row_number():
    cohort = read_records(pa.table({"dx1": ["428", "250"], "dx2": ["401", None]}))
    assert cohort.ids.to_pylist() == ["1", "2"]
    assert cohort.ledger.notes[0] == "no column holds a unique id: records go by row number"


def test_numbers_that_are_codes_are_not_changed_by_being_numbers():
    frame = pd.DataFrame(
        {"id": [1, 2, 3], "dx1": [250.0, 41401.0, np.nan], "dx2": ["038", 428, "V58"]}
    )
    cohort = read_records(frame)
    assert sets(cohort) == {"1": {"250", "038"}, "2": {"414", "428"}, "3": {"V58"}}
    text = pa.table({"id": ["1", "2"], "code": ["1E11", "001.0"]})
    assert read_records(text, system="opaque").codes == ("001.0", "1E11")


def test_folders_and_globs_of_parquet(tmp_path):
    rows = long_table(RECORDS)
    write_parquet(rows.slice(0, 3), tmp_path / "part-0.parquet")
    write_parquet(rows.slice(3), tmp_path / "part-1.parquet")
    assert sets(read_records(tmp_path)) == SETS
    assert sets(read_records(tmp_path / "part-*.parquet")) == SETS
    assert sets(read_records(f"{tmp_path}/part-0.parquet")) == {"000123": SETS["000123"]}


def test_latin_1(tmp_path):
    table = wide_table(RECORDS).append_column("town", pa.array(["Logroño", "Málaga", "Gijón"]))
    path = write_csv(table, tmp_path / "latin.csv", ";", "latin-1")
    assert read_records(path).covariates["town"].to_pylist() == ["Logroño", "Málaga", "Gijón"]


def test_memory_is_limited_and_must_be_an_amount():
    assert sets(read_records(long_table(RECORDS), memory="200MB")) == SETS
    with pytest.raises(RecordsError, match="'plenty' isn't an amount of memory; write it as '2GB'"):
        read_records(long_table(RECORDS), memory="plenty")


def test_nhds():
    path = need("nhds2010.csv.gz")
    found = inspect_records(path)
    assert (found.records, found.features, found.system) == (151_551, 1_116, "icd9cm")
    assert found.layout.codes == tuple(f"dx{j}" for j in range(1, 16))
    cohort = read_records(path).having("428").at_least(3)
    assert len(cohort) == 16_389
    assert cohort.ledger.adds_up


def test_synpuf():
    found = inspect_records(need("synpuf_inpatient.csv.gz"))
    assert found.layout.codes == tuple(f"ICD9_DGNS_CD_{j}" for j in range(1, 11))
    assert (found.layout.record, found.layout.patient) == ("CLM_ID", "DESYNPUF_ID")
    assert found.ledger.chain("rows")[0].after == 5_775
    assert found.records == 5_768
    assert found.system == "icd9cm"


def test_nothing_is_warned_of_when_nothing_is_amiss():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_records(wide_table(RECORDS))


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"having": ("250", "585")},
        {"having": ("428",), "without": ("250",), "age": (65, None), "sex": ("female",)},
        {"at_least": 7, "drop_codes": ("401", "428"), "drop_rare": 300},
        {"age": (None, 40), "at_least": 5},
        {"features": (FeatureSpec("age"),), "having": ("585",)},
    ],
)
def test_the_numbers_are_those_of_the_cohort_that_is_left(rules):
    cohort, preparation = heart_failure(), CohortSpec(**rules)
    made = preparation.apply(cohort)
    records, codes, ledger = count_left(cohort, preparation)
    assert (records, codes) == (len(made), len(made.codes))
    assert ledger.adds_up
    assert ledger.chain("records") == made.ledger.chain("records")
    assert ledger.left("features") == made.ledger.left("features")


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ({"age": (200, None)}, EmptyCohortError),
        ({"having": ("shoes",)}, RecordsError),
        ({"drop_rare": 10**9}, RecordsError),
    ],
)
def test_what_leaves_nothing_is_refused_as_ever(rules, error):
    with pytest.raises(error) as made:
        CohortSpec(**rules).apply(heart_failure())
    with pytest.raises(error) as counted:
        count_left(heart_failure(), CohortSpec(**rules))
    assert str(made.value) == str(counted.value)
