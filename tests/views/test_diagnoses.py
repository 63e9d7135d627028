"""Diagnoses in Spanish and Catalan: all in the table or in English, never half and half."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comorb.profiles.profile import Profile
from comorb.records.codes.systems import SYSTEMS
from comorb.views.words import diagnosis, in_languages, table_rows, translated


def test_the_table_is_whole_and_its_codes_are_codes() -> None:
    rows = table_rows()
    assert len({(row["system"], row["code"]) for row in rows}) == len(rows)
    for row in rows:
        assert all(row[language].strip() for language in ("es", "ca")), row
        system = SYSTEMS[row["system"] + ("cm" if row["system"] == "icd9" else "")]
        assert row["code"] in system.chapters() or system.category(row["code"]) == row["code"], row
    for key, system in (("icd9", "icd9cm"), ("icd10", "icd10")):
        have = {row["code"] for row in rows if row["system"] == key}
        assert set(SYSTEMS[system].chapters()) <= have
        assert len(have - set(SYSTEMS[system].chapters())) >= 300


@pytest.mark.parametrize(
    ("code", "system", "es"),
    [
        ("428", "icd9cm", "Insuficiencia cardíaca"),
        ("I50", "icd10cm", "Insuficiencia cardíaca"),
        ("icd10cm:I50", "icd9cm+icd10cm", "Insuficiencia cardíaca"),
        ("390-459", "icd9cm", "Enfermedades del aparato circulatorio"),
        ("4280", "icd9cm", "x"),
        ("428", "opaque", "x"),
        ("I50", "atc", "x"),
    ],
)
def test_a_code_has_its_name(code: str, system: str, es: str) -> None:
    assert diagnosis(code, "x", system, "es") == es
    assert diagnosis(code, "x", system, "en") == "x"
    assert ("ca" in in_languages(code, system)) == (es != "x")


def test_names_of_clusters_follow(full: Profile) -> None:
    one, two = full.clusters[0].name, full.clusters[1].name
    shown = translated(full, "ca")
    assert shown.labels[full.codes.index("428")] == "Insuficiència cardíaca"
    assert shown.clusters[0].name not in (one, two)
    assert translated(full, "en") is full
    own = translated(full.renamed({0: "Ward 3"}), "ca")
    assert own.clusters[0].name == "Ward 3"
    assert own.clusters[1].name == shown.clusters[1].name


def test_a_name_is_translated_whole_or_not_at_all(full: Profile) -> None:
    known, unknown = full.labels[1], "Something unheard of"
    labels = (*full.labels[:-1], unknown)
    codes = (*full.codes[:-1], "9999")
    odd = replace(full, labels=labels, codes=codes)
    mixed = odd.renamed({0: f"{known}, {unknown.lower()}"})
    assert translated(mixed, "es").clusters[0].name == f"{known}, {unknown.lower()}"
    whole = odd.renamed({0: f"{known}, {full.labels[2].lower()}"})
    assert translated(whole, "es").clusters[0].name == "Diabetes, enfermedad renal crónica"
