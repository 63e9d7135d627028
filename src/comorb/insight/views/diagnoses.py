"""Diagnoses in other languages: chapters and common categories, from the one table of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources

from comorb.insight.profile.profile import Profile
from comorb.records.codes.systems import systems_by_kind

LANGUAGES = ("es", "ca")  # of the table; English is the names of the codes


def diagnosis(code: str, label: str, system: str, language: str) -> str:
    """Return what a code is called in a language; one that isn't in the table keeps its label.

    >>> diagnosis("428", "Heart failure", "icd9cm", "es")
    'Insuficiencia cardíaca'
    """
    said, _, plain = code.rpartition(":")
    for key in [said] if said else systems_by_kind(system).get("", "").split("+"):
        name = _table(language).get((key.removesuffix("cm"), plain))
        if name:
            return name
    return label


def in_languages(code: str, system: str) -> dict[str, str]:
    """Return the names of a code in each language that the table has it in."""
    named = {language: diagnosis(code, "", system, language) for language in LANGUAGES}
    return {language: name for language, name in named.items() if name}


def translated(profile: Profile, language: str) -> Profile:
    """Return a profile with its diagnoses, and names made of them, in a language.

    A name stays as it is where a person gave it, or where one of its diagnoses isn't in the table.
    """
    if not _table(language):
        return profile
    own, system = profile.n_codes, profile.source.system
    named = [diagnosis(code, "", system, language) for code in profile.codes[:own]]
    named += [""] * (len(profile.codes) - own)
    both = list(zip(profile.labels, named, strict=True))
    labels = tuple(name or label for label, name in both)
    known = {label.lower(): name for label, name in both if name}
    names = [_name(cluster.name, known) or cluster.name for cluster in profile.clusters]
    clusters = tuple(
        replace(cluster, name=name) for cluster, name in zip(profile.clusters, names, strict=True)
    )
    return replace(profile, labels=labels, clusters=clusters)


def _name(name: str, known: dict[str, str]) -> str:
    """Return a name that is made of known labels in their language, else nothing."""
    parts = name.split(", ")
    for taken in range(1, len(parts) + 1):
        first, rest = ", ".join(parts[:taken]), ", ".join(parts[taken:])
        if first.lower() not in known:
            continue
        label = known[first.lower()]
        if not rest:
            return label
        other = _name(rest, known)
        if other:
            return f"{label}, {_small(other)}"
    return ""


def _small(text: str) -> str:
    """Return a text that begins with a small letter, unless with an acronym."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


@lru_cache
def _table(language: str) -> dict[tuple[str, str], str]:
    rows = table_rows()
    return {(row["system"], row["code"]): row[language] for row in rows if language in row}


def table_rows() -> Sequence[dict[str, str]]:
    """Return the rows of the table: system, code, and its name in each language."""
    table = resources.files("comorb.insight.views").joinpath("diagnoses.csv")
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
