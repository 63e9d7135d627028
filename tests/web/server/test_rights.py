"""What rows tell to whom; the routes are walked in test_protection."""

import pytest

from comorb.web.server.access import User
from comorb.web.server.refusals import RefusedError
from comorb.web.server.rights import counts_exactly, told_data, told_run, told_state, view_of

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
    assert told_run(row, EVA, 11) == {"id": "r", "owner": "eva", "state": "done"} | {
        "records": 1487,
        "moved": 3,
        "seconds": 1.87,
    }
    told = told_run(row, VERA, 11)
    assert (told["records"], told["moved"]) == (1489, None)
    assert not {"seconds", "protected_records"} & told.keys()
    assert told_run(row | {"moved": 0}, VERA, 11)["moved"] == 0
    earlier = {name: value for name, value in row.items() if name != "protected_records"}
    assert "records" not in told_run(earlier, VERA, 11)


def test_a_run_under_way_or_failed_tells_others_no_number():
    running = {"state": "running", "records": 1487, "done": 0.5}
    assert told_state(running, EVA, 11) == running
    assert told_state(running, ANA, 11) == {"state": "running", "done": 0.5}
    failed = {"state": "failed", "message": "expected 20 groups, but 7 records have codes"}
    assert told_state(failed, EVA, 11) == failed
    assert "fewer than 11 records" in told_state(failed, ANA, 11)["message"]


def test_what_was_understood_is_rough_for_who_did_not_bring_it():
    about = {
        "records": 1487,
        "mentions": 9123,
        "common": [{"code": "428", "records": 951}, {"code": "V01", "records": 3}],
        "lines": [{"unit": "records", "rule": "no codes", "before": 1490, "after": 1487}],
        "notes": ["3 rows have no id"],
        "columns": [{"name": "age", "reason": "7 values can't be read"}],
        "problems": [{"row": 7, "column": "age", "reason": "no number"}],
    }
    row = {"id": "d", "owner": "*", "kind": "mounted", "source": "/x.csv", "about": about}
    told = told_data(row, ANA, 11)
    assert not told["exact"]
    assert "source" not in told
    assert told["about"] == {
        "records": 1500,
        "mentions": 9100,
        "common": [{"code": "428", "records": 950}, {"code": "V01", "records": None}],
        "lines": [{"unit": "records", "rule": "no codes", "before": 1500, "after": 1500}],
        "notes": ["fewer than 11 rows have no id"],
        "columns": [{"name": "age", "reason": "fewer than 11 values can't be read"}],
        "problems": [],
    }
    assert told_data(row, EVA, 11)["about"] == about
    refused = row | {"about": None, "refused": {"error": "x.csv: 4 rows of 90 are broken"}}
    assert told_data(refused, ANA, 11)["refused"]["error"].startswith("x.csv: fewer than 11 rows")
