"""Delta Lake: only the files that the log names are read."""

import json
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from tests.records.helpers import sets

SCHEMA = [("visit_id", "string"), ("dx1", "string"), ("dx2", "string")]


class Lake:
    """A Delta table, written a version at a time."""

    def __init__(self, folder, partitions=(), schema=SCHEMA, **settings):
        self.folder, self.version, self.actions = folder, -1, []
        (folder / "_delta_log").mkdir(parents=True)
        fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in schema]
        self.commit(
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {
                "metaData": {
                    "id": "x",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps({"type": "struct", "fields": fields}),
                    "partitionColumns": list(partitions),
                    "configuration": settings,
                }
            },
        )

    def commit(self, *actions):
        self.version += 1
        self.actions += actions
        path = self.folder / "_delta_log" / f"{self.version:020}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))

    def write(self, name, rows, columns=("visit_id", "dx1"), **partition):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(arrays, list(columns)), path)
        stats = json.dumps({"numRecords": len(rows)})
        return {
            "add": {
                "path": quote(name),
                "partitionValues": partition,
                "size": path.stat().st_size,
                "modificationTime": 0,
                "dataChange": True,
                "stats": stats,
            }
        }

    def checkpoint(self, parts=1):
        """Sum up the actions so far, and forget their commits."""
        log = self.folder / "_delta_log"
        gone = [a["remove"]["path"] for a in self.actions if "remove" in a]
        state = [a for a in self.actions if "remove" not in a]
        state = [a for a in state if a.get("add", {}).get("path") not in gone]
        schema = pa.schema(
            [
                ("protocol", pa.struct([("minReaderVersion", pa.int32())])),
                (
                    "metaData",
                    pa.struct(
                        [
                            ("schemaString", pa.string()),
                            ("partitionColumns", pa.list_(pa.string())),
                            ("configuration", pa.map_(pa.string(), pa.string())),
                        ]
                    ),
                ),
                (
                    "add",
                    pa.struct(
                        [
                            ("path", pa.string()),
                            ("partitionValues", pa.map_(pa.string(), pa.string())),
                            ("stats", pa.string()),
                            ("deletionVector", pa.struct([("storageType", pa.string())])),
                        ]
                    ),
                ),
            ]
        )
        for part in range(parts):
            rows = [{k: _mapped(v) for k, v in a.items()} for a in state[part::parts]]
            middle = f".{part + 1:010}.{parts:010}" if parts > 1 else ""
            name = f"{self.version:020}.checkpoint{middle}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, schema), log / name)
        for commit in log.glob("*.json"):
            commit.unlink()


def _mapped(value):
    pairs = ("partitionValues", "configuration")
    return {k: list(v.items()) if k in pairs else v for k, v in value.items()}


def removed(name):
    return {"remove": {"path": quote(name), "dataChange": True}}


@pytest.fixture
def lake(tmp_path):
    lake = Lake(tmp_path / "visits")
    lake.commit(lake.write("a.parquet", [("1", "428.0"), ("2", "V58.61")]))
    lake.commit(lake.write("b.parquet", [("3", "001.0")]), lake.write("c.parquet", [("4", "I10")]))
    lake.commit(
        removed("a.parquet"),
        lake.write("d.parquet", [("2", "V58.61", "401.9")], ("visit_id", "dx1", "dx2")),
    )
    return lake


LATEST = {"2": {"V58", "401"}, "3": {"001"}, "4": {"I10"}}


def test_removed_files_are_not_read(lake):
    cohort = read_records(lake.folder, system="opaque", level="full")
    assert sets(cohort).keys() == LATEST.keys()
    assert cohort.ledger.left("rows") == 3


@pytest.mark.parametrize("parts", [1, 2])
def test_a_log_that_begins_with_a_checkpoint(parts, lake):
    lake.checkpoint(parts)
    assert sets(read_records(lake.folder)).keys() == LATEST.keys()
    lake.commit(removed("c.parquet"))
    assert sets(read_records(lake.folder)).keys() == {"2", "3"}


def test_among_other_tables(lake):
    (lake.folder.parent / "towns.csv").write_text("id,town\n1,Vic\n")
    cohort = read_records(lake.folder.parent, table="visits")
    assert sets(cohort).keys() == LATEST.keys()


def test_partitions_come_from_the_log(tmp_path):
    schema = [("visit_id", "string"), ("dx1", "string"), ("ward", "string"), ("later", "string")]
    lake = Lake(tmp_path / "visits", ["ward"], schema)
    lake.commit(
        lake.write("ward=a%20b/x.parquet", [("1", "428.0")], ward="a b"),
        lake.write("elsewhere.parquet", [("2", "V58.61"), ("3", "001.0")], ward="007"),
        lake.write("none.parquet", [("4", "401.9")], ward=None),
    )
    cohort = read_records(lake.folder)
    by_id = dict(zip(cohort.ids.to_pylist(), cohort.covariates["ward"].to_pylist(), strict=True))
    assert by_id == {"1": "a b", "2": "007", "3": "007", "4": None}


def refusal(folder):
    with pytest.raises(RecordsError) as caught:
        read_records(folder)
    return str(caught.value)


def test_what_the_reader_does_not_honour(tmp_path):
    lake = Lake(tmp_path / "a", **{"delta.columnMapping.mode": "name"})
    lake.commit(lake.write("x.parquet", [("1", "428.0")]))
    assert "a is a Delta table whose columns have other names in its files" in refusal(lake.folder)
    lake = Lake(tmp_path / "b")
    added = lake.write("x.parquet", [("1", "428.0")])
    added["add"]["deletionVector"] = {"storageType": "u", "pathOrInlineDv": "x"}
    lake.commit(added)
    assert "b is a Delta table with deletion vectors, which say that rows" in refusal(lake.folder)
    lake = Lake(tmp_path / "c")
    lake.commit({"protocol": {"minReaderVersion": 3, "readerFeatures": ["typeWidening"]}})
    assert "c is a Delta table that needs typeWidening; read it with a" in refusal(lake.folder)
    lake = Lake(tmp_path / "d")
    lake.commit({"protocol": {"minReaderVersion": 4}})
    assert "d is a Delta table that needs reader version 4" in refusal(lake.folder)


def test_features_that_nothing_uses(lake):
    features = ["columnMapping", "deletionVectors", "timestampNtz"]
    lake.commit({"protocol": {"minReaderVersion": 3, "readerFeatures": features}})
    assert sets(read_records(lake.folder)).keys() == LATEST.keys()


def test_a_log_or_files_that_are_not_whole(lake):
    log = lake.folder / "_delta_log"
    (log / f"{1:020}.json").rename(log / "kept")
    assert "visits is a Delta table whose log has a gap" in refusal(lake.folder)
    (log / "kept").rename(log / f"{1:020}.json")
    (lake.folder / "b.parquet").rename(lake.folder / "kept")
    assert "whose log names a file that isn't there; copy the whole" in refusal(lake.folder)
    (lake.folder / "a.parquet").rename(lake.folder / "b.parquet")
    assert "a file that has other rows than its log says" in refusal(lake.folder)
    lake.commit({"add": {"path": "../other.parquet"}})
    assert "with files outside its folder" in refusal(lake.folder)
    (log / f"{4:020}.json").write_text("{cut")
    assert "visits is a Delta table whose log is damaged" in refusal(lake.folder)


def test_newer_checkpoints_alone(lake):
    log = lake.folder / "_delta_log"
    (log / f"{0:020}.json").unlink()
    name = f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (log / name).write_text("{}")
    assert "expected a newer kind of checkpoint" in refusal(lake.folder)


def test_a_table_without_rows(tmp_path):
    assert "empty is a Delta table that holds no rows" in refusal(Lake(tmp_path / "empty").folder)
    (tmp_path / "x" / "_delta_log").mkdir(parents=True)
    assert "x is a Delta table whose log has a gap" in refusal(tmp_path / "x")
