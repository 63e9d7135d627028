"""The tree of a choice: groups that split in two, each with a name and whether the split holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from comorb.insight.profile.labels import automatic_names, label
from comorb.insight.profile.profile import FLOOR, NAMING
from comorb.insight.profile.relevance import relevance
from comorb.model.choose import Choice
from comorb.model.mixture import Mixture

RANKED = 30  # codes of a group that its name is chosen from


@dataclass(frozen=True)
class Split:
    """One of ``groups`` groups that is two groups where there is one more."""

    groups: int
    name: str
    reliability: float  # its mean overlap with its match in parts of the records
    into: tuple[str, str]
    reliably: bool  # whether both come out again


def splits(choice: Choice, codes: Sequence[str], names: Sequence[str], system: str) -> list[Split]:
    """Return how groups split, from one group on, as far as both numbers were looked at.

    Groups are named by their most relevant codes, no two of a number alike.
    """
    labels = [label(code, name, system) for code, name in zip(codes, names, strict=True)]
    named = {k: _names(model, codes, labels, system) for k, model in choice.levels.items()}
    return [
        Split(
            merge.left,
            named[merge.left][merge.first],
            merge.reliability,
            (named[merge.left + 1][merge.first], named[merge.left + 1][merge.second]),
            merge.splits_reliably,
        )
        for merge in sorted(choice.tree, key=lambda merge: merge.left)
        if {merge.left, merge.left + 1} <= set(named)
    ]


def tree_document(
    choice: Choice, codes: Sequence[str], names: Sequence[str], system: str
) -> dict[str, Any]:
    """Return the tree as plain values: the groups of each level, and which of them splits how.

    ``finer`` is the number with the most evidence, which may come out less reliably.
    """
    labels = [label(code, name, system) for code, name in zip(codes, names, strict=True)]
    last = 1
    while last + 1 in choice.levels:
        last += 1
    models = {k: choice.levels[k] for k in range(1, last + 1) if k in choice.levels}
    named = {k: _names(model, codes, labels, system) for k, model in models.items()}
    return {
        "best": choice.best,
        "finer": max((row.evidence, row.k) for row in choice.rows)[1],
        "levels": [
            [
                {"name": name, "share": round(share, 4)}
                for name, share in zip(named[k], model.weights.tolist(), strict=True)
            ]
            for k, model in models.items()
        ],
        "splits": [
            {"first": merge.first, "second": merge.second, "reliably": merge.splits_reliably}
            for merge in sorted(choice.tree, key=lambda merge: merge.left)
            if merge.left < last
        ],
    }


def _names(
    model: Mixture, codes: Sequence[str], labels: Sequence[str], system: str
) -> tuple[str, ...]:
    scores = relevance(model.means, model.weights @ model.means, NAMING)
    everyone = model.means.min(axis=0) > 1 - FLOOR
    scores[(model.means < FLOOR) | everyone] = -np.inf
    able = np.isfinite(scores).sum(axis=1)
    orders = np.argsort(-scores, axis=1, kind="stable")
    ranked = {j + 1: orders[j, : min(able[j], RANKED)].tolist() for j in range(len(orders))}
    return automatic_names(ranked, codes, labels, system)
