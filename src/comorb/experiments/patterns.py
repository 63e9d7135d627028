"""The clusters of the paper's two tables, and which of ours look like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOOKED_AT = 15  # the most relevant codes of one of our clusters


@dataclass(frozen=True)
class Pattern:
    """A row of the paper's tables: what the text calls it, its size, its relevant categories.

    Without one of the ``marks`` its name would be wrong.
    """

    name: str
    size: int
    codes: tuple[str, ...]
    marks: tuple[str, ...]


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "heart failure": (
        Pattern("purely metabolic", 7290, ("401", "272", "427", "250", "278"), ("272",)),
        Pattern(
            "metabolic with kidney problems",
            2915,
            ("250", "440", "415", "362", "404"),
            ("362", "404", "440"),
        ),
        Pattern(
            "valves and pulmonary hypertension",
            4480,
            ("416", "397", "424", "402", "427"),
            ("397", "424"),
        ),
        Pattern(
            "kidneys, lungs and infection",
            2936,
            ("041", "599", "584", "404", "276", "518"),
            ("041", "599", "518"),
        ),
        Pattern(
            "purely kidney, with diabetes",
            5533,
            ("403", "585", "584", "250", "285"),
            ("403", "585"),
        ),
    ),
    "tertiary": (
        Pattern("coronary intervention", 4892, ("411", "401", "413", "272", "414"), ("411", "413")),
        Pattern("myocardial infarction", 3982, ("410", "414", "305", "401", "272"), ("410",)),
        Pattern(
            "kidneys with coronary disease",
            1043,
            ("403", "585", "414", "250", "410"),
            ("403", "585"),
        ),
        Pattern("cancer", 3133, ("154", "197", "162", "151", "288"), ("154", "197", "162", "151")),
        Pattern(
            "kidneys without coronary disease", 819, ("585", "403", "279", "285", "599"), ("279",)
        ),
        Pattern("valves", 2442, ("397", "416", "428", "424", "518"), ("397", "424")),
    ),
}


@dataclass(frozen=True)
class Likeness:
    """One of the paper's clusters beside the one of ours that is most like it."""

    pattern: Pattern
    cluster: int
    shared: tuple[str, ...]

    @property
    def marked(self) -> bool:
        """Whether our cluster has a category that the pattern can't be named without."""
        return any(code in self.pattern.marks for code in self.shared)

    @property
    def verdict(self) -> str:
        """Whether the pattern appears: a mark and most of its codes, only one of these, none."""
        most = 2 * len(self.shared) > len(self.pattern.codes)
        return ("does not appear", "in part", "appears")[most + self.marked]


def likenesses(study: str, top: Sequence[Sequence[str]]) -> list[Likeness]:
    """Return our cluster most like each of the paper's, given each cluster's relevant codes."""
    return [
        max(
            (
                Likeness(pattern, j, tuple(code for code in pattern.codes if code in own))
                for j, own in enumerate(top)
            ),
            key=lambda one: (one.marked, len(one.shared)),
        )
        for pattern in PATTERNS[study]
    ]


def verdicts(found: Sequence[Likeness]) -> list[str]:
    """Return the verdict on each pattern, saying which ones share a cluster of ours."""
    result = []
    for one in found:
        others = [
            f"'{other.pattern.name}'"
            for other in found
            if other is not one and other.cluster == one.cluster and other.verdict == "appears"
        ]
        merged = others and one.verdict == "appears"
        result.append(f"appears, in one with {' and '.join(others)}" if merged else one.verdict)
    return result


def summed_up(found: Sequence[Likeness]) -> str:
    """Return one sentence on all patterns, such as "appears: 'valves'; in part: 'cancer'"."""
    groups: dict[str, list[str]] = {}
    for one, verdict in zip(found, verdicts(found), strict=True):
        groups.setdefault(verdict, []).append(f"'{one.pattern.name}'")
    return "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in sorted(groups.items()))
