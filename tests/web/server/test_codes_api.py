"""Searches by everyday words and patterns; cohorts and sets of codes kept under a name."""

import json
import re

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


CODES = {"name": "Hearts", "codes": ["428", "V*", "401-405"]}
RULES = {"having": ["428"], "age": [65, None], "level": ["group"], "features": ["age"]}


def test_a_cohort_is_kept_exported_and_imported_as_it_was(client, app):
    ana, bea = client("ana"), client("bea")
    kept = ana.post("/api/v1/definitions", json={"name": "Old hearts", "rules": RULES})
    assert kept.status_code == 201, kept.text
    key = kept.json()["id"]
    file = ana.get(f"/api/v1/definitions/{key}/file")
    assert "cohort.json" in file.headers["content-disposition"]
    assert file.json() == {
        "format": "comorb-cohort",
        "version": 1,
        "name": "Old hearts",
        "rules": RULES,
    }
    again = bea.post("/api/v1/definitions", json=file.json()).json()
    assert (again["rules"], again["mine"], again["owner"]) == (RULES, True, "bea")
    acts = [act["action"] for act in app.state.store.acts() if act["target"] == key]
    assert acts == ["keep a definition", "export a definition"]
    assert not re.search(r"\b428\b", json.dumps(list(app.state.store.acts())))


def test_a_set_of_codes_is_private_until_it_is_shared(client):
    ana, bea = client("ana"), client("bea")
    key = ana.post("/api/v1/definitions", json=CODES).json()["id"]

    def seen(one):
        return key in [row["id"] for row in one.get("/api/v1/definitions").json()]

    assert (seen(ana), seen(bea)) == (True, False)
    assert bea.get(f"/api/v1/definitions/{key}/file").status_code == 404
    shared = ana.patch(f"/api/v1/definitions/{key}", json={"shared": True, "name": "Ours"})
    assert shared.json()["name"] == "Ours"
    assert seen(bea)
    assert bea.get(f"/api/v1/definitions/{key}/file").json()["codes"] == CODES["codes"]
    assert bea.delete(f"/api/v1/definitions/{key}").status_code == 403
    assert ana.delete(f"/api/v1/definitions/{key}").status_code == 204
    assert not seen(ana)


def test_what_is_no_definition_is_refused_in_a_line(client):
    ana = client("ana")
    for body, said in (
        ({"name": "x"}, "rules of a cohort or some codes"),
        (CODES | {"rules": RULES}, "and not both"),
        ({"name": "x", "rules": {"code_map": "0" * 16}}, "without the map"),
    ):
        told = ana.post("/api/v1/definitions", json=body)
        assert (told.status_code, said in told.json()["error"]) == (422, True), told.text
    for body in ({"name": "", "codes": ["1"]}, CODES | {"format": "other"}, {"records": []}):
        assert ana.post("/api/v1/definitions", json=body).status_code == 422


def test_what_a_removed_user_kept_is_nobody_s(client, app):
    token = app.state.access.add_user("zoe", "analyst")
    zoe = client("ana")
    zoe.headers["authorization"] = f"Bearer {token}"
    key = zoe.post("/api/v1/definitions", json=CODES).json()["id"]
    app.state.access.remove_user("zoe")
    token = app.state.access.add_user("zoe", "analyst")
    zoe.headers["authorization"] = f"Bearer {token}"
    assert key not in [row["id"] for row in zoe.get("/api/v1/definitions").json()]
    app.state.access.remove_user("zoe")
