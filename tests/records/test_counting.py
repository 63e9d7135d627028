"""Counting without making: the same numbers as the cohort that the rules leave."""

import pytest

from comorb.errors import EmptyCohortError, RecordsError
from comorb.records.asked import Asked
from comorb.records.counting import count_left
from comorb.records.datasets import heart_failure
from comorb.records.preparation import Preparation


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"having": ("250", "585")},
        {"having": ("428",), "without": ("250",), "age": (65, None), "sex": ("female",)},
        {"at_least": 7, "drop_codes": ("401", "428"), "drop_rare": 300},
        {"age": (None, 40), "at_least": 5},
        {"features": (Asked("age"),), "having": ("585",)},
    ],
)
def test_the_numbers_are_those_of_the_cohort_that_is_left(rules):
    cohort, preparation = heart_failure(), Preparation(**rules)
    made = preparation.apply(cohort)
    records, codes, ledger = count_left(cohort, preparation)
    assert (records, codes) == (len(made), len(made.codes))
    assert ledger.adds_up
    assert ledger.chain("records") == made.ledger.chain("records")
    assert ledger.left("features") == made.ledger.left("features")


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ({"age": (200, None)}, EmptyCohortError),
        ({"having": ("shoes",)}, RecordsError),
        ({"drop_rare": 10**9}, RecordsError),
    ],
)
def test_what_leaves_nothing_is_refused_as_ever(rules, error):
    with pytest.raises(error) as made:
        Preparation(**rules).apply(heart_failure())
    with pytest.raises(error) as counted:
        count_left(heart_failure(), Preparation(**rules))
    assert str(made.value) == str(counted.value)
