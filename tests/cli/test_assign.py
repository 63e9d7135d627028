"""assign, as a user meets it."""

import csv
import json
from pathlib import Path

import pyarrow.parquet


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_assign_gives_the_training_records_their_clusters(comorb, run, records):
    told = comorb("assign", run, records)
    assert told.exit_code == 0
    assert rows(Path("assignments.csv")) == rows(run / "assignments.csv")
    assert "records assigned: assignments.csv" in told.stdout
    assert "having 585 (−" in told.stdout
    assert "doesn't know" not in told.stdout


def test_assign_counts_what_the_model_does_not_know(comorb, run):
    Path("new.csv").write_text(
        "id,dx1,dx2,dx3\na,585.9,428.0,401.9\nb,585.9,403.91,082.0\nc,585.9,082.1,402.90\nd,250.00,,\n"
    )
    plain = json.loads(comorb("assign", run, "new.csv", "-o", "new.parquet", "--json").stdout)
    assert plain["records"] == 3
    assert plain["unknown"] == [{"code": "082", "name": "Tick-borne rickettsioses", "records": 2}]
    table = pyarrow.parquet.read_table("new.parquet")
    assert table["id"].to_pylist() == ["a", "b", "c"]
    assert set(table["cluster"].to_pylist()) <= {1, 2, 3}
    told = comorb("assign", run, "new.csv", "--all")
    assert "4 records assigned" in told.stdout
    assert (
        "Passed over, as the model doesn't know them: 082 Tick-borne rickettsioses (2)"
        in told.stdout
    )


def test_assign_reads_another_layout(comorb, run):
    Path("long.csv").write_text(
        "visit,what\na,585.9\na,401.9\na,250.00\nb,585.9\nb,403.91\nb,285.9\n"
    )
    words = ("--layout", "long", "--column", "record=visit", "--column", "codes=what")
    assert "2 records assigned" in comorb("assign", run, "long.csv", *words).stdout


def test_assign_refuses_a_damaged_model_and_keeps_files(comorb, run, records):
    content = (run / "model.comorb").read_bytes()
    Path("cut.comorb").write_bytes(content[:-100])
    told = comorb("assign", "cut.comorb", records)
    assert told.exit_code == 1
    assert told.stderr == (
        "comorb: cut.comorb is cut off or was altered; copy it again, or fit again.\n"
    )
    Path("assignments.csv").write_text("mine")
    told = comorb("assign", run, records)
    assert (
        "assignments.csv is there already; name another file, or replace it by force."
        in told.stderr
    )
    assert Path("assignments.csv").read_text() == "mine"
