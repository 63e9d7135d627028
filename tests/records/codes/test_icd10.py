"""Common groups: codes of both editions meet in them."""

import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest

from comorb.records.codes.icd10 import PROCEDURES
from comorb.records.codes.systems import coding_system
from comorb.records.codes.tables import read_equivalents

SHARED = Path(__file__).parents[4] / "shared/data"


@pytest.mark.parametrize(
    ("icd9", "icd10"),
    [
        ("4280", "I509"),
        ("4019", "I10"),
        ("25000", "E119"),
        ("486", "J189"),
        ("53081", "K219"),
        ("V441", "Z931"),
        ("41401", "I2510"),
        ("5849", "N179"),
    ],
)
def test_one_meaning_is_one_group(icd9, icd10):
    assert coding_system("icd9cm").shared(icd9) == coding_system("icd10cm").shared(icd10)
    assert len(coding_system("icd10").shared(icd10)) == 1


def test_a_code_that_took_several_has_their_groups():
    both = (*coding_system("icd9cm").shared("99529"), *coding_system("icd9cm").shared("E9331"))
    assert coding_system("icd10cm").shared("T451X5A") == both == ("CCS242", "CCS2617")


def test_coarse_and_unknown_codes():
    assert coding_system("icd10").shared("I50") == ("CCS108",)
    assert coding_system("icd10").shared("E11") == ()
    assert coding_system("icd10cm").shared("I509999") == ("CCS108",)
    assert coding_system("icd9cm").shared("250") == ()
    assert coding_system("icd10").shared("U99") == ()
    assert coding_system("opaque").shared("428") == ()


def test_nearly_every_listed_code_has_a_group_and_most_meet_their_counterpart():
    old, new = coding_system("icd9cm"), coding_system("icd10cm")
    listed = sorted(new.listed())
    assert sum(bool(new.shared(code)) for code in listed) > 0.95 * len(listed)
    pairs = read_equivalents("icd9toicd10cmgem.csv")
    meets = Counter(
        bool(set(old.shared(code)) & {one for other in some for one in new.shared(other)})
        for code, choices in pairs.items()
        for some in choices[:1]
    )
    assert meets[True] > 0.95 * meets.total()


def test_the_codes_of_a_real_file_in_two_editions_meet():
    if not (SHARED / "zoo/mdcr.csv.gz").exists():
        pytest.skip("zoo/mdcr.csv.gz is not in ../shared/data")
    with gzip.open(SHARED / "zoo/mdcr.csv.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["dx"] == "1"]
    systems = {"9": coding_system("icd9cm"), "10": coding_system("icd10cm")}
    groups: dict[str, Counter[str]] = {"9": Counter(), "10": Counter()}
    for row in rows:
        groups[row["icdv"]].update(systems[row["icdv"]].shared(row["code"]) or ("",))
    for counts in groups.values():
        assert counts[""] < 0.03 * counts.total()
    shared = {group for group in groups["9"] if groups["10"][group] > 0}
    for counts in groups.values():
        assert sum(counts[group] for group in shared) > 0.99 * counts.total()


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("02HV33Z", "02HV33Z"),
        ("02hv33z ", "02HV33Z"),
        ("B2111ZZ", "B2111ZZ"),
        ("02HV33", ""),
        ("02HV33ZZ", ""),
        ("0IHV33Z", ""),
        ("0OHV33Z", ""),
        ("E2HV33Z", ""),
    ],
)
def test_codes_have_seven_characters_without_i_and_o(raw, code):
    assert PROCEDURES.normalise(raw).code == code


def test_every_category_group_and_section_has_a_name():
    for code in PROCEDURES.listed():
        for level in ("category", "group", "chapter"):
            feature = PROCEDURES.roll_up(code, level)
            assert PROCEDURES.name(feature) != feature, feature
