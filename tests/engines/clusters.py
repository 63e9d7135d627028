"""Clusters on this machine: a Spark master with two workers, and a Spark Connect server there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

CLUSTERS = "COMORB_CLUSTERS"  # is set where they are to be tried: make cluster-test
DEFAULTS = """spark.driver.maxResultSize 16m
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 768m
spark.ui.enabled false
spark.log.level OFF
"""


def home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def sources() -> tuple[str, str]:
    """Return the folders that workers find our modules in."""
    root = Path(__file__).parents[2]
    return str(root / "src"), str(root)


def environment(folder: Path) -> dict[str, str]:
    """Return what a process of Spark is started with: our sources, and small bounds."""
    (folder / "spark-defaults.conf").write_text(DEFAULTS)
    (folder / "log4j2.properties").write_text("rootLogger.level = off\n")
    paths = [*sources(), os.environ.get("PYTHONPATH", "")]
    return {
        "SPARK_CONF_DIR": str(folder),
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


@contextmanager
def standalone(folder: Path):
    """Yield the address of a master with two workers, of one core and 1 GB each."""
    port = _free()
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
    worker += ["--webui-port", "0", f"spark://127.0.0.1:{port}"]
    with (
        _started(folder, master),
        _answering(port),
        _started(folder, worker),
        _started(folder, worker),
    ):
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect(folder: Path, master: str):
    """Yield the address of a Spark Connect server on a master."""
    port = _free()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = [str(home() / "bin/spark-submit"), "--class", server, "--master", master]
    words += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    with _process(folder, words), _answering(port):
        yield f"sc://127.0.0.1:{port}"


def _started(folder: Path, words: list[str]):
    name = f"org.apache.spark.deploy.{words[0]}"
    return _process(folder, [str(home() / "bin/spark-class"), name, *words[1:]])


@contextmanager
def _process(folder: Path, words: list[str]):
    with (folder / "log").open("ab") as log:
        started = subprocess.Popen(
            words, env=os.environ | environment(folder), stdout=log, stderr=log
        )
    try:
        yield started
    finally:
        started.terminate()
        started.wait()


@contextmanager
def _answering(port: int, seconds: float = 600):
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert time.monotonic() < end, f"nothing answers at port {port}"
        time.sleep(0.2)
    yield


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
