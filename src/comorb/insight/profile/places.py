"""Places: where each record lies on a map of clusters, by the model alone.

The centres of clusters keep their distances as well as two dimensions can. A record lies between
the centres by its probabilities, and around them by its codes: to the side where its codes are more
common. Nothing is drawn at random, and nothing depends on other records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Rows
from comorb.model.mixture import Mixture
from comorb.model.tempering import tempered
from comorb.model.threads import single_threaded

STEPS = 200  # of bringing distances on the map closer to the true ones
REACH = 0.45  # how far codes move a record, in distances between centres that lie close
FEWEST_CELLS, MOST_CELLS = 12, 64  # along the longer side
DIGITS = 6


@dataclass(frozen=True, eq=False)
class MapLayout:
    """A map in cells: the centres (k, 2), what each code adds (d, 2), how far, and its size."""

    mixture: Mixture
    united: Floats  # (clusters of the mixture, k): which of them count as one
    temperature: float
    centres: Floats
    loadings: Floats
    reach: float
    width: int
    height: int

    def places(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return the cell of each row, counted line by line, and its most probable cluster."""
        posterior = self.mixture.posterior(rows)[0]
        cooler = tempered(posterior, self.temperature)
        ones = csr_array(
            (np.ones(rows.indices.size), rows.indices, rows.indptr),
            shape=(rows.indptr.size - 1, self.mixture.n_columns),
        )
        apart = ones @ self.loadings - cooler @ (self.mixture.means @ self.loadings)
        length = np.sqrt(np.square(apart).sum(axis=1, keepdims=True))
        at = cooler @ self.united @ self.centres + self.reach * apart / (1 + length)
        x = np.clip(at[:, 0].astype(np.int64), 0, self.width - 1)
        y = np.clip(at[:, 1].astype(np.int64), 0, self.height - 1)
        return y * self.width + x, (posterior @ self.united).argmax(axis=1)

    def inside(self, region: Floats) -> Ints:
        """Return the cells whose middle is inside a polygon (n, 2), by the even-odd rule."""
        x, y = np.meshgrid(np.arange(self.width) + 0.5, np.arange(self.height) + 0.5)
        odd = np.zeros(x.shape, dtype=bool)
        for (x0, y0), (x1, y1) in zip(region, np.roll(region, -1, axis=0), strict=True):
            crosses = (y0 > y) != (y1 > y)
            rise = y1 - y0 if y1 != y0 else 1.0
            odd ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / rise)
        return np.flatnonzero(odd)


@single_threaded
def lay_out(
    mixture: Mixture, united: Floats, shares: Floats, temperature: float, records: int
) -> MapLayout:
    """Return the map of clusters, of which ``shares`` (k, columns) are how common each sign is.

    The distance of two clusters is that of arcsin √share over all signs, by which a step from 1%
    to 2% counts like one from 40% to 45%. Classical scaling gives the start and stress majorisation
    the end. A map of few records has large cells.
    """
    angles = np.arcsin(np.sqrt(np.clip(np.nan_to_num(shares), 0, 1)))
    squares = np.square(angles[:, None] - angles[None]).sum(axis=2)
    weights = mixture.weights @ united
    centres = _settled(_scaled(squares, weights), np.sqrt(squares))
    apart = np.sqrt(np.square(centres[:, None] - centres[None]).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    nearest = apart.min(axis=1)
    reach = REACH * float(np.median(nearest)) if len(centres) > 1 else 1.0
    low, high = centres.min(axis=0) - reach, centres.max(axis=0) + reach
    cells = int(np.clip(round(np.sqrt(records) / 4), FEWEST_CELLS, MOST_CELLS))
    side = float((high - low).max()) / cells
    width, height = np.maximum(np.ceil((high - low) / side - 1e-9), 1).astype(int).tolist()
    return MapLayout(
        mixture,
        united,
        temperature,
        np.round((centres - low) / side, DIGITS),
        _loadings(mixture, united @ (centres - weights @ centres)),
        reach / side,
        width,
        height,
    )


def _scaled(squares: Floats, weights: Floats) -> Floats:
    """Return classical scaling of squared distances, clusters counted by their weights."""
    k = len(weights)
    centring = np.eye(k) - np.outer(np.ones(k), weights)
    inner = -0.5 * centring @ squares @ centring.T
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * inner * root)
    order = np.argsort(-values, kind="stable")[:2]
    found = (
        vectors[:, order] * np.sqrt(np.maximum(values[order], 0)) / np.maximum(root, 1e-9)[:, None]
    )
    found = np.hstack([found, np.zeros((k, 2 - found.shape[1]))])
    largest = np.abs(np.round(found, DIGITS)).argmax(axis=0)
    signs = np.where(found[largest, [0, 1]] < 0, -1.0, 1.0)
    return np.asarray(found * signs)


def _settled(centres: Floats, distances: Floats) -> Floats:
    """Return the centres moved so that distances on the map are closer to the true ones."""
    k = len(centres)
    if k < 3:
        return centres
    for _ in range(STEPS):
        apart = np.sqrt(np.square(centres[:, None] - centres[None]).sum(axis=2))
        ratio = np.where(apart > 1e-12, distances / np.maximum(apart, 1e-12), 0.0)
        pull = np.diag(ratio.sum(axis=1)) - ratio
        centres = pull @ centres / k
    return np.asarray(centres)


def _loadings(mixture: Mixture, away: Floats) -> Floats:
    """Return how far a code moves a record along each side: as its clusters lie, in deviations."""
    means, weights = mixture.means, mixture.weights
    along = (means - weights @ means).T @ (weights[:, None] * away)
    within = weights @ (means * (1 - means))
    spread = np.sqrt(within @ np.square(along))
    return np.asarray(along / np.where(spread > 0, spread, 1.0))
