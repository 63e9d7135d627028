"""A cluster that fails: a worker killed in the middle of a pass, a scheduler that is lost."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from comorb.engines import FileJournal, on_dask, on_spark, open_blocks, open_engine, partials
from comorb.engines.blockfile import identity
from comorb.engines.on_dask import DaskEngine
from comorb.engines.on_spark import told
from comorb.errors import EngineError
from comorb.insight.runs.scoring import Scorer, write_assigned
from comorb.model.blocks import map_blocks, map_reduce
from comorb.model.estimator import BernoulliMixture
from comorb.model.moments import prevalence
from comorb.records.archive import CohortFile
from tests.engines.conftest import CLUSTERS
from tests.engines.test_contract import same_bits

distributed = pytest.importorskip("distributed")


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


@pytest.mark.parametrize("at", [2, 6])
def test_a_killed_worker_does_not_change_a_bit(file, whole, at):
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = Killer()
        killer.at = at
        killer.pid = next(iter(client.run(os.getpid).values()))
        model = BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(
            open_blocks(file, killer), DaskEngine(client)
        )
    assert same_bits(model, whole)
    assert killer.passes > at


def dies_once(marker, rows):
    """Kill the process that this runs in, the first time, and count ones from then on."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return int(rows.indptr[-1])
    return os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("engine", ["dask", "local[2,4]"], indirect=True)
def test_a_worker_that_dies_in_a_block_does_not_change_a_partial(engine, file, tmp_path):
    blocks = open_blocks(file)
    whole = [int(load().indptr[-1]) for load in blocks.loaders]
    assert list(map_blocks(partial(dies_once, tmp_path / "died"), blocks, engine)) == whole
    assert map_reduce(partial(dies_once, tmp_path / "again"), blocks, engine) == sum(whole)


@dataclass(frozen=True, eq=False)
class Mortal(Scorer):
    """Kills the process that it scores in, the first time."""

    marker: Path = Path()

    def assigned(self, rows):
        dies_once(self.marker, rows)
        return super().assigned(rows)


@pytest.mark.parametrize("engine", ["dask", "local[2,4]"], indirect=True)
def test_a_worker_that_dies_while_it_writes_does_not_change_a_label(
    engine, file, cohort, fitted, tmp_path
):
    scorer = Mortal(fitted.mixture_, 0.8, (1, 2, 3, 4), marker=tmp_path / "died")
    totals = write_assigned(CohortFile.open(file), scorer, tmp_path / "all.csv", engine)
    assert (tmp_path / "died").exists()
    alone = Scorer(fitted.mixture_, 0.8, (1, 2, 3, 4))
    here = write_assigned(CohortFile.open(file), alone, tmp_path / "here.csv", None)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    for name in ("sizes", "sure", "soft", "table"):
        assert getattr(totals, name).tobytes() == getattr(here, name).tobytes()
    assert {one.name for one in tmp_path.iterdir()} == {"all.csv", "here.csv", "died"}


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
    monkeypatch.setattr(on_dask, "_TIMEOUT", "1s")
    message = "no Dask scheduler answers at 127.0.0.1:9; check the address and start it"
    with pytest.raises(EngineError, match=message), open_engine("dask://127.0.0.1:9"):
        pass


@pytest.mark.parametrize("address", ["sc://127.0.0.1:9", "sc://127.0.0.1:9/;token=word"])
def test_no_spark_connect_server_answers(address):
    pytest.importorskip("pyspark")
    message = r"^no Spark Connect server answers at 127.0.0.1:9 \(.*\); check the address"
    with pytest.raises(EngineError, match=message), open_engine(address):
        pass


@pytest.mark.parametrize(("module", "name"), [("distributed", "dask"), ("pyspark.sql", "spark")])
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
    "RuntimeError: comorb-version:0.0.9:": "a worker has comorb 0.0.9; install comorb .*, as here",
    "RuntimeError: comorb-version:None:": "Spark: a worker has no comorb; install comorb",
}


@pytest.mark.parametrize("words", WORDS)
def test_spark_is_told_by_its_own_cause(words):
    assert re.search(WORDS[words], told(RuntimeError(words)))


@pytest.mark.parametrize("engine", ["local[2,4]"], indirect=True)
def test_a_spark_worker_with_another_comorb_is_told(engine, file, monkeypatch):
    for module in (on_spark, partials):
        monkeypatch.setattr(module, "__version__", "9.9")
    with pytest.raises(EngineError, match=r"^Spark: a worker has comorb \d[^;]*; install comorb"):
        prevalence(open_blocks(file), engine)


def test_another_comorb_on_a_worker_is_told(file):
    class Client:
        def get_versions(self, packages):
            return {"workers": {"one": {"packages": {"comorb": "0.0.9"}}}}

    with pytest.raises(EngineError, match=r"Dask: a worker has comorb 0.0.9; install comorb"):
        DaskEngine(Client()).total(None, open_blocks(file).loaders)
