"""What a profile answers: relevant codes, names, numbers, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.profiles.build import profile
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from tests.small_cohort import CODES, MODEL


def test_the_code_of_every_record_is_left_out(full: Profile) -> None:
    assert [full.codes[i] for i in full.universal] == ["428"]
    assert full.codes.index("428") not in full.common(20)
    assert full.codes.index("428") not in full.heatmap.columns
    assert np.all(np.diff(full.overall[full.common(20)]) <= 0)
    assert len(full.common(3)) == 3


def test_top_is_the_order_of_relevance_above_the_floor(full: Profile) -> None:
    low = full.low
    for cluster in (0, 1):
        for lam in (0.0, 0.6, 1.0):
            picks = full.top(cluster, lam, n=4)
            scores = full.relevance(lam)[cluster]
            able = [i for i in range(8) if low[cluster, i] >= 0.02 and CODES[i] != "428"]
            assert picks.tolist() == sorted(able, key=lambda i: -scores[i])[:4]


def test_a_rare_code_never_wins(full: Profile) -> None:
    assert full.codes.index("038") not in full.top(1, lam=0.0, n=8)
    with pytest.raises(InputError, match="expected a cluster from 0 to 1, got 2"):
        full.top(2)


def test_names_come_from_the_relevant_codes_and_can_be_replaced(full: Profile) -> None:
    assert [c.name for c in full.clusters] == [
        "Diabetes, chronic kidney disease",
        "Hypertension, lipid disorders",
    ]
    again = full.renamed({1: "Metabolic"})
    assert [c.name for c in again.clusters] == ["Diabetes, chronic kidney disease", "Metabolic"]
    with pytest.raises(InputError, match="expected names that are not empty, for clusters from"):
        full.renamed({2: "Too many"})
    with pytest.raises(InputError, match="expected names that are not empty"):
        full.renamed({0: " "})


def test_intervals_hold_the_prevalence(full: Profile) -> None:
    assert np.all((full.low <= full.prevalence) & (full.prevalence <= full.high))
    low, high = full.overall_intervals()
    assert np.all((low <= full.overall) & (full.overall <= high))


def test_stability_is_filled_in(full: Profile, cohort: Cohort) -> None:
    stable = full.with_stability((0.9, 0.8))
    assert [c.stability for c in stable.clusters] == [0.9, 0.8]
    made = profile(MODEL, cohort, stability=(0.9, 0.8))
    assert made.clusters == stable.clusters
    with pytest.raises(InputError, match="expected the stability of 2 clusters, got that of 1"):
        full.with_stability((0.9,))


def test_explain_takes_codes_as_they_are_written(full: Profile) -> None:
    why = full.explain(["250.00", "58500", "428", "nonsense"])
    assert why.codes == ("250", "585", "428")
    assert why.unknown == ("nonsense",)
    protected = full.protected(11).explain(["250.00", "58500", "428"])
    assert protected.codes == why.codes
    np.testing.assert_array_equal(protected.posterior * 20 % 1, 0)
    np.testing.assert_allclose(protected.posterior, why.posterior, atol=0.06)


def test_no_id_is_in_the_document(full: Profile) -> None:
    assert "patient-" not in full.to_json()


def test_clusters_go_by_their_numbers(full: Profile) -> None:
    clusters = tuple(replace(c, number=n) for c, n in zip(full.clusters, (2, 7), strict=True))
    numbered = replace(full, clusters=clusters).renamed({0: "First", 1: "Second"})
    assert numbered.cluster_names == ("First", "Second")
    assert (numbered.place_of(2), numbered.place_of(7)) == (0, 1)
    assert numbered.places_of(np.array([7, 2, 7])).tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="expected one of the clusters 2, 7, got 3"):
        numbered.place_of(3)
