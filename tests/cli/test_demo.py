"""demo, as a user meets it."""

from pathlib import Path

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
