"""MixtureEstimator: scikit-learn's manners over the model, for every estimator of it."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Blocks, Rows, map_blocks
from comorb.model.columns import known_codes
from comorb.model.fitting import MixtureFit
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.threads import workers


class MixtureEstimator(
    MixtureFit,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    DensityMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What estimators of a mixture share: scikit-learn's manners over the fit to blocks of rows.

    One adds how rows are read (``_blocks_of``) and its own parameters. A cohort is taken wherever
    rows are, with its own weights.
    """

    n_jobs: int
    _unsettled = ConvergenceWarning
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
        return super().mixture_

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


def _seen(model: Mixture, rows: Rows) -> tuple[Floats, Floats, Floats]:
    posterior, densities = model.posterior(rows)
    return posterior, densities, rows.weights if rows.weights.size else np.ones(densities.size)


def _nearest(model: Mixture, rows: Rows) -> Ints:
    return np.asarray(model.posterior(rows)[0].argmax(axis=1))
