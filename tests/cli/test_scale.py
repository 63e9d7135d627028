"""fit and assign on records that are read in parts, as a user meets them."""

import json
from pathlib import Path

from comorb.storage import load_model
from tests.records.distributed.test_read_omop import cdm, save

RULES = ("--having", "585", "-k", 3, "--drop-codes", "428")


def test_fit_in_parts_writes_the_run_of_memory(comorb, run, records):
    told = comorb("fit", records, *RULES, "--memory", "1GB", "-o", "parts")
    assert told.exit_code == 0
    assert "records in 3 clusters" in told.stdout
    here = Path("parts")
    assert (here / "assignments.csv").read_bytes() == (run / "assignments.csv").read_bytes()
    one, two = (load_model(folder / "model.comorb") for folder in (here, run))
    assert one.mixture.key == two.mixture.key
    assert one.data_hash == two.data_hash
    assert [path.name for path in Path().iterdir()] == ["parts"]


def test_an_engine_can_be_named(comorb, records):
    told = comorb("fit", records, *RULES, "--engine", "threads", "--no-stability", "--json")
    assert json.loads(told.stdout)["k"] == 3
    told = comorb("fit", records, *RULES, "--engine", "torch", "-o", "other")
    assert told.exit_code == 1
    assert "comorb: expected the engine threads, dask, " in told.stderr
    assert [path.name for path in Path().iterdir()] == ["comorb-run"]


def test_tables_of_omop_on_an_engine_give_the_run_of_memory(comorb, tmp_path):
    folder = save(cdm(), tmp_path / "cdm")
    for name, more in (("here", ()), ("there", ("--engine", "threads"))):
        words = ("fit", folder, "-k", 2, "--at-least", 2, "--no-stability", "-o", tmp_path / name)
        told = comorb(*words, *more)
        assert told.exit_code == 0, told.output
    one, two = (load_model(tmp_path / name / "model.comorb") for name in ("here", "there"))
    assert (one.mixture.key, one.data_hash) == (two.mixture.key, two.data_hash)
    files = [tmp_path / name / "assignments.csv" for name in ("here", "there")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_assign_in_parts_writes_the_file_of_memory(comorb, run, records):
    words = ("assign", run, records, "--json")
    one = json.loads(comorb(*words).stdout)
    two = json.loads(comorb(*words, "--memory", "1GB", "-o", "parts.csv").stdout)
    assert Path("parts.csv").read_bytes() == Path("assignments.csv").read_bytes()
    assert two["records"] == one["records"]
    assert two["rules"] == one["rules"]
