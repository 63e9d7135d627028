"""MixtureEstimator: scikit-learn's manners over the model, for every estimator of it."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Blocks, map_blocks
from comorb.model.choose import Choice, choose, final
from comorb.model.confidence import collapsed
from comorb.model.descent import FIRST_STRENGTH, settle
from comorb.model.em import Stop, Stopping, em, fine_tolerance
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.start import Candidate, best_start, paper_start
from comorb.model.threads import workers
from comorb.model.views import most_clusters


class MixtureEstimator(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """What estimators of a mixture share: the fit to blocks of rows, and all that follows it.

    One adds how rows are read (``_blocks_of``) and its own parameters.
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

    @abstractmethod
    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        """Return rows as blocks; ``reset`` when they are to be learned from."""

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn the clusters of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
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
        blocks = self._blocks_of(X, sample_weight, reset=True)
        with workers(self.n_jobs) as executor:
            return self.fit_blocks(blocks, executor)

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
        prior = None
        if self.smoothing_ > 0:
            prior = Prior.around(first, self.smoothing_, blocks.weight, blocks.variables)
        tol = self.tol
        if tol is None and prior is None and self.stop == "likelihood":
            tol = fine_tolerance(blocks.weight)
        stopping = Stopping(self.stop, tol, self.max_iter)
        watch = watch or (_print_step if self.verbose else None)
        result = em(blocks, start.model, prior, stopping, executor, watch)
        if not result.converged and self.max_iter > 0:
            warnings.warn(
                f"EM did not converge in {self.max_iter} passes; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        model = result.model.ordered()
        if found := collapsed(model, blocks.weight):
            warnings.warn(found, ComorbWarning, stacklevel=3)
        if self.n_components == "auto":
            self.choice_: Choice = final(self.choice_, model, blocks, executor)
        self.weights_ = model.weights
        self.means_ = model.means
        self.variables_, self.traits_ = model.variables, model.parameters
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.log_likelihood_ = result.log_likelihood
        self.history_ = np.array(result.history)
        return self

    def fit_predict(self, X: Any, y: None = None, sample_weight: Any = None) -> Ints:
        """Learn the clusters and return the one of each row: ``fit(X).predict(X)``."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of each row, (n,)."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, (n, k)."""
        return self._posterior(X)[0]

    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of each row, (n,)."""
        return self._posterior(X)[1]

    def score(self, X: Any, y: None = None) -> float:
        """Return the mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion on X; lower is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; lower is better."""
        densities = self.score_samples(X)
        return float(-2 * densities.sum() + self.n_parameters_ * np.log(densities.size))

    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood on X: BIC plus twice the label entropy."""
        posterior, densities = self._posterior(X)
        entropy = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)))
        fit = -2 * densities.sum() + self.n_parameters_ * np.log(densities.size)
        return float(fit + 2 * entropy)

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

    def _posterior(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        blocks = self._blocks_of(X, None, reset=False)
        with workers(self.n_jobs) as executor:
            parts = list(map_blocks(self.mixture_.posterior, blocks, executor))
        return np.concatenate([p for p, _ in parts]), np.concatenate([q for _, q in parts])

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


def _print_step(step: int, objective: float) -> None:
    print(f"pass {step}: {objective:.6f} a record")  # noqa: T201 - what verbose asks for
