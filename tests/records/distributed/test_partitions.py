"""A source is divided into tables that workers read, or is read in one process."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.cohort_file import load_cohort
from comorb.records.distributed.partitions import FrameTables, partition_source
from comorb.records.distributed.read import distribute_cohort
from comorb.records.spec import CohortSpec
from tests.records.layouts.test_omop import OMOP

ANY = CohortSpec(at_least=1)


def write(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        pq.write_table(OMOP[name], folder / f"{name}.parquet", write_page_checksum=True)
    return folder


def test_tables_are_opened_when_they_are_asked_for(tmp_path):
    folder = write(tmp_path / "cdm", *OMOP)
    (folder / "person.parquet").write_bytes(b"PAR1 cut off")
    divided = partition_source(folder, None, None)
    assert list(divided.openers) == ["concept", "condition_occurrence", "person"]
    assert divided.label == "cdm"
    assert divided.openers["concept"]().head.equals(OMOP["concept"])
    with pytest.raises(RecordsError, match="damaged or cut-off"):
        divided.openers["person"]()


@pytest.mark.parametrize("table", ["SELECT * FROM person", "none"])
def test_a_query_or_no_table_is_not_divided(table, tmp_path):
    assert partition_source(write(tmp_path / "cdm", *OMOP), table, None) is None


def test_tables_of_other_kinds_are_read_in_one_process(tmp_path):
    folder = write(tmp_path / "cdm", "condition_occurrence", "concept")
    with pa.ipc.new_file(folder / "person.arrow", OMOP["person"].schema) as file:
        file.write_table(OMOP["person"])
    assert partition_source(folder, None, None) is None
    for number, table in enumerate((None, "condition_occurrence")):
        asked = CohortSpec(at_least=1, table=table)
        distribute_cohort(folder, tmp_path / str(number), asked)
        assert load_cohort(tmp_path / str(number)).digest() == asked.cohort(folder).digest()


def test_frames_that_are_none_and_names_that_are_one():
    tables = FrameTables({"condition_era": pd.DataFrame({"a": [1]}), "PERSON": None})
    with pytest.raises(RecordsError, match="or one table, as 'condition_era'; got a DataFrame"):
        partition_source(tables, None, None).openers["condition_era"]()
    with pytest.raises(RecordsError, match="as 'person'; got a NoneType"):
        partition_source(tables, None, None).openers["person"]()
    with pytest.raises(RecordsError, match="have a table more than once; give each another"):
        partition_source(FrameTables({"PERSON": None, "person": None}), None, None)


def test_tables_that_are_given_each_by_its_files(tmp_path):
    folder = write(tmp_path / "cdm", *OMOP)
    tables = {name: folder / f"{name}.parquet" for name in OMOP}
    distribute_cohort(FrameTables(tables), tmp_path / "cohort", ANY)
    whole = ANY.cohort(folder)
    assert load_cohort(tmp_path / "cohort").digest() == whole.digest()
    with pytest.raises(RecordsError, match="or one table, as 'person'"):
        distribute_cohort(FrameTables(tables | {"person": folder}), tmp_path / "none", ANY)


def test_a_part_without_rows(tmp_path):
    folder = tmp_path / "cdm" / "person"
    folder.mkdir(parents=True)
    for number, rows in enumerate((OMOP["person"], OMOP["person"].slice(0, 0))):
        pq.write_table(rows, folder / f"part-{number}.parquet")
    write(tmp_path / "cdm", "condition_occurrence", "concept")
    distribute_cohort(tmp_path / "cdm", tmp_path / "cohort", ANY)
    whole, read = ANY.cohort(tmp_path / "cdm"), load_cohort(tmp_path / "cohort")
    assert read.ledger.notes == whole.ledger.notes
    assert "2 of its 2 files have no checksums" in read.ledger.notes[0]
    assert read.covariates.equals(whole.covariates)
    assert pa.types.is_floating(read.covariates["age"].type)
