"""The clusters of the paper's two tables, and which of ours resemble them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOOKED_AT = 15  # the most relevant codes of one of our clusters


@dataclass(frozen=True)
class PublishedCluster:
    """A row of the paper's tables: name in the text, size, relevant categories.

    ``marks`` are the categories of which a cluster must have one to deserve the name.
    """

    name: str
    size: int
    codes: tuple[str, ...]
    marks: tuple[str, ...]


_TABLES = {
    "heart failure": (
        ("purely metabolic", 7290, "401 272 427 250 278", "272"),
        ("metabolic with kidney problems", 2915, "250 440 415 362 404", "362 404 440"),
        ("valves and pulmonary hypertension", 4480, "416 397 424 402 427", "397 424"),
        ("kidneys, lungs and infection", 2936, "041 599 584 404 276 518", "041 599 518"),
        ("purely kidney, with diabetes", 5533, "403 585 584 250 285", "403 585"),
    ),
    "tertiary": (
        ("coronary intervention", 4892, "411 401 413 272 414", "411 413"),
        ("myocardial infarction", 3982, "410 414 305 401 272", "410"),
        ("kidneys with coronary disease", 1043, "403 585 414 250 410", "403 585"),
        ("cancer", 3133, "154 197 162 151 288", "154 197 162 151"),
        ("kidneys without coronary disease", 819, "585 403 279 285 599", "279"),
        ("valves", 2442, "397 416 428 424 518", "397 424"),
    ),
}
PUBLISHED = {
    study: tuple(
        PublishedCluster(name, size, tuple(codes.split()), tuple(marks.split()))
        for name, size, codes, marks in table
    )
    for study, table in _TABLES.items()
}


@dataclass(frozen=True)
class Likeness:
    """One of the paper's clusters, and the cluster of ours that resembles it most."""

    published: PublishedCluster
    cluster: int
    shared: tuple[str, ...]

    @property
    def marked(self) -> bool:
        """Whether our cluster has one of the marks."""
        return any(code in self.published.marks for code in self.shared)

    @property
    def verdict(self) -> str:
        """Whether our cluster has a mark and most of the codes, one of the two, or neither."""
        most = 2 * len(self.shared) > len(self.published.codes)
        return ("does not appear", "in part", "appears")[most + self.marked]


def likenesses(study: str, top: Sequence[Sequence[str]]) -> list[Likeness]:
    """Return, for each of the paper's clusters, the one of ours that resembles it most.

    ``top`` holds the relevant codes of each of ours.
    """
    return [
        max(
            (
                Likeness(published, j, tuple(code for code in published.codes if code in codes))
                for j, codes in enumerate(top)
            ),
            key=lambda likeness: (likeness.marked, len(likeness.shared)),
        )
        for published in PUBLISHED[study]
    ]


def verdicts(compared: Sequence[Likeness]) -> list[str]:
    """Return the verdict on each of the paper's clusters, and which share a cluster of ours."""
    result = []
    for one in compared:
        others = [
            f"'{other.published.name}'"
            for other in compared
            if other is not one and other.cluster == one.cluster and other.verdict == "appears"
        ]
        merged = others and one.verdict == "appears"
        result.append(f"appears, in one with {' and '.join(others)}" if merged else one.verdict)
    return result


def summed_up(compared: Sequence[Likeness]) -> str:
    """Return one sentence on all, such as "appears: 'valves'; in part: 'cancer'"."""
    groups: dict[str, list[str]] = {}
    for one, verdict in zip(compared, verdicts(compared), strict=True):
        groups.setdefault(verdict, []).append(f"'{one.published.name}'")
    return "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in sorted(groups.items()))
