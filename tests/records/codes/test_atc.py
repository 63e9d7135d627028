import pytest

from comorb.records.codes.atc import SYSTEM
from comorb.records.codes.tables import read_titles


@pytest.mark.parametrize("code", ["A", "A10", "A10B", "A10BA", "A10BA02"])
def test_every_level_is_a_code(code):
    assert SYSTEM.normalise(code.lower()) == (code, "ok")


@pytest.mark.parametrize("raw", ["E10", "A1", "A10BA2", "A10BA020", "I10"])
def test_what_is_no_code(raw):
    assert SYSTEM.normalise(raw).state == "malformed"


def test_the_tables_hang_together():
    chapters, groups = read_titles("atc_chapters.csv"), read_titles("atc_groups.csv")
    assert len(chapters) == 14
    assert len([code for code in groups if len(code) == 3]) == 94
    assert list(groups) == sorted(groups)
    for code in groups:
        assert SYSTEM.normalise(code) == (code, "ok")
        assert code[0] in chapters
        assert code[:3] in groups
