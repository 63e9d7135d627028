"""The registry: every coding system has what the others have."""

from pathlib import Path

import pytest

from comorb.records.codes import atc, icd9, icd10
from comorb.records.codes.systems import (
    PROCEDURES,
    SYSTEMS,
    coding_system,
    format_systems,
    system_by_edition,
    system_by_url,
    systems_by_family,
    systems_by_kind,
)

STATIC = Path(__file__).parents[3] / "src/comorb/web/static"


@pytest.mark.parametrize(
    ("value", "system"),
    [
        ("9", "icd9cm"),
        ("09", "icd9cm"),
        ("ICD-9-CM", "icd9cm"),
        ("10", "icd10cm"),
        ("ICD9Proc", "icd9proc"),
        ("ICD10PCS", "icd10pcs"),
        ("ATC", "atc"),
        ("x", None),
    ],
)
def test_editions(value, system):
    assert system_by_edition(value) == system


@pytest.mark.parametrize(
    ("url", "system"),
    [
        ("http://hl7.org/fhir/sid/icd-10-cm", "icd10cm"),
        ("http://hl7.org/fhir/sid/icd-10", "icd10"),
        ("http://hl7.org/fhir/sid/icd-9-cm", "icd9cm"),
        ("http://snomed.info/sct", "opaque"),
        ("http://www.whocc.no/atc", "atc"),
        ("http://www.cms.gov/Medicare/Coding/ICD10", "icd10pcs"),
        (None, None),
    ],
)
def test_urls(url, system):
    assert system_by_url(url) == system


def test_the_usual_system_of_a_family_comes_first():
    keys = {name: [system.key for system in some] for name, some in systems_by_family().items()}
    assert keys == {"icd9": ["icd9cm"], "icd10": ["icd10cm", "icd10"]}


@pytest.mark.parametrize("key", SYSTEMS)
def test_a_system_is_whole(key):
    system = coding_system(key)
    assert system.key == key
    if system.fit is not None:
        assert system.title
        chapters = system.chapters()
        assert list(chapters) == sorted(chapters)
        assert system.groups()
        assert system.not_diseases is not None


def test_the_title_of_several_systems():
    assert format_systems("icd9cm") == "ICD-9-CM"
    assert format_systems("icd10cm+icd9cm") == "ICD-10-CM + ICD-9-CM"
    assert format_systems("icd9cm drug:atc procedure:opaque") == "ICD-9-CM + ATC"


def test_a_system_may_be_that_of_a_kind():
    assert systems_by_kind("icd10cm+icd9cm drug:atc") == {"": "icd10cm+icd9cm", "drug": "atc"}
    assert systems_by_kind("drug:icd10pcs+icd9proc") == {"drug": "icd10pcs+icd9proc"}
    assert systems_by_kind("") == {}
    assert format_systems("opaque") == format_systems("klingon") == ""


def test_diagnoses_and_their_procedures():
    assert {SYSTEMS[key].kind for key in PROCEDURES} == {"diagnosis"}
    assert {SYSTEMS[key].kind for key in PROCEDURES.values()} == {"procedure"}


def test_how_well_a_code_is_known():
    icd9 = coding_system("icd9cm")
    assert [icd9.standing(code) for code in ("4280", "428", "42899", "")] == [2, 1, 0, 0]
    assert coding_system("opaque").standing("428") == 0


def test_a_code_is_normalised_once_however_it_is_asked_for():
    system = coding_system("icd9cm")
    assert system.normalise("428.07") is system.normalise("428.07", False)


def test_every_system_is_found_by_its_key():
    of_icd = (icd9.DIAGNOSES, icd9.PROCEDURES, icd10.DIAGNOSES, icd10.EUROPEAN, icd10.PROCEDURES)
    for system in (atc.SYSTEM, *of_icd):
        assert SYSTEMS[system.key] is system
