"""A folder of tables is a database."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import inspect_records, read_records
from comorb.records.sources.folders import files_of, tables_in
from tests.records.helpers import sets

ZOO = Path(__file__).parents[4] / "shared" / "data" / "zoo"


@pytest.fixture
def folder(tmp_path):
    rows = "HADM_ID,ICD9_CODE\n007,4280\n007,0019\n8,V5861\n"
    (tmp_path / "DIAGNOSES_ICD.csv.gz").write_bytes(gzip.compress(rows.encode()))
    (tmp_path / "ADMISSIONS.tsv").write_text("HADM_ID\tAGE\n007\t70\n8\t81\n")
    (tmp_path / "notes.docx").write_bytes(b"not data")
    (tmp_path / "_hidden.csv").write_text("x\n")
    return tmp_path


@pytest.mark.parametrize("name", ["diagnoses_icd", "DIAGNOSES_ICD", "Diagnoses_ICD.csv.gz"])
def test_tables_by_name(name, folder):
    assert sets(read_records(folder, table=name)) == {"007": {"428", "001"}, "8": {"V58"}}


def test_joins(folder):
    query = (
        "SELECT d.*, a.age FROM diagnoses_icd d JOIN Admissions a USING (hadm_id) WHERE "
        "CAST(age AS INTEGER) > 75"
    )
    cohort = read_records(folder, table=query)
    assert sets(cohort) == {"8": {"V58"}}
    assert cohort.covariates["age"].to_pylist() == [81.0]
    with pytest.raises(RecordsError, match="the query can't be run: Table with name absent"):
        read_records(folder, table="SELECT * FROM absent")


def test_a_query_reads_no_other_file(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "secret.csv"
    other.write_text("id,dx1\n1,I10\n")
    with pytest.raises(RecordsError, match="refers to files or networks outside it"):
        read_records(folder, table=f"SELECT * FROM read_csv('{other}')")


def test_a_query_on_one_file(tmp_path):
    (tmp_path / "visits.csv").write_text("id,dx1,dx2,age\n1,I10,J44,70\n2,I10,,20\n")
    query = "SELECT * FROM visits WHERE age = '70'"
    cohort = read_records(tmp_path / "visits.csv", table=query)
    assert sets(cohort) == {"1": {"I10", "J44"}}


def parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_partitions_are_columns(tmp_path):
    root = tmp_path / "visits"
    parquet(root / "year=2009" / "unit=%20A" / "a.parquet", visit_id=["1"], dx1=["428.0"])
    parquet(root / "year=2010" / "unit=007" / "a.parquet", visit_id=["2"], dx1=["V58.61"])
    parquet(
        root / "year=2010" / "unit=__HIVE_DEFAULT_PARTITION__" / "b.parquet",
        visit_id=["3"],
        dx1=["001.0"],
    )
    (root / "_SUCCESS").write_text("")
    cohort = read_records(root)
    assert sets(cohort) == {"1": {"428"}, "2": {"V58"}, "3": {"001"}}
    by_id = dict(zip(cohort.ids.to_pylist(), cohort.covariates["unit"].to_pylist(), strict=True))
    assert by_id == {"1": " A", "2": "007", "3": None}
    assert cohort.covariates["year"].to_pylist() == [2009.0, 2010.0, 2010.0]


def test_nested_folders_of_one_table(tmp_path):
    parquet(tmp_path / "2009" / "a.parquet", visit_id=["1"], dx1=["428.0"])
    parquet(tmp_path / "2010" / "12" / "a.parquet", visit_id=["2"], dx1=["V58.61"])
    assert sets(read_records(tmp_path)) == {"1": {"428"}, "2": {"V58"}}


def test_a_folder_for_each_table(tmp_path):
    parquet(tmp_path / "visits" / "part-0.parquet", visit_id=["1"], dx1=["428.0"])
    parquet(tmp_path / "visits" / "part-1.parquet", visit_id=["2"], dx1=["V58.61"])
    parquet(tmp_path / "patients" / "part-0.parquet", patient_id=["1"], age=[7])
    assert sets(read_records(tmp_path, table="VISITS")) == {"1": {"428"}, "2": {"V58"}}
    with pytest.raises(RecordsError, match=r"holds 2 tables: patients, visits\. Say which"):
        read_records(tmp_path)


def test_different_tables_side_by_side(tmp_path):
    parquet(tmp_path / "Visits.parquet", visit_id=["1"], dx1=["428.0"])
    parquet(tmp_path / "patients.parquet", patient_id=["1"], age=[7])
    assert sets(read_records(tmp_path, table="visits")) == {"1": {"428"}}
    with pytest.raises(RecordsError, match=r"holds 2 tables: Visits, patients"):
        read_records(tmp_path)


def test_a_table_in_two_files(tmp_path):
    for name in ("person.csv", "person.tsv", "condition_occurrence.csv"):
        (tmp_path / name).write_text("person_id,condition_concept_id\n1,2\n")
    with pytest.raises(RecordsError, match="holds the table 'person' in more than one file; join"):
        read_records(tmp_path)
    for name in ("a", "b"):
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "visits.csv").write_text("id,dx1\n1,I10\n")
    with pytest.raises(RecordsError, match=r"holds the table 'visits' more than once; name a fol"):
        read_records(tmp_path / "tree")


def test_lakes_without_a_reader_are_refused(tmp_path):
    parquet(tmp_path / "ice" / "data" / "a.parquet", visit_id=["1"], dx1=["428.0"])
    (tmp_path / "ice" / "metadata").mkdir()
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(RecordsError, match="ice is an Iceberg table, whose folder holds removed"):
        read_records(tmp_path / "ice")
    with pytest.raises(RecordsError, match="ice is an Iceberg table"):
        read_records(tmp_path)
    parquet(tmp_path / "hudi" / "a.parquet", visit_id=["1"], dx1=["428.0"])
    (tmp_path / "hudi" / ".hoodie").mkdir()
    with pytest.raises(RecordsError, match="hudi is a Hudi table"):
        read_records(tmp_path / "hudi")


def test_a_database_beside_other_files(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"SQLite format 3\0")
    (tmp_path / "b.csv").write_text("id,dx1\n1,I10\n")
    with pytest.raises(RecordsError, match="holds a database beside other files; read it by its"):
        read_records(tmp_path)


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(RecordsError, match=r"pipe.csv is a pipe or a device, .* save it to a file"):
        read_records(tmp_path / "pipe.csv")
    with pytest.raises(RecordsError, match=r"holds no data: expected .csv"):
        read_records(tmp_path)


def test_names_that_can_not_be_used(tmp_path):
    path = os.fsencode(tmp_path) + b"/a\xff.csv"
    Path(os.fsdecode(path)).write_text("id,dx1\n1,I10\n")
    with pytest.raises(RecordsError, match=r"The name of /.*a.*\.csv isn't in UTF-8; rename it"):
        read_records(os.fsdecode(path))
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/wards\xff"))
    folder.mkdir()
    (folder / "visits.csv").write_text("id,dx1\n1,I10\n")
    for source in (folder, folder / "visits.csv", folder / "*.csv"):
        with pytest.raises(RecordsError, match=r"The name of /.*wards.*isn't in UTF-8; rename it"):
            read_records(source)
    with pytest.raises(RecordsError, match=r"can't be read: File name too long"):
        read_records(tmp_path / ("a" * 300))


def test_every_file_below_a_folder_is_told(tmp_path):
    parquet(tmp_path / "x=1" / "a.parquet", id=["1"])
    parquet(tmp_path / "x=2" / "b.parquet", id=["2"])
    names = [file.name for file in files_of(tmp_path)]
    assert names == ["a.parquet", "b.parquet"]
    (table,) = tables_in(tmp_path, files_of(tmp_path))
    assert [file.name for file in table.files] == names


def test_the_zoo_of_omop():
    if not ZOO.is_dir():
        pytest.skip("needs ../shared/data/zoo beside the project, which is absent")
    assert inspect_records(ZOO / "eunomia", table="condition_era").records == 2694
