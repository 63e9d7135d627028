"""A cluster that fails: a worker killed in the middle of a pass, a scheduler that is lost."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from comorb.engines import FileJournal, on_dask, open_blocks, open_engine
from comorb.engines.blockfile import identity
from comorb.engines.on_dask import DaskEngine
from comorb.errors import EngineError
from comorb.model.blocks import map_blocks
from comorb.model.estimator import BernoulliMixture
from tests.engines.conftest import CLUSTERS
from tests.engines.test_contract import same_bits

distributed = pytest.importorskip("distributed")


class Killer(FileJournal):
    """Kills one process, by its own id, when a pass has just begun."""

    pid = 0

    def begin(self):
        super().begin()
        if self.passes == 6:
            os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def whole(file):
    """Return an uninterrupted fit whose start leaves many passes over the rows to EM."""
    return BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(open_blocks(file))


def test_a_killed_worker_does_not_change_a_bit(file, whole):
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = Killer()
        killer.pid = next(iter(client.run(os.getpid).values()))
        model = BernoulliMixture(CLUSTERS, init="asvtd").fit_blocks(
            open_blocks(file, killer), DaskEngine(client)
        )
    assert same_bits(model, whole)
    assert killer.passes > 6


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
    assert again.recalled == 3


def test_no_scheduler_answers(monkeypatch):
    monkeypatch.setattr(on_dask, "_TIMEOUT", "1s")
    message = "no Dask scheduler answers at 127.0.0.1:9; check the address and start it"
    with pytest.raises(EngineError, match=message), open_engine("dask://127.0.0.1:9"):
        pass


@pytest.mark.parametrize(("module", "name"), [("distributed", "dask"), ("pyspark.sql", "spark")])
def test_an_engine_that_is_not_installed_is_told(monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"{name.title()} is not installed; install it with: pip install 'comorb\[{name}\]'"
    with pytest.raises(EngineError, match=message), open_engine(name):
        pass
