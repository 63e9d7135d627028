"""Scoring in a Spark pipeline of one's own: rows with lists of codes in, clusters out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from comorb.engines.spark_engine import spark_errors
from comorb.errors import InputError, RecordsError, not_installed
from comorb.model.blocks import Rows
from comorb.profiles.assignment import Assignment
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from comorb.runs.assign import Scorer
from comorb.runs.folder import load_run_model
from comorb.storage import SavedModel

_RESULT_FIELDS = "cluster int, confidence double"
_LISTS = pa.large_list(pa.string())
_READING = CohortSpec(layout=Layout("long", ("code",), record="id"))


def spark_scorer(model: str | Path, *, codes: str = "codes", id: str = "id") -> SparkScorer:
    """Return what scores rows of a Spark table by a model, for a pipeline of one's own.

    Parameters
    ----------
    model : path
        The model.comorb of a run, or its folder; it is read here and travels with the tasks.
    codes, id : str
        The columns with the list of codes of each record, ``array<string>``, and with its id.

    Returns
    -------
    SparkScorer
        ``in_arrow`` is a function for ``mapInArrow``, ``score`` applies it to a table, and ``udf``
        is a function of the codes for columns and SQL.

    Examples
    --------
    >>> scorer = spark_scorer("run")  # doctest: +SKIP
    >>> scorer.score(visits).write.saveAsTable("clusters")  # doctest: +SKIP
    >>> spark.udf.register("cluster_of", scorer.udf())  # doctest: +SKIP
    >>> spark.sql("SELECT id, cluster_of(codes).cluster FROM visits")  # doctest: +SKIP
    """
    saved = load_run_model(model)
    if saved.mixture.variables:
        raise InputError("scorer.features")
    return SparkScorer(saved, codes, id)


@dataclass(frozen=True, eq=False)
class SparkScorer:
    """Finds the cluster of every row of a Spark table, as `comorb assign --all` does."""

    model: SavedModel
    codes: str = "codes"
    id: str = "id"
    _columns: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def score(self, frame: Any) -> Any:
        """Return a DataFrame with the id, the cluster and the confidence of each row of another."""
        with spark_errors():
            kind = frame.schema[self.id].dataType.simpleString()
            chosen = frame.select(self.id, self.codes)
            return chosen.mapInArrow(self.in_arrow, f"`{self.id}` {kind}, {_RESULT_FIELDS}")

    def in_arrow(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the id, the cluster and the confidence of each row of some batches."""
        for batch in batches:
            found = self._found(batch.column(self.codes))
            named = {self.id: batch.column(self.id)}
            yield pa.record_batch(named | {"cluster": found[0], "confidence": found[1]})

    def udf(self) -> Any:
        """Return a function of the codes, for columns and SQL: a struct of cluster, confidence."""
        try:
            import pandas as pd
            from pyspark.sql.functions import pandas_udf
        except ImportError:
            raise InputError(not_installed("Spark", "spark")) from None

        def cluster_of(codes: Any) -> Any:
            numbers, sure = self._found(pa.array(codes, _LISTS, from_pandas=True))
            return pd.DataFrame({"cluster": numbers.to_numpy(), "confidence": sure.to_numpy()})

        cluster_of.__annotations__ = {"codes": pd.Series, "return": pd.DataFrame}
        with spark_errors():
            return pandas_udf(cluster_of, _RESULT_FIELDS)

    def _found(self, lists: pa.Array) -> tuple[pa.Array, pa.Array]:
        part = self.assigned(lists)
        numbers = np.asarray(self.model.numbers, dtype=np.int32)[part.labels]
        return pa.array(numbers), pa.array(part.top.round(6))

    def assigned(self, lists: pa.Array) -> Assignment:
        """Return the clusters of records by their lists of codes."""
        own = lists.cast(_LISTS)
        lengths = own.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        texts = own.flatten().dictionary_encode()
        places = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        different = texts.dictionary.to_pylist()
        self._learn(different)
        columns = [self._columns[text] for text in different]
        held = np.repeat(np.arange(lengths.size), lengths)[places >= 0]
        mentions = _marks_matrix(held, places[places >= 0], (lengths.size, len(different)))
        of_code = np.repeat(np.arange(len(different)), [len(some) for some in columns])
        every = np.array([i for some in columns for i in some], dtype=np.int64)
        shape = len(different), self.model.mixture.n_columns
        rows = csr_array(mentions @ _marks_matrix(of_code, every, shape))
        rows.sort_indices()
        block = Rows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), np.empty(0))
        return Scorer.of(self.model).assign(block)

    def _learn(self, texts: list[str]) -> None:
        """Find the model's columns of codes, by reading each as a record of its own."""
        new = [text for text in texts if text not in self._columns]
        self._columns.update(dict.fromkeys(new, ()))
        if not new:
            return
        fitted = CohortSpec.from_dict(self.model.preparation)
        asked = fitted.for_new_records(self.model.system, _READING, every=True)
        asked = replace(asked, kinds=(), layouts=(), unit=None, table=None)
        ids = pa.array([str(place) for place in range(len(new))])
        try:
            cohort = asked.cohort(pa.table({"id": ids, "code": pa.array(new, pa.string())}))
        except RecordsError:
            return
        own = {code: place for place, code in enumerate(self.model.codes)}
        place = np.array([own.get(code, -1) for code in cohort.codes])
        ends = cohort.matrix.indptr
        for row, at in enumerate(cohort.ids.to_pylist()):
            found = place[cohort.matrix.indices[ends[row] : ends[row + 1]]]
            self._columns[new[int(at)]] = tuple(found[found >= 0].tolist())


def _marks_matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
