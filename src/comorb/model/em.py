"""Expectation-maximisation: one step, the loop and when it stops."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Literal, Self, get_args

import numpy as np

from comorb.errors import InputError
from comorb.model import kernels
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, map_reduce, snap_for
from comorb.model.emissions.base import Variable
from comorb.model.features import (
    fit_parameters,
    map_parameters,
    n_parameters,
    n_statistics,
    plan_for,
)
from comorb.model.mixture import EDGE, Mixture
from comorb.model.prior import Prior

Stop = Literal["likelihood", "weights"]


@dataclass(frozen=True)
class Config:
    """When EM stops, and how far it steps."""

    # nats a record: `python -m benchmarks.settings em` prints the evidence at half and twice
    likelihood_tolerance: float = 1e-6
    # nats a record and record, for small tables: with it `python -m benchmarks.starts 1 tables`
    # prints log-likelihoods within 1e-4 of the published maxima
    fine_tolerance: float = 1e-12
    weights_tolerance: float = 0.01  # ‖Δω‖₁, the paper's section 3.4
    # the first limit of a SQUAREM step, and the factor by which it grows and shrinks: ``mstep`` of
    # Varadhan and Roland (2008)
    step_factor: float = 4.0


CONFIG = Config()


def fine_tolerance(weight: float) -> float:
    """Return the tolerance of plain maximum likelihood: 10⁻¹² times the records, 10⁻⁶ at most.

    A small table then reaches its published maximum to four decimals.
    """
    return min(CONFIG.likelihood_tolerance, CONFIG.fine_tolerance * weight)


@dataclass(frozen=True)
class Stopping:
    """When EM ends.

    ``"likelihood"``: the gain of the objective per record is below ``tol`` (1e-6 by default);
    ``"weights"``: the paper's ‖Δω‖₁ < ``tol`` (0.01). Never more than ``max_iter`` steps.
    """

    rule: Stop = "likelihood"
    tol: float | None = None
    max_iter: int = 1000

    def __post_init__(self) -> None:
        """Refuse an unknown rule and bounds that make no sense."""
        if self.rule not in get_args(Stop):
            raise InputError("em.stop", rule=self.rule)
        for name, value in (("tol", self.tol), ("max_iter", self.max_iter)):
            if value is not None and not (isinstance(value, Real) and value >= 0):
                raise InputError("em.bound", name=name, value=value)

    @property
    def limit(self) -> float:
        """The tolerance in force."""
        if self.tol is not None:
            return self.tol
        likelihood = self.rule == "likelihood"
        return CONFIG.likelihood_tolerance if likelihood else CONFIG.weights_tolerance

    def is_met(self, before: Point, after: Point) -> bool:
        """Return whether a plain EM step changes less than the tolerance."""
        if self.rule == "likelihood":
            return after.objective - before.objective < self.limit
        return float(np.abs(after.model.weights - before.model.weights).sum()) < self.limit


@dataclass(frozen=True)
class Expected:
    """The E-step's sums over some rows; ``sums`` is (d + 1, k), its last row the cluster sizes.

    With features beside the codes it is (d + s + 1, k): their s statistics are above the sizes.
    The log-likelihood is in two exact parts, which are added at the end. ``by_length`` (L, k) are
    the cluster sizes among the records of each number of codes, where shares depend on it.
    """

    sums: Floats
    coarse: float
    fine: float
    variables: tuple[Variable, ...] = ()
    by_length: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def __add__(self, other: Self) -> Expected:
        return Expected(
            self.sums + other.sums,
            self.coarse + other.coarse,
            self.fine + other.fine,
            self.variables,
            self.by_length + other.by_length,
        )

    @property
    def positive_counts(self) -> Floats:
        """Σ r·x of each code in each cluster, (d, k)."""
        return self.sums[: self.sums.shape[0] - 1 - n_statistics(self.variables)]

    @property
    def statistics(self) -> Floats:
        """Σ r·T of the features' statistics in each cluster, (s, k)."""
        return self.sums[self.sums.shape[0] - 1 - n_statistics(self.variables) : -1]

    @property
    def log_likelihood(self) -> float:
        """Σ w·log P(x)."""
        return self.coarse + self.fine


@dataclass(frozen=True)
class EMResult:
    """Where EM arrived: the model, whether it converged, and the way there.

    ``history`` holds the objective per record before the first step and after each one: the
    log-likelihood, plus the log-prior where there is one. ``n_iter`` counts the passes over the
    rows after the first. ``expected`` is the E-step of the final model.
    """

    model: Mixture
    converged: bool
    n_iter: int
    expected: Expected
    history: tuple[float, ...]

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of the final model over all records, without the prior."""
        return self.expected.log_likelihood


def expect(
    model: Mixture,
    blocks: Blocks,
    executor: Executor | None = None,
    length_bases: Floats | None = None,
) -> Expected:
    """Return Σₙ wₙ P(Y = j | xₙ) xₙᵢ, the cluster sizes and the log-likelihood: the E-step.

    ``length_bases`` (L, k) stand in for log ωⱼ + Σᵢ log(1 − μᵢⱼ) in records of 0, 1, ... codes.
    """
    if model.variables != blocks.variables:
        expected, came = len(model.variables), len(blocks.variables)
        raise InputError("em.features", expected=expected, came=came)
    base, logits = model.tables()
    if length_bases is not None:
        base = length_bases
    if model.variables:
        return _expect_features(model, base, logits, blocks, executor)
    return map_reduce(partial(_expect, base, logits, blocks.snap), blocks, executor)


def _expect(base: Floats, logits: Floats, snap: float, rows: Rows) -> Expected:
    if base.ndim > 1:
        step = lambda one, own: _expect(one, logits, snap, own)  # noqa: E731
        return _expect_lengths(step, base, logits.shape[0], rows)
    sums, room = np.zeros((logits.shape[0] + 1, base.size)), kernels.make_buffers(base.size)
    return Expected(
        sums,
        *kernels.expect(rows.indptr, rows.indices, rows.weights, base, logits, snap, sums, room),
    )


def _expect_lengths(
    expect_rows: Callable[[Floats, Rows], Expected], bases: Floats, d: int, rows: Rows
) -> Expected:
    """Return the E-step of a block whose rows of each length have a base of their own."""
    lengths = np.diff(rows.indptr)
    parts, sizes = [], np.zeros(bases.shape)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        ones = rows.indices[rows.indptr[places][:, None] + np.arange(length)].ravel()
        own = Rows(
            np.arange(places.size + 1, dtype=np.int64) * length,
            ones,
            rows.weights[places] if rows.weights.size else rows.weights,
            rows.values[places] if rows.values.size else rows.values,
        )
        parts.append(expect_rows(bases[length], own))
        sizes[length] = parts[-1].sums[d]
    return replace(sum(parts[1:], parts[0]), by_length=sizes)


def _expect_features(
    model: Mixture, base: Floats, logits: Floats, blocks: Blocks, executor: Executor | None
) -> Expected:
    """Return the E-step of a model with features: sums of cells, and of those the statistics."""
    plan, d = plan_for(model.variables), model.n_columns
    tables = (base, logits[:d], *plan.tables(logits[d:]))
    snaps = (blocks.snap, snap_for(blocks.weight * blocks.mean_square))
    found = map_reduce(partial(_expect_rows, plan.lookup, tables, snaps), blocks, executor)
    cells, numbers = tables[2].shape[0], tables[3].shape
    codes, of_cells, of_numbers = np.split(found.sums, [d + 1, d + 1 + cells])
    statistics = plan.sums(of_cells, of_numbers.reshape(numbers))
    sums = np.concatenate([codes[:-1], statistics, codes[-1:]])
    return replace(found, sums=sums, variables=model.variables)


def _expect_rows(
    lookup: kernels.Lookup,
    tables: tuple[Floats, Floats, Floats, Floats],
    snaps: tuple[float, float],
    rows: Rows,
) -> Expected:
    base, logits, cells, numbers = tables
    if base.ndim > 1:
        rest = tables[1:]
        step = lambda one, own: _expect_rows(lookup, (one, *rest), snaps, own)  # noqa: E731
        return _expect_lengths(step, base, logits.shape[0], rows)
    k, d, c, q = base.size, logits.shape[0], cells.shape[0], numbers.shape[0]
    sums = np.zeros((d + 1 + c + 3 * q, k))
    parts = sums[: d + 1], sums[d + 1 : d + 1 + c], sums[d + 1 + c :].reshape(q, 3, k)
    return Expected(
        sums,
        *kernels.expect_mixed(
            (rows.indptr, rows.indices, rows.values),
            rows.weights,
            lookup,
            tables,
            snaps,
            parts,
            kernels.make_mixed_buffers(k, lookup),
        ),
    )


def maximise(expected: Expected, prior: Prior | None = None) -> Mixture:
    """Return the mixture that the E-step's sums make most likely: the M-step.

    ω_j = n_j / Σ n and μ_ij = (Σ r x + a_i) / (n_j + a_i + b_i), kept inside (0, 1): that is
    the best mean within these bounds, so the objective still never falls. An empty cluster
    keeps weight 0 and takes the overall prevalence. Features are fitted to their statistics and
    those of the prior. O(k·d).
    """
    sizes = expected.sums[-1]
    positives = expected.positive_counts.T
    total = sizes.sum()
    statistics = expected.statistics
    if prior is not None:
        statistics = statistics + prior.prior_statistics[:, None]
    if prior is not None:
        means = (positives + prior.present) / (sizes[:, None] + prior.present + prior.absent)
    else:
        overall = positives.sum(axis=0) / total
        means = np.where(
            sizes[:, None] > 0, positives / np.where(sizes > 0, sizes, 1)[:, None], overall
        )
    parameters = fit_parameters(expected.variables, statistics)
    means = np.clip(means, EDGE, 1 - EDGE)
    return Mixture(sizes / total, means, expected.variables, parameters)


@dataclass(frozen=True)
class Point:
    """A model, its E-step and its objective per record."""

    model: Mixture
    expected: Expected
    objective: float


def em(
    blocks: Blocks,
    start: Mixture,
    prior: Prior | None = None,
    stopping: Stopping | None = None,
    executor: Executor | None = None,
    watch: Callable[[int, float], None] | None = None,
    earlier: Expected | None = None,
) -> EMResult:
    """Refine a mixture until the objective, or its weights, stand still (paper section 3.4).

    With ``"weights"`` these are plain EM steps. With ``"likelihood"`` each step is followed by a
    longer one along its direction (``squarem_step``), which is kept only where it raises the
    objective, so that the history never falls; convergence is judged on the plain step. The model
    returned is the one of the last E-step. ``watch`` is called after every pass over the rows.
    ``earlier`` are the sums of rows that are not looked at again: they keep their clusters.
    O(nnz·k) a pass.
    """
    stopping = stopping or Stopping()
    passes = -1
    weight = blocks.weight + (0.0 if earlier is None else float(earlier.sums[-1].sum()))

    def visit(model: Mixture) -> Point:
        nonlocal passes
        passes += 1
        expected = expect(model, blocks, executor)
        penalty = prior.log_density(model) if prior is not None else 0.0
        if earlier is not None:
            penalty += _complete_log_likelihood(model, earlier)
            expected = replace(expected, sums=expected.sums + earlier.sums)
        objective = (expected.log_likelihood + penalty) / weight
        if watch is not None:
            watch(passes, objective)
        return Point(model, expected, objective)

    here = visit(replace(start, means=np.clip(start.means, EDGE, 1 - EDGE)))
    history = [here.objective]
    converged = False
    step_limit = CONFIG.step_factor
    while not converged and passes < stopping.max_iter:
        step = visit(maximise(here.expected, prior))
        if step.objective < here.objective:  # by rounding alone: EM is at its fixed point
            converged = True
            break
        history.append(step.objective)
        converged = stopping.is_met(here, step)
        if stopping.rule == "likelihood" and not converged and passes < stopping.max_iter:
            models = here.model, step.model, maximise(step.expected, prior)
            length, target = squarem_step(*models, step_limit)
            there = visit(target)
            if there.objective >= step.objective:
                history.append(there.objective)
                # a step that was cut at the limit and still gained may go further the next time
                step_limit *= CONFIG.step_factor if length == step_limit else 1
                here = there
                continue
            step_limit = max(CONFIG.step_factor, length / CONFIG.step_factor)
        here = step
    return EMResult(here.model, converged, passes, here.expected, tuple(history))


def _complete_log_likelihood(model: Mixture, sums: Expected) -> float:
    """Return Σ r·log P(x, j), up to what no model changes, of rows that keep their clusters."""
    base, logits = model.tables()
    return float(np.sum(sums.sums[:-1] * logits) + sums.sums[-1] @ base)


def squarem_step(
    first: Mixture, second: Mixture, third: Mixture, step_limit: float
) -> tuple[float, Mixture]:
    """Return how far, and where, two EM steps point: SQUAREM (Varadhan and Roland 2008).

    θ₀ + 2αr + α²v with r = θ₁ − θ₀, v = (θ₂ − θ₁) − r and α = ‖r‖ / ‖v‖, at least 1 and
    at most ``step_limit``, on the scale θ = (√ω, arcsin √μ), where a Bernoulli mean has the same
    variance everywhere, and that of each feature (``Variable.angles``). α = 1 is θ₂, the plain
    step. O(k·d).
    """
    origin, once, twice = first.angles, second.angles, third.angles
    velocity = once - origin
    change = twice - once - velocity
    norm = float(np.linalg.norm(change))
    length = min(max(float(np.linalg.norm(velocity)) / norm, 1.0), step_limit) if norm > 0 else 1.0
    target = origin + 2 * length * velocity + length**2 * change
    k, d = first.means.shape
    weights = np.maximum(target[:k], 0.0) ** 2
    means = np.sin(np.clip(target[k : k + k * d], 0, np.pi / 2)) ** 2
    means = np.clip(means.reshape(k, d), EDGE, 1 - EDGE)
    own = target[k + k * d :].reshape(k, n_parameters(first.variables))
    parameters = map_parameters(first.variables, lambda v, part, _: v.from_angles(part), own)
    return length, Mixture(weights / weights.sum(), means, first.variables, parameters)
