"""The records of a cohort as tables of pandas, polars and Arrow, and in a notebook."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from comorb import datasets, read_records


@pytest.fixture(scope="module")
def cohort():
    return read_records(pa.Table.from_batches(datasets.region(500))).having("585")


def test_the_records_are_a_table(cohort):
    table = cohort.to_arrow()
    assert table.column_names[:2] == ["id", "codes"]
    assert table["id"].to_pylist() == cohort.ids.to_pylist()
    for row in (0, 11, len(cohort) - 1):
        places = cohort.matrix[[row]].indices
        assert table["codes"][row].as_py() == [cohort.codes[i] for i in places]
    assert set(cohort.covariates.column_names) <= set(table.column_names)
    assert len(cohort.to_pandas()) == cohort.to_polars().height == len(cohort)


def test_weights_have_their_column(cohort):
    weighted = replace(cohort, weights=2.0 * (1 + cohort.matrix.sum(axis=1)))
    assert weighted.to_arrow()["weight"].to_pylist() == weighted.weights.tolist()


def test_a_notebook_shows_common_codes_and_no_record(cohort):
    marked = replace(cohort, ids=pa.array([f"secret {i}" for i in range(len(cohort))]))
    text = marked._repr_html_()
    assert "secret" not in text
    assert f"{len(cohort):,} records" in text
    assert text.count("<tr>") == 11
