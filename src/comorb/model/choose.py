"""How many clusters: the way down from many to one, and what each number is worth."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from comorb.errors import InputError
from comorb.model.agreement import adjusted_rand
from comorb.model.blocks import Blocks, map_blocks, map_tasks, taken
from comorb.model.descent import (
    FIRST_STRENGTH,
    Stage,
    overcomplete,
    settle,
    way_down,
    whitened_slices,
)
from comorb.model.em import Expected, Stopping, em, expect
from comorb.model.kernels import Ints
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prior import Prior, evidence, learn_strength
from comorb.model.start import ROWS, ROWS_A_CLUSTER
from comorb.model.thinning import chances, thinned
from comorb.model.threads import single_threaded

MOST = 20  # clusters, unless asked for more
STEADY = 0.8  # the least agreement of fits on overlapping parts for a k to be recommended
AT_EACH = Stopping(tol=1e-5, max_iter=40)


@dataclass(frozen=True)
class Row:
    """What one number of clusters is worth; nats and entropies are per record.

    ``evidence`` is the criterion of the choice: more is better. ``bic`` and ``icl``: less is
    better. ``held_out`` is the log-likelihood of records left out of the fit, ``stability`` the
    mean agreement (ARI) of fits on overlapping parts, ``smallest`` the records in the smallest
    cluster.
    """

    k: int
    evidence: float
    bic: float
    icl: float
    held_out: float
    stability: float
    smallest: float


@dataclass(frozen=True)
class Merge:
    """Two clusters of the level above became one: their places there, and the number left."""

    first: int
    second: int
    left: int


@dataclass(frozen=True)
class Choice:
    """The sweep over k, the number it recommends, why, and the tree of merges below it."""

    rows: tuple[Row, ...]
    best: int
    reason: str
    models: dict[int, Mixture]
    tree: tuple[Merge, ...]


@dataclass(frozen=True)
class Level:
    """One level of a way down, settled by EM."""

    model: Mixture
    expected: Expected
    evidence: float
    merged: tuple[int, int] | None


@single_threaded
def choose(
    blocks: Blocks, ks: Sequence[int] | None = None, executor: Executor | None = None
) -> Choice:
    """Return what each k in ``ks`` (1 to 20) is worth, and which one is recommended.

    It is the k with the most evidence among those whose clusters come out again, with a
    stability of ``STEADY`` or more: real records have no true k, and evidence alone would split
    them further and further into groups that another sample would not show.

    One way down over all rows gives the models and the tree. Three more, each without a third of
    the rows, give the likelihood of the third left out, and the stability: the mean agreement of
    two of them on the third that both have. Thirds are drawn by ``thinning.chances``, so that the
    order of the rows changes nothing.
    """
    wanted = _checked(ks, blocks)
    first = prevalence(blocks, executor)
    most = max(wanted)
    small = thinned(blocks, first, max(ROWS, ROWS_A_CLUSTER * most), executor)
    parts = np.floor(chances(small, first, executor) * 3)
    thirds = [taken(small, np.flatnonzero(parts == third)) for third in range(3)]
    kept = [taken(small, np.flatnonzero(parts != third)) for third in range(3)]
    whole, *fitted = map_tasks(partial(descend, most=most), [small, *kept], executor)
    sides = list(zip(fitted, thirds, strict=True))
    wanted = [k for k in wanted if k in whole] or [max(whole)]

    def row(k: int) -> Row:
        return _row(k, whole, sides, small)

    rows = tuple(map_tasks(row, wanted, executor))
    steady = [row for row in rows if row.stability >= STEADY] or [rows[0]]
    best = max(steady, key=lambda row: row.evidence)
    tree = tuple(
        Merge(*level.merged, k) for k, level in sorted(whole.items(), reverse=True) if level.merged
    )
    models = {row.k: whole[row.k].model for row in rows}
    return Choice(rows, best.k, reason(rows, best), models, tree)


def descend(blocks: Blocks, most: int) -> dict[int, Level]:
    """Return a settled model for every number of clusters from ``most`` down to 1.

    From twice as many, by joint diagonalisation; below ``most`` each level is settled by EM
    before the next pair is merged.
    """
    found = moments(blocks)
    count = min(2 * most, blocks.n_columns, blocks.n_rows)
    slices = whitened_slices(blocks, found, count, None)
    prior = Prior.around(found.first, FIRST_STRENGTH, blocks.weight)
    stage = settle(blocks, overcomplete(slices, found, count), prior, None)
    for below in way_down(blocks, stage, min(most, stage.model.n_components), prior, None):
        stage = below
    levels: dict[int, Level] = {}
    while True:
        result = em(blocks, stage.model, prior, AT_EACH)
        strength = learn_strength(result.expected.sums, found.first, blocks.weight)
        learned = Prior.around(found.first, strength, blocks.weight)
        value = evidence(result.model, result.expected.sums, result.log_likelihood, learned)
        k = result.model.n_components
        merged = stage.merged if k < most else None
        levels[k] = Level(result.model, result.expected, value, merged)
        if k == 1:
            return levels
        settled = Stage(result.model, result.expected, None)
        *_, stage = way_down(blocks, settled, k - 1, prior, None)


def reason(rows: Sequence[Row], best: Row) -> str:
    """Return a sentence that a manager can read on why this number was recommended."""
    if best.k == 1:
        return (
            "One group is recommended: the data show no groups of records that differ in their "
            "codes beyond chance."
        )
    again = (
        "the groups found in two overlapping parts of the records agree at "
        f"{best.stability:.2f}, where 1 is fully and 0 is by chance"
    )
    if len(rows) == 1:
        return f"{best.k} groups were asked for; {again}."
    if best.stability < STEADY:
        return (
            f"{best.k} groups are the fewest looked at; no number came out again reliably "
            f"({again}; {STEADY:g} is asked for)."
        )
    finer = max(rows, key=lambda row: row.evidence).k
    beyond = (
        f" Finer groups, up to {finer}, describe the records more closely but come out less "
        f"reliably."
        if finer > best.k
        else ""
    )
    return (
        f"{best.k} groups are recommended: of the numbers that come out again reliably ({again}) "
        f"they explain the records best once the complexity of the model is counted.{beyond}"
    )


def _row(
    k: int,
    whole: dict[int, Level],
    sides: list[tuple[dict[int, Level], Blocks]],
    blocks: Blocks,
) -> Row:
    level = whole[k]
    n = blocks.weight
    parameters = k - 1 + k * blocks.n_columns
    bic = -2 * level.expected.log_likelihood + parameters * np.log(n)
    base, logits = level.model.tables()
    sums = level.expected.sums
    entropy = level.expected.log_likelihood - sums[-1] @ base - np.sum(sums[:-1] * logits)
    models = [side[min(k, max(side))].model for side, _ in sides]
    held_out = sum(
        expect(model, tested).log_likelihood
        for model, (_, tested) in zip(models, sides, strict=True)
    ) / sum(tested.weight for _, tested in sides)
    thirds = [third for _, third in sides]
    agreements = [
        adjusted_rand(*(hard_labels(models[other], thirds[both]) for other in others))
        for both, others in enumerate(((1, 2), (0, 2), (0, 1)))
    ]
    return Row(
        k=k,
        evidence=level.evidence / n,
        bic=float(bic) / n,
        icl=float(bic + 2 * entropy) / n,
        held_out=held_out,
        stability=float(np.mean(agreements)),
        smallest=float(sums[-1].min()),
    )


def hard_labels(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Ints:
    """Return the most probable cluster of each row, (n,)."""
    parts = map_blocks(model.posterior, blocks, executor)
    return np.concatenate([posterior.argmax(axis=1) for posterior, _ in parts])


def _checked(ks: Sequence[int] | None, blocks: Blocks) -> list[int]:
    bound = min(blocks.n_rows * 2 // 3, blocks.n_columns)
    if ks is None:
        return list(range(1, max(min(MOST, bound), 1) + 1))
    wanted = sorted({int(k) for k in ks})
    if not wanted or wanted[0] < 1 or wanted[-1] > bound:
        raise InputError(
            f"expected numbers of clusters from 1 to {bound}, for {blocks.n_rows} rows (two "
            f"thirds of which are fitted at a time) and {blocks.n_columns} columns, "
            f"got {list(ks)}"
        )
    return wanted
