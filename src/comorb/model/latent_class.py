"""LatentClassModel: clusters of rows with features of several kinds, and of codes beside them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.binary import binary_csr, check_places
from comorb.model.blocks import Blocks, from_csr
from comorb.model.em import Stop
from comorb.model.features import Feature, FeatureTable, Kind, Transform
from comorb.model.fitting import tempered
from comorb.model.mixture import Mixture
from comorb.model.mixture_estimator import MixtureEstimator
from comorb.model.prepared import prepared_for
from comorb.model.tables import (
    WHOLE,
    check_cells,
    check_names,
    columns_of,
    feature_of,
    inferred,
    split,
)

FEWEST, LEAST = 10, 0.01  # values, and of the rows: a column with fewer is almost empty
SKEWED = 3.0


class LatentClassModel(MixtureEstimator):
    """Clusters of rows with categories, counts, numbers and yes or no, with gaps.

    Conditional on its cluster a feature is categorical, Poisson or normal, and each code beside
    the features is Bernoulli. A missing cell drops out of the likelihood (missing at random); a
    code that a row doesn't have is absent. There is no random number: the same data give the same
    bits, whatever the number of threads and the order of the rows.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The number of clusters; "auto" chooses as :func:`choose_k` does.
    kinds : "infer" or dict, default="infer"
        The kind of each column by its name: "number", "category", "count" or "binary". What is not
        named is inferred, which one line on standard error tells: whole numbers are taken for
        numbers, never for counts.
    influence : dict, optional
        What to multiply the log-density of a feature by, by its name: 0.5 halves what it says
        about clusters. Codes have 1.
    transforms : dict, optional
        What a number goes through before the model sees it, by its name: "log", or "rank" for the
        normal score of its rank. ``parameters_`` has it undone.
    init, tol, stop, max_iter, smoothing, n_jobs, verbose
        As :class:`BernoulliMixture` has them.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The share of each cluster, largest first.
    means_ : ndarray of shape (n_components, n_codes)
        The probability of each code in each cluster; no columns where there are no codes.
    parameters_ : dict
        The parameters of each feature by its name, in people's units, a number a cluster each.
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
        n_components: int | Literal["auto"] = "auto",
        kinds: Literal["infer"] | Mapping[str, Kind] = "infer",
        *,
        influence: Mapping[str, float] | None = None,
        transforms: Mapping[str, Transform] | None = None,
        init: Literal["best", "asvtd"] | Mixture = "best",
        tol: float | None = None,
        stop: Stop = "likelihood",
        max_iter: int = 1000,
        smoothing: float | Literal["auto"] = "auto",
        n_jobs: int = -1,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kinds = kinds
        self.influence = influence
        self.transforms = transforms
        self.init = init
        self.tol = tol
        self.stop = stop
        self.max_iter = max_iter
        self.smoothing = smoothing
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit_blocks(
        self,
        blocks: Blocks,
        executor: Executor | None = None,
        watch: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Learn the clusters of rows that need not be in memory: see `BernoulliMixture`."""
        blocks = tempered(blocks, self.influence or {})
        self.kinds_ = {v.feature.name: v.feature.kind for v in blocks.variables}
        super().fit_blocks(blocks, executor, watch)
        return self

    @property
    def parameters_(self) -> dict[str, dict[str, Floats]]:
        """The parameters of each feature by its name, in people's units."""
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
        """Say that cells may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _blocks_of(self, X: Any, sample_weight: Any, reset: bool) -> Blocks:
        codes, table = split(X)
        if codes is None:
            table = self._checked(table, reset)
        columns = {} if table is None else columns_of(table)
        given = table.features if isinstance(table, FeatureTable) else ()
        n = codes.shape[0] if codes is not None else _length(columns)
        matrix = sparse.csr_array((n, 0)) if codes is None else _codes(codes)
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
        if reset:
            features = self._learned(columns, given, n)
            return from_csr(
                matrix.indptr, matrix.indices, matrix.shape[1], weights, features=features
            )
        if matrix.shape[1] != self.means_.shape[1]:
            raise InputError(
                f"expected {self.means_.shape[1]} codes, as the model was fitted with, got "
                f"{matrix.shape[1]}; give the same columns in the same order"
            )
        seen = prepared_for(self.variables_, self._known(columns))
        return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights, features=seen)

    def _checked(self, table: Any, reset: bool) -> Any:
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

    def _learned(self, columns: dict[str, Any], given: tuple[Feature, ...], n: int) -> FeatureTable:
        """Return the table to learn from, and tell what was inferred."""
        known = {feature.name: feature for feature in given}
        kinds = {} if isinstance(self.kinds, str) else dict(self.kinds)
        if isinstance(self.kinds, str) and self.kinds != "infer":
            raise InputError(f"expected kinds to be 'infer' or a dict, got {self.kinds!r}")
        transforms = dict(self.transforms or {})
        for what, names in (("kinds", kinds), ("transforms", transforms)):
            if unknown := [name for name in names if name not in columns]:
                raise InputError(
                    f"expected {what} of columns of the table, got {unknown[0]!r}; its columns are "
                    f"{', '.join(columns)}"
                )
        features, parts, told = [], [], []
        for name, column in columns.items():
            check_cells(name, column)
            own = known.get(name)
            kind, doubt = (own.kind, "") if own else inferred(column)
            transform = transforms.get(name, own.transform if own else "none")
            if name in kinds:
                kind = kinds[name]
            elif own is None:
                told.append(f"{name} {kind}{' (' + doubt + ')' if doubt else ''}")
            feature, values = feature_of(name, column, kind, transform)
            if own is not None and kind == own.kind:
                feature, values = _as_given(own, feature, values)
            _note(feature, values, n)
            features.append(feature)
            parts.append(values)
        if told:
            _tell(told)
        values = np.column_stack(parts) if parts else np.empty((n, 0))
        return FeatureTable(tuple(features), values)

    def _known(self, columns: dict[str, Any]) -> FeatureTable:
        """Return a table with the kinds that the model was fitted with."""
        features, parts = [], []
        for variable in self.variables_:
            own = variable.feature
            if own.name in columns:
                check_cells(own.name, columns[own.name])
                kind = "category" if own.kind == "binary" else own.kind
                feature, values = feature_of(own.name, columns[own.name], kind, own.transform)
                features.append(replace(feature, kind=own.kind))
                parts.append(values)
        n = _length(columns)
        values = np.column_stack(parts) if parts else np.empty((n, 0))
        return FeatureTable(tuple(features), values)


def _codes(codes: Any) -> sparse.csr_array:
    check_places(codes)
    return binary_csr(codes)


def _length(columns: dict[str, Any]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _as_given(own: Feature, feature: Feature, values: Floats) -> tuple[Feature, Floats]:
    """Return values with the levels that a table named, where it did."""
    if not own.levels:
        return feature, values
    place = {level: at for at, level in enumerate(own.levels)}
    moved = np.array([*(place[level] for level in feature.levels if level in place), np.nan])
    there = ~np.isnan(values)
    places = np.where(there, values, moved.size - 1).astype(np.int64)
    return replace(own, transform=feature.transform), np.asarray(moved[places], dtype=np.float64)


def _note(feature: Feature, values: Floats, n: int) -> None:
    """Refuse a column without a value, and warn of one that says nothing or is far from normal."""
    there = values[~np.isnan(values)]
    if not there.size:
        raise InputError(f"column {feature.name!r} has no value in {n} rows; leave it out")
    if n > FEWEST and there.size < max(FEWEST, LEAST * n):
        warnings.warn(
            f"column {feature.name!r} has {there.size} values in {n} rows and is almost empty; "
            "leave it out",
            ComorbWarning,
            stacklevel=5,
        )
    elif n > 1 and np.ptp(there) == 0:
        warnings.warn(
            f"column {feature.name!r} has one value alone and tells no clusters apart; leave it "
            "out",
            ComorbWarning,
            stacklevel=5,
        )
    elif feature.kind == "number" and feature.transform == "none" and there.size > 30:
        skewness = float(np.mean((there - there.mean()) ** 3) / there.std() ** 3)
        if abs(skewness) > SKEWED:
            offered = "log" if there.min() > 0 and skewness > 0 else "rank"
            warnings.warn(
                f"column {feature.name!r} is far from normal (skewness {skewness:.1f}); try "
                f"transforms={{{feature.name!r}: {offered!r}}}",
                ComorbWarning,
                stacklevel=5,
            )


def _tell(told: list[str]) -> None:
    hint = ""
    if any(WHOLE in one for one in told):
        hint = f"; if {WHOLE} are counts or categories, say so in kinds"
    print(f"kinds inferred: {', '.join(told)}{hint}", file=sys.stderr)  # noqa: T201
