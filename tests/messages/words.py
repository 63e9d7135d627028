"""A word list: texts in Spanish or Catalan that hold an English word are told."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Words of English sentences that are no words of Spanish or Catalan.
_WORDS = """
    the of and or with is are was were be been its this that these those which who what when where
    there here not but by for from to into than then them they their you your we our have having
    had does did may must should would if each every other others another again more most less
    fewer least only all both between within without beside records record rows row columns
    column codes values value table cluster clusters group groups found expected give given name
    leave choose read written write because so after before out
"""
ENGLISH = frozenset(_WORDS.split())
_QUOTED = re.compile(
    r"(?<!\w)'[^']*'(?!\w)|`[^`]*`|\"[^\"]*\"|\([a-z_]+=[^)]*\)|\S*[_=/:.]\w\S*|--\w+( \w+)?"
)


def english_words(text: str, allowed: Iterable[str] = ()) -> list[str]:
    """Return the English words of a text, outside quotes, paths, options and allowed names."""
    for name in sorted(allowed, key=len, reverse=True):
        text = text.replace(name, " ")
    found = re.findall(r"[^\W\d_]+(?:'\w+)?", _QUOTED.sub(" ", text))
    return [word for word in found if word.lower() in ENGLISH and not word.isupper()]
