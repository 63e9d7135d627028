"""What a board is shown, before it is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comorb.profiles.contents import Caveats, Outcome, Pair
from comorb.profiles.profile import Profile
from comorb.views.board import MAX_FIGURES, Board
from comorb.views.words import Words


def test_who_they_are_and_how_sure_that_is(full: Profile) -> None:
    stable = replace(full.clusters[0], stability=0.912)
    board = Board(replace(full, clusters=(stable, *full.clusters[1:])))
    size, age, sex = board.describe_people(0)
    assert size == f"{stable.size:,} records, {stable.share:.1%} of all"
    assert age.startswith("Age in years (mean): ")
    assert sex.startswith("Sex: female: ")
    sure, comes_back = board.certainty(stable)
    assert f"{stable.top:.0%}" in sure
    assert "stability 0.91" in comes_back
    assert "care" in board.certainty(replace(stable, stability=0.5))[1]
    hidden = replace(full, clusters=(replace(stable, size=None), *full.clusters[1:]))
    assert Board(hidden).describe_people(0) == ["Too few records to show"]


def test_starred_outcomes_alone_are_shown(full: Profile) -> None:
    every = Board(full)
    assert len({one.outcome.name for one in every.measures}) == len(full.outcomes)
    assert not any(name.startswith("Age") for name, *_ in every.measures_of(0))
    starred = Board(full, starred=("age",))
    assert {one.outcome.name for one in starred.measures} == {"age"}
    assert starred.measures_of(0)[0][0] == "Age in years (mean)"
    assert len(every.measures_of(0)) <= MAX_FIGURES


def test_a_figure_stands_once_where_it_says_something_and_no_outcome_is_cut(full: Profile) -> None:
    k = full.k

    def shares(name: str, *rows: float) -> Outcome:
        every = np.tile(np.array(rows)[:, None], k + 1)
        values = tuple(f"v{row}" for row in range(len(rows)))
        return Outcome(name, "share", values, np.full(k + 1, 90.0), 90 * every, every, every, every)

    died = replace(shares("died", 0.05), values=("yes",))
    ended = shares("ended", 0.05, 0.6, 0.35)
    wards = shares("ward", *np.linspace(0.01, 0.19, 10))
    board = Board(replace(full, outcomes=(ended, shares("newborn", 0.0), wards, died)))
    assert [name for name, *_ in board.measures_of(0)] == ["Died", "Ended: v1", "Ended: v2"]


def test_what_was_counted_comes_first_and_the_corrected_figure_beside_it(full: Profile) -> None:
    died = next(one for one in full.outcomes if one.name == "died")
    assert died.corrected is not None
    better = replace(died.corrected, estimate=np.array([[0.3, 0.1, 0.2]]))
    board = Board(replace(full, outcomes=(replace(died, corrected=better),)))
    for place in range(full.k):
        (_, own, beside, _) = board.measures_of(place)[0]
        events, known = died.counts[0, place], died.known[place]
        assert own.startswith(f"{100 * events / known:.1f}%")
        corrected = f"{100 * better.estimate[0, place]:.1f}%"
        assert beside == f"{events:,.0f} of {known:,.0f} · corrected {corrected}"


def test_the_findings_say_what_figures_are_of_and_that_they_are_protected(full: Profile) -> None:
    assert "of the records as they are put" in Board(full).care
    assert "protected" not in Board(full).care
    assert "protected" in Board(replace(full, min_cell=11)).care


def test_what_the_clusters_leave_unexplained_is_told(full: Profile) -> None:
    caveats = replace(full.caveats, explained_by_length=0.17, pairs=(Pair(1, 2, 1200, 300.4),))
    told = Board(replace(full, caveats=caveats), Words("es")).method()[
        "Lo que los grupos no explican"
    ]
    assert "17\u00a0%" in told[0]
    assert (
        told[1]
        == "Diabetes y Enfermedad renal crónica coinciden en 1.200 registros; se esperan 300."
    )
    assert (
        Board(replace(full, caveats=Caveats())).method()["What the groups leave unexplained"] == []
    )


def test_the_ledger_is_told_in_the_language(full: Profile) -> None:
    heads, lines = Board(full, Words("ca")).ledger
    assert heads[:2] == ("Què", "Regla")
    assert lines[0][0] == "registres"
    assert lines[0][2] == "600"


def test_features_stand_with_what_sets_the_clusters_apart(mixed) -> None:  # type: ignore[no-untyped-def]
    board = Board(mixed[2])
    how, line = board.method()["How the groups were found"]
    assert "Age in years" in how
    assert line.startswith("What sets the groups apart: diagnoses ")
    assert any(one.name.startswith("Hba1c") for one in board.features)


def test_without_features_nothing_is_said_of_them(full: Profile) -> None:
    assert len(Board(full).method()["How the groups were found"]) == 1
    assert Board(full).features == []
