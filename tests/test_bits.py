"""The same command gives the same bits: in memory, in parts and on Dask, today and tomorrow.

The hashes change only when an answer changes on purpose, which the changelog then says. Linear
algebra and NumPy's own functions are pinned to one set of kernels each, as last bits differ from
one to another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from comorb import datasets, save_cohort
from comorb.storage import load_model

DATA = Path(__file__).parents[2] / "shared" / "data"
WAYS = ("memory", "parts", "dask")
KERNELS = {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4"}
RUNS = {
    "nhds": (("nhds2010.csv.gz", "--having", "428", "-k", "5"), "2d495f4bb99846cc291e083fefbe678c"),
    "synpuf": (("synpuf_inpatient.csv.gz", "-k", "5"), "6e674c097fea83bbade9235627d981b5"),
    "patients": (
        ("synpuf_inpatient.csv.gz", "-k", "4", "--unit", "patient"),
        "fa777b26982da191d873e8c04a1a1577",
    ),
    "heart_failure": (("", "-k", "5"), "0ee7e275e9ef81ddb8e4e0aa4e73e346"),
    "tertiary": (("", "-k", "6"), "3e783c1692b6fc872adfe5a2863878f4"),
}


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """Return the address of a Dask scheduler with two workers, all with the pinned kernels."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    file = str(folder / "scheduler.json")
    words = {
        "scheduler": ("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
        "worker": ("--nworkers", "2", "--nthreads", "1", "--no-dashboard"),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", name, "--scheduler-file", file, *more],
            cwd=folder,
            env=os.environ | KERNELS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, more in words.items()
    ]
    end = time.monotonic() + 120
    while not Path(file).exists():
        assert time.monotonic() < end, "the scheduler does not start"
        time.sleep(0.1)
    yield json.loads(Path(file).read_text())["address"].replace("tcp://", "dask://")
    for one in reversed(started):
        one.terminate()
        one.wait()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RUNS)
def test_a_command_gives_the_bits_it_always_gave(name, way, tmp_path, request):
    (file, *options), expected = RUNS[name]
    records = DATA / file if file else tmp_path / "cohort.parquet"
    if not file:
        save_cohort(getattr(datasets, name)(), records)
    elif not records.exists():
        pytest.skip(f"needs {file} in ../shared/data")
    how = {
        "memory": lambda: (),
        "parts": lambda: ("--memory", "1GB"),
        "dask": lambda: ("--engine", request.getfixturevalue("dask")),
    }[way]()
    words = ["fit", str(records), *options, *how, "-o", "run", "--no-stability", "-q"]
    subprocess.run(
        [sys.executable, "-m", "comorb", *words],
        cwd=tmp_path,
        env=os.environ | KERNELS,
        check=True,
    )
    found = load_model(tmp_path / "run" / "model.comorb").mixture
    parameters = sha256(found.weights.tobytes() + found.means.tobytes()).hexdigest()
    assignments = sha256((tmp_path / "run" / "assignments.csv").read_bytes()).hexdigest()
    assert parameters[:16] + assignments[:16] == expected
