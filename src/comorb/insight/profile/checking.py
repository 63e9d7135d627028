"""Checking: how far the model of the clusters can be trusted, measured over all records."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from comorb.insight.profile.contents import Caveats, Pair
from comorb.model.arrays import Floats
from comorb.model.balance import balance
from comorb.model.blocks import Blocks
from comorb.model.confidence import intervals, residuals
from comorb.model.lengths import lengths
from comorb.model.mixture import Mixture
from comorb.model.moments import DENSE_COLUMNS, moments
from comorb.model.tempering import temperature

PAIRS, SURELY = 8, 5.0  # pairs of codes that are told at most, and the least residual of each
LOOKED_AT = 200


@dataclass(frozen=True, eq=False)
class Check:
    """What a model leaves unexplained, and how well its means are known."""

    caveats: Caveats
    low: Floats  # (k, d): the ends of the 95% interval of each mean
    high: Floats
    lengths: Floats  # (k,): the mean number of codes in a record of each cluster
    of_length: Floats  # (k,): how much of what sets the cluster apart is that number
    influence: tuple[float, ...] = ()  # the share of each feature in what sets clusters apart


def check_model(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Check:
    """Return what is to be said with the clusters of some records; a few passes over them.

    Pairs are told in records, by weight where there are weights; where there are more than 4,096
    codes, none are looked for. Intervals are for Kish's effective number of records.
    """
    found = lengths(model, blocks, executor)
    low, high = intervals(model, blocks, executor=executor, records=found.records)
    worst, share = [], blocks.n_rows / blocks.weight
    if 0 < blocks.n_columns <= DENSE_COLUMNS:
        worst = residuals(model, moments(blocks, executor), LOOKED_AT)
    pairs = [
        Pair(one.first, one.second, round(one.observed * share), round(one.expected * share, 1))
        for one in worst
        if one.z >= SURELY
    ]
    caveats = Caveats(
        temperature=round(temperature(model, blocks, executor), 6),
        length=round(found.overall, 3) if blocks.n_columns else None,
        explained_by_length=round(found.explained, 6) if blocks.n_columns else None,
        pairs=tuple(pairs[:PAIRS]),
    )
    influence = balance(model, blocks, executor)[1] if model.variables else ()
    return Check(caveats, low, high, found.means, found.of_profile, influence)
