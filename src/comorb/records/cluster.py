"""Cluster: the frames and tables of Spark and Dask become cohorts, read by their own workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comorb.errors import EngineError, not_installed
from comorb.records.archive import CohortFile
from comorb.records.asked import as_asked
from comorb.records.codes.own_map import CodeMap
from comorb.records.layouts.description import Layout
from comorb.records.preparation import Preparation
from comorb.records.reading import preparing
from comorb.records.sources.divided import FrameTables
from comorb.records.spreading import spread_cohort


def read_spark(  # noqa: PLR0913 - one parameter for each option
    frame: Any,
    folder: str | Path,
    *,
    table: str | None = None,
    layout: Layout | str | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    code_map: CodeMap | str | Path | None = None,
    chronic: bool = False,
    scores: str | Sequence[str] = (),
    features: Mapping[str, str] | Sequence[str] = (),
) -> CohortFile:
    """Read a DataFrame or a table of Spark into a cohort, on the executors of its session.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame or str, or a mapping of names to such
        The rows, or the name of a table of the session, which may be one of Spark Connect. Tables
        of OMOP are given by their names: ``{"condition_era": …, "person": …, "concept": …}``; a
        table of the session finds those in its schema.
    folder : path
        Where the workers write the cohort; all of them, and this process, see it there.
    table, layout, unit, system, level, code_map, chronic, scores, features
        As in `read_records`.

    Returns
    -------
    CohortFile
        The cohort that `read_records` makes of the same rows, its records in the order of a hash
        of the patient, or of the record. It is opened again by its folder.
    """
    preparation = preparing((), table, layout, unit, system, level, code_map, chronic, scores)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError(not_installed("Spark", "spark")) from None
    from comorb.engines.on_spark import SparkEngine

    given = frame if isinstance(frame, Mapping) else {"": frame}
    sessions = [one.sparkSession for one in given.values() if hasattr(one, "sparkSession")]
    if sessions:
        session = sessions[0]
    else:  # a session of Spark Connect is never made without its address
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    named = {name: f"table:{one}" if isinstance(one, str) else one for name, one in given.items()}
    source = FrameTables(named) if isinstance(frame, Mapping) else named[""]
    return _read(source, folder, SparkEngine(session), preparation, features)


def read_dask(  # noqa: PLR0913 - one parameter for each option
    frame: Any,
    folder: str | Path,
    *,
    table: str | None = None,
    layout: Layout | str | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    code_map: CodeMap | str | Path | None = None,
    chronic: bool = False,
    scores: str | Sequence[str] = (),
    features: Mapping[str, str] | Sequence[str] = (),
) -> CohortFile:
    """Read a Dask DataFrame into a cohort, on the workers of the client that is connected.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame, or a mapping of names to such
        The rows, or the tables of OMOP: ``{"condition_era": …, "person": …, "concept": …}``.
    folder : path
        Where the workers write the cohort; all of them, and this process, see it there.
    table, layout, unit, system, level, code_map, chronic, scores, features
        As in `read_records`.

    Returns
    -------
    CohortFile
        The cohort that `read_records` makes of the same rows, its records in the order of a hash
        of the patient, or of the record. It is opened again by its folder.
    """
    preparation = preparing((), table, layout, unit, system, level, code_map, chronic, scores)
    try:
        from distributed import get_client
    except ImportError:
        raise EngineError(not_installed("Dask", "dask")) from None
    from comorb.engines.on_dask import DaskEngine

    try:
        client = get_client()
    except ValueError:
        raise EngineError(
            "no Dask cluster is connected; start a distributed.Client before reading."
        ) from None
    source = FrameTables(frame) if isinstance(frame, Mapping) else frame
    return _read(source, folder, DaskEngine(client), preparation, features)


def _read(
    frame: Any,
    folder: str | Path,
    engine: Any,
    preparation: Preparation,
    features: Mapping[str, str] | Sequence[str],
) -> CohortFile:
    """Read every record of a frame, whatever the number of its codes."""
    asked = replace(preparation, features=as_asked(features), at_least=1)
    spread_cohort(frame, folder, asked, engine)
    return CohortFile.open(folder)
