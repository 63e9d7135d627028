"""The pages of the documentation read well: short sentences, the field's words, no history."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = {"cli.md", "reproduction.md"}  # by docs/commands.py and comorb reproduce
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in GENERATED),
]
MODULES = re.compile(r"<!-- modules -->.*?<!-- end of modules -->", re.DOTALL)  # docs/modules.py
MAX_MEAN = 16
MAX_WORDS = 40

# Words of the glossary in the design notes: each has a standard word that says the same.
WORDS = r"""
    anew | arrivals | asked | becomes\ of | besides? | by\ hand | carriers? | chunks? | court
    | dealt | descent | errands? | grey | heats? | jury | lay\ bare | leaps? | movers? | pieces?
    | portions? | refilled | rough | roughly | said | scattered | side\ valley | spreading | stamps
    | tell | telling | tells | thinn(?:ed|ing|s) | told | understanding | ways?\ down
    | who\ does\ the\ work | whoever | workshop
"""
# What a page says of the work on it, not of the software.
HISTORY = r"""
    (?<!make\ )targets? | (?:is|are|was|were|both|not|:)\ \*{0,2}met | \*\*met | missed
    | no\ longer | (?:of|than|seconds|as)\ before | before:
    | (?:in|of)\ an\ earlier\ run | we\ tried | tried | until\ now | used\ to\ be | aimed\ at
    | once\ was | has\ since | since\ then | nowadays | in\ the\ past
"""


def prose(text: str) -> list[str]:
    """Return the paragraphs and list items of a page, without code, tables, headings, pictures."""
    text = MODULES.sub("", text)
    text = re.sub(r"^( *)```.*?^\1```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.DOTALL)
    text = re.sub(r"``.+?``|`[^`]+`", "code", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        bare = line.strip()
        code = line.startswith("    ") and not parts[-1]
        if not bare or code or bare.startswith(("#", "|", ">>>")):
            parts.append([])
        elif re.match(r"(?:[-*]|\d+\.) ", bare):
            parts.append([re.sub(r"^(?:[-*]|\d+\.) +", "", bare)])
        else:
            parts[-1].append(bare)
    return [" ".join(part) for part in parts if part]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page; a colon or a semicolon ends none."""
    found = []
    for part in prose(text):
        part = re.sub(r"\b(?:et al|e\.g|i\.e|vs|cf|Dr)\.", lambda word: word[0][:-1], part)
        found += re.split(
            r"(?<=[.!?])[\"')*]*\s+(?=[^a-z\s])|(?<=[.!?])\s+(?=(?:code|comorb)\b)", part
        )
    return [one for one in found if re.search(r"\w", one)]


def n_words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def matches(pattern: str, text: str) -> list[str]:
    """Return the words of a pattern in the prose and the tables of a page, code left out."""
    text = MODULES.sub("", text)
    text = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]+`|\]\([^)]*\)", " code ", text)
    text = re.sub(r"\s+", " ", text)
    return [
        text[max(0, found.start() - 30) : found.end() + 30]
        for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, re.IGNORECASE | re.X)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_are_short(page):
    found = sentences(page.read_text("utf-8"))
    long = [f"{n_words(one)}: {one}" for one in found if n_words(one) > MAX_WORDS]
    assert not long, "\n".join(long)
    assert mean(map(n_words, found)) <= MAX_MEAN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_words_are_those_of_the_field(page):
    assert not matches(WORDS, page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_no_history(page):
    assert not matches(HISTORY, page.read_text("utf-8"))


def test_a_long_sentence_is_found():
    text = "# A heading\n\nOne is short. " + "Word " * 41 + "ends.\n\n| a | table |\n\n- `a b`, c\n"
    assert [n_words(one) for one in sentences(text)] == [3, 42, 2]


def test_a_span_of_code_is_one_word_and_a_block_is_none():
    text = "See [the long page](a.md), `comorb fit -o run`.\n\n```sh\nnot this\n```\nNext one.\n"
    assert [n_words(one) for one in sentences(text)] == [5, 2]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (WORDS, "No count below 11 is told."),
        (WORDS, "| a start | the second heat |"),
        (HISTORY, "| speed | 2× | target 1× |"),
        (HISTORY, "Within 0.01 of the truth: **met**."),
        (HISTORY, "It was 3 s, faster than before."),
    ],
)
def test_a_word_that_must_not_be_there_is_found(pattern, text):
    assert matches(pattern, text)
    assert not matches(pattern, "`told` and\n\n```sh\ntarget heat before:\n```\n")
