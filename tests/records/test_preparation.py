"""Preparation: rules in their order, and the way to JSON and back."""

import json

import pyarrow as pa
import pytest

from comorb.errors import EmptyCohortError, RecordsError
from comorb.records.codes.own_map import CodeMap, Line
from comorb.records.layouts.description import Layout
from comorb.records.preparation import Preparation

RECORDS = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "dx1": ["428.0", "428.1", "250.00", "428.0", "428.9"],
        "dx2": ["401.9", "401.1", "401.9", "428.9", "585.9"],
        "dx3": ["585.9", None, "272.4", None, "250.00"],
        "age": [70, 80, 60, 50, 40],
        "sex": ["F", "M", "F", "F", "M"],
        "admission_date": ["2010-01-05", "2010-02-05", "2010-03-05", "2010-04-05", "2010-05-05"],
        "copies": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)


def ids(preparation: Preparation) -> list[str]:
    return preparation.cohort(RECORDS).ids.to_pylist()


def test_by_default_the_paper_s_rule_holds():
    assert ids(Preparation()) == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ({"at_least": 1}, ["a", "b", "c", "d", "e"]),
        ({"at_least": 2}, ["a", "b", "c", "e"]),
        ({"having": ("428",)}, ["a", "e"]),
        ({"having": ("272", "250")}, ["c", "e"]),
        ({"without": ("401",)}, ["e"]),
        ({"age": (50, None)}, ["a", "c"]),
        ({"sex": ("m",)}, ["e"]),
        ({"dates": ("2010-02-01", "2010-04-01")}, ["c"]),
    ],
)
def test_each_rule_keeps_what_it_says(rules, kept):
    assert ids(Preparation(**rules)) == kept


def test_codes_are_dropped_after_the_records_are_chosen():
    cohort = Preparation(having=("428",), drop_codes=("428",)).cohort(RECORDS)
    assert cohort.ids.to_pylist() == ["a", "e"]
    assert cohort.codes == ("250", "401", "585")
    assert Preparation(at_least=1, drop_rare=3).cohort(RECORDS).codes == ("401", "428")


def test_the_layout_and_the_level_reach_the_reader():
    asked = Preparation(layout=Layout(weight="copies"), level=("category", "full"))
    cohort = asked.cohort(RECORDS)
    assert cohort.weights.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert {"428", "4280"} <= {code.replace(".", "") for code in cohort.codes}


def test_nothing_left_is_an_error():
    with pytest.raises(RecordsError, match="No record is left after the rule 'at least 9 codes'"):
        Preparation(at_least=9).cohort(RECORDS)
    with pytest.raises(RecordsError, match="No code is left of those that the records have; leave"):
        Preparation(drop_rare=9).cohort(RECORDS)


def test_what_is_refused_tells_nothing_of_the_records_that_are_kept():
    nobody = {"having": ("272",), "age": (70, None), "at_least": 1}
    with pytest.raises(EmptyCohortError, match="No record is left"):
        Preparation(**nobody).cohort(RECORDS)
    for wrong, said in (
        ({"without": ("273",)}, "nearest are 272"),
        ({"drop_codes": ("273",)}, "nearest are 272"),
        ({"layout": Layout(ignored=("sex",)), "sex": ("F",)}, "no covariate 'sex'"),
    ):
        for rules in (nobody | wrong, {"at_least": 1} | wrong):
            with pytest.raises(RecordsError, match=said):
                Preparation(**rules).cohort(RECORDS)


def test_a_code_that_only_others_have_matches_nothing():
    asked = Preparation(having=("272",), without=("428",), drop_codes=("585",), at_least=1)
    cohort = asked.cohort(RECORDS)
    assert cohort.ids.to_pylist() == ["c"]
    assert cohort.codes == ("250", "272", "401")
    with pytest.raises(EmptyCohortError):
        Preparation(having=("272",), at_least=1).cohort(RECORDS).having("428")


def test_the_default_is_said_by_silence():
    assert Preparation().to_dict() == {}
    assert Preparation.from_dict({}) == Preparation()


def test_a_preparation_survives_json():
    asked = Preparation(
        table="diagnoses",
        layout=Layout(
            kind="wide", codes=("dx1", "dx2"), weight="copies", los="stay", ignored=("a", "b")
        ),
        unit="patient",
        system="icd9cm",
        level=("category", "chapter"),
        having=("428",),
        without=("V27",),
        age=(18, None),
        sex=("F",),
        dates=("2010-01-01", None),
        at_least=2,
        drop_codes=("428",),
        drop_rare=5,
        code_map=CodeMap("m.csv", "abc", (Line("428", "hf", "icd9cm", True),), (("hf", "HF"),)),
        chronic=True,
        scores=("charlson",),
        kinds=("diagnosis", "drug"),
        layouts=(("drug", Layout(codes=("ndc",), record="stay")),),
    )
    plain = json.loads(json.dumps(asked.to_dict()))
    assert Preparation.from_dict(plain) == asked


def test_new_records_get_the_model_s_map_and_no_scores():
    code_map = CodeMap("m.csv", "abc", (Line("428", "hf"),))
    asked = Preparation(code_map=code_map, chronic=True, scores=("charlson",), at_least=2)
    for every in (False, True):
        new = asked.for_new_records("icd9cm", Preparation(table="new"), every)
        assert (new.code_map, new.chronic, new.scores) == (code_map, True, ())
        assert new.system is None


def test_new_records_are_in_the_model_s_system_unless_it_has_several():
    assert Preparation().for_new_records("icd9cm").system == "icd9cm"
    assert Preparation(level=("common",)).for_new_records("icd9cm").system is None
    assert Preparation().for_new_records("icd10cm+icd9cm").system is None


def test_new_records_have_the_model_s_kinds_and_systems():
    drugs, visits = ("drug", Layout(codes=("ndc",))), ("visit", Layout(date="came"))
    asked = Preparation(kinds=("diagnosis", "drug"), layouts=(drugs, visits))
    new = asked.for_new_records("icd9cm drug:atc")
    assert (new.system, new.kinds, new.layouts) == ("icd9cm drug:atc", asked.kinds, (drugs,))
    new = asked.for_new_records("icd10cm+icd9cm drug:atc", Preparation(table="new"))
    assert (new.system, new.layouts, new.table) == ("drug:atc", (drugs,), "new")
    assert new.own_system is None
    other = Preparation(layouts=(visits,))
    assert asked.for_new_records("icd9cm", other).layouts == (visits,)
