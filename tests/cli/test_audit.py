"""audit, as an administrator meets it."""

import sqlite3
from contextlib import closing


def test_the_log_is_shown_and_verified(comorb, tmp_path):
    comorb("user", "add", "ana")
    comorb("user", "remove", "ana")
    shown = comorb("audit", "show").stdout.splitlines()
    assert [line.split("\t")[2:5] for line in shown] == [
        ["command line", "add analyst", "ana"],
        ["command line", "remove user", "ana"],
    ]
    told = comorb("audit", "verify")
    assert told.exit_code == 0
    seal = shown[-1].split("\t")[-1]
    assert told.stdout == f"2 acts, all as they were written; the last seal is {seal}\n"
    with closing(sqlite3.connect(tmp_path / "comorb-workspace" / "comorb.sqlite")) as database:
        database.executescript("DROP TRIGGER audit_grows; DELETE FROM audit WHERE number = 1")
    told = comorb("audit", "verify")
    assert told.exit_code == 1
    assert "act 1 is missing, changed or out of place" in told.stderr


def test_a_log_without_acts_is_whole(comorb):
    comorb("user", "list")
    assert comorb("audit", "verify").stdout.startswith("0 acts, all as they were written")


def test_what_is_no_action_and_no_workspace_is_refused(comorb, tmp_path):
    assert "expected show or verify, got 'drop'" in comorb("audit", "drop").stderr
    none = comorb("audit", "verify")
    assert (none.exit_code, "comorb-workspace is none" in none.stderr) == (1, True)
    assert not (tmp_path / "comorb-workspace").exists()
