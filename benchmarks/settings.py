"""What the settings of the model do: each at half and at twice its value, one at a time.

``python -m benchmarks.settings start`` takes the ``Config`` of ``comorb.model.start``;
``agglomeration``, ``decompose``, ``em``, ``lca``, ``diagnostics``, ``sweep``
and ``select_k`` have one, too.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.accuracy import blocks_of
from benchmarks.real import SHARED, discharges
from comorb.model.blocks import workers
from comorb.model.diagnostics import intervals, temperature
from comorb.model.em import em
from comorb.model.lca import fit_classes
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, evidence
from comorb.model.select_k import choose, find_numbers, mark_isolated
from comorb.model.start import best_start
from comorb.records.datasets import paper, record_like

LARGE = ("min_rows", "rows_per_cluster", "full_record", "later_rows", "final_rows")
COMPARED_BY = ("reliable", "min_covered", "min_covered_alone", "enough_gain", "min_breadth")


@cache
def cases() -> list[tuple[Any, int]]:
    """Return rows and a number of clusters that is hard to find: few rows, or real ones."""
    drawn = [(paper(n, 99, 12, seed=n).matrix, 12) for n in (1000, 2000, 3000)]
    drawn.append((record_like(3000, 8, seed=3).matrix, 8))
    if (SHARED / "nhds2010.csv.gz").exists():
        drawn.append((discharges("stroke"), 8))
    return [(blocks_of(matrix), k) for matrix, k in drawn]


@cache
def large_cases() -> list[tuple[Any, int]]:
    """Return one case with more rows than the first rung has, for the settings of rows."""
    return [(blocks_of(record_like(30_000, 8, seed=3).matrix), 8)]


@contextmanager
def other(module: Any, name: str, value: Any) -> Iterator[None]:
    """Give one setting of a module another value."""
    kept = module.CONFIG
    module.CONFIG = replace(kept, **{name: value})
    try:
        yield
    finally:
        module.CONFIG = kept


def changed(value: Any, factor: float) -> Any:
    """Return a setting times a factor: whole where it was, and at least 1 then."""
    if isinstance(value, tuple):
        return tuple(changed(one, factor) for one in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def fit_evidence(large: bool = False) -> list[float]:
    """Return the evidence of the final fit of each case, nats a record."""
    found = []
    with workers(-1) as pool:
        for blocks, k in large_cases() if large else cases():
            first = prevalence(blocks, pool)
            start = best_start(blocks, k, first, None, pool)
            prior = Prior.around(first, start.strength, blocks.weight)
            fit = em(blocks, start.model, prior, None, pool)
            sums = fit.expected.sums
            value = evidence(fit.model, sums, fit.log_likelihood, prior)
            found.append(value / blocks.weight)
    return found


def class_likelihood() -> list[float]:
    """Return the log-likelihood of latent classes, nats a record."""
    found = []
    for blocks, _ in cases()[:2]:
        first = prevalence(blocks)
        start = best_start(blocks, 4, first, 0.0).model
        found.append(fit_classes(blocks, start, first).log_likelihood / blocks.weight)
    return found


def sureness() -> list[float]:
    """Return the logarithm of the mean width of intervals, and of the temperature."""
    found = []
    for blocks, k in cases()[::2]:
        model = best_start(blocks, k, prevalence(blocks)).model
        low, high = intervals(model, blocks)
        found += [float(np.log((high - low).mean())), float(np.log(temperature(model, blocks)))]
    return found


def recommended() -> list[float]:
    """Return the recommended number of clusters of each case, of which two are known: 4 and 8."""
    with workers(-1) as pool:
        known = [blocks_of(paper(3000, 99, k, seed=k).matrix) for k in (4, 8)]
        return [float(choose(blocks, None, pool).best) for blocks in (*known, cases()[-1][0])]


MEASURES: dict[str, Callable[[], list[float]]] = {
    "start": fit_evidence,
    "agglomeration": fit_evidence,
    "decompose": fit_evidence,
    "em": fit_evidence,
    "lca": class_likelihood,
    "diagnostics": sureness,
    "select_k": recommended,
    "sweep": recommended,
}


def sweep(name: str) -> None:
    """Print how a measure changes, its mean and least, and the time as a ratio to the default."""
    module, usual_measure = import_module(f"comorb.model.{name}"), MEASURES[name]
    print(f"\n{name}: {usual_measure.__doc__}\n{'':36}{'half':>27}{'twice':>27}")
    print(f"{'':36}" + f"{'mean':>10}{'least':>10}{'time':>7}" * 2)
    known: dict[bool, tuple[Any, float]] = {}
    for field in fields(module.CONFIG):
        large = name == "start" and field.name in LARGE
        measure = partial(fit_evidence, large=True) if large else usual_measure
        if large not in known:
            measure()  # compiles
            known[large] = timed(measure)
        usual, seconds = known[large]
        value = getattr(module.CONFIG, field.name)
        line = f"{field.name + f' = {value}':<36}"
        for factor in (0.5, 2.0):
            with other(module, field.name, changed(value, factor)):
                found, spent = timed(measure)
            gain = found - usual
            line += f"{gain.mean():+10.4f}{gain.min():+10.4f}{spent / seconds:6.2f}×"
        print(line, flush=True)


def timed(measure: Callable[[], list[float]]) -> tuple[Any, float]:
    """Return a measure and its processor seconds."""
    started = time.process_time()
    return np.array(measure()), time.process_time() - started


def sweep_choice() -> None:
    """Print the recommended numbers at other thresholds, from the same rows of each sweep."""
    module = import_module("comorb.model.select_k")
    drawn = [(f"paper, k={k}", blocks_of(paper(10_000, 99, k, seed=k).matrix)) for k in (3, 6, 9)]
    if (SHARED / "nhds2010.csv.gz").exists():
        drawn += [(name, blocks_of(discharges(name))) for name in ("heart failure", "stroke")]
    with workers(-1) as pool:
        rows = {name: choose(blocks, None, pool).rows for name, blocks in drawn}
    print(f"\n{'finest k':<28}" + "".join(f"{name:>15}" for name in rows))
    for name in COMPARED_BY:
        value = getattr(module.CONFIG, name)
        for to in (value - 0.05, value, value + 0.04):
            with other(module, name, to):
                found = [find_numbers(mark_isolated(own))[1] for own in rows.values()]
            print(f"{name + f' = {to:.2f}':<28}" + "".join(f"{k:>15}" for k in found), flush=True)


def main(*names: str) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    for name in names or MEASURES:
        sweep(name)
        if name == "select_k":
            sweep_choice()


if __name__ == "__main__":
    main(*sys.argv[1:])
