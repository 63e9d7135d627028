"""The report: one profile as one HTML file that opens from disk and loads nothing else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources

from comorb.profiles.profile import Profile
from comorb.views.findings import page_json
from comorb.views.words import check_language, page_texts

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function |const )", re.MULTILINE)


def report(profile: Profile, language: str = "en") -> str:
    """Return a profile as one self-contained HTML file.

    Parameters
    ----------
    profile : Profile
        The clusters; a protected profile where counts of few must not be seen.
    language : str, default="en"
        The language of texts, numbers and common diagnoses: en, es or ca.

    Returns
    -------
    str
        The same page as the explorer's, with style, script and profile inside.
    """
    check_language(language)
    texts = page_texts(language)
    parts = {
        "language": language,
        "title": html.escape(profile.source.title),
        "noscript": html.escape(texts["noscript"]),
        "style": asset("style.css"),
        "texts": _embedded(json.dumps({language: texts}, ensure_ascii=False)),
        "palette": _embedded(asset("palette.json")),
        "profile": _embedded(page_json(profile, language)),
        "script": script(),
    }
    return re.sub(r"\[\[(\w+)\]\]", lambda mark: parts[mark[1]], asset("template.html"))


@lru_cache(maxsize=1)
def script() -> str:
    """Return the page's modules as one, each after those that it imports.

    They are served one by one by the explorer; here their imports and the word ``export`` are
    taken out, so no two of them may give the same name to something of their own.
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in _modules("report.js", []))


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files("comorb.views").joinpath("page", name).read_text(encoding="utf-8")


def _modules(name: str, seen: list[str]) -> Iterator[str]:
    seen.append(name)
    text = asset(name)
    for needed in _IMPORT.findall(text):
        if needed not in seen:
            yield from _modules(needed, seen)
    yield text


def _embedded(text: str) -> str:
    """Return JSON that can't end the element it stands in: '<' only occurs inside strings."""
    return text.replace("<", "\\u003c")
