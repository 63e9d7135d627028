"""The fast part of the tortures, and what makes new things join; `make torture` is the rest.

Those of routes and bits are in tests/web/server/test_protection.py and tests/test_bits.py.
"""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path
from random import Random

import pytest

from comorb.cli.app import COMMANDS
from comorb.records.codes.systems import SYSTEMS
from comorb.records.layouts.readers import READERS
from tests.records.sources.test_damage import WRITERS
from tests.web.server.test_protection import ROUTES
from torture import api, bits, bombs, codes, disks, files, fuzz, kills, markers, routes
from torture.__main__ import PARTS
from torture.commands import WORDS
from torture.mutation import mutated_bytes, mutated_json, mutated_rows
from torture.processes import Ended
from torture.target import Target, WrongAnswer, ends_well
from torture.verdict import Verdict, keep

ROOT = Path(__file__).parents[1]
CHEAP = [*codes.targets(), *files.targets()]
TARGETS = fuzz.all_targets()


def attacked(target: Target, executions: int, folder: Path) -> set[bool]:
    seeds = target.seeds(folder)
    inputs = (target.mutate(Random(f"{target.name} {i}"), seeds) for i in range(executions))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {ends_well(target, data, folder) for data in inputs}


def test_everything_that_can_be_read_is_a_target():
    names = set(TARGETS)
    assert {f"codes {key}" for key in SYSTEMS} <= names
    assert {f"layout {kind}" for kind in READERS} <= names
    assert {f"kind {kind}" for kind in WRITERS} <= names
    assert "api" in names
    assert set(WORDS) == set(COMMANDS)


@pytest.mark.parametrize("target", CHEAP, ids=lambda target: target.name)
def test_odd_bytes_end_well(target, tmp_path):
    attacked(target, 120, tmp_path)


@pytest.mark.parametrize("kind", READERS)
def test_odd_tables_end_well(kind, tmp_path):
    assert attacked(TARGETS[f"layout {kind}"], 6, tmp_path)


def test_executions_are_shared_out_to_all_targets():
    chunks = fuzz._chunks(list(TARGETS.values()), 100_000)
    assert {chunk.target.name for chunk in chunks} == set(TARGETS)
    assert sum(chunk.last - chunk.first for chunk in chunks) == pytest.approx(100_000, rel=0.01)


def test_mutations_are_the_same_every_time_and_change_something():
    plain = {"a": [1, 2, {"b": "c"}], "d": "428.0"}
    rows = [["visit_id", "dx1"], ["1", "428.0"], ["2", "250.00"]]
    for change, whole in (
        (mutated_bytes, b"428.0;250.00"),
        (mutated_json, plain),
        (mutated_rows, rows),
    ):
        made = [change(Random(i), whole) for i in range(40)]
        assert made == [change(Random(i), whole) for i in range(40)]
        assert sum(one != whole for one in made) > 30


def crashes(data: bytes, __: Path) -> None:
    if data != b"seed":
        raise ZeroDivisionError("a fault")


def kills_itself(data: bytes, __: Path) -> None:
    if data.endswith(b"5"):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("check", "said"), [(crashes, "ZeroDivisionError a fault"), (kills_itself, "with -9")]
)
def test_what_doesnt_end_well_is_found_and_kept(check, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = Target(
        "faulty", lambda _: [b"seed"], check, 1, lambda rng, _: b"%d" % rng.randrange(9)
    )
    monkeypatch.setattr(fuzz, "all_targets", lambda: {"faulty": target})
    monkeypatch.setattr(fuzz, "EXECUTIONS", 60)
    monkeypatch.setattr(fuzz, "guided", lambda *_: (0, [], "none guided"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this process has threads, which a fork leaves behind
        verdict = fuzz.run(1.0)
    assert re.match(r"60 executions over 1 targets", verdict.figures)
    assert said in verdict.findings[0]
    assert Path(verdict.findings[0].rpartition("; ")[2]).exists()


def test_a_wrong_answer_is_no_refusal(tmp_path):
    (target,) = [one for one in CHEAP if one.name == "model file"]
    (whole,) = target.seeds(tmp_path)
    assert ends_well(target, whole, tmp_path)
    assert not ends_well(target, whole[:-1], tmp_path)
    lax = Target("lax", target.seeds, lambda *_: files.expect(False, "it isn't"), 1)
    with pytest.raises(WrongAnswer, match="it isn't"):
        ends_well(lax, whole, tmp_path)


def test_the_api_answers_odd_bodies(tmp_path):
    try:
        assert attacked(TARGETS["api"], 40, tmp_path) == {True}
    finally:
        api.close()


def test_a_killed_job_is_old_or_new(tmp_path):
    (job,) = [job for job in kills.JOBS if job.name == "export"]
    prepared = kills.Prepared(job, tmp_path)
    assert prepared.points >= 2
    assert prepared.old != prepared.new
    assert prepared.killed(prepared.points - 1) == []


def test_a_mixed_folder_is_told():
    old, new = {"a": "1", "b": "1"}, {"a": "2", "b": "2"}
    assert (
        kills._differences({"a": "1", "b": "2"}, old, new)
        == "a mixed folder: {'a': 'old', 'b': 'new'}"
    )


def test_points_are_spread_over_all_jobs():
    chosen = kills.spread({"one": 30, "two": 10, "three": 1}, 20)
    assert {name: len(points) for name, points in chosen.items()} == {
        "one": 15,
        "two": 5,
        "three": 1,
    }
    assert all(1 <= point <= 30 for point in chosen["one"])


def test_an_id_or_a_list_of_codes_is_found_where_it_does_not_belong():
    data = f"{markers.MARKER}1,{markers.LIST}".encode()
    assert len(markers._found("run/profile.json", data, markers.IDS, markers.LISTS)) == 2
    assert len(markers._found("run/assignments.csv", data, markers.IDS, markers.LISTS)) == 1
    assert markers._found("visits.csv", data, markers.IDS, markers.LISTS) == []


def test_bombs_are_small_files(tmp_path):
    for name, make in bombs.BOMBS.items():
        make(tmp_path / name, 1 << 21)
        assert 0 < (tmp_path / name).stat().st_size < 1 << 21, name


def test_the_same_records_are_written_in_other_orders(tmp_path):
    assert len(bits.written(tmp_path, 40, weighted=True)) >= 6
    plain, shuffled, permuted = (
        list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
        for name in ("visits", "shuffled", "permuted")
    )
    assert plain == permuted != shuffled
    assert list(plain[0]) != list(permuted[0])
    assert sorted(map(str, plain)) == sorted(map(str, shuffled))


def test_a_route_is_skipped_only_where_asking_would_end_what_others_ask():
    skipped = {route for route in ROUTES if routes._skipped(route, "analyst", "shared")}
    assert skipped == {"POST /api/v1/logout"}


def test_a_disk_that_failed_has_nothing_left_of_it():
    before = {"run/": "", "run/model.comorb": "1"}
    assert disks._left(before, before | {"run/.model.comorb.1-a": "2"}) == ["run/.model.comorb.1-a"]
    assert disks._left(before, before) == []


def test_one_line_is_plain_and_a_traceback_is_not():
    assert Ended(0, "", "").plainly
    assert Ended(1, "", "note: a\ncomorb: the disk is full\n").plainly
    assert not Ended(1, "", "Traceback (most recent call last):\n").plainly
    assert not Ended(1, "", "one\ntwo\n").plainly
    assert not Ended(-11, "", "").plainly
    assert not Ended(0, "", "", late=True).plainly


def test_a_verdict_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Verdict("3 kills").line("kills") == "kills: 3 kills; nothing found"
    assert Verdict("3 kills", ["a"]).line("kills") == "kills: 3 kills; 1 findings"
    assert keep("a b", b"data") == keep("a b", b"data")


def test_every_part_is_promised():
    page = (ROOT / "docs" / "trust.md").read_text("utf-8")
    assert {name for name in PARTS if f"`python -m torture {name}`" in page} == set(PARTS)


def test_an_execution_has_so_much_time_of_the_processor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def spins(data: bytes, _: Path) -> None:
        while data != b"seed":
            pass

    target = Target("endless", lambda _: [b"seed"], spins, 1, lambda *_: b"x", seconds=0.2)
    monkeypatch.setattr(fuzz, "all_targets", lambda: {"endless": target})
    monkeypatch.setattr(fuzz, "EXECUTIONS", 2)
    monkeypatch.setattr(fuzz, "guided", lambda *_: (0, [], "none guided"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = fuzz.run(1.0)
    assert ["took too long" in finding for finding in verdict.findings] == [True, True]
