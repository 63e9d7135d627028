"""The choice of a number: tables of latent classes, and the tree with names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.select_k import CONFIG, choose, finalise
from comorb.records.datasets import heart_failure
from comorb.runs.choose import class_tables, methods_text, splits, tree_document
from tests.small_cohort import make_cohort


@pytest.fixture(scope="module")
def cohort():
    return make_cohort()


@pytest.fixture(scope="module")
def choice(cohort):
    return choose(cohort.blocks(), [1, 2])


@pytest.fixture(scope="module")
def tables(choice, cohort):
    told = []
    made = class_tables(
        choice, cohort, None, (2, np.inf), report=lambda progress: told.append(progress.text)
    )
    assert told[-1] == "Testing 2 classes against 1: draw 2 of 2"
    return made


def test_every_table_is_there(tables):
    assert list(tables.sheets) == ["fit", "classes", "codes", "residuals"]
    fit = tables.sheets["fit"]
    assert fit["k"] == [1, 2]
    assert fit["entropy"][0] is None
    assert fit["blrt_p"] == [None, round(1 / 3, 4)]
    assert sum(tables.sheets["classes"]["n"][1:]) == 600
    for sheet in tables.sheets.values():
        assert len({len(column) for column in sheet.values()}) == 1


def test_codes_have_ratios_and_exclusivity(tables):
    codes = tables.sheets["codes"]
    rows = list(zip(codes["class"], codes["code"], codes["exclusivity"], strict=True))
    of_diabetes = [exclusivity for _, code, exclusivity in rows if code == "250"]
    assert sum(of_diabetes) == pytest.approx(1, abs=1e-3)
    assert max(of_diabetes) > 0.8
    low, p, high = (np.array(codes[name]) for name in ("low", "probability", "high"))
    assert ((low <= p) & (p <= high)).all()
    at = rows.index(next(row for row in rows if row[1] == "428"))
    assert codes["observed_expected"][at] == pytest.approx(1)


def test_methods_for_a_paper(tables):
    assert tables.methods.startswith(
        "Latent class models with 1 to 2 classes were fitted by maximum likelihood to 8 binary "
        "indicators of 600 records (comorb "
    )
    assert "the BIC was lowest with 2 (" in tables.methods
    assert (
        "and 2 were retained by evidence and stability in parts of the records (relative entropy 0."
        in tables.methods
    )
    assert tables.methods.endswith(
        " A bootstrap likelihood-ratio test with 2 draws of 2 against 1 classes gave p = 0.333."
    )
    assert "of 600 records" in methods_text(tables.choice, "8 binary indicators", 11)


def test_protected_tables_tell_nothing_of_few(choice, cohort):
    made = class_tables(choice, cohort, min_cell=100).sheets
    assert set(made["classes"]["n"]) <= {
        600,
        360,
        350,
        340,
        370,
        380,
        390,
        260,
        250,
        240,
        230,
        220,
        210,
    }
    assert len(made["codes"]["code"]) < 16
    assert all(count % 10 == 0 for count in made["residuals"]["observed"])
    hidden = class_tables(choice, cohort, min_cell=500).sheets
    assert hidden["fit"]["smallest_n"] == [600, None]
    assert hidden["fit"]["smallest_share"][1] is None
    assert hidden["classes"]["share"][1:] == [None, None]


def test_features_have_a_table_of_their_own_and_take_part_in_the_test():
    rng = np.random.default_rng(3)
    plain = make_cohort()
    group = rng.random(len(plain)) < 0.4
    age = 50 + 20 * group + rng.normal(size=len(plain))
    values = np.column_stack([rng.random(len(plain)) < 0.2 + 0.6 * group, age])
    features = Feature("smoker", "binary", ("no", "yes")), Feature("age", "number")
    cohort = replace(plain, features=FeatureTable(features, values))
    made = class_tables(choose(cohort.blocks(), [1, 2]), cohort, None, (1, np.inf))
    assert "to 10 indicators of 600 records" in made.methods
    fit, sheet = made.sheets["fit"], made.sheets["features"]
    assert fit["parameters"] == [8 + 1 + 2, 1 + 2 * (8 + 1 + 2)]
    assert fit["blrt_p"] == [None, 0.5]
    rows = list(zip(sheet["feature"], sheet["value"], sheet["figure"], strict=True))
    means = sorted(figure for name, value, figure in rows if (name, value) == ("age", "mean"))
    assert means == pytest.approx([50, 70], abs=0.5)
    shares = [figure for name, _, figure in rows if name == "smoker"]
    assert sum(shares) == pytest.approx(2, abs=1e-3)
    hidden = class_tables(made.choice, cohort, min_cell=100).sheets["features"]
    assert len(hidden["figure"]) < len(sheet["figure"])


def test_every_split_has_names_a_reliability_and_whether_it_holds() -> None:
    cohort = heart_failure()
    choice = choose(cohort.blocks(), range(1, 5))
    found = splits(choice, cohort.codes, cohort.names, cohort.system)
    assert [split.groups for split in found] == [1, 2, 3]
    assert found[0].reliability == 1
    merges = {merge.left: merge for merge in choice.tree}
    rows = {row.k: row for row in choice.rows}
    for split in found:
        merge, finer = merges[split.groups], rows[split.groups + 1]
        both = [finer.reliability[place] for place in (merge.first, merge.second)]
        assert split.reliably == (min(both) >= CONFIG.reliable)
        assert split.name
        assert split.into[0] != split.into[1]

    plain = tree_document(choice, cohort.codes, cohort.names, cohort.system)
    assert [len(level) for level in plain["levels"]] == [1, 2, 3, 4]
    for split, one in zip(found, plain["splits"], strict=True):
        level, finer = plain["levels"][split.groups - 1], plain["levels"][split.groups]
        assert level[one["first"]]["name"] == split.name
        assert (finer[one["first"]]["name"], finer[one["second"]]["name"]) == split.into
        assert one["reliably"] == split.reliably


def test_the_tree_keeps_its_places_when_the_final_clusters_are_found() -> None:
    cohort = heart_failure()
    choice = choose(cohort.blocks(), range(1, 6))
    before = tree_document(choice, cohort.codes, cohort.names, cohort.system)
    best = choice.models[choice.best]
    turned = replace(best, weights=best.weights[::-1], means=best.means[::-1])
    ended = finalise(choice, turned, cohort.blocks(), None)
    after = tree_document(ended, cohort.codes, cohort.names, cohort.system)
    assert after["levels"] == before["levels"]
    assert after["splits"] == before["splits"]


def test_a_level_that_was_not_looked_at_has_no_split() -> None:
    cohort = heart_failure()
    choice = choose(cohort.blocks(), [1, 3, 4])
    found = splits(choice, cohort.codes, cohort.names, cohort.system)
    assert [split.groups for split in found] == [3]
