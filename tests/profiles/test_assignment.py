"""Assignment against a posterior worked out the long way."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.model.diagnostics import temper
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import profile
from comorb.records.cohort import Cohort
from tests.small_cohort import MODEL, dense


def test_confidence_is_that_of_the_posterior(cohort: Cohort) -> None:
    _, posterior = dense(cohort)
    found = assign(MODEL, cohort, n_jobs=1)
    ordered = np.sort(posterior, axis=1)
    np.testing.assert_allclose(found.top, ordered[:, -1])
    np.testing.assert_allclose(found.margin, ordered[:, -1] - ordered[:, -2])
    safe = np.where(posterior > 0, posterior, 1)
    np.testing.assert_allclose(found.entropy, -(posterior * np.log(safe)).sum(1) / np.log(2), 1e-6)


def test_a_model_of_other_codes_is_an_error(cohort: Cohort) -> None:
    other = Mixture(np.ones(1), np.full((1, 3), 0.5))
    with pytest.raises(InputError, match="expected a model over the 8 codes of the cohort, got"):
        profile(other, cohort)


def test_clusters_of_one_group_count_together(cohort: Cohort) -> None:
    three = Mixture(np.array([0.3, 0.4, 0.3]), MODEL.means[[0, 1, 0]])
    grouped = assign(three, cohort, groups=(1, 2, 1))
    plain = assign(Mixture(np.array([0.6, 0.4]), MODEL.means), cohort)
    np.testing.assert_array_equal(grouped.labels, plain.labels)
    np.testing.assert_allclose(grouped.top, plain.top)
    np.testing.assert_allclose(grouped.soft, plain.soft)


def test_a_temperature_lowers_confidence_and_leaves_labels_and_sums(cohort: Cohort) -> None:
    plain, cooler = assign(MODEL, cohort), assign(MODEL, cohort, temperature=0.5)
    np.testing.assert_array_equal(plain.labels, cooler.labels)
    np.testing.assert_array_equal(plain.soft, cooler.soft)
    assert cooler.top.mean() < plain.top.mean()
    assert cooler.entropy.mean() > plain.entropy.mean()
    posterior = MODEL.posterior(cohort.blocks().loaders[0]())[0]
    np.testing.assert_allclose(cooler.top, temper(posterior, 0.5).max(axis=1))
