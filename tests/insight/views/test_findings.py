"""Findings are told where intervals bear them out, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from comorb.insight.profile.contents import Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.views.findings import findings
from comorb.insight.views.words import ENGLISH, Words


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
    assert told.text == "No group uses clearly more bed-days than the others."
    assert told.clusters == ()


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


def test_corrected_figures_are_told(full: Profile) -> None:
    died = next(one for one in full.outcomes if one.name == "died")
    assert died.corrected is not None
    sure = replace(
        died.corrected,
        estimate=np.array([[0.3, 0.1, 0.2]]),
        low=np.array([[0.28, 0.09, 0.19]]),
        high=np.array([[0.32, 0.11, 0.21]]),
    )
    shown = replace(full, burden=None, outcomes=(replace(died, corrected=sure),))
    assert "30.0% (28.0–32.0); over all 20.0%." in findings(shown, ENGLISH)[0].text


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
