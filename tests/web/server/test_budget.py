"""Questions of data that others brought: how many, which are the same, and when the next comes."""

import pytest

from comorb.web.server import budget
from comorb.web.server.refusals import RefusedError
from comorb.web.server.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


def test_a_question_is_what_defines_the_records():
    asked = budget.question({"having": ["428", "585"], "age": [60, None]})
    same = {"having": ["585", "428", "428"], "age": [60, None], "drop_codes": ["401"]}
    assert budget.question(same | {"scores": ["charlson"]}) == asked
    for other in (
        {"having": ["428"], "age": [60, None]},
        {"without": ["428", "585"], "age": [60, None]},
        {"having": ["428", "585"], "age": [61, None]},
        same | {"level": ["full"]},
        same | {"code_map": "0" * 16},
        same | {"at_least": 4},
    ):
        assert budget.question(other) != asked
    assert budget.question(same, {"run": "a", "cluster": 1}) != asked


def test_the_same_question_is_free_and_each_new_one_is_counted_and_audited(store):
    assert budget.questions_left(store, "ana", "visits") == 30
    assert [budget.spend(store, "ana", "visits", one) for one in ("a", "b", "a")] == [29, 28, 28]
    assert budget.questions_left(store, "bea", "visits") == 30
    assert budget.questions_left(store, "ana", "other") == 30
    log = [
        (row["user"], row["action"], row["target"]) for row in store.query("SELECT * FROM audit")
    ]
    assert log == [("ana", "count", "visits")] * 2


def test_one_question_too_many_is_told_when_it_can_be_asked(store, monkeypatch):
    monkeypatch.setattr(budget.time, "time", lambda: 0.0)
    for number in range(15):
        budget.spend(store, "ana", "visits", str(number))
    monkeypatch.setattr(budget.time, "time", lambda: 86400.0)
    for number in range(15, 30):
        budget.spend(store, "ana", "visits", str(number))
    with pytest.raises(RefusedError, match=r"30 different questions .* at 1970-01-08 00:00 UTC"):
        budget.spend(store, "ana", "visits", "new")
    assert budget.spend(store, "ana", "visits", "7") == 0
    monkeypatch.setattr(budget.time, "time", lambda: 7 * 86400.0 + 1)
    assert budget.spend(store, "ana", "visits", "new") == 14
    assert budget.spend(store, "ana", "visits", "7") == 14
