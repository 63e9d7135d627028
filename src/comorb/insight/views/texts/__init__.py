"""Texts: every word of the page and of the explorer, in a file for each language.

A file holds the name of its language, the texts of the page, which a report takes along, and
those of the explorer around it, and those of what is printed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from comorb.errors import InputError


@lru_cache(maxsize=1)
def languages() -> dict[str, str]:
    """Return the code of each language with its name; English comes first."""
    names = [file.name for file in resources.files(__name__).iterdir()]
    codes = {name.removesuffix(".json") for name in names if name.endswith(".json")} - {"en"}
    return {code: _file(code)["language"] for code in ("en", *sorted(codes))}


def check_language(language: str) -> None:
    """Refuse a language that there are no texts of."""
    if language not in languages():
        known = ", ".join(languages())
        raise InputError(f"expected one of the languages {known}, got {language!r}")


def page_texts(language: str) -> dict[str, str]:
    """Return the texts of the page by their keys."""
    texts: dict[str, str] = _file(language)["page"]
    return texts


def explorer_texts(language: str) -> dict[str, str]:
    """Return the texts of the explorer by their keys, with those of the page."""
    return {**page_texts(language), **_file(language)["explorer"]}


@lru_cache
def every_text(language: str) -> dict[str, str]:
    """Return all texts by their keys, with those of the board pack and of charts as files."""
    return {**explorer_texts(language), **_file(language)["print"]}


@lru_cache
def _file(language: str) -> dict[str, Any]:
    text = resources.files(__name__).joinpath(f"{language}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
