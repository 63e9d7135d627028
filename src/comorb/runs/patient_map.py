"""The patient map: where each record lies by the model alone, counted by cell, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Rows, map_blocks, single_threaded
from comorb.model.diagnostics import temper
from comorb.model.mixture import Mixture
from comorb.profiles.noise import CountProtector, record_keys
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.runs.assign import temperature_of
from comorb.runs.cohorts import AnyCohort
from comorb.runs.folder import RunFolder, load_profile
from comorb.storage import load_model

N_STEPS = 200  # of bringing distances on the map closer to the true ones
CODE_REACH = 0.45  # how far codes move a record, in distances between centres that lie close
MIN_CELLS, MAX_CELLS = 12, 64  # along the longer side
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class MapLayout:
    """A map in cells: the centres (k, 2), what each code adds (d, 2), how far, and its size."""

    mixture: Mixture
    group_matrix: Floats  # (clusters of the mixture, k): which of them count as one
    temperature: float
    centres: Floats
    loadings: Floats
    reach: float
    width: int
    height: int

    def places(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return the cell of each row, counted line by line, and its most probable cluster."""
        posterior = self.mixture.posterior(rows)[0]
        tempered = temper(posterior, self.temperature)
        shape = rows.indptr.size - 1, self.mixture.n_columns
        ones = csr_array((np.ones(rows.indices.size), rows.indices, rows.indptr), shape=shape)
        apart = ones @ self.loadings - tempered @ (self.mixture.means @ self.loadings)
        length = np.sqrt(np.square(apart).sum(axis=1, keepdims=True))
        at = tempered @ self.group_matrix @ self.centres + self.reach * apart / (1 + length)
        x = np.clip(at[:, 0].astype(np.int64), 0, self.width - 1)
        y = np.clip(at[:, 1].astype(np.int64), 0, self.height - 1)
        return y * self.width + x, (posterior @ self.group_matrix).argmax(axis=1)

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
    mixture: Mixture, group_matrix: Floats, shares: Floats, temperature: float, records: int
) -> MapLayout:
    """Return the map of clusters; ``shares`` (k, columns) are of each code and indicator.

    The distance of two clusters is that of arcsin √share over all of them, by which a step from 1%
    to 2% counts like one from 40% to 45%. Classical scaling gives the start and stress majorisation
    the end. A map of few records has large cells.
    """
    angles = np.arcsin(np.sqrt(np.clip(np.nan_to_num(shares), 0, 1)))
    squares = np.square(angles[:, None] - angles[None]).sum(axis=2)
    weights = mixture.weights @ group_matrix
    centres = _majorise_stress(_classical_scaling(squares, weights), np.sqrt(squares))
    apart = _distances(centres)
    np.fill_diagonal(apart, np.inf)
    reach = CODE_REACH * float(np.median(apart.min(axis=1))) if len(centres) > 1 else 1.0
    low, high = centres.min(axis=0) - reach, centres.max(axis=0) + reach
    cells = int(np.clip(round(np.sqrt(records) / 4), MIN_CELLS, MAX_CELLS))
    side = float((high - low).max()) / cells
    width, height = np.maximum(np.ceil((high - low) / side - 1e-9), 1).astype(int).tolist()
    return MapLayout(
        mixture,
        group_matrix,
        temperature,
        np.round((centres - low) / side, DECIMALS),
        _loadings(mixture, group_matrix @ (centres - weights @ centres)),
        reach / side,
        width,
        height,
    )


def _classical_scaling(squares: Floats, weights: Floats) -> Floats:
    """Return classical scaling of squared distances, clusters counted by their weights."""
    k = len(weights)
    centring = np.eye(k) - np.outer(np.ones(k), weights)
    inner = -0.5 * centring @ squares @ centring.T
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * inner * root)
    order = np.argsort(-values, kind="stable")[:2]
    found = vectors[:, order] * np.sqrt(np.maximum(values[order], 0))
    found = found / np.maximum(root, 1e-9)[:, None]
    found = np.hstack([found, np.zeros((k, 2 - found.shape[1]))])
    largest = np.abs(np.round(found, DECIMALS)).argmax(axis=0)
    signs = np.where(found[largest, [0, 1]] < 0, -1.0, 1.0)
    return np.asarray(found * signs)


def _majorise_stress(centres: Floats, distances: Floats) -> Floats:
    """Return the centres moved so that distances on the map are closer to the true ones."""
    k = len(centres)
    if k < 3:
        return centres
    for _ in range(N_STEPS):
        apart = _distances(centres)
        ratio = np.where(apart > 1e-12, distances / np.maximum(apart, 1e-12), 0.0)
        centres = (np.diag(ratio.sum(axis=1)) - ratio) @ centres / k
    return np.asarray(centres)


def _distances(centres: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(centres[:, None] - centres[None]).sum(axis=2)))


def _loadings(mixture: Mixture, away: Floats) -> Floats:
    """Return how far a code moves a record along each side: as its clusters lie, in deviations."""
    means, weights = mixture.means, mixture.weights
    along = (means - weights @ means).T @ (weights[:, None] * away)
    within = weights @ (means * (1 - means))
    spread = np.sqrt(within @ np.square(along))
    return np.asarray(along / np.where(spread > 0, spread, 1.0))


CLUSTER = "cluster"


@dataclass(frozen=True)
class Mark:
    """What cells are coloured by: a code, a value of a column, or a number above an edge."""

    code: str | None = None
    column: str = ""
    value: str | None = None
    edge: float = 0.0

    def of(self, part: Cohort) -> tuple[Ints, Ints]:
        """Return the rows of which it is known, and those of them that have it."""
        if self.code is not None:
            column = part.matrix[:, [part.codes.index(self.code)]].tocoo()
            return np.arange(len(part)), np.sort(column.coords[0])
        values = part.covariates[self.column]
        known = np.flatnonzero(pc.is_valid(values).to_numpy())
        if self.value is None:
            has = pc.greater(pc.cast(values, pa.float64()), self.edge)
        else:
            has = pc.equal(pc.cast(values, pa.string()), self.value)
        return known, np.flatnonzero(pc.fill_null(has, False).to_numpy())


def mark_of(profile: Profile, by: str) -> Mark | None:
    """Return the mark of a text: None for clusters, a code, or column=value.

    A number is parted at its median over all records, to two digits.
    """
    if by == CLUSTER:
        return None
    if by in profile.codes[: profile.n_codes]:
        return Mark(code=by)
    name, _, value = by.partition("=")
    for one in profile.outcomes:
        if one.name == name and one.kind == "number" and not value:
            middle = float(one.estimate[-1, -1])
            return Mark(column=name, edge=float(f"{middle:.2g}"))
        if one.name == name and value in one.values:
            return Mark(column=name, value=value)
    raise InputError("map.by", cluster=CLUSTER, by=by)


def layout_of(folder: RunFolder, groups: Sequence[int] | None, records: int) -> MapLayout:
    """Return the map of a run, whose fitted clusters go by the numbers in ``groups``."""
    shown = load_model(folder.model)
    fitted = load_model(folder.base) if groups is not None else shown
    numbers = np.asarray(groups if groups is not None else shown.numbers)
    group_matrix = np.equal.outer(numbers, np.unique(numbers)).astype(float)
    shares = load_profile(folder.path).prevalence
    return lay_out(fitted.mixture, group_matrix, shares, temperature_of(fitted), records)


def draw_map(
    cohort: AnyCohort, layout: MapLayout, mark: Mark | None, secret: bytes, min_cell: int
) -> dict[str, Any]:
    """Return the cells of a map that hold records, protected below a count where one is given.

    Then cells of few records are left out, like those of none. A cell is its place, its records,
    and the cluster that has most of them with its share; or, with a mark, None and the share that
    has it. Suppressed figures are None.
    """
    k, size = layout.group_matrix.shape[1], layout.width * layout.height
    sets = k if mark is None else 2
    counts, keys = np.zeros((size, sets + 1)), np.zeros((size, sets + 1), dtype=np.uint64)
    for cells, labels, part in _place_records(cohort, layout):
        own = record_keys(part, secret) if min_cell else np.zeros(len(part), dtype=np.uint64)
        every = np.arange(len(part))
        known, has = (every, every) if mark is None else mark.of(part)
        _add_counts(counts, keys, cells, 0, own, every)
        if mark is None:
            np.add.at(counts, (cells, 1 + labels), 1)
            np.add.at(keys, (cells, 1 + labels), own)
        else:
            _add_counts(counts, keys, cells, 1, own, known)
            _add_counts(counts, keys, cells, 2, own, has)
    published = _protect_counts(counts, keys, mark is None, min_cell) if min_cell else counts
    return {
        "width": layout.width,
        "height": layout.height,
        "centres": layout.centres.round(2).tolist(),
        "edge": None if mark is None or mark.column == "" or mark.value else mark.edge,
        "squares": [
            _cell(layout, place, published[place], mark)
            for place in np.flatnonzero(published[:, 0] > 0).tolist()
        ],
    }


def records_inside(cohort: AnyCohort, layout: MapLayout, region: Floats) -> pa.Array:
    """Return the ids of the records in the cells whose middle is inside a polygon."""
    wanted = layout.inside(region)
    found = [
        part.ids.filter(pa.array(np.isin(cells, wanted)))
        for cells, _, part in _place_records(cohort, layout)
    ]
    return pa.concat_arrays(found)


def _place_records(cohort: AnyCohort, layout: MapLayout) -> Iterator[tuple[Ints, Ints, Cohort]]:
    start = 0
    blocks = cohort.blocks(layout.mixture.variables)
    for number, (cells, labels) in enumerate(map_blocks(layout.places, blocks, None)):
        yield cells, labels, cohort.part(number, start, cells.size)
        start += cells.size


def _add_counts(counts: Floats, keys: Keys, cells: Ints, place: int, own: Keys, rows: Ints) -> None:
    np.add.at(counts[:, place], cells[rows], 1)
    np.add.at(keys[:, place], cells[rows], own[rows])


def _protect_counts(counts: Floats, keys: Keys, clusters: bool, min_cell: int) -> Floats:
    """Return protected counts of cells, their records first; NaN in those of few or none."""
    protector = CountProtector(min_cell, keys[:, 0].sum(dtype=np.uint64))
    whole, true = protector.counts(counts[:, :1], keys[:, :1]), counts[:, :1]
    if clusters:
        order = [*range(1, counts.shape[1]), 0]
        parts = protector.table(counts[:, order], keys[:, order], whole[:, 0])[:, :-1]
        return np.hstack([whole, protector.fit_within(parts, counts[:, 1:], whole, true)])
    known = protector.part_counts(counts[:, 1:2], keys[:, 1:2], whole, true, 0)
    has = protector.part_counts(counts[:, 2:], keys[:, 2:], known, counts[:, 1:2])
    return np.hstack([whole, known, has])


def _cell(layout: MapLayout, place: int, published: Floats, mark: Mark | None) -> list[Any]:
    y, x = divmod(place, layout.width)
    whole, top, share = published[0], None, np.nan
    if mark is None:
        parts = np.nan_to_num(published[1:])
        if parts.any():
            top = int(parts.argmax())
            share = parts[top] / whole
    elif published[1] > 0:
        share = published[2] / published[1]
    rounded = None if np.isnan(share) else round(min(float(share), 1.0), 2)
    return [x, y, None if np.isnan(whole) else int(whole), top, rounded]
