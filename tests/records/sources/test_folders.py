"""A folder of tables, an archive and a store are databases."""

import gzip
import io
import os
import random
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from comorb.records.sources import folders
from comorb.records.sources.folders import find_files, find_tables
from comorb.remote import Remote
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
    names = [file.name for file in find_files(tmp_path)]
    assert names == ["a.parquet", "b.parquet"]
    (table,) = find_tables(tmp_path, find_files(tmp_path))
    assert [file.name for file in table.files] == names


def test_the_zoo_of_omop():
    if not ZOO.is_dir():
        pytest.skip("needs ../shared/data/zoo beside the project, which is absent")
    assert inspect_records(ZOO / "eunomia", table="condition_era").records == 2694


TEXT = "visit_id,dx1,dx2\n007,428.0,250.00\n8,V58.61,\n"
SETS = {"007": {"428", "250"}, "8": {"V58"}}


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name.replace("__", "/"), data)
    return path


def test_one_table(tmp_path):
    path = archive(tmp_path / "a.zip", **{"export__visits.csv": TEXT, "export__.DS_Store": b"x"})
    assert sets(read_records(path)) == SETS


def test_several_tables(tmp_path):
    path = archive(tmp_path / "a.zip", **{"Visits.csv": TEXT, "towns.csv": "id,town\n1,Vic\n"})
    with pytest.raises(RecordsError, match=r"a.zip holds 2 tables: Visits, towns\. Say which one"):
        read_records(path)
    assert sets(read_records(path, table="visits")) == SETS


def test_names_that_lead_out_stay_inside(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("../../visits.csv", TEXT)
    assert sets(read_records(path)) == SETS
    assert not (tmp_path.parent / "visits.csv").exists()


def test_what_is_refused(tmp_path, monkeypatch):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as out:
        out.writestr("a.csv", TEXT)
    with pytest.raises(RecordsError, match=r"b.zip holds zip archives; unpack them"):
        read_records(archive(tmp_path / "b.zip", **{"a.zip": inner.getvalue()}))
    with pytest.raises(RecordsError, match=r"c.zip is a zip archive that holds no data"):
        read_records(archive(tmp_path / "c.zip", **{".hidden": "x"}))
    path = archive(tmp_path / "d.zip", **{"a.csv": TEXT})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(RecordsError, match=r"d.zip is a zip archive with a password"):
        read_records(path)
    path = archive(tmp_path / "e.zip", **{"a.csv": TEXT})
    monkeypatch.setattr("comorb.records.sources.folders._SPARE_BYTES", 1 << 60)
    with pytest.raises(RecordsError, match=r"e.zip unpacks to 0.0 GB, and .* GB are free"):
        read_records(path)


def test_a_damaged_member(tmp_path):
    picked = random.Random(1)
    body = "".join(f"{i},{picked.choice(['4280', '25000'])},\n" for i in range(900))
    path = archive(tmp_path / "a.zip", **{"a.csv": "visit_id,dx1,dx2\n" + body})
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(RecordsError, match=r"a.zip is a damaged or cut-off zip archive; copy it"):
        read_records(path)


def held(monkeypatch, *names):
    place = Remote("s3://bucket/claims")
    monkeypatch.setattr(folders, "matching", lambda _: (place, [place / name for name in names]))
    return place


def test_data_and_the_log_of_a_lake_are_records(monkeypatch):
    wanted = ["_delta_log/00000000000000000000.json", "year=2020/a.parquet", "b.csv.gz"]
    others = ["_SUCCESS", ".crc/a.parquet", "_temporary/0/a.parquet", "readme.pdf"]
    place = held(monkeypatch, *wanted, *others)
    assert list(folders.find_data_files(place)) == wanted


def test_no_data_is_refused(monkeypatch):
    with pytest.raises(RecordsError, match="There are no records at s3://bucket/claims; check"):
        folders.find_data_files(held(monkeypatch, "_SUCCESS"))
