"""A cluster that fails: a worker killed in the middle of a pass, a scheduler that is lost.

Or one that was never there (on_dask, spark_home).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.engines import (
    FileJournal,
    base,
    dask_engine,
    open_blocks,
    open_engine,
    spark_engine,
)
from comorb.engines.block_files import MANIFEST, identity
from comorb.engines.checkpoints import encode_result
from comorb.engines.dask_engine import DaskEngine
from comorb.engines.spark_engine import explain
from comorb.errors import EngineError
from comorb.model import start
from comorb.model.em import expect
from comorb.model.estimators import BernoulliMixture
from comorb.model.moments import prevalence
from comorb.model.subsample import thin_rows
from comorb.model.sweep import hard_labels
from comorb.records.cohort_file import CohortFile
from comorb.records.datasets import region
from comorb.records.distributed import shuffle
from comorb.records.distributed.read import distribute_cohort
from comorb.runs.assign import Scorer, write_assignments
from tests.engines import clusters
from tests.engines.conftest import AFAR, CLUSTERS
from tests.engines.deaths import EXECUTOR, WORKER, Doomed
from tests.engines.test_contract import same_bits
from tests.settings import patch_config

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

READING = {"round 1"}
IN_START, IN_EM = {"pass 3", "round 2"}, {"pass 5"}
FITTING = ["dask"]  # where a whole fit isn't slow
if os.environ.get(clusters.CLUSTERS):
    READING = {f"round {number}" for number in range(1, 100)}
    IN_START, FITTING = IN_START | {"pass 1", "pass 2", "round 1"}, AFAR


class Killer(FileJournal):
    """Kills one process, by its own id, when a pass has just begun."""

    pid, at = 0, 6

    def begin(self):
        super().begin()
        if self.passes == self.at:
            os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def whole(file):
    """Return an uninterrupted fit whose start leaves many passes over the rows to EM."""
    return BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(open_blocks(file))


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    """Return files among which the rows of every patient are spread."""
    folder = tmp_path_factory.mktemp("region") / "claims"
    folder.mkdir()
    table = pa.Table.from_batches(region(400, "long"))
    for number in range(4):
        pq.write_table(table.take(np.arange(number, len(table), 4)), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("engine", AFAR, indirect=True)
def test_a_worker_that_dies_while_it_reads_does_not_change_a_record(
    engine, claims, tmp_path, monkeypatch
):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 900)
    distribute_cohort(claims, tmp_path / "alone")
    doomed = Doomed(engine, tmp_path / "died", READING)
    distribute_cohort(claims, tmp_path / "there", executor=doomed)
    rounds = {f"round {number}" for number in range(1, doomed.rounds + 1)}
    assert set(doomed.markers) == READING & rounds != set()
    alone, there = (CohortFile.open(tmp_path / name) for name in ("alone", "there"))
    assert identity(there.path) == identity(alone.path)
    assert there.load().ids.equals(alone.load().ids)
    assert (there.digest(), there.ledger) == (alone.digest(), alone.ledger)
    parts = json.loads((tmp_path / "there" / MANIFEST).read_text().partition("\n")[2])["parts"]
    names = {MANIFEST, *(part["file"] for part in parts)}
    assert len(parts) > 2
    assert {one.name for one in (tmp_path / "there").iterdir()} == names
    assert {one.name for one in tmp_path.iterdir()} == {"alone", "there", "died"}


@pytest.fixture
def quiet(file, monkeypatch):
    """Return an undisturbed fit, which is started on some of the rows and goes on with all."""
    patch_config(monkeypatch, start, final_rows=1)
    return BernoulliMixture(CLUSTERS).fit_blocks(open_blocks(file))


def survives(doomed, file, quiet):
    """Fit on an engine whose workers die, and want the bits of a quiet fit."""
    journal = FileJournal()
    model = BernoulliMixture(CLUSTERS).fit_blocks(open_blocks(file, journal), doomed)
    assert same_bits(model, quiet)
    assert journal.passes == doomed.passes > 5
    assert doomed.at <= set(doomed.markers)
    return model


@pytest.mark.parametrize("engine", ["local[2,4]"], indirect=True)
def test_a_worker_that_dies_in_a_pass_does_not_change_a_bit(engine, file, fitted, tmp_path):
    blocks, doomed = open_blocks(file), Doomed(engine, tmp_path / "died", {"pass 2", "pass 3"})
    shares = prevalence(blocks)
    rows = [thin_rows(blocks, shares, 5000, one).loaders for one in (None, doomed)]
    steps = [expect(fitted.mixture_, blocks, one) for one in (None, doomed)]
    assert encode_result([load() for load in rows[1]]) == encode_result(
        [load() for load in rows[0]]
    )
    assert encode_result(steps[1]) == encode_result(steps[0])
    assert {"pass 2", "pass 3"} <= set(doomed.markers)


@pytest.mark.parametrize("engine", FITTING, indirect=True)
def test_a_worker_that_dies_in_the_start_and_in_em_does_not_change_a_bit(
    engine, file, quiet, tmp_path
):
    doomed = Doomed(engine, tmp_path / "died", IN_START | IN_EM)
    model = survives(doomed, file, quiet)
    doomed.at = {f"pass {doomed.passes + 1}"}
    labels = hard_labels(model.mixture_, open_blocks(file), doomed)
    assert np.array_equal(labels, hard_labels(quiet.mixture_, open_blocks(file)))
    assert doomed.at <= set(doomed.markers)


@pytest.mark.skipif(not os.environ.get(clusters.CLUSTERS), reason="no cluster is wanted")
@pytest.mark.parametrize("above", [EXECUTOR, WORKER])
@pytest.mark.parametrize("engine", ["spare"], indirect=True)
def test_a_machine_that_is_lost_in_em_does_not_change_a_bit(engine, file, quiet, tmp_path, above):
    survives(Doomed(engine, tmp_path / "died", IN_EM, above), file, quiet)


@pytest.mark.parametrize("engine", AFAR, indirect=True)
def test_a_worker_that_dies_while_it_writes_does_not_change_a_label(engine, file, fitted, tmp_path):
    scorer = Scorer(fitted.mixture_, 0.8, (1, 2, 3, 4))
    doomed = Doomed(engine, tmp_path / "died", {"pass 1"})
    totals = write_assignments(CohortFile.open(file), scorer, tmp_path / "all.csv", doomed)
    assert "pass 1" in doomed.markers
    here = write_assignments(CohortFile.open(file), scorer, tmp_path / "here.csv", None)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    for name in ("sizes", "sure", "soft", "table"):
        assert getattr(totals, name).tobytes() == getattr(here, name).tobytes()
    assert {one.name for one in tmp_path.iterdir()} == {"all.csv", "here.csv", "died"}


@pytest.mark.parametrize("engine", ["dask"], indirect=True)
def test_a_worker_that_is_lost_twice_is_not_given_up(engine):
    seconds = dask.utils.parse_timedelta(dask.config.get("distributed.deploy.lost-worker-timeout"))
    assert seconds > 86_400


def test_a_lost_scheduler_is_told_and_the_fit_goes_on(file, whole, tmp_path):
    address = tmp_path / "scheduler.json"
    words = ["-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port", "0"]
    scheduler = subprocess.Popen([sys.executable, *words, "--scheduler-file", str(address)])
    words = ["-m", "distributed.cli.dask_worker", "--no-dashboard", "--nthreads", "1"]
    worker = subprocess.Popen(
        [
            sys.executable,
            *words,
            "--no-nanny",
            "--scheduler-file",
            str(address),
            "--death-timeout",
            "20",
        ]
    )
    try:
        while not address.exists():
            time.sleep(0.1)
        journal = Killer(tmp_path / "journal", identity(file))
        journal.pid = scheduler.pid
        with distributed.Client(scheduler_file=str(address)) as client:
            message = "the Dask scheduler is lost .* it goes on from the last whole pass"
            with pytest.raises(EngineError, match=message):
                BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(
                    open_blocks(file, journal), DaskEngine(client)
                )
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    again = FileJournal(tmp_path / "journal", identity(file))
    model = BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(open_blocks(file, again))
    assert same_bits(model, whole)
    assert again.recalled >= journal.passes - 1 == 5


def test_no_scheduler_answers(monkeypatch):
    monkeypatch.setattr(dask_engine, "_TIMEOUT", "1s")
    message = "no Dask scheduler answers at 127.0.0.1:9; check the address and start it"
    with pytest.raises(EngineError, match=message), open_engine("dask://127.0.0.1:9"):
        pass


@pytest.mark.parametrize("address", ["sc://127.0.0.1:9", "sc://127.0.0.1:9/;token=word"])
def test_no_spark_connect_server_answers(address):
    pytest.importorskip("pyspark")
    message = r"^no Spark Connect server answers at 127.0.0.1:9 \(.*\); check the address"
    with pytest.raises(EngineError, match=message), open_engine(address):
        pass


@pytest.mark.parametrize(("module", "name"), [("distributed", "dask"), ("pyspark", "spark")])
def test_an_engine_that_is_not_installed_is_told(monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"{name.title()} is not installed; install it with: pip install 'comorb\[{name}\]'"
    with pytest.raises(EngineError, match=message), open_engine(name):
        pass


WORDS = {
    "Job aborted: Total size of serialized results of 5 tasks (16.2 MiB) is bigger than "
    "spark.driver.maxResultSize (16.0 MiB)": "Start Spark with a larger spark.driver.maxResultSize",
    "An exception was thrown\nTraceback\n  File x\ncomorb.errors.StorageError: c.parquet: row "
    "group 7 is damaged or gone\n\n\tat org.apache.spark.X": "c.parquet: row group 7 is damaged",
    "org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: No space left"
    "\n\tat x": "IOException: No space left. Run the same command again",
    "An error occurred while calling z:collectAndServe.\n: org.apache.spark.SparkException: Job "
    "aborted: a task was lost 4 times\n\tat x": "a task was lost 4 times. Run the same command",
    "RuntimeError: comorb-version:0.0.9:": "a worker has comorb 0.0.9; install comorb .*, as here",
    "RuntimeError: comorb-version:None:": "Spark: a worker has no comorb; install comorb",
}


@pytest.mark.parametrize("words", WORDS)
def test_spark_is_told_by_its_own_cause(words):
    assert re.search(WORDS[words], explain(RuntimeError(words)))


@pytest.mark.parametrize("engine", ["local[2,4]"], indirect=True)
def test_a_spark_worker_with_another_comorb_is_told(engine, file, monkeypatch):
    for module in (spark_engine, base):
        monkeypatch.setattr(module, "__version__", "9.9")
    with pytest.raises(EngineError, match=r"^Spark: a worker has comorb \d[^;]*; install comorb"):
        prevalence(open_blocks(file), engine)


def test_another_comorb_on_a_worker_is_told(file):
    class Client:
        def get_versions(self, packages):
            return {"workers": {"one": {"packages": {"comorb": "0.0.9"}}}}

    with pytest.raises(EngineError, match=r"Dask: a worker has comorb 0.0.9; install comorb"):
        DaskEngine(Client()).run_pass(None, open_blocks(file).loaders)
