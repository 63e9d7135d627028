"""Starts and splits drawn from the data: noise that is a hash of what the columns hold."""

from __future__ import annotations

import numpy as np

from comorb.model import traits
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.kernels import mixed
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import EDGE, Mixture

SPLIT = 0.5  # standard deviation of the log-odds of the two halves of a cluster


def uniform(keys: Keys, turn: int, count: int) -> Floats:
    """Return numbers in (0, 1), (count, d): the same for the same columns, turn and place.

    A hash of each column's key, of the turn and of the place of the row.
    """
    places = mixed(np.arange(count, dtype=np.uint64) + (np.uint64(turn) << np.uint64(32)))
    with np.errstate(over="ignore"):
        return (mixed(np.add.outer(places, keys).ravel()) / 2.0**64).reshape(count, -1) + 2.0**-66


def scattered(
    first: Floats,
    k: int,
    keys: Keys,
    turn: int,
    least: float,
    variables: tuple[Variable, ...] = (),
) -> Mixture:
    """Return k clusters of even weight, each mean its prevalence times a Gamma(2, ½) number.

    That is half the sum of two exponential numbers: mean 1, standard deviation 0.7. The features
    are those of the whole population, moved by the logarithm of such a number.
    """
    draws = uniform(keys, turn, 2 * k)
    noise = -np.log(draws[:k] * draws[k:]) / 2
    means = np.clip(first * noise[:, : first.size], least, 1 - least)
    whole = np.tile(traits.whole(variables), (k, 1))
    parameters = _moved(variables, whole, np.log(noise[:, first.size :]))
    return Mixture(np.full(k, 1 / k), means, variables, parameters)


def halved(model: Mixture, keys: Keys, turn: int) -> Mixture:
    """Return twice as many clusters: each in two halves, apart by noise on its log-odds.

    Cluster j becomes j and j + k, with half its weight each; the noise is even, with standard
    deviation ``SPLIT``, and of opposite sign in the two halves.
    """
    noise = SPLIT * 12**0.5 * (uniform(keys, turn, model.n_components) - 0.5)
    inside = np.clip(model.means, EDGE, 1 - EDGE)
    odds = np.log(inside) - np.log1p(-inside)
    noise, own = noise[:, : model.n_columns], noise[:, model.n_columns :]
    apart = np.concatenate([odds + noise, odds - noise])
    means = np.clip(1 / (1 + np.exp(-apart)), EDGE, 1 - EDGE)
    moved = [_moved(model.variables, model.parameters, sign * own) for sign in (1.0, -1.0)]
    return Mixture(np.tile(model.weights / 2, 2), means, model.variables, np.concatenate(moved))


def _moved(variables: tuple[Variable, ...], parameters: Floats, noise: Floats) -> Floats:
    """Return the parameters of features moved by noise, (k, m) each."""
    return traits.mapped(variables, lambda v, part, own: v.shifted(part, noise[:, own]), parameters)


def refilled(model: Mixture, empty: Ints, keys: Keys, turn: int) -> Mixture:
    """Return the model with halves of its largest clusters in the places of empty ones."""
    large = np.argsort(-model.weights, kind="stable")[: min(empty.size, model.n_components // 2)]
    empty = empty[: large.size]
    halves = halved(model, keys, turn)
    weights = model.weights.copy()
    weights[large] = weights[empty] = model.weights[large] / 2
    means, parameters = model.means.copy(), model.parameters.copy()
    for own, half in ((means, halves.means), (parameters, halves.parameters)):
        own[large] = half[large]
        own[empty] = half[large + model.n_components]
    return Mixture(weights / weights.sum(), means, model.variables, parameters)


def joined(one: Mixture, other: Mixture) -> Mixture:
    """Return the clusters of two models side by side, each with half its weight."""
    weights = np.concatenate([one.weights, other.weights])
    means = np.concatenate([one.means, other.means])
    parameters = np.concatenate([one.parameters, other.parameters])
    return Mixture(weights / 2, means, one.variables, parameters)
