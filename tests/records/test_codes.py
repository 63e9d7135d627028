import pytest

from comorb.records import codes


@pytest.mark.parametrize(
    ("raw", "code", "state"),
    [
        ("250.00", "25000", "ok"),
        ("001.0", "0010", "ok"),
        ("38", "038", "repaired"),
        ("V45.81", "V4581", "ok"),
        ("NULL", "", "missing"),
        ("1E11", "", "malformed"),
    ],
)
def test_icd9_codes_are_normalised(raw, code, state):
    assert codes.normalise(raw, "icd9cm") == (code, state)


def test_columns_are_recognised():
    assert codes.recognise(["428.0", "250.00", "V4581"]).system == "icd9cm"
    assert codes.recognise(["I50.9", "E11.9", "I10"]).system == "icd10cm"
    assert codes.recognise(["44054006"]).system == "opaque"
