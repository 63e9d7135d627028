"""The command that drives a cluster is killed, again and again, and goes on when it is given again.

The passes of a command that was killed are found in its journal, as `test_journal` holds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.records.datasets import region
from tests.engines import clusters

pytestmark = [
    pytest.mark.skipif(not os.environ.get(clusters.CLUSTERS), reason="no cluster is wanted"),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no java on the path"),
]

START, EM = 2, 6


@pytest.fixture(scope="module", params=["standalone", "connect"])
def address(request, tmp_path_factory):
    """Yield the address of a cluster that no session holds."""
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("cluster")
    with clusters.standalone(folder) as master:
        if request.param == "standalone":
            yield master
            return
        with clusters.connect(folder, master) as server:
            yield server


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records") / "claims"
    folder.mkdir()
    table = pa.Table.from_batches(region(20_000, "wide"))
    for number in range(4):
        rows = table.slice(number * 5000, 5000)
        pq.write_table(rows, folder / f"part-{number}.parquet", write_page_checksum=True)
    return folder


def driven(when, claims, run, engine):
    """Run a fit that is killed at some time; return the passes that it began, and recalled."""
    words = ["fit", str(claims), "-k", "5", "--engine", engine, "--no-stability", "-o", str(run)]
    folder = run.parent.parent / "conf"
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.driver", str(when), *words],
        env=os.environ | clusters.environment(folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == (0 if when == "never" else -signal.SIGKILL), done.stderr
    told = re.search(r"begun (\d+), recalled (\d+)", done.stderr)
    return tuple(map(int, told.groups())) if told else None


def test_a_command_that_is_killed_goes_on_from_the_last_whole_pass(address, claims, tmp_path):
    here, there = tmp_path / "here" / "run", tmp_path / "there" / "run"
    passes = sum(driven("never", claims, here, "threads"))
    assert passes > EM
    assert driven("reading", claims, there, address) is None
    assert driven(START, claims, there, address) == (START, 0)
    begun, recalled = driven(EM, claims, there, address)
    assert begun + recalled == EM
    assert recalled >= START - 1
    begun, recalled = driven("assigning", claims, there, address)
    assert begun + recalled == passes
    assert recalled >= EM - 1
    assert not (there / "model.comorb").exists()
    begun, recalled = driven("never", claims, there, address)
    assert begun + recalled == passes
    assert begun <= 1  # one that only fetches rows, as they are few, is made again
    for name in ("model.comorb", "assignments.csv"):
        assert (there / name).read_bytes() == (here / name).read_bytes()
    assert {one.name for one in there.parent.iterdir()} == {"run"}
    assert {one.name for one in there.iterdir()} == {one.name for one in here.iterdir()}
