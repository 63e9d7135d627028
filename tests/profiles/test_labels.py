"""Short names of codes and clusters; relevance against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.profiles.labels import automatic_names, label, relevance, shorten
from tests.small_cohort import MODEL


@pytest.mark.parametrize(
    ("code", "name", "system", "expected"),
    [
        ("585", "Chronic kidney disease (CKD)", "icd9cm", "Chronic kidney disease"),
        (
            "733",
            "Other disorders of bone and cartilage",
            "icd9cm",
            "Disorders of bone and cartilage",
        ),
        ("XYZ", "Fever, not elsewhere classified", "icd9cm", "Fever"),
        ("V10", "Personal history of malignant neoplasm", "icd9cm", "History of cancer"),
        ("V10", "Pedal cyclist injured", "icd10", "Pedal cyclist injured"),
        ("E11", "Type 2 diabetes mellitus", "icd10cm", "Type 2 diabetes"),
        ("428", "A word of one's own", "opaque", "A word of one's own"),
        ("E11", "Type 2 diabetes mellitus", "icd10cm drug:atc", "Type 2 diabetes"),
        (
            "drug:A10B",
            "Blood glucose lowering drugs",
            "icd9cm drug:atc",
            "Blood glucose lowering drugs",
        ),
        ("Q1", "Other", "opaque", "Other"),
        ("Q2", "", "opaque", "Q2"),
    ],
)
def test_label(code: str, name: str, system: str, expected: str) -> None:
    assert label(code, name, system) == expected


@pytest.mark.parametrize("width", range(1, 60))
def test_shorten_never_cuts_a_word(width: int) -> None:
    text = "Disorders of fluid, electrolyte, and acid-base balance"
    short = shorten(text, width)
    assert len(short) <= max(width, len("Disorders…"))
    if short != text:
        assert short.endswith("…")
        kept = short[:-1]
        assert text.startswith(kept)
        assert text[len(kept)] in " ,"
        assert not kept.endswith((" of", " and"))


CODES = ("585", "403", "250", "V45", "780", "401")
LABELS = ("Chronic kidney disease", "Hypertensive kidney disease", "Diabetes", "Implants",
          "General symptoms", "COPD")  # fmt: skip


def test_a_name_does_not_say_kidney_twice_and_prefers_diseases() -> None:
    assert automatic_names({1: [3, 0, 1, 2]}, CODES, LABELS, "icd9cm") == (
        "Chronic kidney disease, diabetes",
    )


def test_symptoms_stand_in_when_there_are_too_few_diseases() -> None:
    assert automatic_names({1: [4, 0], 2: [4]}, CODES, LABELS, "icd9cm") == (
        "Chronic kidney disease, general symptoms",
        "General symptoms",
    )


def test_drugs_stand_in_when_there_are_too_few_diseases() -> None:
    codes, labels = ("drug:A10B", *CODES), ("Metformin", *LABELS)
    named = automatic_names({1: [0, 1, 2], 2: [0]}, codes, labels, "icd9cm drug:atc")
    assert "Metformin" not in named[0]
    assert named[1] == "Metformin"


def test_acronyms_keep_their_capitals() -> None:
    assert automatic_names({1: [2, 5]}, CODES, LABELS, "icd9cm") == ("Diabetes, COPD",)


def test_no_two_names_are_alike() -> None:
    assert automatic_names(
        {1: [0, 2, 5], 2: [0, 2, 5], 3: [0, 2], 4: []}, CODES, LABELS, "icd9cm"
    ) == (
        "Chronic kidney disease, diabetes",
        "Chronic kidney disease, diabetes, COPD",
        "Chronic kidney disease, diabetes (3)",
        "Cluster 4",
    )


def test_diseases_of_several_systems_come_before_circumstances():
    codes = ["CCS257", "icd9cm:V58", "CCS108", "icd10cm:U07", "icd10cm:E11"]
    labels = ["Aftercare", "Encounter", "Failure", "Covid", "Diabetes"]
    assert automatic_names({1: range(5)}, codes, labels, "icd10cm+icd9cm") == ("Failure, diabetes",)
    groups = ["SYM001", "RSP002", "SKN001"]
    assert automatic_names({1: range(3)}, groups, ["Fever", "Pneumonia", "Rash"], "icd10cm") == (
        "Pneumonia, rash",
    )


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.6, 1.0])
def test_relevance_is_the_formula(lam: float) -> None:
    found = relevance(MODEL.means, MODEL.weights @ MODEL.means, lam)
    for j in range(2):
        for i in range(8):
            mu = MODEL.means[j, i]
            mixed = sum(MODEL.means[h, i] * MODEL.weights[h] for h in range(2))
            expected = lam * math.log(mu) + (1 - lam) * math.log(mu / mixed)
            assert found[j, i] == pytest.approx(expected)


def test_means_of_nought_and_one_break_no_logarithm() -> None:
    found = relevance(np.array([[0.0, 1.0]]), np.array([0.0, 1.0]), 0.5)
    assert np.isfinite(found).all()
    assert found[0, 1] == 0


@pytest.mark.parametrize("lam", [-0.1, 1.1, math.nan])
def test_lambda_outside_its_range_is_an_error(lam: float) -> None:
    with pytest.raises(InputError, match=r"expected λ from 0 .* to 1 .*, got"):
        relevance(MODEL.means, MODEL.weights @ MODEL.means, lam)
