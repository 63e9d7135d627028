"""Latent class analysis: the figures that a paper prints for each number of classes, in totals."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

import numpy as np

from comorb.model import features as traits
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, from_csr, map_reduce, single_threaded
from comorb.model.em import EMResult, Stopping, em, fine_tolerance
from comorb.model.exact_sums import Sums, snap_to_grid
from comorb.model.features import prepare_for
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.select_k import Choice, ClassRow
from comorb.model.start import best_start
from comorb.model.subsample import distinct_rows

MAX_ENTROPY = 64.0  # nats a record, more than log k of any k: bounds the terms of exact sums


@dataclass(frozen=True)
class Config:
    """Settings of the figures of latent class analysis."""

    # records below which identical rows are made one: their keys take about 64 MB
    max_distinct: int = 1_000_000
    # how far the halves of a split class start from each other, as a probability, where the
    # bootstrap test refits: far enough for EM to tell them apart, near enough to stay in the class
    split: float = 0.05
    max_passes: int = 5000  # of a fit, which then ends without having converged
    draw_passes: int = 1000  # of a fit to a draw of the bootstrap


CONFIG = Config()

Report = Callable[[int, int, int], None]  # the number of classes, draws that are done, of how many


@dataclass(frozen=True, eq=False)
class ClassificationSums(Sums):
    """Σ w·p over the records most probably in each class, their weights, and Σ w·entropy."""

    tops: Floats  # (k,)
    sizes: Floats  # (k,)
    entropy: float


@single_threaded
def latent_classes(
    choice: Choice, blocks: Blocks, executor: Executor | None = None
) -> tuple[Choice, dict[int, Mixture]]:
    """Return a choice with the figures of latent class analysis, and the models they are of.

    Each k is fitted by plain maximum likelihood over all rows, from where a fit of that k starts
    and from the choice's model. N is the sum of the weights. O(nnz·k) a pass.
    """
    first = prevalence(blocks, executor)
    if blocks.records < CONFIG.max_distinct:
        blocks = distinct_rows(blocks, first, executor)
    rows, models = [], {}
    for row in choice.rows:
        fitted = fit_classes(blocks, choice.models[row.k], first, executor)
        model = models[row.k] = fitted.model.ordered()
        sums = map_reduce(partial(_classification_sums, model, blocks.weight), blocks, executor)
        rows.append(_row(model, fitted.log_likelihood, sums, row.held_out, row.stability))
    return replace(choice, classes=tuple(rows)), models


def fit_classes(
    blocks: Blocks, start: Mixture, first: Floats, executor: Executor | None = None
) -> EMResult:
    """Return the better maximum-likelihood fit: from a given start, and from the best start."""
    starts = [start]
    if start.n_components > 1:
        starts.append(best_start(blocks, start.n_components, first, 0.0, executor).model)
    stopping = Stopping(tol=fine_tolerance(blocks.weight), max_iter=CONFIG.max_passes)
    fits = [em(blocks, one, None, stopping, executor) for one in starts]
    return max(fits, key=lambda fit: fit.log_likelihood)


def _classification_sums(model: Mixture, total: float, rows: Rows) -> ClassificationSums:
    posterior = model.posterior(rows)[0]
    n, k = posterior.shape
    weights = rows.row_weights
    labels = posterior.argmax(axis=1)
    top = snap_to_grid(weights * posterior[np.arange(n), labels], total)
    each = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)), axis=1)
    entropy = snap_to_grid(weights * each, total * MAX_ENTROPY)
    return ClassificationSums(
        np.bincount(labels, top, k).astype(np.float64),
        np.bincount(labels, snap_to_grid(weights, total), k).astype(np.float64),
        float(entropy.sum()),
    )


def _row(
    model: Mixture, likelihood: float, sums: ClassificationSums, held_out: float, stability: float
) -> ClassRow:
    k, count = model.n_components, model.n_parameters
    n = float(sums.sizes.sum())
    precision = np.divide(sums.tops, sums.sizes, out=np.zeros(k), where=sums.sizes > 0)
    doubt = np.maximum(1 - precision, 1e-12)
    prior = model.weights / np.maximum(1 - model.weights, 1e-12)
    odds = (precision / doubt) / np.maximum(prior, 1e-12)
    entropy = 1 - sums.entropy / (n * np.log(k)) if k > 1 else 1.0
    return ClassRow(
        k=k,
        records=n,
        log_likelihood=likelihood,
        parameters=count,
        aic=-2 * likelihood + 2 * count,
        bic=-2 * likelihood + count * float(np.log(n)),
        adjusted_bic=-2 * likelihood + count * float(np.log((n + 2) / 24)),
        caic=-2 * likelihood + count * (float(np.log(n)) + 1),
        entropy=float(entropy),
        smallest=float(sums.sizes.min()),
        smallest_share=float(sums.sizes.min() / n),
        sizes=tuple(sums.sizes.tolist()),
        average_posterior=tuple(precision.tolist()),
        odds_correct=tuple(np.minimum(odds, 1e6).tolist()) if k > 1 else (),
        held_out=held_out * n,
        stability=stability,
    )


def bootstrap_test(
    choice: Choice,
    models: dict[int, Mixture],
    draws: int,
    seconds: float = np.inf,
    tell: Report | None = None,
) -> Choice:
    """Return a choice whose classes have the bootstrap likelihood-ratio test against one fewer.

    2(ℓ_k − ℓ_{k−1}) against its values on as many records drawn from the model of k − 1 classes,
    fitted to again with k − 1 and k classes from warm starts (McLachlan 1987). Draws are made by a
    hash of that model, so that they are always the same; after ``seconds``, those that are done
    count. p = (1 + as large) / (1 + draws).
    """
    end = time.monotonic() + seconds
    rows = []
    for row in choice.classes:
        if row.k - 1 not in models or row.k == 1:
            rows.append(row)
            continue
        few, many = models[row.k - 1], models[row.k]
        before = next(one.log_likelihood for one in choice.classes if one.k == row.k - 1)
        actual = 2 * (row.log_likelihood - before)
        larger, done = 0, 0
        for at in range(draws):
            if time.monotonic() > end:
                break
            larger += _draw_ratio(few, many, round(row.records), at) >= actual
            done += 1
            if tell is not None:
                tell(row.k, done, draws)
        p = (1 + larger) / (1 + done) if done else None
        rows.append(replace(row, ratio=actual, ratio_p=p, ratio_draws=done))
    return replace(choice, classes=tuple(rows))


def _draw_ratio(few: Mixture, many: Mixture, n: int, turn: int) -> float:
    """Return 2(ℓ_k − ℓ_{k−1}) on records drawn from the model with fewer classes."""
    seed = int.from_bytes(sha256(few.key + turn.to_bytes(4, "little")).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    matrix, labels = few.sample(n, rng)
    features = prepare_for(few.variables, few.sample_features(labels, rng))
    blocks = from_csr(matrix.indptr, matrix.indices, matrix.shape[1], features=features)
    stopping = Stopping(tol=fine_tolerance(blocks.weight) * 100, max_iter=CONFIG.draw_passes)
    low = em(blocks, few, None, stopping)
    starts = [many, *(_split_class(low.model, place, rng) for place in range(few.n_components))]
    high = max(em(blocks, one, None, stopping).log_likelihood for one in starts)
    return 2 * max(high - low.log_likelihood, 0.0)


def _split_class(model: Mixture, place: int, rng: np.random.Generator) -> Mixture:
    """Return a model in which one class became two, a little apart."""
    apart = CONFIG.split * rng.choice([-1.0, 1.0], size=model.n_columns)
    own = model.means[place]
    means = np.vstack([model.means, np.clip(own + apart, 0.001, 0.999)])
    means[place] = np.clip(own - apart, 0.001, 0.999)
    weights = np.append(model.weights, model.weights[place] / 2)
    weights[place] /= 2
    parameters = np.vstack([model.parameters, model.parameters[place]])
    for variable, at in traits.parameter_slices(model.variables):
        noise = CONFIG.split * rng.choice([-1.0, 1.0], size=(1, variable.n_parameters))
        before = model.parameters[[place], at]
        parameters[-1:, at] = variable.shift(before, noise)
        parameters[[place], at] = variable.shift(before, -noise)
    return Mixture(weights / weights.sum(), means, model.variables, parameters)
