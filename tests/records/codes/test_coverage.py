"""What the ledger says of levels, maps, chronic conditions and scores."""

import pytest

from comorb.errors import RecordsError
from comorb.records.codes.coding import Coding
from comorb.records.codes.own_map import CodeMap, Line
from comorb.records.codes.vocabulary import build_vocabulary

CODES = {(None, "428.0"): 6, (None, "250"): 3, (None, "486"): 1}


def notes(coding, counts=CODES, system=None):
    return build_vocabulary(counts, system, coding, {}).notes


def test_the_coverage_of_common_groups():
    assert notes(Coding(("common",))) == (
        "70.0% of 10 codes are in a group that coding systems share; 3 keep their own category",
    )


def test_the_coverage_of_a_map():
    code_map = CodeMap("dir/m.csv", "abc", (Line("42", "h"), Line("428", "hf")), notes=("skipped",))
    assert notes(Coding(map=code_map)) == (
        "skipped",
        "60.0% of 10 codes are in the map m.csv (abc); 4 are left out",
        "6 codes have the groups of their nearest line of the map alone: end a line in * to have "
        "it count beside nearer ones",
    )


def test_lines_that_fit_two_editions_are_told():
    code_map = CodeMap("m.csv", "abc", (Line("V58", "x"), Line("428", "hf")))
    counts = {("icd9cm", "V58"): 1, ("icd10cm", "I10"): 1}
    assert notes(Coding(map=code_map), counts)[-1] == (
        "1 lines of the map are codes of icd10cm and icd9cm: say which in a column 'system'"
    )
    said = CodeMap("m.csv", "abc", (Line("V58", "x", "icd9cm"),))
    assert len(notes(Coding(map=said), counts)) == 1


def test_a_map_that_has_no_code_of_the_records_is_refused():
    code_map = CodeMap("m.csv", "abc", (Line("hf", "428"),))
    with pytest.raises(RecordsError, match=r"No code of the records is in the map m.csv. .*icd9cm"):
        notes(Coding(map=code_map))


def test_what_is_chronic():
    counts = {**CODES, (None, "070"): 2}
    assert notes(Coding(chronic=True), counts) == (
        "2 codes left out: whether they are chronic isn't determined, or differs among their "
        "subdivisions",
    )
    drugs = {("atc", "C07AB02"): 4, ("icd9cm", "428"): 1}
    assert notes(Coding(chronic=True), drugs) == (
        "4 codes are of systems without an indicator of chronic conditions",
    )


def test_coarse_codes_of_a_score():
    assert notes(Coding(scores=("charlson",))) == (
        "3 codes are too coarse to tell whether they count for the score charlson, and don't",
    )
    drugs = {("atc", "C07AB02"): 4, ("icd9cm", "4280"): 1}
    assert notes(Coding(scores=("charlson",)), drugs) == (
        "4 codes are of systems that no score speaks of",
    )


@pytest.mark.parametrize(
    ("coding", "message"),
    [
        (Coding(chronic=True), "Chronic conditions are told of .*; these are opaque"),
        (Coding(scores=("elixhauser",)), "The score 'elixhauser' is made of .*; these are opaque"),
    ],
)
def test_codes_of_no_known_system_have_neither(coding, message):
    with pytest.raises(RecordsError, match=message):
        notes(coding, system="opaque")
