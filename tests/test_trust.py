"""docs/trust.md: every finding has its test, every test that is named is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ROWS = re.findall(r"^\| ([a-z]?) ?\| .* \| (.*) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_is_named_is_there(file, name):
    assert re.search(rf"^ *def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_every_letter_has_its_test():
    lettered = [letter for letter, tests in ROWS if letter and "::" in tests]
    assert sorted(set(lettered)) == list("abcdefghijklmnopqrstuvwxyz")


def test_every_file_of_tests_that_is_a_command_is_there():
    files = re.findall(r"`pytest (tests/[\w/]+\.py)`", PAGE)
    assert files
    assert all((ROOT / file).exists() for file in files)
