"""Findings are told where intervals bear them out, and not otherwise."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.profiles.contents import CorrectedFigures, Outcome
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.outcomes import summarise
from comorb.profiles.profile import Profile
from comorb.views.board import Board
from comorb.views.findings import findings, page_json
from comorb.views.words import ENGLISH, Words


def outcome(name: str, kind: str, figures: list[float], width: float) -> Outcome:
    estimate = np.array([figures])
    value = "mean" if kind == "number" else "yes"
    return Outcome(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        values=(value,),
        known=np.array([300.0, 300.0, 600.0]),
        counts=np.empty((0, 3)) if kind == "number" else 300 * estimate,
        estimate=estimate,
        low=estimate - width,
        high=estimate + width,
    )


def with_use(profile: Profile, means: list[float], width: float) -> Profile:
    """Return a profile whose records use bed-days, half of them in each cluster."""
    assert profile.burden is not None
    totals = np.array([[means[0], means[1], means[0] + means[1]]])
    burden = replace(
        profile.burden,
        columns=("los",),
        share=np.array([0.5, 0.5, 1.0]),
        totals=totals,
        shares=totals / totals[0, 2],
        rates=(),
    )
    return replace(profile, burden=burden, outcomes=(outcome("los", "number", means, width),))


def test_the_group_that_uses_most_is_named(full: Profile) -> None:
    (told,) = findings(with_use(full, [6.0, 4.0, 5.0], 0.5), ENGLISH)
    name = full.clusters[0].name
    assert told.text == (
        f"Group 1 ({name}) uses most bed-days: 60% of the total, with 50% of the records."
    )
    assert (told.about, told.clusters) == ("los", (full.numbers[0],))
    assert (
        "60\u00a0% del total" in findings(with_use(full, [6.0, 4.0, 5.0], 0.5), Words("ca"))[0].text
    )


def test_no_group_is_named_where_intervals_meet(full: Profile) -> None:
    (told,) = findings(with_use(full, [5.2, 4.8, 5.0], 0.5), ENGLISH)
    one, two = (cluster.name for cluster in full.clusters)
    assert told.text == (
        f"Too close to say who uses most bed-days: group 1 ({one}): 52%; group 2 ({two}): 48%."
    )
    assert told.clusters == full.numbers


@pytest.mark.parametrize(
    ("figures", "width", "text", "clusters"),
    [
        ([0.20, 0.05, 0.12], 0.02, "Deaths are most common in group 1 (", 1),
        ([0.14, 0.13, 0.08], 0.02, "Deaths are more common than over all (8.0%) in group 1 (", 2),
        ([0.12, 0.11, 0.115], 0.02, "No group has clearly more deaths than", 0),
        ([float("nan"), float("nan"), 0.115], 0.02, "No group has clearly more deaths than", 0),
    ],
)
def test_deaths(
    full: Profile, figures: list[float], width: float, text: str, clusters: int
) -> None:
    shown = replace(full, burden=None, outcomes=(outcome("died", "share", figures, width),))
    (told,) = findings(shown, ENGLISH)
    assert told.text.startswith(text)
    assert len(told.clusters) == clusters


def test_what_was_counted_is_told_and_not_what_is_corrected(full: Profile) -> None:
    died = next(one for one in full.outcomes if one.name == "died")
    seen = replace(
        died,
        estimate=np.array([[0.3, 0.1, 0.2]]),
        low=np.array([[0.28, 0.09, 0.19]]),
        high=np.array([[0.32, 0.11, 0.21]]),
        corrected=CorrectedFigures(*(np.array([[0.0, 0.9, 0.2]]) for _ in range(3))),
    )
    shown = replace(full, burden=None, outcomes=(seen,))
    assert "30.0% (28.0–32.0); over all 20.0%." in findings(shown, ENGLISH)[0].text


def test_a_category_of_deaths_is_no_sentence(full: Profile) -> None:
    died = next(one for one in full.outcomes if one.name == "died")
    shown = replace(full, burden=None, outcomes=(replace(died, values=("moved",)),))
    assert not any(one.about == "died" for one in findings(shown, ENGLISH))


def test_a_rate_that_the_burden_alone_knows_is_told(full: Profile) -> None:
    assert full.burden is not None
    rates = np.array([[0.3, 0.1, 0.2]])
    burden = replace(
        full.burden, columns=(), rates=("readmitted",), rate=rates, low=rates - 0.02, high=rates
    )
    (told,) = findings(replace(full, burden=burden, outcomes=()), ENGLISH)
    assert told.text.startswith("Readmissions are most common in group 1 (")


def test_each_amount_and_rate_is_told_once_before_any_is_told_twice(full: Profile) -> None:
    used = with_use(full, [9.0, 4.0, 5.0], 0.5)
    assert used.burden is not None
    burden = replace(
        used.burden,
        columns=("los", "cost", "visits"),
        totals=np.repeat(used.burden.totals, 3, 0),
        share=np.array([0.8, 0.2, 1.0]),
        shares=np.repeat([[0.6, 0.4, 1.0]], 3, 0),
    )
    both = [4.0, 9.0, 5.0]
    outcomes = [outcome(name, "number", both, 0.1) for name in burden.columns]
    rates = [outcome(name, "share", [0.2, 0.1, 0.1], 0.01) for name in ("died", "readmitted")]
    told = findings(replace(full, burden=burden, outcomes=(*outcomes, *rates)), ENGLISH)
    about = [one.about for one in told]
    assert about == ["los", "los", "cost", "visits", "died", "readmitted"]


def test_one_group_is_not_said_to_have_the_most(full: Profile) -> None:
    (told,) = findings(replace(full, clusters=full.clusters[:1]), ENGLISH)
    assert told.text == "All records are one group."


@pytest.mark.parametrize("language", ["en", "es", "ca"])
def test_the_page_says_what_the_board_says(full: Profile, language: str) -> None:
    told = json.loads(page_json(full, language))["findings"]
    assert [one["text"] for one in told] == [
        one.text for one in Board(full, Words(language)).findings
    ]
    assert Profile.from_json(page_json(full)).to_json() == full.to_json()


def test_starred_outcomes_alone_are_told(full: Profile) -> None:
    shown = replace(full, outcomes=(*full.outcomes, outcome("steps", "number", [9.0, 1.0, 5.0], 1)))
    (told,) = findings(shown, ENGLISH, ("steps",))
    assert told.text.startswith("Steps: highest in group 1 (")


def test_without_outcomes_the_largest_is_told_and_doubt_always(full: Profile) -> None:
    weak = replace(full.clusters[1], stability=0.4)
    bare = replace(full, burden=None, outcomes=(), clusters=(full.clusters[0], weak))
    largest, doubt = findings(bare, ENGLISH)
    assert "is the largest, with" in largest.text
    assert doubt.text.startswith(f"Take group {weak.number} with care")


def test_chance_is_not_told_and_a_difference_is(full: Profile) -> None:
    """Rates and amounts dealt at random: of 200 runs at most 5% name a group."""
    n, k = 900, 6
    rng = np.random.default_rng(7)
    labels = rng.integers(0, k, n)
    clusters = tuple(
        replace(full.clusters[0], number=j + 1, size=1, effective=1.0) for j in range(k)
    )
    source = replace(full.source, records=1, effective=1.0)
    shown = replace(full, clusters=clusters, source=source, burden=None)

    def told(died: np.ndarray) -> set[int]:
        table = pa.table({"died": died, "age": rng.normal(60, 20, n).round()})
        outcomes = summarise(table, labels, k, np.ones(n))
        every = findings(replace(shown, outcomes=outcomes), ENGLISH)
        return {place for one in every if one.about in table.column_names for place in one.clusters}

    assert sum(bool(told(rng.random(n) < 0.12)) for _ in range(200)) <= 10
    planted = (told(rng.random(n) < np.where(labels == 2, 0.35, 0.12)) for _ in range(20))
    assert sum(3 in one for one in planted) >= 18


def test_one_group_of_twelve_with_few_more_events_is_not_told(full: Profile) -> None:
    events = np.array([11, *[5] * 11])
    counts = np.append(events, events.sum())[None].astype(float)
    known = np.append(np.full(12, 70.0), 840.0)
    share = counts / known
    wilson = wilson_interval(share, known)
    one = Outcome("readmitted", "share", ("yes",), known, counts, share, *wilson)
    clusters = tuple(replace(full.clusters[0], number=j + 1) for j in range(12))
    shown = replace(full, clusters=clusters, burden=None, outcomes=(one,))
    assert wilson[0][0, 0] > share[0, -1]  # its own interval lies above the figure over all
    assert findings(shown, ENGLISH)[0].clusters == ()
