"""Scoring: new records go the way of the training records."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.run import Run, run
from comorb.records.datasets import region
from comorb.records.layouts.layout import Layout
from comorb.records.preparation import Preparation
from comorb.storage import load_model


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1500)))


@pytest.fixture(scope="module")
def made(table) -> Run:
    return run(table, 3, Preparation(having=("428",), drop_rare=5), repeats=0)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    made.save(path)
    return path


def test_the_training_records_go_where_they_were(made, table, folder):
    again = assign_records(folder, table)
    assert again.ids == made.assigned.ids
    assert np.array_equal(again.assignment.labels, made.assigned.assignment.labels)
    assert np.array_equal(again.assignment.top, made.assigned.assignment.top)
    assert again.unknown == ()
    assert again.clusters == load_model(folder / "model.comorb").clusters


def test_the_model_s_rules_hold_unless_every_record_is_wanted(table, folder):
    chosen = assign_records(folder / "model.comorb", table)
    every = assign_records(folder, table, every=True)
    assert len(chosen.ids) < len(every.ids) == 1500
    assert every.unknown != ()


def test_a_few_records_are_read_in_the_model_s_coding_system(folder):
    few = pa.table({"id": ["a"], "dx1": ["428"], "dx2": ["403"], "dx3": ["V45"]})
    assert len(assign_records(folder, few).ids) == 1


def test_another_layout_can_be_named(folder):
    long = pa.table({"who": ["a", "a", "a"], "what": ["428.0", "403.91", "585.9"]})
    reading = Preparation(layout=Layout(kind="long", record="who", codes=("what",)))
    assert assign_records(folder, long, reading).ids.to_pylist() == ["a"]


def test_records_that_the_rules_leave_out_altogether_are_an_error(folder):
    other = pa.table({"id": ["a"], "dx1": ["250.00"], "dx2": ["401.9"], "dx3": ["585.9"]})
    with pytest.raises(RecordsError, match="No record has the code '428'"):
        assign_records(folder, other)
