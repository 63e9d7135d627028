"""Searches by everyday words, and patterns with how many codes they stand for."""

import pytest

from comorb.web.server.codes_api import found_codes
from tests.web.conftest import mounted

ENTRIES = [
    [
        "401",
        "Hypertension",
        "Essential hypertension",
        90,
        ["high blood pressure", "hta"],
        {"es": "Hipertensión"},
    ],
    ["428", "Heart failure", "Heart failure", 50, ["chf", "insuficiencia cardiaca"], {}],
    ["410", "Heart attack", "Acute myocardial infarction", 20, ["mi", "infarto"], {}],
    ["346", "Migraine", "Migraine", 10, ["migraine"], {"ca": "Migranya"}],
]


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("42", ["428"]),
        ("42.8", ["428"]),
        ("MI", ["410", "346"]),
        ("heart", ["428", "410"]),
        ("Insuficiència cardíaca", ["428"]),
        ("infart", ["410"]),
        ("blood pressure", ["401"]),
        ("hipertension", ["401"]),
        ("MIGRANYA", ["346"]),
        ("nothing", []),
    ],
)
def test_codes_are_found_by_code_by_everyday_word_and_by_name(query, codes):
    assert [entry[0] for entry in found_codes(query, ENTRIES)] == codes


def test_the_explorer_searches_by_everyday_words(client):
    eva = client("eva")
    path = f"/api/v1/data/{mounted(eva)['id']}/codes"
    for word in ("CHF", "insuficiencia cardiaca", "ICC"):
        assert eva.get(path, params={"q": word}).json()[0]["code"] == "428"
    hits = eva.get(path, params={"q": "CHF", "level": "group"}).json()
    assert hits[0]["code"] == "CCS108"


def test_patterns_say_how_many_codes_they_stand_for(client):
    eva = client("eva")
    data = mounted(eva)["id"]
    told = eva.post(
        f"/api/v1/data/{data}/codes", json={"texts": ["428", "401-405, Q*\nV*", "4*"]}
    ).json()
    by = {one["code"]: one for one in told}
    assert by["428"] == {"code": "428", "codes": 1, "label": "Heart failure"}
    assert by["Q*"]["codes"] == 0
    assert by["4*"]["codes"] > by["401-405"]["codes"] >= 1
    rules = {"having": ["428"], "without": ["250-259"], "drop_codes": ["401-405"]}
    size = eva.post(f"/api/v1/data/{data}/size", json={"rules": rules}).json()
    single = eva.post(f"/api/v1/data/{data}/size", json={"rules": {"having": ["428"]}}).json()
    assert 0 < size["records"] < single["records"]
    refused = eva.post(f"/api/v1/data/{data}/size", json={"rules": {"having": ["Q*"]}})
    assert (refused.status_code, "a code like 'Q*'" in refused.text) == (422, True)
