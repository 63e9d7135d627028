"""Tables and tree of a choice of the number: latent class fit statistics, groups that split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from comorb import __version__
from comorb.model.diagnostics import intervals, residuals
from comorb.model.lca import bootstrap_test, latent_classes
from comorb.model.mixture import Mixture
from comorb.model.moments import DENSE_COLUMNS, moments
from comorb.model.select_k import Choice, ClassRow
from comorb.profiles.contents import MIN_PREVALENCE, NAMING_LAMBDA
from comorb.profiles.labels import automatic_names, label, relevance
from comorb.profiles.rounded import round_count
from comorb.runs.cohorts import AnyCohort
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.views.sheets import Cell, Sheet

N_PAIRS = 20  # of codes that the classes fit worst


@dataclass(frozen=True, eq=False)
class ClassTables:
    """The choice with its latent classes, the tables of it, and the words for a paper."""

    choice: Choice
    sheets: dict[str, Sheet]
    methods: str


def class_tables(
    choice: Choice,
    cohort: AnyCohort,
    executor: Executor | None = None,
    draws: tuple[int, float] = (0, np.inf),
    *,
    min_cell: int = 0,
    report: Reporter = ignore_progress,
) -> ClassTables:
    """Return the tables of latent class analysis for a choice over a cohort.

    ``draws`` are those of the bootstrap likelihood-ratio test for each number, and the seconds that
    all of them may take.
    With ``min_cell`` numbers of records are rounded, and smaller ones suppressed.
    """
    report(Progress("finding", "Fitting latent classes by maximum likelihood"))
    blocks = cohort.blocks()
    choice, models = latent_classes(choice, blocks, executor)
    if draws[0]:

        def report_draw(k: int, done: int, of: int) -> None:
            text = f"Testing {k} classes against {k - 1}: draw {done} of {of}"
            report(Progress("repeating", text))

        choice = bootstrap_test(choice, models, *draws, report_draw)
    model = models[choice.best]
    sheets: dict[str, Sheet] = {
        "fit": _fit(choice.classes, min_cell),
        "classes": _classes(choice.classes, min_cell),
        "codes": _codes(model, cohort, executor, min_cell),
    }
    if model.variables:
        sheets["features"] = _features(model, blocks.weight, min_cell)
    if blocks.n_columns <= DENSE_COLUMNS:
        sheets["residuals"] = _residuals(model, cohort, executor, min_cell)
    kind = "indicators" if model.variables else "binary indicators"
    indicators = f"{blocks.n_columns + len(model.variables):,} {kind}"
    return ClassTables(choice, sheets, methods_text(choice, indicators, min_cell))


def _count(value: float, min_cell: int) -> Cell:
    return round_count(round(value), min_cell) if min_cell else round(value, 3)


def _fit(rows: tuple[ClassRow, ...], min_cell: int) -> Sheet:
    names = ("k", "log_likelihood", "parameters", "aic", "bic", "adjusted_bic", "caic", "entropy")
    sheet: dict[str, list[Cell]] = {
        name: [_figure(getattr(row, name), min_cell) for row in rows] for name in names
    }
    sheet["entropy"] = [round(row.entropy, 4) if row.k > 1 else None for row in rows]
    sheet["smallest_n"] = [_count(row.smallest, min_cell) for row in rows]
    shares = zip(sheet["smallest_n"], rows, strict=True)
    sheet["smallest_share"] = [
        n if n is None else round(row.smallest_share, 4) for n, row in shares
    ]
    sheet["lowest_avepp"] = [round(min(row.average_posterior), 4) for row in rows]
    sheet["lowest_occ"] = [_figure(min(row.odds_correct), 0) if row.k > 1 else None for row in rows]
    sheet["held_out"] = [_figure(row.held_out, min_cell) for row in rows]
    sheet["stability"] = [round(row.stability, 4) for row in rows]
    if any(row.ratio is not None for row in rows):
        sheet["blrt_ratio"] = [None if row.ratio is None else round(row.ratio, 4) for row in rows]
        sheet["blrt_p"] = [None if row.ratio_p is None else round(row.ratio_p, 4) for row in rows]
        sheet["blrt_draws"] = [row.ratio_draws for row in rows]
    return sheet


def _figure(value: float, min_cell: int) -> Cell:
    """Return a figure with four decimals, or with four digits where it is protected."""
    if isinstance(value, int):
        return value
    return float(f"{value:.4g}") if min_cell else round(value, 4)


def _classes(rows: tuple[ClassRow, ...], min_cell: int) -> Sheet:
    each = [(row, place) for row in rows for place in range(row.k)]
    return {
        "k": [row.k for row, _ in each],
        "class": [place + 1 for _, place in each],
        "n": [_count(row.sizes[place], min_cell) for row, place in each],
        "share": [
            None if row.sizes[place] < min_cell else round(row.sizes[place] / row.records, 4)
            for row, place in each
        ],
        "avepp": [round(row.average_posterior[place], 4) for row, place in each],
        "occ": [_figure(row.odds_correct[place], 0) if row.k > 1 else None for row, place in each],
    }


def _codes(model: Mixture, cohort: AnyCohort, executor: Executor | None, min_cell: int) -> Sheet:
    """Return each code in each class: its probability, observed/expected ratio and exclusivity."""
    blocks = cohort.blocks()
    means, weights = model.means, model.weights[:, None]
    low, high = intervals(model, blocks, executor=executor)
    overall = np.maximum(model.weights @ means, 1e-300)
    positives = weights * means * blocks.weight
    listed = [
        (j, i)
        for j in range(model.n_components)
        for i in np.argsort(-means[j], kind="stable").tolist()
        if positives[j, i] >= min_cell
    ]
    figures = {"probability": means, "low": low, "high": high}
    figures |= {"observed_expected": means / overall, "exclusivity": weights * means / overall}
    return {
        "class": [j + 1 for j, _ in listed],
        "code": [cohort.codes[i] for _, i in listed],
        "name": [cohort.names[i] for _, i in listed],
    } | {
        name: [round(float(array[place]), 4) for place in listed] for name, array in figures.items()
    }


def _features(model: Mixture, records: float, min_cell: int) -> Sheet:
    """Return each feature in each class: the shares of its levels, or what a number is like."""
    sizes = model.weights * records
    listed = [
        (j, variable.feature, value, float(figures[j]))
        for variable, parts in zip(model.variables, model.described().values(), strict=True)
        for value, figures in parts.items()
        for j in range(model.n_components)
        if sizes[j] * (figures[j] if variable.feature.levels else 1) >= min_cell
    ]
    return {
        "class": [j + 1 for j, *_ in listed],
        "feature": [feature.name for _, feature, *_ in listed],
        "kind": [feature.kind for _, feature, *_ in listed],
        "value": [value for *_, value, _ in listed],
        "figure": [
            round(figure, 4) if feature.levels else _figure(figure, min_cell)
            for _, feature, _, figure in listed
        ],
    }


def _residuals(
    model: Mixture, cohort: AnyCohort, executor: Executor | None, min_cell: int
) -> Sheet:
    """Return the pairs of codes that the classes fit worst."""
    found = residuals(model, moments(cohort.blocks(), executor), N_PAIRS)
    kept = [one for one in found if one.observed >= min_cell]
    return {
        "first": [cohort.codes[one.first] for one in kept],
        "second": [cohort.codes[one.second] for one in kept],
        "observed": [_count(one.observed, min_cell) for one in kept],
        "expected": [_figure(one.expected, min_cell) for one in kept],
        "z": [round(one.z, 2) for one in kept],
    }


def methods_text(choice: Choice, indicators: str, min_cell: int = 0) -> str:
    """Return the sentences on latent classes that can be pasted into a paper."""
    rows = choice.classes
    best = next(row for row in rows if row.k == choice.best)
    lowest = min(rows, key=lambda row: row.bic)
    size = _count(best.records, min_cell)
    text = (
        f"Latent class models with {rows[0].k} to {rows[-1].k} classes were fitted by maximum "
        f"likelihood to {indicators} of {size:,.0f} records (comorb "
        f"{__version__}); the BIC was lowest with {lowest.k} ({lowest.bic:,.1f})"
    )
    text += (
        f", and {best.k} were retained by evidence and stability in parts of the records (relative "
        f"entropy {best.entropy:.2f}, smallest class {best.smallest_share:.1%}, average posterior "
        f"probabilities from {min(best.average_posterior):.2f})."
    )
    if best.ratio_p is not None:
        text += (
            f" A bootstrap likelihood-ratio test with {best.ratio_draws} draws of {best.k} against "
            f"{best.k - 1} classes gave p = {best.ratio_p:.3f}."
        )
    return text


N_NAMING_CODES = 30  # codes of a group that its name is chosen from


@dataclass(frozen=True)
class Split:
    """One of ``groups`` groups that is two groups where there is one more."""

    groups: int
    name: str
    reliability: float  # its mean overlap with its match in parts of the records
    into: tuple[str, str]
    reliably: bool  # whether both come out again
    breadth: float  # how many codes hold the two apart


def splits(choice: Choice, codes: Sequence[str], names: Sequence[str], system: str) -> list[Split]:
    """Return how groups split, from one group on, as far as both numbers were looked at.

    Groups are named by their most relevant codes, no two of a number alike.
    """
    named = _name_levels(choice.levels, codes, names, system)
    return [
        Split(
            merge.left,
            named[merge.left][merge.first],
            merge.reliability,
            (named[merge.left + 1][merge.first], named[merge.left + 1][merge.second]),
            merge.splits_reliably,
            merge.breadth,
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
    last = next(k for k in count(1) if k + 1 not in choice.levels)
    models = {k: choice.levels[k] for k in range(1, last + 1) if k in choice.levels}
    named = _name_levels(models, codes, names, system)
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


def _name_levels(
    models: Mapping[int, Mixture], codes: Sequence[str], names: Sequence[str], system: str
) -> dict[int, tuple[str, ...]]:
    """Return the names of the groups of each model, by their most relevant codes."""
    labels = [label(code, name, system) for code, name in zip(codes, names, strict=True)]
    named = {}
    for k, model in models.items():
        scores = relevance(model.means, model.weights @ model.means, NAMING_LAMBDA)
        everyone = model.means.min(axis=0) > 1 - MIN_PREVALENCE
        scores[(model.means < MIN_PREVALENCE) | everyone] = -np.inf
        able = np.minimum(np.isfinite(scores).sum(axis=1), N_NAMING_CODES)
        orders = np.argsort(-scores, axis=1, kind="stable")
        ranked = {j + 1: order[: able[j]].tolist() for j, order in enumerate(orders)}
        named[k] = automatic_names(ranked, codes, labels, system)
    return named
