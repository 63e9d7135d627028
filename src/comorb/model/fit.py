"""MixtureFit: the fit of a mixture to blocks of rows, with nothing around it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, Self, get_args

import numpy as np

from comorb.errors import ComorbWarning, InputError
from comorb.messages import Message
from comorb.model.agglomeration import short_run_em
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks
from comorb.model.diagnostics import collapse_warning
from comorb.model.em import EMResult, Expected, Stop, Stopping, em, fine_tolerance
from comorb.model.emissions.base import Variable
from comorb.model.length import (
    LengthModel,
    fit_given_length,
    longest_record,
    start_given_length,
)
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import FIRST_STRENGTH, Prior, evidence, learn_strength
from comorb.model.select_k import Choice, Goal, choose, finalise
from comorb.model.start import Candidate, best_start, max_clusters, paper_start

# the number of clusters that is chosen: "auto" is "main"
Number = Literal["auto", "main", "finest"]
NUMBERS = get_args(Number)


@dataclass(frozen=True, eq=False)
class Anchor:
    """What became of an earlier model that a fit started from.

    ``kept`` says whether the fit stayed with it, ``gain`` what the free fit has more, in nats a
    record, and ``other`` is the model that was not taken: near in worth where the gain is small.
    """

    kept: bool
    gain: float
    other: Mixture


class MixtureFit:
    """Clusters of rows in blocks; `comorb.BernoulliMixture` has the parameters and attributes."""

    variables_: tuple[Variable, ...]
    _convergence_warning: type[Warning] = UserWarning

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name
        self,
        n_components: int | Number = "auto",
        *,
        init: Literal["best", "asvtd"] | Mixture = "best",
        tol: float | None = None,
        stop: Stop = "likelihood",
        max_iter: int = 1000,
        smoothing: float | Literal["auto"] = "auto",
        keep: float | None = None,
        length: Literal["adjust"] | None = None,
        n_jobs: int = -1,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.tol = tol
        self.stop = stop
        self.max_iter = max_iter
        self.smoothing = smoothing
        self.keep = keep
        self.length = length
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit_blocks(
        self,
        blocks: Blocks,
        executor: Executor | None = None,
        watch: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Learn the clusters of rows that need not be in memory, nor on this machine.

        Parameters
        ----------
        blocks : Blocks
            The rows, such as those of a cohort file (:func:`comorb.engines.open_blocks`).
        executor : Executor, optional
            What maps the blocks, in place of ``n_jobs``; the result does not depend on it.
        watch : callable, optional
            Called after every pass of EM with its number and the objective per record.

        Returns
        -------
        MixtureFit
            The fit itself.
        """
        self.n_features_in_ = blocks.n_columns + len(blocks.variables)
        self._check_parameters(blocks)
        first = prevalence(blocks, executor)
        if not isinstance(self.n_components, str):
            result = self._fit_k(blocks, self.n_components, first, executor, watch)
        else:
            goal: Goal = "finest" if self.n_components == "finest" else "main"
            choice = choose(blocks, None, executor, goal)
            result = self._fit_k(blocks, choice.best, first, executor, watch)
            found = finalise(choice, result.model, blocks, executor)
            while choice.best > 1 and not found.row.offered:
                choice = choice.without_best()
                result = self._fit_k(blocks, choice.best, first, executor, watch)
                found = finalise(choice, result.model, blocks, executor)
            self.choice_: Choice = found
            self.tree_ = found.tree
        if self.keep is not None:
            result = self._compare_with_free(blocks, result, first, executor, watch)
        self._set_results(result)
        self.given_length_: LengthModel | None = None
        if self.length == "adjust":
            self._adjust_length(blocks, first, executor)
        if warned := collapse_warning(self.mixture_, blocks.weight):
            warnings.warn(warned, ComorbWarning, stacklevel=3)
        return self

    def _fit_k(
        self,
        blocks: Blocks,
        k: int,
        first: Floats,
        executor: Executor | None,
        watch: Callable[[int, float], None] | None,
    ) -> EMResult:
        """Return where EM arrives with k clusters, in their order."""
        start = self._start(blocks, k, first, executor)
        self.smoothing_ = start.strength if self.smoothing == "auto" else float(self.smoothing)
        prior = self._prior(first, blocks.weight, blocks)
        result = self._em(blocks, start.model, prior, executor, watch)
        order = result.model.order()
        expected = replace(result.expected, sums=result.expected.sums[:, order])
        return replace(result, model=result.model.at(order), expected=expected)

    def _compare_with_free(
        self,
        blocks: Blocks,
        anchored: EMResult,
        first: Floats,
        executor: Executor | None,
        watch: Callable[[int, float], None] | None,
    ) -> EMResult:
        """Return the fit from an earlier mixture, or the free one where that gains enough."""
        kept = self.smoothing_
        init, self.init = self.init, "best"
        try:
            free = self._fit_k(blocks, anchored.model.n_components, first, executor, watch)
        finally:
            self.init = init
        gain = self._value(free, blocks, first) - self._value(anchored, blocks, first, kept)
        leaves = gain > (self.keep or 0.0)
        chosen, other = (free, anchored) if leaves else (anchored, free)
        if not leaves:
            self.smoothing_ = kept
        self.anchor_ = Anchor(not leaves, gain, other.model)
        return chosen

    def _value(
        self, result: EMResult, blocks: Blocks, first: Floats, strength: float | None = None
    ) -> float:
        """Return what fits are compared by: the evidence, or the likelihood without a prior."""
        alpha = self.smoothing_ if strength is None else strength
        value = result.log_likelihood
        if alpha > 0:
            prior = Prior.around(first, alpha, blocks.weight, blocks.variables)
            value = evidence(result.model, result.expected.sums, value, prior)
        return value / blocks.weight

    def _adjust_length(self, blocks: Blocks, first: Floats, executor: Executor | None) -> None:
        """Go on from the plain fit to clusters given the number of codes."""
        prior = self._prior(first, blocks.weight, blocks)
        start = start_given_length(
            self.mixture_, blocks, longest_record(blocks, executor), executor
        )
        found, self._expected = fit_given_length(start, blocks, prior, first, executor)
        order = found.model.order()
        self.given_length_ = found.match_lengths().at(order)
        self._expected = replace(self._expected, sums=self._expected.sums[:, order])
        model = self.given_length_.model
        self.weights_, self.means_, self.traits_ = model.weights, model.means, model.parameters
        self.log_likelihood_ = self._expected.log_likelihood

    def _prior(self, first: Floats, weight: float, blocks: Blocks) -> Prior | None:
        if self.smoothing_ > 0:
            return Prior.around(first, self.smoothing_, weight, blocks.variables)
        return None

    def _em(
        self,
        blocks: Blocks,
        start: Mixture,
        prior: Prior | None,
        executor: Executor | None,
        watch: Callable[[int, float], None] | None = None,
        earlier: Expected | None = None,
    ) -> EMResult:
        tol = self.tol
        if tol is None and prior is None and self.stop == "likelihood":
            tol = fine_tolerance(blocks.weight)
        stopping = Stopping(self.stop, tol, self.max_iter)
        watch = watch or (_print_step if self.verbose else None)
        result = em(blocks, start, prior, stopping, executor, watch, earlier)
        if self.verbose:
            sys.stderr.write("\n")
        if not result.converged and self.max_iter > 0:
            text = Message("model.not_converged", limit=self.max_iter)
            warnings.warn(text, self._convergence_warning, stacklevel=4)
        return result

    def _set_results(self, result: EMResult) -> None:
        """Take over where EM arrived."""
        model, self._expected = result.model, result.expected
        self.weights_ = model.weights
        self.means_ = model.means
        self.variables_, self.traits_ = model.variables, model.parameters
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.log_likelihood_ = result.log_likelihood
        self.history_ = np.array(result.history)

    @property
    def mixture_(self) -> Mixture:
        """The fitted clusters, ω and M, as `profile` and a model file take them."""
        return Mixture(self.weights_, self.means_, self.variables_, self.traits_)

    def _start(self, blocks: Blocks, k: int, first: Floats, executor: Executor | None) -> Candidate:
        strength = None if self.smoothing == "auto" else self.smoothing
        if self.init == "best":
            return best_start(blocks, k, first, strength, executor)
        if isinstance(self.init, Mixture):
            model = self.init
        else:
            model = paper_start(blocks, k, first, executor)
        if strength is None:
            around = Prior.around(first, FIRST_STRENGTH, blocks.weight, blocks.variables)
            sums = short_run_em(blocks, model, around, executor).expected.sums
            strength = learn_strength(sums, first, blocks.weight, blocks.variables)
        return Candidate(model, strength, np.nan)

    def _check_parameters(self, blocks: Blocks) -> None:
        n, d, k = int(blocks.records), blocks.n_columns, self.n_components
        most = min(n, max_clusters(blocks))
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool) and 1 <= k <= most
        if k not in NUMBERS and not whole:
            raise InputError(
                "model.n_components", limit=most, n=n, columns=d + len(blocks.variables), k=k
            )
        number = isinstance(self.smoothing, Real)
        if self.smoothing != "auto" and not (number and self.smoothing >= 0):
            raise InputError("model.smoothing", smoothing=self.smoothing)
        if self.length not in (None, "adjust"):
            raise InputError("model.length", length=self.length)
        if self.keep is not None and not (isinstance(self.keep, Real) and self.keep >= 0):
            raise InputError("model.keep", keep=self.keep)
        if isinstance(self.init, Mixture):
            wrong = self.init.variables != blocks.variables
            if k in NUMBERS or self.init.means.shape != (k, d) or wrong:
                raise InputError(
                    "model.init_shape", expected=str((k, d)), came=str(self.init.means.shape)
                )
        elif self.keep is not None:
            raise InputError("model.keep_init")
        elif self.init not in ("best", "asvtd"):
            raise InputError("model.init", init=self.init)


def apply_influence(blocks: Blocks, influence: Mapping[str, float]) -> Blocks:
    """Return blocks whose features, and codes, say more or less about clusters."""
    names = {variable.feature.name for variable in blocks.variables}
    for name, value in influence.items():
        if name not in names:
            raise InputError("model.influence_name", name=name, names=sorted(names))
        if not (isinstance(value, Real) and 0 < value < np.inf):
            raise InputError("model.influence", name=name, value=value)
    variables = tuple(
        replace(variable, influence=float(influence.get(variable.feature.name, 1.0)))
        for variable in blocks.variables
    )
    return replace(blocks, variables=variables)


def _print_step(step: int, objective: float) -> None:
    """Print how far EM is, in one line that is written over, in a terminal as in a notebook."""
    sys.stderr.write(f"\rpass {step}: {objective:.6f} a record")
    sys.stderr.flush()
