"""The scores: every code of the published lists, the hierarchies, and the points."""

import numpy as np
import pytest
from scipy.sparse import csc_array

from comorb.errors import RecordsError
from comorb.records.codes.scores import SCORES, find_score, is_scored
from comorb.records.codes.systems import coding_system

# Points as published: Charlson 1987 and Quan 2011, in the order of Charlson's conditions; van
# Walraven 2009 in the order of Elixhauser's. The number of prefixes is that of Quan 2005.
POINTS = {
    "charlson": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 6, 6],
    "charlson2011": [0, 2, 0, 0, 2, 1, 1, 0, 2, 0, 1, 2, 1, 2, 4, 6, 4],
}
POINTS["elixhauser"] = [7, 5, -1, 4, 2, 0, 0, 7, 6, 3, 0, 0, 0, 5, 11, 0, 0, 9, 12, 4, 0]
POINTS["elixhauser"] += [3, -4, 6, 5, -2, -2, 0, -7, 0, -3]


def total(key, codes, system):
    """The score of one record with these codes."""
    table = find_score(key)
    order = list(table.conditions)
    has = {name for code in codes for name in table.conditions_of(code, system)}
    return int(table.points(csc_array([[name in has for name in order]]), order)[0])


@pytest.mark.parametrize("key", SCORES)
def test_the_points_are_those_published(key):
    assert [one.points for one in find_score(key).conditions.values()] == POINTS[key]


@pytest.mark.parametrize(
    ("key", "icd9", "icd10"), [("charlson", 224, 289), ("elixhauser", 339, 397)]
)
def test_every_prefix_of_the_published_lists_is_there_and_is_a_code(key, icd9, icd10):
    lists = find_score(key).prefixes
    assert (len(lists["icd9cm"]), len(lists["icd10"])) == (icd9, icd10)
    for system, table in lists.items():
        coding = coding_system(system)
        for prefix in table:
            assert coding.normalise(prefix) == (prefix, "ok"), prefix


# Each condition of each score: codes of it as the publication writes them, and codes beside it.
CHARLSON = {
    "infarction": ("410 41091 412", "411 4139", "I21 I219 I22 I252", "I20 I251"),
    "heart_failure": ("39891 40201 40413 4254 4259 428 42823", "402 4250", "I099 I110 I42 I50", ""),
    "vascular": ("0930 440 4439 4471 5579 V434", "4430 557", "I70 I739 K551 Z959", "I730 K550"),
    "stroke": ("36234 430 438 43491", "439", "G45 G459 H340 I60 I69 I639", "H341 G44"),
    "dementia": ("290 29040 2941 3312", "2940 3310", "F00 F03 F0390 F051 G30 G311", "F05 G310"),
    "pulmonary": ("4168 490 496 505 5064 5088", "4160 506", "I278 J40 J449 J67 J703", "J39 J68"),
    "rheumatic": ("4465 7100 7104 7142 725", "7105 7143", "M05 M069 M34 M353 M360", "M350 M361"),
    "ulcer": ("531 53400", "530 535", "K25 K289", "K29"),
    "mild_liver": ("07022 0709 570 5712 5739 V427", "07020 572", "B18 K703 K74 Z944", "K704"),
    "diabetes": ("2500 25003 2503 2509", "25040 249", "E100 E119 E149", "E112"),
    "diabetes_complicated": ("2504 25070", "2508", "E102 E115 E1121 E147", "E116"),
    "plegia": ("3341 342 343 3440 3446 3449", "3448", "G041 G81 G839 G834", "G835 G838"),
    "renal": ("40301 582 5837 585 5859 586 V420 V56", "40300 5838", "N18 N186 Z992 I120", "N17"),
    "cancer": ("140 172 174 195 200 208 2386", "173 196 209", "C00 C26 C43 C97 C9000", "C44 C77"),
    "severe_liver": ("4560 4562 5722 5728", "4563 5721", "I850 I859 K704 K729 K767", "I851"),
    "metastatic": ("196 1990", "195", "C77 C80", "C76 C81"),
    "hiv": ("042 044", "045", "B20 B22 B24", "B23"),
}


@pytest.mark.parametrize("name", CHARLSON)
def test_codes_of_a_condition_and_codes_beside_it(name):
    icd9, not_icd9, icd10, not_icd10 = (codes.split() for codes in CHARLSON[name])
    table = find_score("charlson")
    coarse = {"I42"}
    for system, codes in {"icd9cm": icd9, "icd10": icd10, "icd10cm": icd10}.items():
        for code in codes:
            assert (name in table.conditions_of(code, system)) is (code not in coarse), code
    for system, codes in {"icd9cm": not_icd9, "icd10": not_icd10}.items():
        for code in codes:
            assert name not in table.conditions_of(code, system), code


@pytest.mark.parametrize(
    ("key", "system", "codes", "points"),
    [
        ("charlson", "icd9cm", ["25000"], 1),
        ("charlson", "icd9cm", ["25000", "25040"], 2),
        ("charlson", "icd10", ["E119", "E112"], 2),
        ("charlson", "icd10cm", ["E119", "E1121"], 2),
        ("charlson", "icd9cm", ["1749", "1970"], 6),
        ("charlson", "icd10", ["C509", "C787"], 6),
        ("charlson", "icd9cm", ["5712", "5722"], 3),
        ("charlson", "icd10", ["K703", "K767"], 3),
        ("charlson2011", "icd10", ["K703", "K767"], 4),
        ("charlson", "icd9cm", ["4280", "4281", "42823"], 1),
        ("charlson", "icd9cm", ["40403"], 3),
        ("charlson", "icd9cm", [], 0),
        ("elixhauser", "icd9cm", ["1749", "1970"], 12),
        ("elixhauser", "icd9cm", ["1749"], 4),
        ("elixhauser", "icd10", ["K700"], 11),
        ("elixhauser", "icd10", ["I10", "I110"], 7),
        ("elixhauser", "icd9cm", ["27800", "30400"], -11),
    ],
)
def test_records(key, system, codes, points):
    assert total(key, codes, system) == points


def test_a_code_has_all_its_conditions():
    assert set(find_score("elixhauser").conditions_of("K700", "icd10")) == {"liver", "alcohol"}
    assert set(find_score("elixhauser").conditions_of("I426", "icd10")) == {
        "heart_failure",
        "alcohol",
    }


def test_coarse_codes_may_count_or_not():
    assert find_score("charlson").is_coarse("250", "icd9cm")
    assert find_score("charlson").is_coarse("I25", "icd10")
    assert not find_score("charlson").is_coarse("428", "icd9cm")
    assert not find_score("charlson").is_coarse("999", "icd9cm")


def test_conditions_beside_which_another_does_not_count():
    assert {
        name: one.unless for name, one in find_score("charlson").conditions.items() if one.unless
    } == {
        "mild_liver": "severe_liver",
        "diabetes": "diabetes_complicated",
        "cancer": "metastatic",
    }
    assert {
        name: one.unless for name, one in find_score("elixhauser").conditions.items() if one.unless
    } == {
        "hypertension": "hypertension_complicated",
        "diabetes": "diabetes_complicated",
        "tumor": "metastatic",
    }


def test_which_systems_have_scores():
    assert [
        key for key in ("icd9cm", "icd10cm", "icd10", "icd9proc", "opaque") if is_scored(key)
    ] == [
        "icd9cm",
        "icd10cm",
        "icd10",
    ]


def test_an_unknown_score_is_refused():
    with pytest.raises(
        RecordsError, match="score out of charlson, charlson2011, elixhauser; got 'x'"
    ):
        find_score("x")


def test_rows_are_scored_by_themselves():
    table = find_score("charlson")
    order = list(table.conditions)[::-1]
    matrix = np.zeros((3, len(order)), dtype=np.uint8)
    matrix[0, order.index("hiv")] = matrix[2, order.index("ulcer")] = 1
    assert table.points(csc_array(matrix), order).tolist() == [6, 0, 1]
