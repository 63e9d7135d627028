"""What a profile counts: carriers of codes, sizes and confidence of clusters, the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from comorb import __version__
from comorb.insight.profile.assignment import Assignment
from comorb.insight.profile.intervals import effective
from comorb.insight.profile.parts import Cluster, Source
from comorb.model.arrays import Floats
from comorb.records.cohort import Cohort
from comorb.storage import fingerprint


def carriers(members: csr_array[Any], cohort: Cohort, weights: Floats) -> Floats:
    """Return the summed weights of the carriers of each code in each cluster, (k, d)."""
    weighted = members.copy()
    weighted.data = weights[members.indices]
    return np.asarray((weighted @ cohort.matrix).toarray(), dtype=np.float64)


def clusters(assigned: Assignment, heavy: Floats, numbers: Sequence[int]) -> tuple[Cluster, ...]:
    """Return the sizes and the confidence of each cluster, still without names."""
    total, n = float(heavy.sum()), heavy.size
    found = []
    for place, (number, soft) in enumerate(zip(numbers, assigned.soft, strict=True)):
        rows = np.flatnonzero(assigned.labels == place)
        w = heavy[rows]
        means = [
            round(float(np.average(values[rows], weights=w)), 6) if w.any() else None
            for values in (assigned.top, assigned.margin, assigned.entropy)
        ]
        shares = round(float(w.sum()) / total, 9), round(float(soft) / total, 9)
        soft_size, n_eff = round(n * float(soft) / total, 3), round(effective(w), 3)
        sizes = rows.size, shares[0], soft_size, shares[1], n_eff
        found.append(Cluster(number, "", *sizes, *means))
    return tuple(found)


def source(cohort: Cohort, heavy: Floats, title: str, reason: str, command: str) -> Source:
    """Return what was clustered, with the fingerprint of its codes and weights."""
    return Source(
        title=title or f"{len(cohort):,} records with {len(cohort.codes):,} codes",
        records=len(cohort),
        features=len(cohort.codes),
        weight=None if cohort.weights is None else float(heavy.sum()),
        effective=round(effective(heavy), 3),
        system=cohort.system,
        level=cohort.level,
        lines=cohort.ledger.lines,
        notes=cohort.ledger.notes,
        reason=reason,
        command=command,
        version=__version__,
        digest=fingerprint(cohort.matrix, cohort.codes, cohort.weights),
    )


def digits(values: Floats) -> Floats:
    """Round to nine significant digits, which is what the document holds."""
    with np.errstate(divide="ignore"):
        places = np.where(values > 0, np.floor(np.log10(np.abs(values))), 0)
    scale = 10.0 ** (8 - places)
    return np.asarray(np.round(values * scale) / scale)
