import pytest

from comorb.records.codes.icd10pcs import SYSTEM


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
    assert SYSTEM.normalise(raw).code == code


def test_every_category_group_and_section_has_a_name():
    for code in SYSTEM.listed():
        for level in ("category", "group", "chapter"):
            feature = SYSTEM.roll_up(code, level)
            assert SYSTEM.name(feature) != feature, feature
