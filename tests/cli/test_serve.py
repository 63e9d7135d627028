"""serve, and what it refuses."""

from comorb.cli import serve
from comorb.records.sources.files import Limits


def test_serve_refuses_missing_records_and_open_addresses(comorb):
    missing = comorb("serve", "none.csv", "--no-browser")
    assert (missing.exit_code, "There is no file none.csv" in missing.stderr) == (1, True)
    told = comorb("serve", "--host", "0.0.0.0", "--no-browser")
    assert told.exit_code == 1
    assert "expected users before listening on 0.0.0.0" in told.stderr


def test_serve_and_user_tell_in_one_line_that_a_workspace_is_none(comorb, tmp_path):
    (tmp_path / "comorb-workspace").mkdir()
    (tmp_path / "comorb-workspace" / "comorb.sqlite").write_text("no database " * 100)
    for words in (("serve", "--no-browser"), ("user", "list"), ("audit", "verify")):
        told = comorb(*words)
        assert told.exit_code == 1
        assert "expected a workspace of the explorer" in told.stderr
        assert len(told.stderr.strip().splitlines()) == 1


def test_serve_passes_its_limits_on_and_has_usual_ones(comorb, monkeypatch):
    seen = []
    monkeypatch.setattr(serve, "run_explorer", lambda settings, *_: seen.append(settings))
    comorb("serve", "--no-browser")
    words = ("--read-memory", 1.5, "--read-minutes", 2, "--proxy", "10.0.0.1")
    words += ("--read-expanded", 0.5, "--read-rows", 7, "--read-columns", 5, "--fit-memory", 3)
    comorb("serve", "--no-browser", *words)
    usual, given = seen
    assert (usual.read_seconds, usual.proxies) == (600, ())
    assert usual.read_memory >= 4 << 30
    assert (given.read_memory, given.read_seconds) == (1_500_000_000, 120)
    assert given.proxies == ("10.0.0.1",)
    assert (given.limits, given.fit_memory) == (Limits(500_000_000, 7, 5, 1_500_000_000), 3e9)
    assert usual.limits == Limits(10**10, 200_000_000, 20_000, usual.read_memory)
    assert usual.fit_memory >= 1 << 30


def test_in_a_container_half_of_its_memory_is_usual(comorb, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(serve, "run_explorer", lambda settings, *_: seen.append(settings))
    for told in ("3000000000\n", "max\n", "1000000000\n"):
        (tmp_path / "memory.max").write_text(told)
        monkeypatch.setattr(serve, "_CONTAINER", tmp_path / "memory.max")
        comorb("serve", "--no-browser")
    assert [each.read_memory for each in (seen[0], seen[2])] == [4 << 30] * 2
    assert [each.fit_memory for each in (seen[0], seen[2])] == [1_500_000_000, 1 << 30]
    assert seen[1].fit_memory != seen[0].fit_memory
