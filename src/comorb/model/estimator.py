"""BernoulliMixture: validation and scikit-learn manners over the model, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from comorb.model.arrays import Ints
from comorb.model.binary import binary_csr, check_numbers, check_places
from comorb.model.blocks import Blocks, from_csr
from comorb.model.choose import Choice, choose
from comorb.model.em import Stop
from comorb.model.lca import bootstrap_test, latent_classes
from comorb.model.mixture import Mixture
from comorb.model.mixture_estimator import MixtureEstimator
from comorb.model.threads import workers


class BernoulliMixture(MixtureEstimator):
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
        1 tells the objective of each pass, in one line on standard error.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The share of each cluster, largest first.
    means_ : ndarray of shape (n_components, n_features)
        The probability of each column in each cluster.
    labels_ : ndarray of shape (n,)
        The most probable cluster of each training row; not after ``fit_blocks``.
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

    _with_features = False

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

    def sample(self, n_samples: int = 1, seed: int = 0) -> tuple[sparse.csr_array, Ints]:
        """Draw rows from the fitted mixture: a 0/1 matrix and the cluster of each row."""
        check_is_fitted(self)
        return self.mixture_.sample(n_samples, seed)

    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        return _blocks(self._matrix(X, reset), sample_weight)

    def _matrix(self, X: Any, reset: bool) -> sparse.csr_array:
        check_places(X)
        check_numbers(X)
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
    check_numbers(X)
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
