"""A cohort file of several row groups, and every engine that can be had here."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pytest

from comorb.engines import block_files, open_engine
from comorb.engines.spark_engine import SparkEngine
from comorb.model.estimators import BernoulliMixture
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import save_cohort
from comorb.records.datasets.simulate import record_like
from comorb.records.ledger import Ledger
from comorb.remote import Remote
from tests.engines import clusters
from tests.stores import settings, store

ROWS, CODES, CLUSTERS = 30_000, 60, 4
GROUP = 3_000


def made(weights=None) -> Cohort:
    matrix = record_like(ROWS, CLUSTERS, CODES, seed=3).matrix
    codes = tuple(f"{number:03d}" for number in range(CODES))
    return Cohort(
        matrix,
        pa.array([f"r{number}" for number in range(ROWS)]),
        codes,
        codes,
        "opaque",
        "full",
        pa.table({}),
        Ledger.start(ROWS, CODES),
        weights,
    )


def save(cohort, path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_files, "ROWS_A_GROUP", GROUP)
        save_cohort(cohort, path)
    return path


@pytest.fixture(scope="session")
def cohort() -> Cohort:
    return made()


@pytest.fixture(scope="session")
def weighted() -> Cohort:
    return made(np.random.default_rng(5).uniform(0.1, 4.0, ROWS))


@pytest.fixture(scope="session")
def file(cohort, tmp_path_factory):
    return save(cohort, tmp_path_factory.mktemp("blocks") / "cohort.parquet")


@pytest.fixture(scope="session")
def fitted(cohort) -> BernoulliMixture:
    return BernoulliMixture(CLUSTERS).fit(cohort.matrix)


@contextmanager
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@contextmanager
def serial():
    yield None


AFAR = ["dask", "local[2,4]"]  # whose workers are processes of their own, and may die
FRAMES = "local[2,4] by frames"  # a session that does as one of Spark Connect
if os.environ.get(clusters.CLUSTERS):
    AFAR += ["standalone", "connect"]
ENGINES = ["serial", "threads", "processes", *AFAR, FRAMES]


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory):
    """Return the folder of Spark's own files, with small bounds where clusters are tried."""
    folder = tmp_path_factory.mktemp("spark")
    if os.environ.get(clusters.CLUSTERS):
        os.environ |= clusters.environment(folder)
    return folder


@pytest.fixture(scope="session")
def wards():
    """Yield a bucket in a store that workers find, where clusters are tried, or else nothing."""
    if not os.environ.get(clusters.CLUSTERS):
        yield None
        return
    with store() as address, pytest.MonkeyPatch.context() as patch:
        for name, value in settings(address).items():
            patch.setenv(name, value)
        yield Remote("s3://wards")


@pytest.fixture(scope="session", params=ENGINES)
def engine(request, spark_folder, wards):
    name, wanted = request.param, ExitStack()
    if name not in ("serial", "threads", "processes", "dask"):
        pytest.importorskip("pyspark", reason="SPARK IS NOT TESTED: pyspark is not installed")
        if shutil.which("java") is None:
            pytest.skip("SPARK IS NOT TESTED: there is no java on the path")
    with wanted:
        if name in ("standalone", "spare", "connect"):  # spare is a cluster that may be destroyed
            name = wanted.enter_context(clusters.standalone(spark_folder))
        if request.param == "connect":
            name = wanted.enter_context(clusters.connect(spark_folder, name))
        if not name.startswith("sc:"):
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # is left by Spark Connect
        made = {"serial": serial, "processes": processes}.get(name)
        engine = wanted.enter_context(made() if made else open_engine(name.partition(" ")[0]))
        if name == FRAMES:
            engine = SparkEngine(engine.session)
            engine.context = None
        yield engine
