"""Every command that tells a count can tell it protected."""

from __future__ import annotations

import json
import re

import pytest
import typer

from comorb.cli import group
from comorb.cli.options import Protection
from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile

TELL_COUNTS = (
    *("assign", "choose", "compare", "fit", "inspect", "profile", "relate", "report", "rules"),
    *("slices", "stability"),
)
TELL_NONE = {
    "audit": "who did what, by id",
    "demo": "simulated patients",
    "reproduce": "simulated patients, and public data",
    "serve": "pages have views of their own",
    "simulate": "simulated patients",
    "user": "names and roles",
}


def test_every_command_is_known_and_has_the_option_where_it_tells_counts() -> None:
    commands = typer.main.get_command(group.app).commands  # type: ignore[attr-defined]
    assert set(commands) == {*TELL_COUNTS, *TELL_NONE}
    for name in TELL_COUNTS:
        options = {option for one in commands[name].params for option in one.opts}
        assert {"--protected", "--min-cell"} <= options, name


def test_a_bound_alone_protects_too() -> None:
    assert Protection().least == 0
    assert Protection(protected=True).least == 11
    assert Protection(False, 20).least == Protection(True, 20).least == 20


@pytest.fixture(scope="module")
def full(run) -> Profile:
    return load_profile(run)


def exact_counts(full: Profile) -> set[int]:
    """Return the sizes of the full view that the protected one doesn't happen to have."""
    shown = full.protected()
    sizes = zip(full.clusters, shown.clusters, strict=True)
    return {one.size for one, two in sizes if one.size != two.size}


def test_printed_counts_are_those_of_the_protected_profile(comorb, run, full):
    shown = full.protected()
    told = json.loads(comorb("profile", run, "--protected", "--json").stdout)
    assert [one["records"] for one in told["clusters"]] == [one.size for one in shown.clusters]
    assert (told["counts"], told["min_cell"]) == ("protected", 11)
    printed = comorb("profile", run, "--protected").stdout
    assert not exact_counts(full) & {
        int(found.replace(",", "")) for found in re.findall(r"([\d,]+) records", printed)
    }
    assert json.loads(comorb("profile", run, "--json").stdout)["counts"] == "full"


def test_a_report_says_whether_it_is_full_or_protected(comorb, run, full, tmp_path):
    for words, view in (((), 0), (("--protected",), 11)):
        path = tmp_path / f"{view}.html"
        assert comorb("report", run, "-o", path, *words).exit_code == 0
        page = path.read_text(encoding="utf-8")
        assert f'"min_cell":{view}' in page
        assert (full.source.digest in page) == (view == 0)


def test_a_fit_can_write_a_protected_report_beside_the_full_profile(comorb, records, tmp_path):
    told = comorb("fit", records, "-k", 3, "--no-stability", "--protected", "-o", tmp_path / "run")
    assert told.exit_code == 0
    assert "few is less than 11" in told.stdout
    assert '"min_cell":11' in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert load_profile(tmp_path / "run").min_cell == 0
    again = comorb("report", tmp_path / "run", "--protected", "-o", tmp_path / "again.html")
    assert again.exit_code == 0


def test_what_is_no_profile_is_told_in_rough_numbers(comorb, records, run, tmp_path):
    words = ("inspect", records, "--protected", "--json")
    told = json.loads(comorb(*words).stdout)
    assert told["records"] % 10 == 0
    assert all(count % 10 == 0 and count >= 11 for _, _, count in told["most_common"])
    assert told["ledger"]["problems"] == []
    assert comorb("inspect", records, "--protected").exit_code == 0
    path = tmp_path / "new.csv"
    told = json.loads(comorb("assign", run, records, "-o", path, "--protected", "--json").stdout)
    sizes = [one["records"] for one in told["clusters"]]
    assert all(size is None or size % 10 == 0 for size in [*sizes, told["records"]])
    told = json.loads(comorb("choose", records, "-k", "1:3", "--protected", "--json").stdout)
    assert all(row["smallest"] is None or row["smallest"] % 10 == 0 for row in told["rows"])
    told = json.loads(comorb("stability", records, "-k", 2, "--protected", "--json").stdout)
    assert told["min_cell"] == 11
    told = json.loads(comorb("compare", run, run, "--protected", "--json").stdout)
    shown = load_profile(run).protected()
    flows = [pair["records_in_both"] for pair in told["pairs"]]
    assert flows == pytest.approx([one.size for one in shown.clusters], abs=15)
