"""The patient map: how many records lie in each cell, by cluster or by a mark, block by block.

What is shown are counts of cells, protected like all others; never a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import InputError
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.noise import parts_of, protected_counts
from comorb.insight.profile.places import MapLayout, lay_out
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.insight.runs.scoring import temperature_of
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import map_blocks
from comorb.records.cohort import Cohort
from comorb.storage import load_model

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
    """Return the mark that is asked for: None for clusters, a code, or column=value.

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
    raise InputError(f"expected {CLUSTER}, a code or an outcome of this run, got {by}")


def layout_of(folder: RunFolder, groups: Sequence[int] | None, records: int) -> MapLayout:
    """Return the map of a run, whose fitted clusters go by the numbers in ``groups``."""
    shown = load_model(folder.model)
    fitted = load_model(folder.base) if groups is not None else shown
    numbers = np.asarray(groups if groups is not None else shown.numbers)
    united = np.equal.outer(numbers, np.unique(numbers)).astype(float)
    shares = load_profile(folder.path).prevalence
    return lay_out(fitted.mixture, united, shares, temperature_of(fitted), records)


def draw_map(
    cohort: AnyCohort, layout: MapLayout, mark: Mark | None, secret: bytes, least: int
) -> dict[str, Any]:
    """Return the cells of a map that hold records, protected below a count where one is given.

    A cell is its place, its records, and the cluster that has most of them with its share; or,
    with a mark, None and the share that has it. What isn't told is None.
    """
    k, size = layout.united.shape[1], layout.width * layout.height
    sets = k if mark is None else 2
    counts, keys = np.zeros((size, sets + 1)), np.zeros((size, sets + 1), dtype=np.uint64)
    for cells, labels, part in _placed(cohort, layout):
        own = record_keys(part, secret) if least else np.zeros(len(part), dtype=np.uint64)
        every = np.arange(len(part))
        known, has = (every, every) if mark is None else mark.of(part)
        _add(counts, keys, cells, 0, own, every)
        if mark is None:
            np.add.at(counts, (cells, 1 + labels), 1)
            np.add.at(keys, (cells, 1 + labels), own)
        else:
            _add(counts, keys, cells, 1, own, known)
            _add(counts, keys, cells, 2, own, has)
    told = _protected(counts, keys, mark is None, least) if least else counts
    return {
        "width": layout.width,
        "height": layout.height,
        "centres": layout.centres.round(2).tolist(),
        "edge": None if mark is None or mark.column == "" or mark.value else mark.edge,
        "squares": [
            _cell(layout, place, told[place], mark)
            for place in np.flatnonzero(counts[:, 0]).tolist()
        ],
    }


def records_inside(cohort: AnyCohort, layout: MapLayout, region: Floats) -> pa.Array:
    """Return the ids of the records in the cells whose middle is inside a polygon."""
    wanted = np.zeros(layout.width * layout.height, dtype=bool)
    wanted[layout.inside(region)] = True
    found = [part.ids.filter(pa.array(wanted[cells])) for cells, _, part in _placed(cohort, layout)]
    return pa.concat_arrays(found)


def _placed(cohort: AnyCohort, layout: MapLayout) -> Iterator[tuple[Ints, Ints, Cohort]]:
    start = 0
    blocks = cohort.blocks(layout.mixture.variables)
    for number, (cells, labels) in enumerate(map_blocks(layout.places, blocks, None)):
        yield cells, labels, cohort.part(number, start, cells.size)
        start += cells.size


def _add(counts: Floats, keys: Keys, cells: Ints, place: int, own: Keys, rows: Ints) -> None:
    np.add.at(counts[:, place], cells[rows], 1)
    np.add.at(keys[:, place], cells[rows], own[rows])


def _protected(counts: Floats, keys: Keys, clusters: bool, least: int) -> Floats:
    whole = protected_counts(counts[:, :1], keys[:, :1], least)
    if clusters:
        parts = parts_of(counts[:, 1:], keys[:, 1:], counts[:, :1], whole, least)
        return np.hstack([whole, parts])
    known = parts_of(counts[:, 1:2], keys[:, 1:2], counts[:, :1], whole, least)
    has = parts_of(counts[:, 2:], keys[:, 2:], counts[:, 1:2], known, least)
    return np.hstack([whole, known, has])


def _cell(layout: MapLayout, place: int, told: Floats, mark: Mark | None) -> list[Any]:
    y, x = divmod(place, layout.width)
    whole, top, share = told[0], None, np.nan
    if mark is None:
        parts = np.nan_to_num(told[1:])
        if parts.any():
            top = int(parts.argmax())
            share = parts[top] / whole
    elif told[1] > 0:
        share = told[2] / told[1]
    rounded = None if np.isnan(share) else round(min(float(share), 1.0), 2)
    return [x, y, None if np.isnan(whole) else int(whole), top, rounded]
