import pytest

from comorb_reproduction import results
from comorb_reproduction.results import fill, read_results, revision, write_results


def quiet(done, total):
    pass


def test_a_row_is_made_once(tmp_path):
    made = []

    def make(key):
        made.append(key["n"])
        return {"value": key["n"] / 4}

    path = tmp_path / "deep" / "rows.csv"
    first = fill(path, [{"n": 1}, {"n": 2}], make, quiet)
    again = fill(path, [{"n": 2}, {"n": 3}], make, quiet)
    assert made == [1, 2, 3]
    assert [row["value"] for row in first + again] == [0.25, 0.5, 0.5, 0.75]
    assert {row["commit"] for row in again} == {revision()}


@pytest.mark.parametrize("commit", ["845865e2", "12345678"])
def test_a_commit_that_looks_like_a_number_is_text(tmp_path, monkeypatch, commit):
    monkeypatch.setattr(results, "revision", lambda: commit)
    (row,) = fill(tmp_path / "rows.csv", [{"n": 1}], lambda _: {}, quiet)
    (again,) = fill(tmp_path / "rows.csv", [{"n": 1}], lambda _: {}, quiet)
    assert row["commit"] == again["commit"] == commit


def test_progress_is_told(tmp_path):
    told = []
    wanted = [{"n": 1}, {"n": 2}]
    fill(tmp_path / "rows.csv", wanted, lambda _: {}, lambda *now: told.append(now))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_row_cut_short_is_made_again(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n,value,commit\n1,2.5,abc\n2,3.")
    made = fill(path, [{"n": 1}, {"n": 2}], lambda key: {"value": 7}, quiet)
    assert [row["value"] for row in made] == [2.5, 7]
    assert [row["n"] for row in read_results(path)] == [1, 2]


def test_a_file_is_written_anew(tmp_path):
    write_results(tmp_path / "a.csv", [{"n": 1}, {"n": 2}])
    write_results(tmp_path / "a.csv", [{"n": 3, "name": "x"}])
    assert read_results(tmp_path / "a.csv") == [{"n": 3, "name": "x"}]
