"""demo, as a user meets it."""

from pathlib import Path

from comorb.cli import serve
from comorb.web.server.store import Store

FILES = [
    *("assignments.csv", "keys.json", "model.comorb", "outcomes.csv", "profile.json"),
    "report.html",
]


def names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def test_demo_does_the_whole_job_again_and_again(comorb):
    for _ in range(2):
        told = comorb("demo")
        assert told.exit_code == 0
        assert "23,154 records in 5 clusters" in told.stdout
    assert names("comorb-demo") == FILES


def test_the_explorer_of_the_demo_opens_after_the_demo_was_run(comorb, monkeypatch):
    def opened(settings, *_: object, **__: object) -> None:
        Store(settings.workspace).close()

    monkeypatch.setattr(serve, "run_explorer", opened)
    Path("comorb-demo").mkdir()
    Path("comorb-demo", "model.comorb").write_text("of a run")
    assert comorb("demo", "--serve").exit_code == 0
    assert names("comorb-demo") == ["model.comorb", "workspace"]
