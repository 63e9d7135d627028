import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.wide import WIDE, identify
from comorb.records.sources.duck import SourceTable

TABLE = SourceTable("file.csv", "t", {}, text=True)


def of(ids, layout, unit="visit", codes=None, **others):
    table = pa.table({"id": pa.array(ids, pa.string()), **others})
    mentions = (np.arange(len(ids)), np.array(codes or [0] * len(ids), dtype=np.int32))
    return identify(Plan(WIDE, TABLE, layout, unit), table, lambda: mentions, len(ids))


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["c", "a", "b"], ["only"]])
def test_unique_ids_keep_the_order_of_the_rows(ids):
    known = of(ids, Layout(record="id"))
    assert known.ids.to_pylist() == ids
    assert known.place.tolist() == list(range(len(ids)))
    assert known.by_row


def test_patients_are_united_in_the_order_of_their_ids():
    known = of(["b", None, "a", "b"], Layout(patient="id"), "patient")
    assert known.ids.to_pylist() == ["a", "b"]
    assert known.place.tolist() == [1, -1, 0, 1]
    assert not known.by_row
    assert known.ledger.left("rows") == 3


def test_the_same_row_again_is_left_out():
    known = of(["b", "a", "b"], Layout(record="id"), codes=[5, 6, 5])
    assert known.place.tolist() == [0, 1, -1]
    assert not known.by_row


@pytest.mark.parametrize(("codes", "town"), [([5, 6, 7], "xyx"), ([5, 6, 5], "xyz")])
def test_the_same_id_with_unequal_rows(codes, town):
    with pytest.raises(RecordsError, match="must be unique, but rows 2 and 4 have the same id"):
        of(["b", "a", "b"], Layout(record="id"), codes=codes, town=list(town))


def test_patients_of_several_visits_do_not_name_the_visits():
    known = of(["p", "p"], Layout(patient="id"))
    assert known.ids.to_pylist() == ["1", "2"]
    assert known.column is None
