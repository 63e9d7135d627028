"""Items: yes and no as people write them."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.archive import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.preparation import Preparation
from comorb.records.reading import read_records
from comorb.records.streaming import write_cohort
from tests.records.helpers import sets

ITEMS = ["CHF", "COPD", "DM", "CKD"]
ANSWERS = [
    ("1", "0"),
    ("1.0", "0.0"),
    ("yes", "no"),
    ("Y", "N"),
    ("TRUE", "FALSE"),
    ("ja", "nein"),
    ("J", "N"),
    ("oui", "non"),
    ("Sí", "No"),
    ("sim", "não"),
    ("WAHR", "FALSCH"),
    ("vero", "falso"),
    ("present", "absent"),
    ("2", "1"),
    ("2.0", "1.0"),
    ("1", None),
    ("x", ""),
    ("X", "NA"),
]


def answered(yes, no, seed=3, people=40):
    """A table of items, and the items that each person has."""
    truth = np.random.default_rng(seed).random((people, len(ITEMS))) < 0.4
    truth[0], truth[1] = True, False
    columns = {
        name: [yes if one else no for one in column]
        for name, column in zip(ITEMS, truth.T, strict=True)
    }
    ids = [f"p{row}" for row in range(people)]
    held = {
        person: {name for name, one in zip(ITEMS, row, strict=True) if one}
        for person, row in zip(ids, truth, strict=True)
    }
    return pa.table({"id": ids, **columns}), held


@pytest.mark.parametrize(("yes", "no"), ANSWERS)
def test_yes_and_no_as_people_write_them(yes, no):
    table, held = answered(yes, no)
    assert sets(read_records(table)) == held


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("ja", "nein"), ("2", "1")])
@pytest.mark.parametrize("gap", [None, "", "NA", "unknown"])
def test_one_missing_item_is_refused(yes, no, gap):
    table, _ = answered(yes, no)
    cells = table["DM"].to_pylist()
    cells[7] = gap
    table = table.set_column(table.column_names.index("DM"), "DM", pa.array(cells))
    message = "row 8: the item 'DM' is empty. Empty is missing, not no"
    with pytest.raises(RecordsError, match=message):
        read_records(table)


def test_items_are_settled_over_the_whole_table(tmp_path):
    table, held = answered("2", "1", people=3000)
    assert sets(read_records(table)) == held
    write_cohort(table, tmp_path / "items.parquet", memory="1GB")
    cohort = load_cohort(tmp_path / "items.parquet")
    assert sets(cohort) == held
    assert cohort.least_codes == 0
    assert "2 was read as yes" in cohort.ledger.notes[0]


@pytest.mark.parametrize("late", ["", "NA", "maybe"])
def test_what_turns_up_late_is_refused(late, tmp_path):
    rows = ["id,CHF,COPD", *(f"p{row},{row % 2},{row % 3 // 2}" for row in range(3000))]
    rows[2500] = f"p2499,{late},1"
    (tmp_path / "items.csv").write_text("\n".join(rows))
    message = "something other than 0 and 1" if late == "maybe" else "'CHF' is empty"
    with pytest.raises(RecordsError, match=rf"items.csv, row 2,501: .*{message}"):
        read_records(tmp_path / "items.csv")


def test_what_is_said_of_yes_stands():
    table, held = answered("1", "2")
    assert sets(read_records(table, layout=Layout(yes="1"))) == held
    asked = Preparation(layout=Layout(yes="1"))
    assert asked.words() == ["--column", "yes=1"]
    assert Preparation.from_dict(asked.to_dict()) == asked
