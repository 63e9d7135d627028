"""Each code has an edition: by what is said, and by the list that has it."""

from comorb.records.codes.editions import settle_editions

FULL = {("icd9cm", "42823"): 40, ("icd9cm", "25000"): 40, ("icd9cm", "4019"): 20}


def test_what_is_said_stands():
    systems, notes = settle_editions({("icd9cm", "V58"): 1, ("icd10cm", "V58"): 1}, None)
    assert list(systems.values()) == ["icd9cm", "icd10cm"]
    assert notes == ()


def test_a_code_that_only_the_other_list_has_is_of_that():
    systems, notes = settle_editions({**FULL, ("icd9cm", "E860"): 7, ("icd9cm", "E8490"): 1}, None)
    assert systems["icd9cm", "E860"] == "icd10cm"
    assert systems["icd9cm", "E8490"] == "icd9cm"
    assert notes == (
        "7 mentions are said to be icd9cm, but are in the list of icd10cm alone and were read as "
        "icd10cm; check the column with the version",
    )


def test_codes_of_earlier_years_are_listed():
    counts = {("icd10cm", "I509"): 9, ("icd10cm", "E8881"): 1}
    assert settle_editions(counts, None) == (dict.fromkeys(counts, "icd10cm"), ())


def test_truncated_codes_contradict_nothing():
    counts = {("icd9cm", "428"): 50, ("icd9cm", "250"): 50, ("icd9cm", "E860"): 5}
    assert set(settle_editions(counts, None)[0].values()) == {"icd9cm"}


def test_a_mixed_column_without_versions_goes_by_the_lists():
    counts = {"428": 200, "25000": 100, "I10": 100, "V441": 5, "E860": 6, "V58": 7}
    systems, notes = settle_editions({(None, code): n for code, n in counts.items()}, None)
    assert [systems[None, code] for code in ("V441", "E860", "V58", "I10")] == [
        "icd9cm",
        "icd10cm",
        "icd9cm",
        "icd10cm",
    ]
    assert notes == (
        "icd9cm and icd10cm are mixed and no column says which is which: 7 mentions fit both and "
        "were taken as icd9cm, 11 by the list that has them; name the column with the version",
    )


def test_a_column_of_one_edition_stays_whole():
    counts = {(None, "428"): 200, (None, "E860"): 6, (None, "I10"): 1}
    assert set(settle_editions(counts, None)[0].values()) == {"icd9cm"}


def test_what_fits_two_systems_is_told():
    counts = {(None, "387"): 1, (None, "389"): 1, (None, "966"): 1}
    assert settle_editions(counts, None)[1] == (
        "the codes fit icd9proc as well as icd9cm, as which they were read; name the coding system",
    )
    assert settle_editions(counts, "icd9proc")[1] == ()


def test_a_code_that_is_none_of_what_is_said_is_of_the_list_that_has_it():
    counts = {("icd9cm", "4280"): 90, ("icd9cm", "25000"): 9, ("icd9cm", "E02"): 1}
    systems, notes = settle_editions(counts, None)
    assert systems["icd9cm", "E02"] == "icd10cm"
    assert "1 mentions are said to be icd9cm" in notes[0]
