"""Latent classes of a cohort: the tables that a paper prints, and a sentence for its methods."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from comorb import __version__
from comorb.insight.profile.rough import rough
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.insight.views.sheets import Cell, Sheet
from comorb.model.choice import Choice, ClassRow
from comorb.model.confidence import intervals, residuals
from comorb.model.lca import bootstrap_test, latent_classes
from comorb.model.mixture import Mixture
from comorb.model.moments import DENSE_COLUMNS, moments

PAIRS = 20  # of codes that the classes fit worst


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
    least: int = 0,
    tell: Tell = silent,
) -> ClassTables:
    """Return the tables of latent class analysis for a choice over a cohort.

    ``draws`` are those of the bootstrap likelihood-ratio test for each number, and the seconds that
    all of them may take.
    With ``least`` numbers of records are rough, and what fewer have is not told.
    """
    tell(Progress("finding", "Fitting latent classes by maximum likelihood"))
    blocks = cohort.blocks()
    choice, models = latent_classes(choice, blocks, executor)
    if draws[0]:

        def drawn(k: int, done: int, of: int) -> None:
            tell(Progress("repeating", f"Testing {k} classes against {k - 1}: draw {done} of {of}"))

        choice = bootstrap_test(choice, models, *draws, drawn)
    model = models[choice.best]
    sheets: dict[str, Sheet] = {
        "fit": _fit(choice.classes, least),
        "classes": _classes(choice.classes, least),
        "codes": _codes(model, cohort, executor, least),
    }
    if model.variables:
        sheets["features"] = _features(model, blocks.weight, least)
    if blocks.n_columns <= DENSE_COLUMNS:
        sheets["residuals"] = _residuals(model, cohort, executor, least)
    indicators = f"{blocks.n_columns:,} binary indicators"
    if model.variables:
        indicators = f"{blocks.n_columns + len(model.variables):,} indicators"
    return ClassTables(choice, sheets, methods_text(choice, indicators, least))


def _count(value: float, least: int) -> Cell:
    return rough(round(value), least) if least else round(value, 3)


def _fit(rows: tuple[ClassRow, ...], least: int) -> Sheet:
    names = ("k", "log_likelihood", "parameters", "aic", "bic", "adjusted_bic", "caic", "entropy")
    sheet: dict[str, list[Cell]] = {
        name: [_figure(getattr(row, name), least) for row in rows] for name in names
    }
    sheet["entropy"] = [round(row.entropy, 4) if row.k > 1 else None for row in rows]
    sheet["smallest_n"] = [_count(row.smallest, least) for row in rows]
    sheet["smallest_share"] = [
        None if least and _count(row.smallest, least) is None else round(row.smallest_share, 4)
        for row in rows
    ]
    sheet["lowest_avepp"] = [round(min(row.average_posterior), 4) for row in rows]
    sheet["lowest_occ"] = [_figure(min(row.odds_correct), 0) if row.k > 1 else None for row in rows]
    sheet["held_out"] = [_figure(row.held_out, least) for row in rows]
    sheet["stability"] = [round(row.stability, 4) for row in rows]
    if any(row.ratio is not None for row in rows):
        sheet["blrt_ratio"] = [None if row.ratio is None else round(row.ratio, 4) for row in rows]
        sheet["blrt_p"] = [None if row.ratio_p is None else round(row.ratio_p, 4) for row in rows]
        sheet["blrt_draws"] = [row.ratio_draws for row in rows]
    return sheet


def _figure(value: float, least: int) -> Cell:
    """Return a figure with four decimals, or with four digits where it is protected."""
    if isinstance(value, int):
        return value
    return float(f"{value:.4g}") if least else round(value, 4)


def _classes(rows: tuple[ClassRow, ...], least: int) -> Sheet:
    each = [(row, place) for row in rows for place in range(row.k)]
    return {
        "k": [row.k for row, _ in each],
        "class": [place + 1 for _, place in each],
        "n": [_count(row.sizes[place], least) for row, place in each],
        "share": [
            None if least and row.sizes[place] < least else round(row.sizes[place] / row.records, 4)
            for row, place in each
        ],
        "avepp": [round(row.average_posterior[place], 4) for row, place in each],
        "occ": [_figure(row.odds_correct[place], 0) if row.k > 1 else None for row, place in each],
    }


def _codes(model: Mixture, cohort: AnyCohort, executor: Executor | None, least: int) -> Sheet:
    """Return each code in each class: its probability, observed/expected ratio and exclusivity."""
    blocks = cohort.blocks()
    low, high = intervals(model, blocks, executor=executor)
    overall = np.maximum(model.weights @ model.means, 1e-300)
    carriers = model.weights[:, None] * model.means * blocks.weight
    told = [
        (j, i)
        for j in range(model.n_components)
        for i in np.argsort(-model.means[j], kind="stable").tolist()
        if carriers[j, i] >= least
    ]
    return {
        "class": [j + 1 for j, _ in told],
        "code": [cohort.codes[i] for _, i in told],
        "name": [cohort.names[i] for _, i in told],
        "probability": [round(float(model.means[j, i]), 4) for j, i in told],
        "low": [round(float(low[j, i]), 4) for j, i in told],
        "high": [round(float(high[j, i]), 4) for j, i in told],
        "observed_expected": [round(float(model.means[j, i] / overall[i]), 4) for j, i in told],
        "exclusivity": [
            round(float(model.weights[j] * model.means[j, i] / overall[i]), 4) for j, i in told
        ],
    }


def _features(model: Mixture, records: float, least: int) -> Sheet:
    """Return each feature in each class: the shares of its levels, or what a number is like."""
    sizes = model.weights * records
    told = [
        (j, variable.feature, value, float(figures[j]))
        for variable, parts in zip(model.variables, model.described().values(), strict=True)
        for value, figures in parts.items()
        for j in range(model.n_components)
        if sizes[j] * (figures[j] if variable.feature.levels else 1) >= least
    ]
    return {
        "class": [j + 1 for j, *_ in told],
        "feature": [feature.name for _, feature, *_ in told],
        "kind": [feature.kind for _, feature, *_ in told],
        "value": [value for *_, value, _ in told],
        "figure": [
            round(figure, 4) if feature.levels else _figure(figure, least)
            for _, feature, _, figure in told
        ],
    }


def _residuals(model: Mixture, cohort: AnyCohort, executor: Executor | None, least: int) -> Sheet:
    """Return the pairs of codes that the classes fit worst."""
    found = residuals(model, moments(cohort.blocks(), executor), PAIRS)
    kept = [one for one in found if one.observed >= least]
    return {
        "first": [cohort.codes[one.first] for one in kept],
        "second": [cohort.codes[one.second] for one in kept],
        "observed": [_count(one.observed, least) for one in kept],
        "expected": [_figure(one.expected, least) for one in kept],
        "z": [round(one.z, 2) for one in kept],
    }


def methods_text(choice: Choice, indicators: str, least: int = 0) -> str:
    """Return the sentences on latent classes that can be pasted into a paper."""
    rows = choice.classes
    best = next(row for row in rows if row.k == choice.best)
    lowest = min(rows, key=lambda row: row.bic)
    size = _count(best.records, least)
    text = (
        f"Latent class models with {rows[0].k} to {rows[-1].k} classes were fitted by maximum "
        f"likelihood to {indicators} of {size:,.0f} records (comorb "
        f"{__version__}); the BIC was lowest with {lowest.k} ({lowest.bic:,.1f})"
    )
    entropy = f"relative entropy {best.entropy:.2f}, smallest class {best.smallest_share:.1%}, "
    entropy += f"average posterior probabilities from {min(best.average_posterior):.2f}"
    by = "by evidence and stability in parts of the records"
    text += f", and {best.k} were retained {by} ({entropy})."
    if best.ratio_p is not None:
        text += (
            f" A bootstrap likelihood-ratio test with {best.ratio_draws} draws of {best.k} against "
            f"{best.k - 1} classes gave p = {best.ratio_p:.3f}."
        )
    return text
