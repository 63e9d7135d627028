"""Suppression: no count of fewer than a given number of patients, shown or worked out.

Each table is a partition of the records of each cluster, such as with and without a code,
whose totals over the clusters are known. A cluster's line is hidden when one of its counts is
small; then more lines are, until at least two are hidden and their sums, which anyone can get
by subtraction, are not small either. When a total is small the whole table is hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import null_space

from comorb.errors import InputError
from comorb.insight.profile import heatmap
from comorb.insight.profile.contents import Cluster, Outcome, Pair
from comorb.model.arrays import Floats, Mask
from comorb.records.ledger import Line

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile


def hide(table: Floats, forced: Mask, least: int) -> tuple[Mask, bool]:
    """Return which lines of a table (k, values) to hide, and whether to hide its totals.

    ``forced`` lines are hidden whatever they hold. With a threshold of 11, the 4 would follow
    from the total, so the 30 goes too:
    >>> hide(np.array([[4.0, 96], [30, 70], [50, 50]]), np.zeros(3, bool), 11)
    (array([ True,  True, False]), False)
    """
    if _small(table.sum(axis=0), least).any():
        return np.ones_like(forced), True
    hidden = forced | _small(table, least).any(axis=1)
    weight = np.where(table > 0, table, np.inf).min(axis=1)
    while hidden.any() and not hidden.all():
        sums = table[hidden].sum(axis=0)
        if hidden.sum() > 1 and not _small(sums, least).any():
            break
        hidden[np.argmin(np.where(hidden, np.inf, weight))] = True
    return hidden, False


def suppress(full: Profile, least: int) -> Profile:
    """Return a profile without small counts; a cluster whose size is hidden is hidden whole."""
    if least <= max(full.min_cell, 1):
        return full
    if full.min_cell:
        raise InputError(
            f"this profile is already suppressed below {full.min_cell}; suppress the full "
            f"profile below {least} instead"
        )
    sizes = np.array([float(cluster.size or 0) for cluster in full.clusters])
    small, _ = hide(sizes[:, None], np.zeros(full.k, dtype=bool), least)
    cells, totals = hide_codes(full.counts, sizes, small, least)
    automatic = full.automatic_names()
    times = -(-least // full.heatmap.per_line)
    thinned = heatmap.thin(full.heatmap, times) if times > 1 else full.heatmap
    shown = replace(
        full,
        source=replace(full.source, lines=merge_lines(full.source.lines, least)),
        clusters=tuple(
            Cluster(cluster.number, f"Cluster {cluster.number}", *[None] * 8) if gone else cluster
            for cluster, gone in zip(full.clusters, small, strict=True)
        ),
        counts=blank(full.counts, cells),
        prevalence=blank(full.prevalence, cells),
        totals=blank(full.totals, totals),
        overall=blank(full.overall, totals),
        low=blank(full.low, cells),
        high=blank(full.high, cells),
        weights=blank(full.weights, small),
        means=blank(full.means, cells),
        expected=blank(full.expected, totals),
        outcomes=tuple(hide_outcome(each, sizes, small, least) for each in full.outcomes),
        heatmap=heatmap.masked(thinned, cells),
        caveats=replace(full.caveats, pairs=_shown_pairs(full, least)),
        min_cell=least,
    )
    fresh = shown.automatic_names()
    again = {
        place: fresh[place]
        for place, cluster in enumerate(full.clusters)
        if not small[place] and cluster.name == automatic[place]
    }
    return shown.renamed(again)


def _shown_pairs(full: Profile, least: int) -> tuple[Pair, ...]:
    """Return the pairs of codes of which no small number is told: with both, one or neither.

    Weighted numbers of records don't tell whether one is small, so then there are none.
    """
    if full.source.weight is not None:
        return ()
    shown = []
    for pair in full.caveats.pairs:
        one, two = full.totals[pair.first], full.totals[pair.second]
        table = np.array([pair.observed, one - pair.observed, two - pair.observed])
        neither = full.source.records - table.sum()
        if not _small(np.append(table, neither), least).any():
            shown.append(pair)
    return tuple(shown)


def hide_codes(counts: Floats, sizes: Floats, forced: Mask, least: int) -> tuple[Mask, Mask]:
    """Return which cells (k, d) of a table of carriers to hide, and which totals (d,)."""
    cells, totals = np.zeros(counts.shape, dtype=bool), np.zeros(counts.shape[1], dtype=bool)
    for column, carriers in enumerate(counts.T):
        table = np.column_stack([carriers, sizes - carriers])
        cells[:, column], totals[column] = hide(table, forced, least)
    return cells, totals


def hide_outcome(outcome: Outcome, sizes: Floats, forced: Mask, least: int) -> Outcome:
    """Return an outcome without its small cells.

    A count and its share tell how many values are known, so where few are missing the shares
    are hidden as well. A mean does not tell, so there only the number of known values is.
    """
    known, counts = outcome.known[:-1], outcome.counts[:, :-1]
    unknown, no_total = hide(np.column_stack([known, sizes - known]), forced, least)
    if outcome.kind == "share":
        table = np.column_stack([*counts, known - counts.sum(axis=0)])
        total = no_total or bool(_small(table.sum(axis=0), least).any())
        cells = hide_table(table, least, forced | unknown) | total
    else:
        lines, total = hide(known[:, None], forced, least)
        cells = np.tile(lines[:, None], len(outcome.values))
    gone = np.vstack([cells, np.full(cells.shape[1], total)])[:, : len(outcome.values)].T
    return replace(
        outcome,
        known=blank(outcome.known, np.append(unknown, no_total) | gone.all(axis=0)),
        counts=blank(outcome.counts, gone[: len(outcome.counts)]),
        estimate=blank(outcome.estimate, gone),
        low=blank(outcome.low, gone),
        high=blank(outcome.high, gone),
    )


def hide_table(table: Floats, least: int, forced: Mask | None = None) -> Mask:
    """Return which cells to hide of a table (rows, columns) whose margins are both known.

    The small cells, and the rows that are ``forced``; then, as long as one of them is given
    away, the corners of the rectangle through it that hides the fewest records besides.
    """
    hidden = _small(table, least)
    if forced is not None:
        hidden |= forced[:, None]
    while (given := _given_away(table, hidden, least)).any():
        row, column = np.argwhere(given)[0]
        cost = np.where(hidden, 0, np.where(table > 0, table, np.inf))
        corners = cost[[row]] + cost[:, [column]] + cost
        corners[row] = corners[:, column] = np.inf
        corners[corners == 0] = np.inf
        if not np.isfinite(corners).any():
            return np.ones_like(hidden)
        to_row, to_column = np.unravel_index(np.argmin(corners), corners.shape)
        hidden[[row, to_row, to_row], [to_column, column, to_column]] = True
    return hidden


def _given_away(table: Floats, hidden: Mask, least: int) -> Mask:
    """Return the hidden cells that follow from the margins and are small, alone or summed up.

    The hidden cells are the unknowns of linear equations, one for each row and column; a cell
    is given away when no solution of the homogeneous system moves it.
    """
    below, beside = (_small((table * hidden).sum(axis=axis), least) for axis in (0, 1))
    given: Mask = hidden & (below | beside[:, None])
    if hidden.any():
        rows, columns = np.nonzero(hidden)
        equations = np.vstack(
            [rows == row for row in range(table.shape[0])]
            + [columns == column for column in range(table.shape[1])]
        ).astype(float)
        fixed = np.abs(null_space(equations)).max(axis=1, initial=0) < 1e-9
        given[rows[fixed], columns[fixed]] |= _small(table, least)[rows[fixed], columns[fixed]]
    return given


def round_table(table: Floats, least: int) -> tuple[Floats, int]:
    """Return what may be shown of a table (rows, columns) with known margins, and the step.

    Small cells, and empty ones with them, are NaN. The others are rounded to multiples of the
    step, ``least`` records or more. The step is large enough when, for each small cell, a table
    with another number there has the same margins and is shown alike, so that no small number
    follows by subtraction. Where no step is, cells are hidden instead (``hide_table``).
    >>> round_table(np.array([[96.0, 4], [3, 57]]), 11)
    (array([[90., nan],
           [nan, 60.]]), 15)
    """
    small = _small(table, least)
    if not small.any():
        return table, 1
    for times in (1, 2, 5):
        step = 5 * times * -(-least // 5)
        if all(_loose(table, least, step, *cell) for cell in np.argwhere(small)):
            return blank(_rounded(table, least, step), table < least), step
    return blank(table, hide_table(table, least)), 1


def _rounded(table: Floats, least: int, step: int) -> Floats:
    """Return what is shown of a table, with 0 for a small or empty cell."""
    return np.where(table < least, 0.0, np.maximum(step * np.round(table / step), step))


def _loose(table: Floats, least: int, step: int, row: int, column: int) -> bool:
    """Tell whether one record more, or one less, in a small cell could go unseen.

    To keep the margins, the three other corners of a rectangle change by one record too. Those
    in the row and the column of the cell are to be cells that are shown, so that the sum of the
    hidden cells there is not known either.
    """
    seen = _rounded(table, least, step)
    more = _rounded(table + 1, least, step) == seen
    less = (_rounded(table - 1, least, step) == seen) & (table > 0)
    shown = seen > 0
    beside = shown[row] | (not shown[row].any())
    below = shown[:, column] | (not shown[:, column].any())
    away = np.ones_like(shown)
    away[row] = away[:, column] = False
    return any(
        bool(up[row, column])
        and bool((away & up & (beside & down[row]) & (below & down[:, column])[:, None]).any())
        for up, down in ((more, less), (less, more))
    )


def merge_lines(lines: Sequence[Line], least: int) -> tuple[Line, ...]:
    """Return the ledger's lines, each that left out few records merged with the line before it.

    Where all lines of a unit together left out few, one line says so, without their number.
    """
    merged: list[Line] = []
    for unit in dict.fromkeys(line.unit for line in lines):
        chain: list[Line] = []
        for line in [line for line in lines if line.unit == unit]:
            chain.append(line)
            people = unit in ("rows", "records")
            while people and len(chain) > 1 and any(_few(end, least) for end in chain[-2:]):
                last, before = chain.pop(), chain.pop()
                rule = f"{before.rule}; {last.rule}"
                chain.append(Line(unit, rule, before.before, last.after))
        if people and _few(chain[-1], least):
            rule = f"{chain[-1].rule} (fewer than {least} left out)"
            chain = [Line(unit, rule, chain[-1].after, chain[-1].after)]
        merged.extend(chain)
    return tuple(merged)


def blank(values: Floats, gone: Mask) -> Floats:
    """Return the values with NaN where they are hidden."""
    return np.where(gone, np.nan, values)


def _small(counts: Floats, least: int) -> Mask:
    return np.asarray((counts > 0) & (counts < least))


def _few(line: Line, least: int) -> bool:
    return 0 < line.removed < least
