"""The tree of a choice, with names."""

from __future__ import annotations

from dataclasses import replace

from comorb.insight.runs.tree import splits, tree_document
from comorb.model.choice import RELIABLE
from comorb.model.choose import choose, final
from comorb.records.datasets import heart_failure


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
        assert split.reliably == (min(both) >= RELIABLE)
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
    ended = final(choice, turned, cohort.blocks(), None)
    after = tree_document(ended, cohort.codes, cohort.names, cohort.system)
    assert after["levels"] == before["levels"]
    assert after["splits"] == before["splits"]


def test_a_level_that_was_not_looked_at_has_no_split() -> None:
    cohort = heart_failure()
    choice = choose(cohort.blocks(), [1, 3, 4])
    found = splits(choice, cohort.codes, cohort.names, cohort.system)
    assert [split.groups for split in found] == [3]
