"""Saved runs compared."""

from pathlib import Path

import pyarrow as pa
import pytest

from comorb.insight.runs.comparing import compare_runs
from comorb.insight.runs.run import Request, fit_records
from comorb.records.datasets import region


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    table = pa.Table.from_batches(list(region(1000)))
    for k in (2, 3):
        fit_records(table, folder / str(k), Request(k, repeats=0))
    fit_records(table.slice(0, 900), folder / "fewer", Request(3, repeats=0))
    return folder


def test_runs_on_the_same_records_are_compared_record_by_record(runs):
    compared = compare_runs(runs / "2", runs / "3")
    assert compared.comparison.flows is not None
    assert compared.comparison.flows.sum() == compared.followed == 1000
    assert compare_runs(runs / "2", runs / "2").comparison.ari == 1


def test_runs_on_other_records_are_compared_by_their_codes(runs):
    compared = compare_runs(runs / "fewer", runs / "3")
    assert compared.comparison.flows is None
    assert compared.followed is None
    assert len(compared.comparison.pairs) == 3


def test_records_that_both_have_are_followed_on_request(runs):
    compared = compare_runs(runs / "fewer", runs / "3", follow=True)
    assert compared.followed == compared.comparison.flows.sum() == 900
    assert compare_runs(runs / "2", runs / "3", follow=False).followed is None


def test_too_few_shared_records_are_not_followed(runs):
    assert compare_runs(runs / "2", runs / "3", min_cell=1001).followed is None
