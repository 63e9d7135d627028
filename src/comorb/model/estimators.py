"""BernoulliMixture and LatentClassModel: validation and scikit-learn manners, nothing else."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from comorb.errors import ComorbWarning, InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Ints, binary_csr, check_numbers, check_places
from comorb.model.blocks import Blocks, Rows, align_codes, from_csr, map_blocks, workers
from comorb.model.em import Stop
from comorb.model.emissions.base import Feature, FeatureTable, Kind, Transform
from comorb.model.features import PreparedFeatures, prepare_for
from comorb.model.fit import MixtureFit, Number, apply_influence
from comorb.model.frames import (
    WHOLE,
    check_cells,
    check_names,
    columns_of,
    infer_kind,
    make_feature,
    split_codes,
)
from comorb.model.lca import bootstrap_test, latent_classes
from comorb.model.length import LengthModel
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.select_k import Choice, Goal, choose
from comorb.model.sweep import hard_labels


class MixtureEstimator(
    MixtureFit,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    DensityMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What estimators of a mixture share: scikit-learn's interface over the fit to blocks of rows.

    A subclass adds how rows are read (``_blocks_of``) and its own parameters. All methods also take
    a cohort as rows, with its own weights.
    """

    _convergence_warning = ConvergenceWarning
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
            self.labels_ = hard_labels(self._scorer, blocks, executor)
        return self

    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; the first call is ``fit``.

        The rows of earlier calls aren't kept: they count by the sums that they had in the clusters
        found then (incremental EM, Neal and Hinton 1998). So this is close to a fit to all rows
        where the new ones are like the old; where they are not, fit again. The clusters keep their
        number and order.

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
        if self.length is not None:
            raise InputError("model.partial_length")
        blocks = self._rows(X, sample_weight, reset=False)
        earlier = self._expected
        with workers(self.n_jobs) as executor:
            weight = blocks.weight + float(earlier.sums[-1].sum())
            positives = prevalence(blocks, executor) * blocks.weight
            positives += earlier.positive_counts.sum(axis=1)
            prior = self._prior(positives / weight, weight, blocks)
            result = self._em(blocks, self.mixture_, prior, executor, earlier=earlier)
            self._set_results(result)
            self.labels_ = hard_labels(self._scorer, blocks, executor)
        return self

    def fit_predict(self, X: Any, y: None = None, sample_weight: Any = None) -> Ints:
        """Learn the clusters and return the one of each row: ``fit(X).labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of each row, (n,)."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, (n, k)."""
        return self._evaluate(X, None)[0]

    def transform(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, as features of another model."""
        return self.predict_proba(X)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of each row, (n,)."""
        return self._evaluate(X, None)[1]

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows, weighted where weights are given."""
        _, densities, weights = self._evaluate(X, sample_weight)
        return float(np.average(densities, weights=weights))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's criterion on X; lower is better."""
        _, densities, weights = self._evaluate(X, sample_weight)
        return float(-2 * weights @ densities + 2 * self.n_parameters_)

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion on X; lower is better.

        Rows with weights are as many records as their weights add up to.
        """
        _, densities, weights = self._evaluate(X, sample_weight)
        return float(-2 * weights @ densities + self.n_parameters_ * np.log(weights.sum()))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return the integrated completed likelihood on X: BIC plus twice the label entropy."""
        posterior, densities, weights = self._evaluate(X, sample_weight)
        entropy = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)), axis=1)
        fit = -2 * weights @ densities + self.n_parameters_ * np.log(weights.sum())
        return float(fit + 2 * weights @ entropy)

    def __sklearn_tags__(self) -> Any:
        """Declare that sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def mixture_(self) -> Mixture:
        """The fitted clusters, ω and M, as `profile` and a model file take them."""
        check_is_fitted(self)
        return super().mixture_

    @property
    def n_parameters_(self) -> int:
        """How many free numbers the fitted mixture has."""
        return self.mixture_.n_parameters

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def _evaluate(self, X: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
        """Return the posterior, the log-density and the weight of each row."""
        check_is_fitted(self)
        blocks = self._rows(X, sample_weight, reset=False)
        with workers(self.n_jobs) as executor:
            parts = list(map_blocks(partial(_evaluate_rows, self._scorer), blocks, executor))
        posterior, densities, weights = map(np.concatenate, zip(*parts, strict=True))
        return posterior, densities, weights

    @property
    def _scorer(self) -> Mixture | LengthModel:
        """What records are assigned by: the clusters, given length where that is adjusted."""
        return getattr(self, "given_length_", None) or self.mixture_

    def _rows(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        """Return rows, or the records of a cohort, as blocks."""
        if not is_cohort(X, sample_weight):
            return self._blocks_of(X, sample_weight, reset)
        if reset:
            blocks: Blocks = X.blocks(None if self._with_features else ())
            names = [*X.codes, *(variable.feature.name for variable in blocks.variables)]
            self.feature_names_in_ = np.array(names, dtype=object)
            return blocks
        codes = getattr(self, "feature_names_in_", np.array([]))[: self.means_.shape[1]]
        return align_codes(X, codes.tolist(), self.variables_)


def is_cohort(X: Any, sample_weight: Any) -> bool:
    """Return whether rows are the records of a cohort; refuse other weights than its own."""
    if not (hasattr(X, "blocks") and hasattr(X, "codes")):
        return False
    if sample_weight is not None:
        raise InputError("weights.cohort")
    return True


def _evaluate_rows(model: Mixture | LengthModel, rows: Rows) -> tuple[Floats, Floats, Floats]:
    posterior, densities = model.posterior(rows)
    return posterior, densities, rows.row_weights


class BernoulliMixture(MixtureEstimator):
    """Clusters of 0/1 rows by a mixture of independent Bernoullis.

    Learned from moments by tensor decomposition and refined by EM. There is nothing to tune and no
    random number: the same data give the same bits, whatever the threads and the order of the rows.

    Parameters
    ----------
    n_components : int or {"auto", "main", "finest"}, default="auto"
        The number of clusters, from 1 to the number of rows and of columns. "main" and "finest"
        are those that :func:`choose_k` finds; "auto" is "main", the number that stays the same
        when some records change.
    init : {"best", "asvtd"} or Mixture, default="best"
        Where EM starts: the best by evidence of many starts that depend on the data alone,
        Algorithm 2 of the paper, or a given mixture.
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
    keep : float, optional
        With a mixture as ``init``, such as last year's: how much more evidence, in nats a record, a
        fit that starts from the data must have to be taken instead; 0.01 is a good value. See
        ``anchor_``.
    length : "adjust", optional
        Let the shares of the clusters depend on how many codes a record has, so that these differ
        in what is coded and not in how much: P(x | s) = Σ_j π_j(s) P(x | j, s).
    n_jobs : int, default=-1
        Threads; −1 for all cores.
    verbose : int, default=0
        1 prints the objective of each pass, in one line on standard error.

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
        The sweep over the number of clusters, where that was chosen.
    tree_ : tuple of Merge
        How the clusters merge until one is left, where their number was chosen.
    anchor_ : Anchor
        With ``keep`` only: whether the fit stayed with ``init``, what the free fit has more, and
        the model that was not taken.
    given_length_ : LengthModel or None
        With ``length="adjust"``: the clusters with their shares by length.
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

    def sample(self, n_samples: int = 1, seed: int = 0) -> tuple[sparse.csr_array, Ints]:
        """Draw rows from the fitted mixture: a 0/1 matrix and the cluster of each row."""
        check_is_fitted(self)
        return self.mixture_.sample(n_samples, seed)

    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        return _make_blocks(self._matrix(X, reset), sample_weight)

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
    goal: Goal = "main",
    n_jobs: int = -1,
) -> Choice:
    """Find out how many clusters the rows of X hold.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, d), or Cohort
        Zeros and ones, of any type; a cohort's codes with its features and weights.
    ks : sequence of int, optional
        The numbers to try; by default 1 to 20, and more where the finest is the largest.
    sample_weight : array of shape (n,), optional
        How many records each row stands for: patterns with counts give the choice of their rows.
    lca : bool, default=False
        Also fit each number by plain maximum likelihood, for the table that papers on latent
        classes print: ``classes`` and ``to_pandas()`` of the choice.
    blrt : int, default=0
        With ``lca``, so many draws of the bootstrap likelihood-ratio test for each number.
    goal : {"main", "finest"}, default="main"
        Which of the two numbers that are found, ``main`` and ``finest``, is the best.
    n_jobs : int, default=-1
        Threads; −1 for all cores.

    Returns
    -------
    Choice
        For each number its evidence, BIC, ICL, held-out log-likelihood, stability, smallest
        cluster and the reliability of each; the main and the finest number, and the best one with
        the reason; a model for each, and the tree of merges. A number that leaves a cluster empty
        is not recommended.
    """
    if is_cohort(X, sample_weight):
        blocks: Blocks = X.blocks()
    else:
        check_places(X)
        check_numbers(X)
        checked = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        blocks = _make_blocks(binary_csr(checked), sample_weight)
    with workers(n_jobs) as executor:
        choice = choose(blocks, ks, executor, goal)
        if not (lca or blrt):
            return choice
        choice, models = latent_classes(choice, blocks, executor)
        return bootstrap_test(choice, models, blrt) if blrt else choice


def _make_blocks(
    matrix: sparse.csr_array,
    sample_weight: Any,
    features: FeatureTable | PreparedFeatures | None = None,
) -> Blocks:
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights, features=features)


@dataclass(frozen=True)
class Config:
    """Bounds beyond which a column of features is warned of; no result depends on them."""

    # values for a mean of its own in a cluster: the ten events of Peduzzi et al. (1996)
    min_values: int = 10
    min_share: float = 0.01  # of the rows
    # of skewness, beyond which a number is far from normal (Kline 2011), with so many values
    max_skewness: float = 3.0
    min_skewness_values: int = 30


CONFIG = Config()


class LatentClassModel(MixtureEstimator):
    """Clusters of rows with categories, counts, numbers and yes or no, with gaps.

    Given its cluster a feature is categorical, Poisson or normal; a code is Bernoulli. A missing
    cell drops out of the likelihood (missing at random); a code that a row doesn't have is absent.
    There is no random number: the same data give the same bits, as with `BernoulliMixture`.

    Parameters
    ----------
    n_components : int or {"auto", "main", "finest"}, default="auto"
        The number of clusters; "main" (or "auto") and "finest" choose as :func:`choose_k` does.
    kinds : "infer" or dict, default="infer"
        The kind of each column by its name: "number", "category", "count" or "binary". What is not
        named is inferred, which one line on standard error shows: whole numbers are taken for
        numbers, never for counts.
    influence : dict, optional
        The factor of a feature's log-density, by its name: 0.5 halves its weight of evidence.
        Codes have 1.
    transforms : dict, optional
        What a number goes through before the model sees it, by its name: "log", or "rank" for the
        normal score of its rank. ``parameters_`` has it undone.
    init, tol, stop, max_iter, smoothing, keep, length, n_jobs, verbose
        As :class:`BernoulliMixture` has them.

    Attributes
    ----------
    weights_, labels_, n_iter_, converged_, log_likelihood_, history_, smoothing_, choice_, tree_
        As :class:`BernoulliMixture` has them.
    means_ : ndarray of shape (n_components, n_codes)
        The probability of each code in each cluster; no columns where there are no codes.
    parameters_ : dict
        The parameters of each feature by its name, in original units, a number a cluster each.
    kinds_ : dict
        The kind of each column.
    variables_ : tuple of Variable
        What the model knows of each feature in the whole population.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 60.0], [1.0, np.nan], [0.0, 20.0], [0.0, 21.0]] * 10)
    >>> model = LatentClassModel(2, kinds={"x0": "binary", "x1": "number"}).fit(X)
    >>> model.predict(X)[:4].tolist()
    [1, 1, 0, 0]
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name
        self,
        n_components: int | Number = "auto",
        kinds: Literal["infer"] | Mapping[str, Kind] = "infer",
        *,
        influence: Mapping[str, float] | None = None,
        transforms: Mapping[str, Transform] | None = None,
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
        super().__init__(
            n_components,
            init=init,
            tol=tol,
            stop=stop,
            max_iter=max_iter,
            smoothing=smoothing,
            keep=keep,
            length=length,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.kinds = kinds
        self.influence = influence
        self.transforms = transforms

    def fit_blocks(
        self,
        blocks: Blocks,
        executor: Executor | None = None,
        watch: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Learn the clusters of rows that need not be in memory: see `BernoulliMixture`."""
        blocks = apply_influence(blocks, self.influence or {})
        self.kinds_ = {v.feature.name: v.feature.kind for v in blocks.variables}
        super().fit_blocks(blocks, executor, watch)
        return self

    @property
    def parameters_(self) -> dict[str, dict[str, Floats]]:
        """The parameters of each feature by its name, in original units."""
        return self.mixture_.described()

    def sample(self, n_samples: int = 1, seed: int = 0) -> tuple[Any, Ints]:
        """Draw rows: what `fit` takes (a `FeatureTable`, or codes and one), and their clusters."""
        check_is_fitted(self)
        rng = np.random.default_rng(seed)
        matrix, labels = self.mixture_.sample(n_samples, rng)
        if not self.variables_:
            return matrix, labels
        table = self.mixture_.sample_features(labels, rng)
        return (matrix, table) if self.means_.shape[1] else table, labels

    def __sklearn_tags__(self) -> Any:
        """Declare that cells may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        codes, table = split_codes(X)
        if codes is None:
            table = self._check_table(table, reset)
        columns = {} if table is None else columns_of(table)
        if codes is None:
            n = len(next(iter(columns.values()))) if columns else 0
            matrix = sparse.csr_array((n, 0))
        else:
            check_places(codes)
            matrix = binary_csr(codes)
        if reset:
            given = table.features if isinstance(table, FeatureTable) else ()
            features = self._learn_table(columns, given, matrix.shape[0])
            return _make_blocks(matrix, sample_weight, features)
        if matrix.shape[1] != self.means_.shape[1]:
            raise InputError("model.codes", expected=self.means_.shape[1], came=matrix.shape[1])
        known = self._known_table(columns, matrix.shape[0])
        return _make_blocks(matrix, sample_weight, prepare_for(self.variables_, known))

    def _check_table(self, table: Any, reset: bool) -> Any:
        """Return a table with scikit-learn's checks of arrays and of the names of frames."""
        if isinstance(table, FeatureTable | Mapping) or hasattr(table, "column_names"):
            if reset:
                self.feature_names_in_ = np.array([*columns_of(table)], dtype=object)
            return table
        if hasattr(table, "columns"):
            check_names([str(name) for name in table.columns])
            validate_data(self, table, reset=reset, skip_check_array=True)
            return table
        dtype = None if np.asarray(table).dtype == object else "numeric"
        checked = check_array(table, dtype=dtype, ensure_all_finite=False, estimator=self)
        validate_data(self, checked, reset=reset, skip_check_array=True)
        return checked

    def _learn_table(
        self, columns: dict[str, Any], given: tuple[Feature, ...], n: int
    ) -> FeatureTable:
        """Return the table to learn from, and print what was inferred."""
        known = {feature.name: feature for feature in given}
        kinds = {} if isinstance(self.kinds, str) else dict(self.kinds)
        if isinstance(self.kinds, str) and self.kinds != "infer":
            raise InputError("model.kinds", kinds=self.kinds)
        transforms = dict(self.transforms or {})
        for what, names in (("kinds", kinds), ("transforms", transforms)):
            if unknown := [name for name in names if name not in columns]:
                raise InputError(
                    "model.unknown_column", option=what, name=unknown[0], names=columns
                )
        features, parts, inferred = [], [], []
        for name, column in columns.items():
            check_cells(name, column)
            own = known.get(name)
            kind, doubt = (own.kind, "") if own else infer_kind(column)
            transform = transforms.get(name, own.transform if own else "none")
            if name in kinds:
                kind = kinds[name]
            elif own is None:
                inferred.append(f"{name} {kind} ({doubt})" if doubt else f"{name} {kind}")
            feature, values = make_feature(name, column, kind, transform)
            if own is not None and kind == own.kind:
                feature, values = _use_given_levels(own, feature, values)
            _check_column(feature, values, n)
            features.append(feature)
            parts.append(values)
        if inferred:
            hint = f"; if {WHOLE} are counts or categories, say so in kinds"
            end = hint if any(WHOLE in one for one in inferred) else ""
            print(f"kinds inferred: {', '.join(inferred)}{end}", file=sys.stderr)  # noqa: T201
        values = np.column_stack(parts) if parts else np.empty((n, 0))
        return FeatureTable(tuple(features), values)

    def _known_table(self, columns: dict[str, Any], n: int) -> FeatureTable:
        """Return a table with the kinds that the model was fitted with."""
        features, parts = [], []
        for variable in self.variables_:
            own = variable.feature
            if own.name in columns:
                check_cells(own.name, columns[own.name])
                kind = "category" if own.kind == "binary" else own.kind
                feature, values = make_feature(own.name, columns[own.name], kind, own.transform)
                features.append(replace(feature, kind=own.kind))
                parts.append(values)
        values = np.column_stack(parts) if parts else np.empty((n, 0))
        return FeatureTable(tuple(features), values)


def _use_given_levels(own: Feature, feature: Feature, values: Floats) -> tuple[Feature, Floats]:
    """Return values as places among the levels that a table named, where it did."""
    if not own.levels:
        return feature, values
    place = {level: at for at, level in enumerate(own.levels)}
    moved = np.array([*(place[level] for level in feature.levels if level in place), np.nan])
    there = ~np.isnan(values)
    places = np.where(there, values, moved.size - 1).astype(np.int64)
    return replace(own, transform=feature.transform), np.asarray(moved[places], dtype=np.float64)


def _check_column(feature: Feature, values: Floats, n: int) -> None:
    """Refuse a column without a value, and warn of one that can't separate clusters."""
    there = values[~np.isnan(values)]
    if not there.size:
        raise InputError("column.no_value", column=feature.name, n=n)
    problem, name = None, feature.name
    if n > CONFIG.min_values and there.size < max(CONFIG.min_values, CONFIG.min_share * n):
        problem = Message("column.almost_empty", column=name, values=there.size, n=n)
    elif n > 1 and np.ptp(there) == 0:
        problem = Message("column.constant", column=name)
    elif (feature.kind, feature.transform) == ("number", "none") and (
        there.size > CONFIG.min_skewness_values
    ):
        skewness = float(np.mean((there - there.mean()) ** 3) / there.std() ** 3)
        offered = "log" if there.min() > 0 and skewness > 0 else "rank"
        if abs(skewness) > CONFIG.max_skewness:
            option = str({name: offered})
            problem = Message("column.skewed", column=name, skewness=skewness, option=option)
    if problem:
        warnings.warn(problem, ComorbWarning, stacklevel=5)
