"""MixtureEstimator: scikit-learn's manners over the model, for every estimator of it."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Blocks, Rows, map_blocks
from comorb.model.choose import Choice, choose, final
from comorb.model.columns import known_codes
from comorb.model.confidence import collapsed
from comorb.model.descent import FIRST_STRENGTH, settle
from comorb.model.em import EMResult, Expected, Stop, Stopping, em, fine_tolerance
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.start import Candidate, best_start, paper_start
from comorb.model.threads import workers
from comorb.model.views import most_clusters


class MixtureEstimator(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    DensityMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What estimators of a mixture share: the fit to blocks of rows, and all that follows it.

    One adds how rows are read (``_blocks_of``) and its own parameters. A cohort is taken wherever
    rows are, with its own weights.
    """

    n_components: int | Literal["auto"]
    init: Literal["best", "asvtd"] | Mixture
    tol: float | None
    stop: Stop
    max_iter: int
    smoothing: float | Literal["auto"]
    n_jobs: int
    verbose: int
    variables_: tuple[Variable, ...]
    _with_features = True  # whether the features of a cohort are learned from, too

    @abstractmethod
    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        """Return rows as blocks; ``reset`` when they are to be learned from."""

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn the clusters of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d), or Cohort
            The rows, as the estimator takes them.
        y : None
            Ignored.
        sample_weight : array of shape (n,), optional
            How many records each row stands for.

        Returns
        -------
        MixtureEstimator
            The estimator itself.
        """
        blocks = self._rows(X, sample_weight, reset=True)
        with workers(self.n_jobs) as executor:
            self.fit_blocks(blocks, executor)
            self._label(blocks, executor)
        return self

    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; the first ones are learned from as by ``fit``.

        The rows of earlier calls aren't kept, and not looked at again: they count by the sums that
        they had in the clusters found then (incremental EM, Neal and Hinton 1998). So this is close
        to a fit to all rows where the new ones are like the old; where they are not, or clusters
        are to be split, fit again. The clusters keep their number and order.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``; ``log_likelihood_``, ``labels_`` and ``history_`` are of these rows.

        Returns
        -------
        MixtureEstimator
            The estimator itself.
        """
        if not hasattr(self, "weights_"):
            return self.fit(X, sample_weight=sample_weight)
        blocks = self._rows(X, sample_weight, reset=False)
        earlier = self._expected
        with workers(self.n_jobs) as executor:
            weight = blocks.weight + float(earlier.sums[-1].sum())
            carriers = prevalence(blocks, executor) * blocks.weight + earlier.carriers.sum(axis=1)
            prior = self._prior(carriers / weight, weight, blocks)
            result = self._em(blocks, self.mixture_, prior, executor, earlier=earlier)
            self._take(result, list(range(len(self.weights_))))
            self._label(blocks, executor)
        return self

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
            Who maps the blocks, in place of ``n_jobs``; the answer does not depend on it.
        watch : callable, optional
            Hears of every pass of EM: its number and the objective per record.

        Returns
        -------
        MixtureEstimator
            The estimator itself.
        """
        self.n_features_in_ = blocks.n_columns + len(blocks.variables)
        self._check_parameters(blocks)
        k = self._number(blocks, executor)
        first = prevalence(blocks, executor)
        start = self._start(blocks, k, first, executor)
        self.smoothing_ = start.strength if self.smoothing == "auto" else float(self.smoothing)
        prior = self._prior(first, blocks.weight, blocks)
        result = self._em(blocks, start.model, prior, executor, watch)
        order = result.model.order()
        model = result.model.at(order)
        if found := collapsed(model, blocks.weight):
            warnings.warn(found, ComorbWarning, stacklevel=3)
        if self.n_components == "auto":
            self.choice_: Choice = final(self.choice_, model, blocks, executor)
        self._take(result, order)
        return self

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
        watch = watch or (_told_step if self.verbose else None)
        result = em(blocks, start, prior, stopping, executor, watch, earlier)
        if self.verbose:
            sys.stderr.write("\n")
        if not result.converged and self.max_iter > 0:
            warnings.warn(
                f"EM did not converge in {self.max_iter} passes; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return result

    def _take(self, result: EMResult, order: Sequence[int]) -> None:
        """Take over where EM arrived, its clusters in an order."""
        model = result.model.at(order)
        self._expected = replace(result.expected, sums=result.expected.sums[:, order])
        self.weights_ = model.weights
        self.means_ = model.means
        self.variables_, self.traits_ = model.variables, model.parameters
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.log_likelihood_ = result.log_likelihood
        self.history_ = np.array(result.history)

    def fit_predict(self, X: Any, y: None = None, sample_weight: Any = None) -> Ints:
        """Learn the clusters and return the one of each row: ``fit(X).labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of each row, (n,)."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, (n, k)."""
        return self._posterior(X)[0]

    def transform(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, as features of another model."""
        return self.predict_proba(X)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of each row, (n,)."""
        return self._posterior(X)[1]

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows, weighted where weights are given."""
        _, densities, weights = self._weighed(X, sample_weight)
        return float(np.average(densities, weights=weights))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's criterion on X; lower is better."""
        _, densities, weights = self._weighed(X, sample_weight)
        return float(-2 * weights @ densities + 2 * self.n_parameters_)

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion on X; lower is better.

        Rows with weights are as many records as their weights add up to.
        """
        _, densities, weights = self._weighed(X, sample_weight)
        return float(-2 * weights @ densities + self.n_parameters_ * np.log(weights.sum()))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return the integrated completed likelihood on X: BIC plus twice the label entropy."""
        posterior, densities, weights = self._weighed(X, sample_weight)
        unsure = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)), axis=1)
        fit = -2 * weights @ densities + self.n_parameters_ * np.log(weights.sum())
        return float(fit + 2 * weights @ unsure)

    def __sklearn_tags__(self) -> Any:
        """Say that sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def mixture_(self) -> Mixture:
        """The fitted clusters, ω and M, as `profile` and a model file take them."""
        check_is_fitted(self)
        return Mixture(self.weights_, self.means_, self.variables_, self.traits_)

    @property
    def n_parameters_(self) -> int:
        """How many free numbers the fitted mixture has."""
        return self.mixture_.n_parameters

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def _posterior(self, X: Any) -> tuple[Floats, Floats]:
        posterior, densities, _ = self._weighed(X, None)
        return posterior, densities

    def _weighed(self, X: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
        """Return the posterior, the log-density and the weight of each row."""
        check_is_fitted(self)
        blocks = self._rows(X, sample_weight, reset=False)
        with workers(self.n_jobs) as executor:
            parts = list(map_blocks(partial(_seen, self.mixture_), blocks, executor))
        posterior, densities, weights = map(np.concatenate, zip(*parts, strict=True))
        return posterior, densities, weights

    def _label(self, blocks: Blocks, executor: Executor | None) -> None:
        parts = map_blocks(partial(_nearest, self.mixture_), blocks, executor)
        self.labels_ = np.concatenate(list(parts))

    def _rows(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        """Return rows, or the records of a cohort, as blocks."""
        if not (hasattr(X, "blocks") and hasattr(X, "codes")):
            return self._blocks_of(X, sample_weight, reset)
        if sample_weight is not None:
            raise InputError("a cohort has weights of its own; give sample_weight with a matrix")
        if reset:
            blocks: Blocks = X.blocks(None if self._with_features else ())
            names = [*X.codes, *(variable.feature.name for variable in blocks.variables)]
            self.feature_names_in_ = np.array(names, dtype=object)
            return blocks
        codes = getattr(self, "feature_names_in_", np.array([]))[: self.means_.shape[1]]
        return known_codes(X, codes.tolist(), self.variables_)

    def _number(self, blocks: Blocks, executor: Executor | None) -> int:
        if self.n_components != "auto":
            return self.n_components
        self.choice_ = choose(blocks, None, executor)
        self.tree_ = self.choice_.tree
        return self.choice_.best

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
            sums = settle(blocks, model, around, executor).expected.sums
            strength = learn_strength(sums, first, blocks.weight, blocks.variables)
        return Candidate(model, strength, np.nan)

    def _check_parameters(self, blocks: Blocks) -> None:
        n, d, k = blocks.n_rows, blocks.n_columns, self.n_components
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
        most = min(n, most_clusters(blocks))
        if k != "auto" and not (whole and 1 <= k <= most):
            raise InputError(
                "expected the number of clusters, n_components, to be 'auto' or a whole number "
                f"from 1 to {most}, for {n} rows and {d + len(blocks.variables)} columns, got {k!r}"
            )
        number = isinstance(self.smoothing, Real)
        if self.smoothing != "auto" and not (number and self.smoothing >= 0):
            raise InputError(
                f"expected smoothing to be 'auto' or zero or more, got {self.smoothing!r}"
            )
        if isinstance(self.init, Mixture):
            wrong = self.init.variables != blocks.variables
            if k == "auto" or self.init.means.shape != (k, d) or wrong:
                raise InputError(
                    f"expected init to have means of shape {(k, d)}, got {self.init.means.shape}; "
                    f"give n_components and a mixture of as many clusters"
                )
        elif self.init not in ("best", "asvtd"):
            raise InputError(f"expected init to be 'best', 'asvtd' or a Mixture, got {self.init!r}")


def _seen(model: Mixture, rows: Rows) -> tuple[Floats, Floats, Floats]:
    posterior, densities = model.posterior(rows)
    return posterior, densities, rows.weights if rows.weights.size else np.ones(densities.size)


def _nearest(model: Mixture, rows: Rows) -> Ints:
    return np.asarray(model.posterior(rows)[0].argmax(axis=1))


def _told_step(step: int, objective: float) -> None:
    """Tell how far EM is, in one line that is written over, in a terminal as in a notebook."""
    sys.stderr.write(f"\rpass {step}: {objective:.6f} a record")
    sys.stderr.flush()
