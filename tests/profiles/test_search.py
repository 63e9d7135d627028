"""Asking in words: what a person types becomes codes, or a choice."""

import pytest

from comorb.model.mixture import Mixture
from comorb.profiles.build import profile
from comorb.profiles.explain import resolve_codes
from tests.records.helpers import make

CODES = ("250", "428", "430", "434", "585", "V45", "V58")


@pytest.fixture(scope="module")
def told():
    import numpy as np

    rng = np.random.default_rng(1)
    cohort = make((rng.random((60, 7)) < 0.4).astype(int).tolist(), CODES)
    return profile(Mixture(np.array([0.5, 0.5]), rng.uniform(0.2, 0.8, (2, 7))), cohort)


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        (["heart failure, diabetes"], ("428", "250")),
        (["CHF", "insuficiència renal"], ("428", "585")),
        (["stroke"], ("434",)),
        (["428 585.6", "age=82"], ("428", "585.6", "age=82")),
        (["age = 82"], ("age=82",)),
        (["V58"], ("V58",)),
        (["nothing of the kind"], ("nothing of the kind",)),
    ],
)
def test_words_and_codes_become_codes(told, typed, given):
    assert resolve_codes(told, typed).given == given


def test_what_means_several_codes_is_a_choice(told):
    asked = resolve_codes(told, ["ictus, 428, V*"])
    assert asked.given == ("428",)
    chosen = {text: {told.codes[place] for place in places} for text, places in asked.choices}
    assert chosen == {"ictus": {"430", "434"}, "V*": {"V45", "V58"}}
