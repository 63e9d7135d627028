"""Labels: short names of codes and of clusters, and the relevance of codes that names use."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.records.codes.systems import SYSTEMS, systems_by_kind

_BRACKETS = re.compile(r"\s*[\(\[][^\)\]]*[\)\]]")
_TAIL = re.compile(
    r",? (not elsewhere classified|organism unspecified|site unspecified|unspecified|NEC|NOS"
    r"|and allied disorders|(in|due to) conditions classified elsewhere.*"
    r"|without mention of .*)$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^(other and unspecified|other and ill-defined|other specified|other and|other forms of"
    r"|other|certain|unspecified|encounter for) ",
    re.IGNORECASE,
)
_COMMON_WORDS = {"chronic", "acute", "disease", "diseases", "disorder", "disorders", "other"}
_COMMON_WORDS |= {"failure"}
_LINKS = {"of", "and", "or", "in", "the", "with"}  # words that no shortened text ends with


def label(code: str, name: str, system: str) -> str:
    """Return what a clinician would call a code: an everyday name, or its title made plain.

    >>> label("414", "Other forms of chronic ischemic heart disease", "icd9cm")
    'Ischemic heart disease'
    >>> label("733", "Other disorders of bone and cartilage", "icd9cm")
    'Disorders of bone and cartilage'
    """
    own = systems_by_kind(system).get("", "")
    everyday = _load_everyday_names().get((own.removesuffix("cm"), code))
    if everyday:
        return everyday
    text = _BRACKETS.sub("", name).strip()
    while (shorter := _HEAD.sub("", _TAIL.sub("", text))) != text and shorter:
        text = shorter
    return (text[:1].upper() + text[1:]) or code


def shorten(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters, cut between words and marked with '…'.

    A first word that is longer than the width stays whole.

    >>> shorten("Disorders of lipoid metabolism", 20)
    'Disorders of lipoid…'
    """
    if len(text) <= width:
        return text
    words = text.split()
    kept = words[:1]
    for word in words[1:]:
        if len(" ".join([*kept, word])) > width - 1:
            break
        kept.append(word)
    while len(kept) > 1 and kept[-1].lower().strip(",") in _LINKS:
        kept.pop()
    return " ".join(kept).rstrip(",;") + "…"


def automatic_names(
    ranked: Mapping[int, Sequence[int]],
    codes: Sequence[str],
    labels: Sequence[str],
    system: str,
    indicators: Sequence[str] = (),
) -> tuple[str, ...]:
    """Name each cluster after its two most relevant diseases, and no two alike.

    ``ranked`` has the codes of each cluster, by its number, from the most relevant on. Symptoms,
    statuses, codes of other kinds, such as drugs, and then indicators of features are used when a
    cluster has too few diseases. One that repeats a word of the first, such as kidney, is skipped.
    """
    names: list[str] = []
    for number, order in ranked.items():
        own = [i for i in order if codes[i] not in indicators]
        diseases = [i for i in own if not _is_circumstance(codes[i], system)]
        others = [i for i in own if i not in diseases]
        queue = [labels[i] for i in [*diseases, *others, *(i for i in order if i not in own)]]
        picks: list[str] = []
        for text in queue:
            if len(picks) >= 2 and _join_labels(picks) not in names:
                break
            if not any(_distinctive_words(text) & _distinctive_words(pick) for pick in picks):
                picks.append(text)
        name = _join_labels(picks) or f"Cluster {number}"
        names.append(name if name not in names else f"{name} ({number})")
    return tuple(names)


def _is_circumstance(code: str, system: str) -> bool:
    """Return whether a code is a symptom, status or external cause, or no diagnosis at all.

    A code may name its kind or its coding system itself.
    """
    kinds = systems_by_kind(system)
    if code.partition(":")[0] in kinds:
        return True
    named, _, plain = code.rpartition(":")
    keys = [named] if named else kinds.get("", "").split("+")
    patterns = [SYSTEMS[key].not_diseases for key in keys if key in SYSTEMS]
    return any(pattern is not None and pattern.match(plain) for pattern in patterns)


def _join_labels(picks: Sequence[str]) -> str:
    """Return the labels in one line; the others begin with a small letter, unless acronyms."""
    others = (
        text if any(map(str.isupper, text[1:].partition(" ")[0])) else text[:1].lower() + text[1:]
        for text in picks[1:]
    )
    return ", ".join([*picks[:1], *others])


def _distinctive_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{5,}", text.lower())) - _COMMON_WORDS


@lru_cache(maxsize=1)
def _load_everyday_names() -> dict[tuple[str, str], str]:
    table = resources.files("comorb.profiles").joinpath("everyday_names.csv")
    return {
        (row["system"], row["code"]): row["name"]
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    }


DEFAULT_LAMBDA = 0.6
TINY = 1e-12


def relevance(means: Floats, expected: Floats, lam: float = DEFAULT_LAMBDA) -> Floats:
    """Return r(i, j) of paper section 5, after Sievert and Shirley's LDAvis, (k, d).

    λ·log μᵢⱼ + (1 − λ)·log(μᵢⱼ / Σₕ μᵢₕ ωₕ), with ``expected`` the sum; NaN where μ is suppressed.
    λ is 0 for the most specific codes first, 1 for the most frequent.
    >>> relevance(np.array([[0.5], [0.1]]), np.array([0.3]), 1.0).round(3).tolist()
    [[-0.693], [-2.303]]
    """
    if not 0 <= lam <= 1:
        raise InputError("profile.lam", lam=lam)
    logs = np.log(np.maximum(means, TINY))
    return logs - (1 - lam) * np.log(np.maximum(expected, TINY))
