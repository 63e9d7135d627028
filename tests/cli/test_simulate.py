"""simulate, as a user meets it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet


def test_records_go_to_a_file_of_the_asked_size(comorb):
    told = comorb("simulate", "visits.parquet", "-n", 500)
    assert told.stdout == "500 simulated records: visits.parquet\n"
    assert pyarrow.parquet.read_table("visits.parquet").num_rows == 500


def test_a_smaller_file_is_the_beginning_of_a_larger_one(comorb):
    comorb("simulate", "small.csv", "-n", 10, "-q")
    comorb("simulate", "large.csv", "-n", 20, "-q")
    assert Path("large.csv").read_text().startswith(Path("small.csv").read_text())


def test_a_row_a_code_on_request(comorb):
    comorb("simulate", "long.csv", "-n", 10, "--layout", "long", "-q")
    assert Path("long.csv").read_text().startswith('"record_id","code"\n')


def test_what_is_wrong_is_told(comorb):
    told = comorb("simulate", "visits.csv", "-n", 0)
    assert told.exit_code == 1
    assert "Expected a positive number of records" in told.stderr
    told = comorb("simulate", "visits.xlsx")
    assert "Expected a file that ends with .csv or .parquet; got visits.xlsx." in told.stderr
    Path("visits.csv").write_text("mine")
    assert "visits.csv is there already" in comorb("simulate", "visits.csv").stderr


def test_an_interrupted_command_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("mine")
    entry = "from comorb.__main__ import main; main()"
    words = ["simulate", str(path), "-n", "3000000", "--force"]
    started = subprocess.Popen([sys.executable, "-c", entry, *words], stderr=subprocess.PIPE)
    while len(list(tmp_path.iterdir())) < 2:
        assert started.poll() is None
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 130
    assert errors == b"comorb: interrupted; files that were there before are whole\n"
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]
