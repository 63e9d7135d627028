"""What rows show to whom, and how many questions of others' data; routes are in test_protection."""

import pytest

from comorb.views.words import Words
from comorb.web.server import rights
from comorb.web.server.access import User
from comorb.web.server.rights import counts_exactly, show_data, show_run, show_state, view_of
from comorb.web.server.security import RefusedError
from comorb.web.server.store import Store

VERA, ANA, EVA = User("vera", "viewer"), User("ana", "analyst"), User("eva", "exporter")
RUN = {"id": "r", "owner": "eva", "state": "done", "records": 1487, "protected_records": 1489}


def test_full_counts_are_for_exporters_and_by_default_on_their_own_runs():
    other = RUN | {"owner": "bea"}
    assert view_of(EVA, None, RUN) == "full"
    assert view_of(EVA, None, RUN, other) == view_of(EVA, "protected", RUN) == "protected"
    assert view_of(EVA, "full", other) == "full"
    for user in (VERA, ANA):
        assert view_of(user, None, RUN | {"owner": user.name}) == "protected"
        with pytest.raises(RefusedError, match="Full counts need the role exporter"):
            view_of(user, "full", RUN | {"owner": user.name})


def test_records_are_counted_exactly_by_who_brought_them_and_by_exporters():
    own = {"owner": "ana"}
    assert [counts_exactly(user, own) for user in (VERA, ANA, EVA)] == [False, True, True]
    assert not counts_exactly(ANA, {"owner": "*"})


def test_a_run_tells_others_its_protected_numbers_alone():
    row = RUN | {"moved": 3, "seconds": 1.87}
    assert show_run(row, EVA, 11) == {"id": "r", "owner": "eva", "state": "done"} | {
        "records": 1487,
        "moved": 3,
        "seconds": 1.87,
    }
    told = show_run(row, VERA, 11)
    assert (told["records"], told["moved"]) == (1489, None)
    assert not {"seconds", "protected_records"} & told.keys()
    assert show_run(row | {"moved": 0}, VERA, 11)["moved"] == 0
    codes = row | {"features": 95, "protected_features": 60}
    assert show_run(codes, VERA, 11)["features"] == 60
    assert "features" not in show_run(row | {"features": 95}, VERA, 11)
    earlier = {name: value for name, value in row.items() if name != "protected_records"}
    assert "records" not in show_run(earlier, VERA, 11)


def test_a_run_under_way_or_failed_tells_others_no_number():
    running = {"state": "running", "records": 1487, "done": 0.5}
    assert show_state(running, EVA, 11) == running
    assert show_state(running, ANA, 11) == {"state": "running", "done": 0.5}
    failed = {"state": "failed", "message": "expected 20 groups, but 7 records have codes"}
    assert show_state(failed, EVA, 11) == failed
    assert "fewer than 11 records" in show_state(failed, ANA, 11)["message"]


def test_what_was_understood_is_rough_for_who_did_not_bring_it():
    about = {
        "records": 1487,
        "features": 345,
        "listed": 120,
        "mentions": 9123,
        "common": [{"code": "428", "records": 951}, {"code": "V01", "records": 3}],
        "lines": [{"unit": "records", "rule": "no codes", "before": 1490, "after": 1487}],
        "notes": ["3 rows have no id"],
        "columns": [{"name": "age", "reason": "7 values can't be read"}],
        "problems": [{"row": 7, "column": "age", "reason": "no number"}],
    }
    row = {"id": "d", "owner": "*", "kind": "mounted", "source": "/x.csv", "about": about}
    told = show_data(row, ANA, 11)
    assert not told["exact"]
    assert "source" not in told
    assert told["about"] == {
        "records": 1500,
        "features": 120,
        "listed": 120,
        "mentions": 9100,
        "common": [{"code": "428", "records": 950}],
        "lines": [{"unit": "records", "rule": "no codes", "before": 1500, "after": 1500}],
        "notes": ["fewer than 11 rows have no id"],
        "columns": [{"name": "age", "reason": "fewer than 11 values can't be read"}],
        "problems": [],
    }
    assert show_data(row, EVA, 11)["about"] == about
    refused = row | {"about": None, "refused": {"error": "x.csv: 4 rows of 90 are broken"}}
    assert show_data(refused, ANA, 11)["refused"]["error"].startswith("x.csv: fewer than 11 rows")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


def test_a_counter_s_question_is_what_defines_the_records():
    asked = rights.question({"having": ["428", "585"], "age": [60, None]})
    same = {"having": ["585", "428", "428"], "age": [60, None], "drop_codes": ["401"]}
    assert rights.question(same | {"scores": ["charlson"]}) == asked
    for other in (
        {"having": ["428"], "age": [60, None]},
        {"without": ["428", "585"], "age": [60, None]},
        {"having": ["428", "585"], "age": [61, None]},
        same | {"level": ["full"]},
        same | {"code_map": "0" * 16},
        same | {"at_least": 4},
    ):
        assert rights.question(other) != asked
    assert rights.question(same, {"run": "a", "cluster": 1}) != asked


def test_every_other_run_on_the_same_records_is_a_question_and_new_records_are_several(store):
    rules = {"having": ["428"], "drop_codes": ["401", "250"]}
    does = {"k": 5, "parent": None, "merge": None, "split": None}
    left = 30

    def ask(rules, does, within=None):
        return rights.spend(store, "ana", "visits", rights.questions_of_run(rules, within, does))

    left -= rights.NEW_RECORDS
    assert ask(rules, does) == left
    assert ask(rules | {"drop_codes": ["250", "401"]}, does) == left
    for other in (
        (rules, does | {"k": 6}),
        (rules | {"drop_codes": ["401"]}, does),
        (rules | {"features": ["age"]}, does),
        (rules | {"scores": ["charlson"]}, does),
        (rules, does | {"parent": "a", "merge": (1, 2)}),
        (rules, does | {"parent": "a", "split": (1, 2)}),
    ):
        left -= 1
        assert ask(*other) == left
    assert ask(rules, does, {"run": "a", "cluster": 1}) == left - rights.NEW_RECORDS
    texts = (Words(language)("cohort.left", n="1") for language in ("en", "es", "ca"))
    assert all(str(rights.NEW_RECORDS) in text for text in texts)


def test_what_takes_more_questions_than_are_left_counts_none(store, monkeypatch):
    monkeypatch.setattr(rights.time, "time", lambda: 0.0)
    rights.spend(store, "ana", "visits", [str(number) for number in range(27)])
    monkeypatch.setattr(rights.time, "time", lambda: 3600.0)
    with pytest.raises(RefusedError, match=r"takes 5 questions .* 3 of the 30 .* 1970-01-08 00:00"):
        rights.spend(store, "ana", "visits", [f"new {n}" for n in range(5)])
    assert rights.questions_left(store, "ana", "visits") == 3


def test_the_same_question_is_free_and_each_new_one_is_counted_and_audited(store):
    assert rights.questions_left(store, "ana", "visits") == 30
    assert [rights.spend(store, "ana", "visits", [one]) for one in "aba"] == [29, 28, 28]
    assert rights.questions_left(store, "bea", "visits") == 30
    assert rights.questions_left(store, "ana", "other") == 30
    log = [
        (row["user"], row["action"], row["target"]) for row in store.query("SELECT * FROM audit")
    ]
    assert log == [("ana", "count", "visits")] * 2


def test_one_question_too_many_is_told_when_it_can_be_asked(store, monkeypatch):
    monkeypatch.setattr(rights.time, "time", lambda: 0.0)
    for number in range(15):
        rights.spend(store, "ana", "visits", [str(number)])
    monkeypatch.setattr(rights.time, "time", lambda: 86400.0)
    for number in range(15, 30):
        rights.spend(store, "ana", "visits", [str(number)])
    with pytest.raises(RefusedError, match=r"0 of the 30 in any 7 days .* at 1970-01-08 00:00 UTC"):
        rights.spend(store, "ana", "visits", ["new"])
    assert rights.spend(store, "ana", "visits", ["7"]) == 0
    monkeypatch.setattr(rights.time, "time", lambda: 7 * 86400.0 + 1)
    assert rights.spend(store, "ana", "visits", ["new"]) == 14
    assert rights.spend(store, "ana", "visits", ["7"]) == 14
