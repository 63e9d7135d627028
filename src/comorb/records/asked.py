"""Asked: the columns that are to be features, as people ask for them, in words that read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from comorb.errors import RecordsError
from comorb.model.features import Feature, Kind, Transform

KINDS: tuple[Kind, ...] = get_args(Kind)
TRANSFORMS: tuple[Transform, ...] = get_args(Transform)


@dataclass(frozen=True)
class Asked:
    """A covariate that is to be a feature; its kind is recognised where none is said.

    With ``told`` it was asked for by name; an item of a table may also be left out.
    """

    name: str
    kind: Kind | None = None
    transform: Transform = "none"
    told: bool = True

    @classmethod
    def parse(cls, text: str) -> Asked:
        """Return what NAME, NAME=KIND or NAME=number:TRANSFORM asks for.

        >>> Asked.parse("los=number:log")
        Asked(name='los', kind='number', transform='log', told=True)
        """
        name, sign, rest = text.rpartition("=")
        if not sign:
            return cls(text)
        kind, _, way = rest.partition(":")
        kinds = [one for one in KINDS if one == kind]
        ways = [one for one in TRANSFORMS if one == (way or "none")]
        if not (name and kinds and ways) or (way and kind != "number"):
            raise RecordsError(
                f"Expected a feature as NAME, NAME=KIND with a kind out of {', '.join(KINDS)}, or "
                f"NAME=number:log or NAME=number:rank; got {text!r}."
            )
        return cls(name, kinds[0], ways[0])


AnyAsked = Asked | Feature


def as_asked(features: Mapping[str, str] | Sequence[str] | str) -> tuple[Asked, ...]:
    """Return what ``{"age": "number"}``, ``["age", "los=number:log"]`` or ``"age"`` asks for."""
    if isinstance(features, str):
        features = [features]
    if isinstance(features, Mapping):
        features = [f"{name}={kind}" for name, kind in features.items()]
    return tuple(map(Asked.parse, features))


def written(asked: AnyAsked) -> str:
    """Return the word that asks for a feature on the command line."""
    kind = f"={asked.kind}" if asked.kind else ""
    return f"{asked.name}{kind}" + (f":{asked.transform}" if asked.transform != "none" else "")
