"""The registry: every coding system has what the others have."""

from pathlib import Path

import pytest

from comorb.records.codes.systems import SYSTEMS, coding_system, edition, families, of_url, title_of

STATIC = Path(__file__).parents[3] / "src/comorb/web/static"


@pytest.mark.parametrize(
    ("value", "system"),
    [("9", "icd9cm"), ("09", "icd9cm"), ("ICD-9-CM", "icd9cm"), ("10", "icd10cm"), ("x", None)],
)
def test_editions(value, system):
    assert edition(value) == system


@pytest.mark.parametrize(
    ("url", "system"),
    [
        ("http://hl7.org/fhir/sid/icd-10-cm", "icd10cm"),
        ("http://hl7.org/fhir/sid/icd-10", "icd10"),
        ("http://hl7.org/fhir/sid/icd-9-cm", "icd9cm"),
        ("http://snomed.info/sct", "opaque"),
        (None, None),
    ],
)
def test_urls(url, system):
    assert of_url(url) == system


def test_the_usual_system_of_a_family_comes_first():
    keys = {name: [system.key for system in some] for name, some in families().items()}
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
    assert title_of("icd9cm") == "ICD-9-CM"
    assert title_of("icd10cm+icd9cm") == "ICD-10-CM + ICD-9-CM"
    assert title_of("opaque") == title_of("klingon") == ""
