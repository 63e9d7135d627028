import pytest

from comorb.records.codes.tables import equivalents, own_rows, span, with_prefixes


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [
        ("K70-K72", ["K70", "K71", "K72"]),
        ("4254-4259", ["4254", "4255", "4256", "4257", "4258", "4259"]),
        ("042-044", ["042", "043", "044"]),
        ("I99-I99", ["I99"]),
        ("B20", []),
        ("A98-B01", []),
        ("K72-K70", []),
        ("K7-K70", []),
        ("", []),
    ],
)
def test_spans(text, prefixes):
    assert span(text) == prefixes


def test_prefixes_have_what_their_codes_agree_on():
    assert with_prefixes({"4280": "a", "4281": "a", "4290": "a", "42911": "b"}) == {
        "428": "a",
        "4280": "a",
        "4281": "a",
        "429": None,
        "4290": "a",
        "4291": "b",
        "42911": "b",
    }


def test_equivalents_are_one_choice_or_one_of_each_of_several():
    both = equivalents("icd10cmtoicd9gem.csv")
    assert both["A000"] == (("0010",),)
    assert all(len(choice) >= 1 for choice in both["T451X5A"])
    assert len(both["T451X5A"]) == 2


def test_own_tables_are_read_by_row():
    assert own_rows("atc_chapters.csv")[0] == {
        "code": "A",
        "title": "Alimentary tract and metabolism",
    }
