from comorb.records.ledger import Ledger, Problem


def test_a_chain_ends_where_the_next_line_begins():
    ledger = Ledger().add("rows", "read", 10, 10).add("rows", "empty", 10, 7)
    assert ledger.adds_up
    assert ledger.left("rows") == 7
    assert ledger.lines[1].removed == 3
    assert not ledger.add("rows", "lost", 6, 5).adds_up


def test_nothing_appears_from_nowhere():
    assert not Ledger().add("rows", "read", 10, 11).adds_up


def test_a_unit_that_was_not_followed_has_nothing_left():
    assert Ledger.start(3, 2).left("rows") is None


def test_to_dict_and_back():
    ledger = Ledger.start(3, 2)
    ledger = Ledger(ledger.lines, (Problem(4, "dx1", "not an ICD-9 code"),), ("a note",))
    assert Ledger.from_dict(ledger.to_dict()) == ledger


def test_text():
    ledger = Ledger(notes=("2 codes repaired",)).add("rows", "read", 1000, 1000)
    ledger = ledger.add("rows", "empty", 1000, 990)
    assert str(ledger).splitlines() == [
        "rows            1,000  read",
        "rows              990  empty (−10)",
        "note: 2 codes repaired",
    ]
