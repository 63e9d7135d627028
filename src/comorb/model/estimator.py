"""BernoulliMixture: validation and scikit-learn manners over the model, nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.binary import binary_csr, check_places
from comorb.model.blocks import Blocks, from_csr, map_blocks
from comorb.model.choose import Choice, choose, final
from comorb.model.confidence import collapsed
from comorb.model.decompose import asvtd
from comorb.model.descent import FIRST_STRENGTH, settle
from comorb.model.em import Stop, Stopping, em, fine_tolerance
from comorb.model.lca import bootstrap_test, latent_classes
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.start import Candidate, best_start
from comorb.model.threads import workers


class BernoulliMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of 0/1 rows by a mixture of independent Bernoullis.

    Learned from moments by tensor decomposition and refined by EM. There is nothing to tune, and
    no random number: the same data give the same bits, whatever the number of threads and the
    order of the rows.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The number of clusters, from 1 to the number of rows and of columns; "auto" lets
        :func:`choose_k` choose.
    init : {"best", "asvtd"} or Mixture, default="best"
        Where EM starts: the winner by evidence among many starts that depend on the data alone,
        Algorithm 2 of the paper, or a mixture of your own.
    tol : float, optional
        When EM has converged; by default 1e-6 for ``stop="likelihood"`` (less for a small table
        with ``smoothing=0``, see ``em.fine_tolerance``), 0.01 for ``stop="weights"``.
    stop : {"likelihood", "weights"}, default="likelihood"
        What ``tol`` measures: the gain of the objective per record, or the paper's ‖Δω‖₁.
    max_iter : int, default=1000
        The most passes over the rows.
    smoothing : float or "auto", default="auto"
        Strength α of the prior that draws each mean to the code's overall prevalence (see
        ``Prior.around``); "auto" learns it from the data, 0 is plain maximum likelihood.
    n_jobs : int, default=-1
        Threads; −1 for all cores.
    verbose : int, default=0
        1 prints the objective at each step.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The share of each cluster, largest first.
    means_ : ndarray of shape (n_components, n_features)
        The probability of each column in each cluster.
    n_iter_ : int
        Passes over the rows after the first.
    converged_ : bool
        Whether ``tol`` was reached within ``max_iter`` steps.
    log_likelihood_ : float
        The log-likelihood of the training rows, in all.
    history_ : ndarray
        The objective per record before the first step and after each one that was kept.
    smoothing_ : float
        The strength of the prior that was used.
    choice_ : Choice
        The sweep over the number of clusters, with ``n_components="auto"`` only.
    tree_ : tuple of Merge
        How the clusters merge on the way down to one, with ``n_components="auto"`` only.
    n_features_in_ : int
        The number of columns seen at fit.
    feature_names_in_ : ndarray of str
        Their names, where the training data had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 10)
    >>> BernoulliMixture(2).fit_predict(X)[:4].tolist()
    [0, 1, 0, 1]
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        init: Literal["best", "asvtd"] | Mixture = "best",
        tol: float | None = None,
        stop: Stop = "likelihood",
        max_iter: int = 1000,
        smoothing: float | Literal["auto"] = "auto",
        n_jobs: int = -1,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.tol = tol
        self.stop = stop
        self.max_iter = max_iter
        self.smoothing = smoothing
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn the clusters of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Zeros and ones, of any type.
        y : None
            Ignored.
        sample_weight : array of shape (n,), optional
            How many records each row stands for.

        Returns
        -------
        BernoulliMixture
            The estimator itself.
        """
        blocks = _blocks(self._matrix(X, reset=True), sample_weight)
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
        BernoulliMixture
            The estimator itself.
        """
        self.n_features_in_ = blocks.n_columns
        self._check_parameters(blocks)
        k = self._number(blocks, executor)
        first = prevalence(blocks, executor)
        start = self._start(blocks, k, first, executor)
        self.smoothing_ = start.strength if self.smoothing == "auto" else float(self.smoothing)
        prior = None
        if self.smoothing_ > 0:
            prior = Prior.around(first, self.smoothing_, blocks.weight)
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
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; lower is better."""
        densities = self.score_samples(X)
        return float(-2 * densities.sum() + self._n_parameters() * np.log(densities.size))

    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood on X: BIC plus twice the label entropy."""
        posterior, densities = self._posterior(X)
        entropy = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)))
        fit = -2 * densities.sum() + self._n_parameters() * np.log(densities.size)
        return float(fit + 2 * entropy)

    def sample(self, n_samples: int = 1, seed: int = 0) -> tuple[sparse.csr_array, Ints]:
        """Draw rows from the fitted mixture: a 0/1 matrix and the cluster of each row."""
        check_is_fitted(self)
        return self.mixture_.sample(n_samples, seed)

    def __sklearn_tags__(self) -> Any:
        """Say that sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def mixture_(self) -> Mixture:
        """The fitted clusters, ω and M, as `profile` and a model file take them."""
        check_is_fitted(self)
        return Mixture(self.weights_, self.means_)

    def _n_parameters(self) -> int:
        k, d = self.means_.shape
        return int(k - 1 + k * d)

    def _posterior(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        blocks = _blocks(self._matrix(X, reset=False))
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
        model = self.init if isinstance(self.init, Mixture) else asvtd(blocks, k, executor)
        if strength is None:
            around = Prior.around(first, FIRST_STRENGTH, blocks.weight)
            sums = settle(blocks, model, around, executor).expected.sums
            strength = learn_strength(sums, first, blocks.weight)
        return Candidate(model, strength, np.nan)

    def _check_parameters(self, blocks: Blocks) -> None:
        n, d, k = blocks.n_rows, blocks.n_columns, self.n_components
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
        if k != "auto" and not (whole and 1 <= k <= min(n, d)):
            raise InputError(
                "expected the number of clusters, n_components, to be 'auto' or a whole number "
                f"from 1 to {min(n, d)}, for {n} rows and {d} columns, got {k!r}"
            )
        number = isinstance(self.smoothing, Real)
        if self.smoothing != "auto" and not (number and self.smoothing >= 0):
            raise InputError(
                f"expected smoothing to be 'auto' or zero or more, got {self.smoothing!r}"
            )
        if isinstance(self.init, Mixture):
            if k == "auto" or self.init.means.shape != (k, d):
                raise InputError(
                    f"expected init to have means of shape {(k, d)}, got {self.init.means.shape}; "
                    f"give n_components and a mixture of as many clusters"
                )
        elif self.init not in ("best", "asvtd"):
            raise InputError(f"expected init to be 'best', 'asvtd' or a Mixture, got {self.init!r}")

    def _matrix(self, X: Any, reset: bool) -> sparse.csr_array:
        check_places(X)
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        return binary_csr(checked)


def choose_k(
    X: Any,
    ks: Sequence[int] | None = None,
    *,
    sample_weight: Any = None,
    lca: bool = False,
    blrt: int = 0,
    n_jobs: int = -1,
) -> Choice:
    """Find out how many clusters the rows of X hold.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, d)
        Zeros and ones, of any type.
    ks : sequence of int, optional
        The numbers to look at; by default 1 to 20, and more where the largest is best.
    sample_weight : array of shape (n,), optional
        How many records each row stands for.
    lca : bool, default=False
        Also fit each number by plain maximum likelihood, for the table that papers on latent
        classes print: ``classes`` and ``to_pandas()`` of the choice.
    blrt : int, default=0
        With ``lca``, so many draws of the bootstrap likelihood-ratio test for each number.
    n_jobs : int, default=-1
        Threads; −1 for all cores.

    Returns
    -------
    Choice
        For each number its evidence, BIC, ICL, held-out log-likelihood, stability, smallest
        cluster and the reliability of each; the best one with the reason; a model for each, and
        the tree of merges. A number that leaves a cluster empty is not recommended.
    """
    check_places(X)
    checked = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    with workers(n_jobs) as executor:
        blocks = _blocks(binary_csr(checked), sample_weight)
        choice = choose(blocks, ks, executor)
        if not (lca or blrt):
            return choice
        choice, models = latent_classes(choice, blocks, executor)
        return bootstrap_test(choice, models, blrt) if blrt else choice


def _blocks(matrix: sparse.csr_array, sample_weight: Any = None) -> Blocks:
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights)


def _print_step(step: int, objective: float) -> None:
    print(f"pass {step}: {objective:.6f} a record")  # noqa: T201 - what verbose asks for
