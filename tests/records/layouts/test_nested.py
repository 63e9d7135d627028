"""Columns with several values a cell, in memory and in files, whole and in parts."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

IDS = ["1", "2", "3"]
PLAIN = {"visit_id": IDS, "dx1": ["428.0", "250.00", "I10"]}
STRUCTURES = {
    "struct": pa.array([{"ward": "a"}] * 3),
    "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    "lists of structs": pa.array([[{"ward": "a"}]] * 3),
    "lists of lists": pa.array([[["a"], []]] * 3),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(IDS)]
    ),
}


def as_duckdb(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE visits AS FROM rows")


def in_parts(source, folder):
    write_cohort(source, folder / "cohort.parquet", CohortSpec(at_least=1), "2GB")
    return load_cohort(folder / "cohort.parquet")


@pytest.mark.parametrize("kind", STRUCTURES)
def test_structures_beside_the_codes_are_left_out(kind, tmp_path):
    table = pa.table(PLAIN | {"place": STRUCTURES[kind]})
    as_duckdb(table, tmp_path / "visits.duckdb")
    for source in (table, tmp_path / "visits.duckdb"):
        for cohort in (read_records(source), in_parts(source, tmp_path)):
            assert len(cohort) == 3
            assert cohort.covariates.column_names == []
            (note,) = (note for note in cohort.ledger.notes if "structures" in note)
            assert note.startswith("column 'place' of ")
            assert note.endswith(" holds structures and was left out")
        assert inspect_records(source).records == 3


@pytest.mark.parametrize("kind", STRUCTURES)
def test_structures_in_place_of_codes_are_refused(kind):
    refusal = r"^the Table: column 'dx1' holds structures, which aren't read; write what is in them"
    with pytest.raises(RecordsError, match=refusal):
        read_records(pa.table(PLAIN | {"dx1": STRUCTURES[kind]}))
    with pytest.raises(RecordsError, match=r"^the Table: column 'place' holds structures"):
        read_records(pa.table(PLAIN | {"place": STRUCTURES[kind]}), layout=Layout(sex="place"))


def test_structures_alone():
    with pytest.raises(RecordsError, match=r"^the Table holds structures alone; write them as col"):
        read_records(pa.table({"place": STRUCTURES["struct"]}))


def test_lists_are_texts(tmp_path):
    lists = [["428.0", "250.00"], [], ["I10"]]
    beside = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    spans = pa.array([1, 2, 3], pa.duration("s"))
    table = pa.table({"visit_id": IDS, "dx": lists, "pair": beside, "span": spans})
    pq.write_table(table, tmp_path / "visits.parquet")
    for source in (table, tmp_path / "visits.parquet"):
        cohort = read_records(source, system="opaque")
        assert sets(cohort) == {"1": {"428.0", "250.00"}, "3": {"I10"}}
        assert cohort.covariates["pair"].to_pylist() == ["1;2", "3;4"]
        assert str(cohort.covariates["span"].type) in ("string", "int64")
