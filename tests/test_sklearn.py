"""scikit-learn's own checks.

They feed real numbers, which a model of zeros and ones refuses, so the checks run on a
subclass that turns each number above ½ into a one after scikit-learn's validation. Nothing
else of the estimator is changed. The number of clusters is given: "auto" looks at the stability
of parts, and a row of weight two is in one part, where two rows may be in two.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from comorb import BernoulliMixture, LatentClassModel, datasets
from comorb.model.arrays import binary_csr


class Thresholded(BernoulliMixture):
    """The estimator over ``X > 0.5``."""

    def _matrix(self, X, reset):
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric")
        return binary_csr(sparse.csr_array(checked > 0.5, dtype=np.int8))


CLASSIFIER_TAGS = (
    "the check reads classifier tags of anything that has predict_proba, and a mixture has none"
)
EXPECTED_FAILURES = {
    "check_estimator_sparse_array": CLASSIFIER_TAGS,
    "check_estimator_sparse_matrix": CLASSIFIER_TAGS,
}


@pytest.mark.filterwarnings("ignore::comorb.errors.ComorbWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [Thresholded(n_components=2)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


CODES = "a sparse matrix is one of codes, of zeros and ones; the checks' are of real numbers"
TABLE_FAILURES = {
    "check_estimator_sparse_tag": CODES,
    "check_estimator_sparse_array": CODES,
    "check_estimator_sparse_matrix": CODES,
    "check_sample_weight_equivalence_on_sparse_data": CODES,
    "check_dtype_object": "what is neither text nor number is an InputError, a ValueError",
}


@pytest.mark.filterwarnings("ignore::comorb.errors.ComorbWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [LatentClassModel(n_components=2, init="asvtd")],
    expected_failed_checks=lambda estimator: TABLE_FAILURES,
)
def test_scikit_learn_s_checks_of_tables(estimator, check):
    check(estimator)


def test_an_estimator_can_be_cloned_with_its_parameters():
    model = BernoulliMixture(7, smoothing=2.0, stop="weights")
    assert clone(model).get_params() == model.get_params()


def test_a_cohort_is_split_in_folds_like_rows():
    cohort = datasets.heart_failure()[:1_500]
    found = cross_val_score(BernoulliMixture(2), cohort, cv=3)
    rows = cross_val_score(BernoulliMixture(2), cohort.matrix, cv=3)
    np.testing.assert_array_equal(found, rows)
