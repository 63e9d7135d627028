"""The codes of a cohort: levels, maps, chronic conditions, and what the ledger notes of them."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from comorb.errors import RecordsError
from comorb.records.codes.code_map import CodeMap, Line
from comorb.records.codes.vocabulary import Coding, Raw, build_vocabulary


def test_codes_become_features_with_names():
    words = build_vocabulary(
        {(None, "428.0"): 3, (None, "4281"): 2, (None, "?"): 1, (None, "oops"): 1, (None, "38"): 4},
        "icd9cm",
        Coding(),
        {},
    )
    assert words.codes == ("038", "428")
    assert words.names[1] == "Heart failure"
    assert words.places.ravel().tolist() == [1, 1, -1, -1, 0]
    assert words.missing.tolist() == [False, False, True, False, False]
    assert words.malformed.tolist() == [False, False, False, True, False]
    assert words.notes == ("4 codes repaired: lost leading zeros, or the '.0' of a number",)


def test_a_code_that_nothing_mentions_has_no_feature():
    words = build_vocabulary({(None, "428.0"): 1, (None, "250"): 0}, None, Coding(), {})
    assert words.codes == ("428",)


def test_editions_keep_codes_apart():
    counts = {("icd9cm", "V58"): 1, ("icd10cm", "V58"): 1, (None, "428"): 1}
    words = build_vocabulary(counts, None, Coding(), {})
    assert words.codes == ("icd10cm:V58", "icd9cm:428", "icd9cm:V58")
    assert words.system == "icd10cm+icd9cm"


def test_a_few_strays_are_malformed_and_many_are_mixed():
    few: dict[Raw, int] = {(None, "428"): 200, (None, "250"): 100, (None, "I10"): 1}
    assert build_vocabulary(few, None, Coding(), {}).malformed.sum() == 1
    many = few | {(None, "I10"): 100, (None, "V58"): 7}
    words = build_vocabulary(many, None, Coding(), {})
    assert words.notes == (
        "icd9cm and icd10cm are mixed and no column says which is which: 7 mentions fit both and "
        "were taken as icd9cm; name the column with the version",
    )


def test_names_that_the_source_brings_along():
    words = build_vocabulary(
        {(None, "316139"): 1}, "opaque", Coding(("full",)), {"316139": "Failure"}
    )
    assert words.names == ("Failure",)


def test_nothing():
    words = build_vocabulary({}, None, Coding(), {})
    assert (words.codes, words.places.shape) == ((), (0, 1))


def test_shared_groups_have_no_edition_and_own_codes_have_one():
    counts = {("icd9cm", "428.0"): 1, ("icd10cm", "I50.9"): 1, ("icd10cm", "E11"): 1}
    words = build_vocabulary(counts, None, Coding(("common",)), {})
    assert words.codes == ("CCS108", "icd10cm:E11")
    assert words.names[1] == "Type 2 diabetes mellitus"
    assert words.places.ravel().tolist() == [0, 0, 1]
    alone = build_vocabulary({("icd10cm", "E11"): 1}, None, Coding(("common",)), {})
    assert alone.codes == ("icd10cm:E11",)


def test_a_code_may_have_several_groups():
    words = build_vocabulary({("icd10cm", "T45.1X5A"): 1}, None, Coding(("common",)), {})
    assert words.codes == ("CCS242", "CCS2617")
    assert words.places.tolist() == [[0, 1]]


def test_groups_of_a_map_are_of_all_editions():
    code_map = CodeMap("m", "", (Line("428", "hf"), Line("I50", "hf")), (("hf", "Failure"),))
    counts = {("icd9cm", "428.0"): 2, ("icd10cm", "I50.9"): 1, ("icd9cm", "250"): 4}
    words = build_vocabulary(counts, None, Coding(map=code_map), {"hf": "another"})
    assert words.codes == ("hf",)
    assert words.names == ("Failure",)
    assert words.places.ravel().tolist() == [0, 0, -1]
    assert words.lost(np.array([2, 1, 4])) == {"malformed": 0, "not in the map": 4}


def test_conditions_come_after_the_features():
    coding = Coding(chronic=True, scores=("charlson", "elixhauser"))
    counts = {(None, "428.0"): 1, (None, "486"): 1, (None, "070.9"): 1}
    words = build_vocabulary(counts, "icd9cm", coding, {})
    assert words.codes == ("428",)
    assert words.width == 1 + 17 + 31
    assert words.conditions[0] == ("charlson", "infarction")
    names = [[words.conditions[i - 1] for i in row[1:] if i > 0] for row in words.places]
    failure = [("charlson", "heart_failure"), ("elixhauser", "heart_failure")]
    assert names == [failure, [], [("charlson", "mild_liver"), ("elixhauser", "liver")]]
    assert words.places[:, 0].tolist() == [0, -1, -1]


def test_scores_become_covariates_and_leave_the_matrix():
    counts = {(None, "428.0"): 1, (None, "250.4"): 1, (None, "250.0"): 1}
    words = build_vocabulary(counts, "icd9cm", Coding(scores=("charlson",)), {})
    matrix = np.zeros((2, words.width), dtype=np.uint8)
    matrix[0, words.places[0]] = 1
    matrix[1, words.places[1:].ravel()] = 1
    table = pa.table({"charlson": ["mine", "yours"], "age": [1, 2]})
    features, covariates = words.split(csr_array(matrix), table)
    assert features.toarray().tolist() == [[0, 1], [1, 0]]
    assert covariates.to_pydict() == {
        "charlson (column)": ["mine", "yours"],
        "age": [1, 2],
        "charlson": [1, 2],
    }


def test_other_raw_codes_of_the_same_vocabulary():
    words = build_vocabulary({(None, "428"): 1, (None, "zz"): 1}, "icd9cm", Coding(), {})
    some = words.at([-1, 1, 0])
    assert some.places.ravel().tolist() == [-1, -1, 0]
    assert some.missing.tolist() == [True, False, False]
    assert some.malformed.tolist() == [False, True, False]
    assert words.at([]).places.shape == (0, 1)


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
