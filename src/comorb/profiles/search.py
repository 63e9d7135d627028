"""Search: what a person types of a patient, in codes or in words, as codes of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from comorb.records.codes.search import (
    everyday_words,
    find_codes,
    fold_text,
    is_pattern,
    split_list,
)

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

MAX_CHOICES = 8  # codes that are offered for one word


@dataclass(frozen=True)
class CodeQuery:
    """What was typed, as the profile knows it.

    ``given`` are codes and values such as age=82; ``choices`` has, for each text that may mean
    several codes, the places of these in the profile, the most common first.
    """

    given: tuple[str, ...]
    choices: tuple[tuple[str, tuple[int, ...]], ...] = ()


def resolve_codes(profile: Profile, texts: Sequence[str]) -> CodeQuery:
    """Return the codes that texts mean, such as '428', 'heart failure', 'CHF' or 'V*'.

    A text that means one code is that code, one that means several is to be chosen from; what is
    not known stays as it is.
    """
    codes = profile.codes[: profile.n_codes]
    words = everyday_words(codes, profile.names[: profile.n_codes], profile.source.system)
    given: list[str] = []
    choices: list[tuple[str, tuple[int, ...]]] = []
    for text in (part for whole in texts for part in split_list(whole)):
        tokens = text.replace(" =", "=").replace("= ", "=").split()
        coded = all(any(sign.isdigit() or sign == "=" for sign in token) for token in tokens)
        if coded and not is_pattern(text):
            given += tokens
            continue
        found = [] if "=" in text else _matching_codes(profile, codes, words, text)
        if len(found) == 1:
            given.append(codes[found[0]])
        elif found:
            choices.append((text, tuple(found[:MAX_CHOICES])))
        else:
            given.append(text)
    return CodeQuery(tuple(given), tuple(choices))


def _matching_codes(
    profile: Profile, codes: Sequence[str], words: Sequence[tuple[str, ...]], text: str
) -> list[int]:
    """Return the places of the codes that a text means, the most common first."""
    sought = fold_text(text)
    labels = [fold_text(one) for one in profile.labels[: len(codes)]]
    titles = [
        fold_text(f"{label} {name}") for label, name in zip(labels, profile.names, strict=False)
    ]
    every = range(len(codes))
    found = (
        find_codes(text, codes, [False] * len(codes))
        or [i for i in every if labels[i] == sought]
        or [i for i in every if sought in words[i]]
        or [i for i in every if all(word in titles[i] for word in sought.split())]
    )
    common = np.nan_to_num(profile.overall)
    return sorted(found, key=lambda i: (-common[i], i))
