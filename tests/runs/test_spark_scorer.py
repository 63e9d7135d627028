"""A scorer for Spark pipelines tells the clusters that `comorb assign --all` tells."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comorb
from comorb.errors import InputError
from comorb.records.datasets import region
from comorb.records.features import parse_features
from comorb.records.spec import CohortSpec
from comorb.runs.assign import assign_records
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model

LEVELS = [("category",), ("full",), ("category", "group")]


def lists_of(table: pa.Table) -> pa.Array:
    names = [name for name in table.column_names if name.startswith("dx")]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return pa.array([[code for code in row if code] or None for row in rows])


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(900)))


@pytest.fixture(scope="module", params=LEVELS, ids=str)
def scored(request, table, tmp_path_factory):
    """Return a run, and what `assign` tells of every record."""
    path = tmp_path_factory.mktemp("runs")
    rules = CohortSpec(level=request.param, drop_rare=5)
    fit_records(table.slice(0, 600), path / "run", Request(3, rules, repeats=0))
    assign_records(path / "run", table, path / "all.parquet", every=True)
    return path / "run", pq.read_table(path / "all.parquet")


def test_rows_in_batches_get_the_clusters_of_assign(table, scored):
    run, expected = scored
    scorer = comorb.spark_scorer(run, codes="dx", id="who")
    frame = pa.table({"who": table[table.column_names[0]], "dx": lists_of(table)})
    found = pa.Table.from_batches(scorer.in_arrow(frame.to_batches(max_chunksize=250)))
    at = {str(one): place for place, one in enumerate(expected["id"].to_pylist())}
    order = [at[str(one)] for one in found["who"].to_pylist()]
    assert found.num_rows == expected.num_rows == 900
    assert found["cluster"].to_pylist() == expected["cluster"].take(order).to_pylist()
    assert found["confidence"].to_pylist() == expected["confidence"].take(order).to_pylist()


def test_a_row_without_codes_is_scored_and_what_is_no_code_is_passed_over(scored):
    scorer = comorb.spark_scorer(scored[0])
    part = scorer.assigned(pa.array([None, [], ["?!"], ["428.0", None, "428.0"], ["428.0"]]))
    assert part.labels.size == 5
    assert np.unique(part.labels[:3]).size == 1
    assert part.top[3] == part.top[4]


def test_a_model_with_features_is_refused(table, tmp_path):
    rules = CohortSpec(features=parse_features({"age": "number"}))
    fit_records(table, tmp_path / "run", Request(2, rules, repeats=0))
    with pytest.raises(InputError, match="expected a model of codes alone"):
        comorb.spark_scorer(tmp_path / "run")


@pytest.mark.skipif(shutil.which("java") is None, reason="SPARK IS NOT TESTED: there is no java")
def test_a_spark_table_joins_what_assign_tells(table, scored):
    pytest.importorskip("pyspark", reason="SPARK IS NOT TESTED: pyspark is not installed")
    from comorb.engines.spark_engine import spark_engine

    run, expected = scored
    if load_model(run / "model.comorb").level != "category":
        pytest.skip("once is enough")
    scorer = comorb.spark_scorer(run)
    with spark_engine("local[2]") as engine:
        spark = engine.session
        ids = map(str, table[table.column_names[0]].to_pylist())
        rows = list(zip(ids, lists_of(table).to_pylist(), strict=True))
        spark.createDataFrame(rows, "id string, codes array<string>").createOrReplaceTempView("v")
        spark.udf.register("cluster_of", scorer.udf())
        first = scorer.score(spark.table("v")).collect()
        second = spark.sql("SELECT id, cluster_of(codes).cluster AS cluster FROM v").collect()
    ids, clusters = expected["id"].to_pylist(), expected["cluster"].to_pylist()
    told = dict(zip(map(str, ids), clusters, strict=True))
    assert {row["id"]: row["cluster"] for row in first} == told
    assert {row["id"]: row["cluster"] for row in second} == told
