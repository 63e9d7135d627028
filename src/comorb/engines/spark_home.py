"""Where Spark is: a context that is started for a run, or a session of Spark Connect."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from comorb.engines.on_spark import SparkEngine, quiet, sentence
from comorb.errors import EngineError, not_installed

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what drives only plans, on one core
_SILENT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
_PORT, _TIMEOUT = 15002, 10  # of Spark Connect; seconds until it is taken for lost
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens, of which Spark Connect would tell after minutes."""
    if any(os.environ.get(name) for name in _PROXIES):
        return
    found = urlsplit(address.partition(";")[0])
    try:
        with socket.create_connection((found.hostname or "", found.port or _PORT), _TIMEOUT):
            return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(
            f"no Spark Connect server answers at {found.hostname}:{found.port or _PORT} "
            f"({reason}); check the address and start it."
        ) from None


@contextmanager
def spark_engine(master: str) -> Iterator[SparkEngine]:
    """Start Spark for a run, or connect to it.

    ``local[2,4]`` is this machine, two cores and four tries of a lost task; ``spark://host:7077``
    or ``yarn`` a cluster; ``sc://host`` Spark Connect.
    """
    connects = master.startswith("sc://")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise EngineError(not_installed("Spark", "spark")) from None
    if connects:
        _check_answers(master)
    try:
        with quiet():
            engine = SparkEngine((_connected if connects else _started)(master))
    except ImportError as error:
        raise EngineError(
            f"Spark Connect lacks a package ({sentence(error)}) Install all that it "
            "needs with: pip install 'comorb[spark]'"
        ) from None
    except Exception as error:
        needs = "a Spark Connect server" if connects else "Java 17 or newer, and a master"
        cause = sentence(error)
        raise EngineError(
            f"no Spark session could be started at {master} ({type(error).__name__}: {cause}) "
            f"Spark needs {needs} that answers."
        ) from None
    try:
        yield engine
    finally:
        engine.stop()


def _connected(address: str) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.appName("comorb").remote(address).getOrCreate()


def _started(master: str) -> Any:
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK_START)
    wanted = SparkConf().setMaster(master).setAppName("comorb").setAll(_SILENT.items())
    return SparkContext.getOrCreate(wanted)
