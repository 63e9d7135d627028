"""Items: yes and no as people write them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.model.emissions.base import Feature
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
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
def test_an_item_with_a_gap_is_a_feature_with_that_gap(yes, no, gap):
    table, held = answered(yes, no)
    cells = table["DM"].to_pylist()
    cells[7] = gap
    table = table.set_column(table.column_names.index("DM"), "DM", pa.array(cells))
    cohort = read_records(table)
    assert sets(cohort) == {person: items - {"DM"} for person, items in held.items()}
    assert cohort.features.features == (Feature("DM", "binary", ("no", "yes")),)
    said = ["DM" in items for items in held.values()]
    values = cohort.features.values[:, 0]
    assert np.flatnonzero(np.isnan(values)).tolist() == [7]
    assert np.delete(values, 7).tolist() == np.delete(said, 7).tolist()
    note = "the feature 'DM' is of the kind binary, as recognised; 1 of 40 records miss it"
    assert note in cohort.ledger.notes


def test_an_item_that_is_yes_or_empty_among_others_is_yes_or_no():
    table, held = answered("1", "0")
    cells = [cell if cell == "1" else None for cell in table["DM"].to_pylist()]
    cohort = read_records(table.set_column(table.column_names.index("DM"), "DM", pa.array(cells)))
    assert sets(cohort) == held
    assert cohort.features is None
    assert "the item 'DM' is yes or empty: empty cells were read as no" in cohort.ledger.notes


def test_rows_of_which_nothing_is_observed_are_kept(tmp_path):
    table, _ = answered("1", "0")
    gaps = {name: pa.array([None, *table[name].to_pylist()[1:]]) for name in ITEMS}
    cohort = read_records(pa.table({"id": table["id"], **gaps}))
    assert (len(cohort), cohort.codes) == (40, ())
    assert np.isnan(cohort.features.values[0]).all()


def test_items_of_several_levels_are_categories():
    levels = ["never", "at times", "often"]
    rows = 60
    table = pa.table(
        {
            "id": [f"p{row}" for row in range(rows)],
            "smokes": [levels[row % 3] for row in range(rows)],
            "drinks": [None if row == 5 else levels[row // 20] for row in range(rows)],
            "stage": [str(1 + row % 4) for row in range(rows)],
        }
    )
    cohort = read_records(table)
    kinds = {one.name: (one.kind, one.levels) for one in cohort.features.features}
    assert kinds == {
        "smokes": ("category", ("at times", "never", "often")),
        "drinks": ("category", ("at times", "never", "often")),
        "stage": ("category", ("1", "2", "3", "4")),
    }
    assert np.isnan(cohort.features.values).sum() == 1


def test_an_item_that_tells_nothing_is_left_out_with_a_note():
    table, held = answered("1", "0")
    cells = ["0"] * 36 + [None] * 4
    cohort = read_records(table.append_column("ASTHMA", pa.array(cells)))
    assert cohort.features is None
    assert "the item 'ASTHMA' holds one value only, and was left out" in cohort.ledger.notes
    assert sets(cohort) == held


def test_items_are_settled_over_the_whole_table(tmp_path):
    table, held = answered("2", "1", people=3000)
    assert sets(read_records(table)) == held
    write_cohort(table, tmp_path / "items.parquet", memory="1GB")
    cohort = load_cohort(tmp_path / "items.parquet")
    assert sets(cohort) == held
    assert cohort.least_codes == 0
    assert "2 was read as yes" in cohort.ledger.notes[0]


def late_items(path, late):
    rows = ["id,CHF,COPD", *(f"p{row},{row % 2},{row % 3 // 2}" for row in range(3000))]
    rows[2500] = f"p2499,{late},1"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("late", ["", "NA"])
def test_a_gap_that_turns_up_late_is_a_gap(late, tmp_path):
    cohort = read_records(late_items(tmp_path / "items.csv", late))
    assert cohort.codes == ("COPD",)
    assert np.flatnonzero(np.isnan(cohort.features.values[:, 0])).tolist() == [2499]


def test_what_turns_up_late_is_refused(tmp_path):
    message = r"items.csv, row 2,501: .*something other than 0 and 1"
    with pytest.raises(RecordsError, match=message):
        read_records(late_items(tmp_path / "items.csv", "maybe"))


def test_what_is_said_of_yes_stands():
    table, held = answered("1", "2")
    assert sets(read_records(table, layout=Layout(yes="1"))) == held
    asked = CohortSpec(layout=Layout(yes="1"))
    assert asked.words() == ["--column", "yes=1"]
    assert CohortSpec.from_dict(asked.to_dict()) == asked


LCA = Path(__file__).parents[4] / "shared" / "data" / "lca"


@pytest.mark.skipif(not LCA.is_dir(), reason="the item tables of ../shared/data/lca are absent")
@pytest.mark.parametrize(
    ("name", "layout", "codes", "kinds", "gaps"),
    [
        ("carcinoma", None, 7, {}, 0),
        ("cheating", None, 4, {}, 0),
        ("gss82", None, 0, {"category": 4}, 0),
        ("lsay", Layout(kind="binary", codes=("enjoym-scaredm",)), 0, {"binary": 5}, 2321),
        ("heart", None, 2, {}, 0),
    ],
)
def test_published_item_tables_are_read_as_they_are(name, layout, codes, kinds, gaps):
    cohort = read_records(LCA / f"{name}.csv", layout=layout)
    assert len(cohort.codes) == codes
    features = cohort.features.features if cohort.features else ()
    assert Counter(one.kind for one in features) == kinds
    assert gaps == (np.isnan(cohort.features.values).sum() if features else 0)
    if name == "lsay":
        assert len(cohort) == 3116
        assert (~np.isnan(cohort.features.values).all(axis=1)).sum() == 2675


def survey(marks, share=0.1, rows=400, codes=("1", "2")):
    """Answers of a survey with marks for unknown, and which of them mean yes."""
    rng = np.random.default_rng(5)
    truth = rng.random((rows, len(ITEMS))) < share
    cells = np.where(truth, *codes).astype(object)
    gaps = rng.random((rows, len(ITEMS))) < 0.05
    cells[gaps] = rng.choice(marks, gaps.sum())
    columns = {name: pa.array(cells[:, j]) for j, name in enumerate(ITEMS)}
    table = pa.table({"folio": [f"f{row}" for row in range(rows)], **columns})
    return table, np.where(gaps, np.nan, truth)


@pytest.mark.parametrize(
    ("marks", "codes"),
    [
        (["97", "98", "99"], ("1", "2")),
        (["7", "9"], ("1", "2")),
        (["999"], ("1", "0")),
        (["8", "9"], ("1", "0")),
        (["-1"], ("1", "2")),
        (["98.0", "99.0"], ("1.0", "2.0")),
        (["9"], ("2", "1")),
    ],
)
def test_numbers_that_stand_apart_are_missing_answers(marks, codes):
    table, truth = survey(marks, codes=codes)
    cohort = read_records(table)
    assert [one.name for one in cohort.features.features] == ITEMS
    assert np.array_equal(cohort.features.values, truth, equal_nan=True)
    assert any("they were read as missing" in note for note in cohort.ledger.notes)


def test_a_scale_and_a_change_keep_their_numbers():
    rows = range(120)
    scales = {f"pain{j}": [str(1 + (row * 7 + j) % 8) for row in rows] for j in range(3)}
    change = {f"change{j}": [str((row + j) % 3 - 1) for row in rows] for j in range(3)}
    for cells, levels in ((scales, tuple("12345678")), (change, ("-1", "0", "1"))):
        features = read_records(pa.table(cells)).features.features
        assert [(one.kind, one.levels) for one in features] == 3 * [("category", levels)]


def test_names_say_which_of_one_and_two_is_yes():
    table, held = answered("1", "2")
    few = table.rename_columns(["id", *(f"{name} (1=no, 2=si)" for name in ITEMS)])
    cohort = read_records(few)
    every = {f"{name} (1=no, 2=si)" for name in ITEMS}
    shown = {person: {f"{one} (1=no, 2=si)" for one in some} for person, some in held.items()}
    assert sets(cohort) == {person: every - some for person, some in shown.items()}
    assert any("as the names of the columns say" in note for note in cohort.ledger.notes)


def test_items_named_as_codes_are_items_and_never_repaired_codes():
    table, truth = survey(["98"])
    cohort = read_records(table, layout=Layout(codes=("CHF", "COPD")))
    assert np.nansum(truth[:, :2], axis=0).tolist() == np.nansum(cohort.features.values, 0).tolist()
    wide = read_records(table, layout=Layout(kind="wide", codes=("CHF", "COPD")))
    assert (wide.system, set(wide.codes)) == ("opaque", {"1", "2", "98"})
    assert not any("repaired" in note for note in wide.ledger.notes)


def test_unknown_answers_are_the_same_in_parts(tmp_path):
    table, _ = survey(["98", "99"], rows=3000)
    whole = read_records(table)
    write_cohort(table, tmp_path / "items.parquet", memory="1GB")
    parts = load_cohort(tmp_path / "items.parquet")
    assert np.array_equal(whole.features.values, parts.features.values, equal_nan=True)
    assert set(whole.ledger.notes) == set(parts.ledger.notes)
