"""Expectation-maximisation: one step, the loop and when it stops."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np

from comorb.errors import InputError
from comorb.model import kernels
from comorb.model.blocks import Blocks, Rows, map_reduce
from comorb.model.kernels import Floats
from comorb.model.mixture import EDGE, Mixture

Stop = Literal["likelihood", "weights"]
TOLERANCE: dict[Stop, float] = {"likelihood": 1e-6, "weights": 0.01}


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
        if self.rule not in TOLERANCE:
            raise InputError(f"expected stop to be 'likelihood' or 'weights', got {self.rule!r}")
        if self.tol is not None and not self.tol >= 0:
            raise InputError(f"expected tol to be zero or more, got {self.tol!r}")
        if self.max_iter < 0:
            raise InputError(f"expected max_iter to be zero or more, got {self.max_iter!r}")

    @property
    def limit(self) -> float:
        """The tolerance in force."""
        return TOLERANCE[self.rule] if self.tol is None else self.tol


@dataclass(frozen=True)
class Prior:
    """A Beta prior on each code's means, as pseudo-counts of carriers and of non-carriers."""

    present: Floats
    absent: Floats

    @classmethod
    def around(cls, first: Floats, strength: float) -> Prior:
        """Centre the prior on the overall prevalence p: s·p and s·(1 − p) pseudo-counts."""
        return cls(strength * first, strength * (1 - first))

    def log_density(self, means: Floats) -> float:
        """Return Σ_ji a_i log μ_ji + b_i log(1 − μ_ji), the prior up to a constant. O(k·d)."""
        terms = self.present * np.log(means) + self.absent * np.log1p(-means)
        return float(np.sort(terms.ravel()).sum())


@dataclass(frozen=True)
class Expected:
    """The E-step's sums over some rows; ``sums`` is (d + 1, k), its last row the cluster sizes.

    The log-likelihood is in two exact parts, which are added at the end.
    """

    sums: Floats
    coarse: float
    fine: float

    def __add__(self, other: Self) -> Expected:
        """Add the sums of other rows."""
        return Expected(
            self.sums + other.sums, self.coarse + other.coarse, self.fine + other.fine
        )

    @property
    def log_likelihood(self) -> float:
        """Σ w·log P(x)."""
        return self.coarse + self.fine


@dataclass(frozen=True)
class EMResult:
    """Where EM arrived: the model, whether it converged, and the way there.

    ``history`` holds the objective per record before the first step and after each one: the
    log-likelihood, plus the log-prior where there is one. ``log_likelihood`` is that of the
    final model over all records, without the prior.
    """

    model: Mixture
    converged: bool
    n_iter: int
    log_likelihood: float
    history: tuple[float, ...]


def expect(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Expected:
    """Return Σₙ wₙ P(Y = j | xₙ) xₙᵢ, the cluster sizes and the log-likelihood: the E-step."""
    base, logits = model.tables()
    return map_reduce(partial(_expect, base, logits, blocks.snap), blocks, executor)


def _expect(base: Floats, logits: Floats, snap: float, rows: Rows) -> Expected:
    sums = np.zeros((logits.shape[0] + 1, base.size))
    return Expected(
        sums,
        *kernels.expect(rows.indptr, rows.indices, rows.weights, base, logits, snap, sums),
    )


def maximise(expected: Expected, prior: Prior | None = None) -> Mixture:
    """Return the mixture that the E-step's sums make most likely: the M-step.

    ω_j = n_j / Σ n and μ_ij = (Σ r x + a_i) / (n_j + a_i + b_i), kept inside (0, 1): that is
    the best mean within these bounds, so the objective still never falls. An empty cluster
    keeps weight 0 and takes the overall prevalence. O(k·d).
    """
    sizes = expected.sums[-1]
    carriers = expected.sums[:-1].T
    total = sizes.sum()
    if prior is not None:
        means = (carriers + prior.present) / (sizes[:, None] + prior.present + prior.absent)
    else:
        overall = carriers.sum(axis=0) / total
        means = np.where(
            sizes[:, None] > 0, carriers / np.where(sizes > 0, sizes, 1)[:, None], overall
        )
    return Mixture(sizes / total, np.clip(means, EDGE, 1 - EDGE))


def em(
    blocks: Blocks,
    start: Mixture,
    prior: Prior | None = None,
    stopping: Stopping | None = None,
    executor: Executor | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> EMResult:
    """Refine a mixture until the objective, or its weights, stand still (paper section 3.4).

    The last E-step is that of the model returned, so that its log-likelihood and history are
    its own. ``watch`` hears the number of each step and its objective. O(nnz·k) a step.
    """
    stopping = stopping or Stopping()
    model = Mixture(start.weights, np.clip(start.means, EDGE, 1 - EDGE))
    history: list[float] = []
    converged = False
    while True:
        expected = expect(model, blocks, executor)
        penalty = prior.log_density(model.means) if prior is not None else 0.0
        history.append((expected.log_likelihood + penalty) / blocks.weight)
        if watch is not None:
            watch(len(history) - 1, history[-1])
        if stopping.rule == "likelihood" and len(history) > 1:
            converged = history[-1] - history[-2] < stopping.limit
        if converged or len(history) > stopping.max_iter:
            break
        better = maximise(expected, prior)
        if stopping.rule == "weights":
            moved = float(np.abs(better.weights - model.weights).sum())
            converged = moved < stopping.limit
        model = better
    return EMResult(model, converged, len(history) - 1, expected.log_likelihood, tuple(history))
