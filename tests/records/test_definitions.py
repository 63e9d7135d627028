"""Definitions: cohorts and sets of codes as files."""

import json

import pytest

from comorb.errors import RecordsError
from comorb.records.definitions import Definition, expanded, read_definition


def saved(tmp_path, plain, name="cohort.json"):
    path = tmp_path / name
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "one",
    [Definition("Heart", {"having": ["428"], "age": [65, None]}), Definition("V", {}, ("V*",))],
)
def test_a_definition_is_read_as_it_was_written(tmp_path, one):
    assert read_definition(saved(tmp_path, one.to_dict())) == one


def test_codes_may_be_a_plain_list(tmp_path):
    path = saved(tmp_path, "\ufeff428\n\n V01-V91 \n", "codes.txt")
    assert read_definition(path) == Definition("codes", codes=("428", "V01-V91"))
    assert expanded(["250", f"@{path}"]) == ["250", "428", "V01-V91"]


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ("{", "isn't a cohort or a set of codes"),
        ({"format": "other", "version": 1, "name": "x", "codes": ["1"]}, "isn't a cohort"),
        ({"format": "comorb-cohort", "version": 1, "name": "x"}, "isn't a cohort"),
        ({"format": "comorb-cohort", "version": 1, "name": "x", "rules": {"k": 3}}, "isn't a"),
        ({"format": "comorb-cohort", "version": 1, "name": "x", "codes": [["1"]]}, "isn't a"),
        ({"format": "comorb-cohort", "version": 9, "name": "x", "codes": ["1"]}, "version 9"),
        ("\n\n", "holds no codes"),
    ],
)
def test_what_is_no_definition_is_refused(tmp_path, plain, said):
    with pytest.raises(RecordsError, match=said):
        read_definition(saved(tmp_path, plain))


def test_a_cohort_is_no_set_of_codes_and_a_file_must_be_there(tmp_path):
    path = saved(tmp_path, Definition("Heart", {"having": ["428"]}).to_dict())
    with pytest.raises(RecordsError, match="holds a cohort and no set of codes"):
        expanded([f"@{path}"])
    with pytest.raises(RecordsError, match=r"none\.json can't be read"):
        read_definition(tmp_path / "none.json")
