"""reproduce, as a reader of the paper meets it."""

from pathlib import Path


def test_a_part_is_made_and_its_page_is_named(comorb):
    told = comorb("reproduce", "exact", "--quick", "--out", "results")
    assert told.exit_code == 0, told.output
    assert "The page: results" in told.stdout
    assert list(Path("results").glob("*.md"))


def test_a_part_that_is_not_known_is_refused(comorb):
    told = comorb("reproduce", "everything", "--quick")
    assert told.exit_code == 1
    assert "everything" in told.stderr
