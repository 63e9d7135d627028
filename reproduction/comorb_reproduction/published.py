"""The clusters of the paper's two tables, and which of ours resemble them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

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


def published_clusters(study: str) -> list[PublishedCluster]:
    """Return the clusters of the paper's table on a study: heart failure, or tertiary."""
    text = resources.files("comorb_reproduction").joinpath("published.csv").read_text("utf-8")
    return [
        PublishedCluster(
            row["name"], int(row["size"]), tuple(row["codes"].split()), tuple(row["marks"].split())
        )
        for row in csv.DictReader(text.splitlines())
        if row["study"] == study
    ]


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
        for published in published_clusters(study)
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
