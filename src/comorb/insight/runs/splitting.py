"""Splitting: the records of a run in slices, by the clusters that it put them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from comorb.errors import InputError, RecordsError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.cutting import By, Cut
from comorb.insight.profile.intervals import Z
from comorb.insight.profile.keys import own_secret, record_keys
from comorb.insight.profile.noise import protected_counts
from comorb.insight.profile.pooling import pooled
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.profile.protected_parts import protect_slices
from comorb.insight.profile.slices import Slices, slice_records
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.insight.runs.scoring import temperature_of
from comorb.model.arrays import Floats, Ints
from comorb.records.cohort import Cohort
from comorb.storage import load_model


@dataclass(frozen=True)
class SplitRecords:
    """A saved run, its records, and what the keys of these are made with; None for one's own."""

    folder: str | Path
    cohort: Cohort
    secret: bytes | None = None
    min_cell: int = 0  # the smallest count that is told; 0 tells all

    def slices(self, by: str) -> tuple[Slices, Floats]:
        """Return the shares of the clusters within slices, small ones pooled, as they may be told.

        With them comes half of the 95% interval of each standardised share, (s, k).
        """
        cuts, notes = self._cut(by)
        own = load_profile(self.folder)
        keys = record_keys(self.cohort, self.secret or own_secret())
        made = slice_records(
            self.cohort.covariates,
            self._labels(own),
            own.k,
            By.of(by),
            weights=self.cohort.weights,
            keys=keys,
            cuts=cuts,
        )
        told = protect_slices(made, self.min_cell) if self.min_cell else made
        told = replace(told, notes=(*told.notes, *notes))
        return told, _half(made, told, self.min_cell)

    def profile(
        self,
        by: str,
        label: str,
        outcomes: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Profile:
        """Return the full profile of the records of one slice; clusters and names are the run's.

        ``groups`` is the number that each fitted cluster goes by, where clusters were merged.
        """
        cuts, _ = self._cut(by)
        if label not in cuts.labels:
            raise InputError("There is no such slice any more; choose another.")
        rows = cuts.places == cuts.labels.index(label)
        folder, earlier = RunFolder(self.folder), load_profile(self.folder)
        part = self.cohort.only(rows, f"{cuts.by}: {label}")
        saved = load_model(folder.model)
        fitted = load_model(folder.base) if folder.base.exists() else saved
        assigned = assign(fitted.mixture, part, groups=groups, temperature=temperature_of(fitted))
        made = profile(
            saved.mixture,
            part,
            title=earlier.source.title,
            reason=earlier.source.reason,
            outcomes=outcomes,
            assigned=replace(assigned, labels=self._labels(earlier)[rows]),
            numbers=saved.numbers,
            secret=self.secret or own_secret(),
        )
        made = made.renamed(dict(enumerate(earlier.cluster_names)))
        stable = [cluster.stability for cluster in earlier.clusters]
        known = [one for one in stable if one is not None]
        return made.with_stability(known) if len(known) == made.k else made

    def _cut(self, by: str) -> tuple[Cut, tuple[str, ...]]:
        return pooled(self.cohort.covariates, By.of(by), self.min_cell)

    def _labels(self, own: Profile) -> Ints:
        """Return the place of each record's cluster, as the run's assignments have it."""
        table = RunFolder(self.folder).load_assignments()
        rows = pc.index_in(self.cohort.ids, table["id"].combine_chunks())
        if rows.null_count:
            raise RecordsError("The records changed since this run was made; run it again.")
        numbers = table["cluster"].take(rows).to_numpy()
        return np.asarray(own.places_of(numbers), dtype=np.int64)


def _half(full: Slices, told: Slices, least: int) -> Floats:
    """Return half of the interval of standardised shares: 1.96 √(p(1 − p) Σ_g mix_g² / n_g).

    n_g are the effective records of a slice in a stratum, of those that are told; p the share.
    """
    half = np.full(told.share.shape, np.nan)
    cells = full.cells
    if cells is None or not told.mix:
        return half
    kept = [full.labels.index(label) for label in told.labels]
    strata, keys = cells.strata[kept][..., -1], cells.strata_keys[kept][..., -1]
    if least:
        strata = np.nan_to_num(protected_counts(strata, keys, least))
    whole = np.maximum(np.nan_to_num(told.counts[:, -1:]), 1)
    n = strata * np.nan_to_num(told.effective)[:, None] / whole
    held = np.where(strata > 0, cells.mix, 0.0)
    held = held / np.maximum(held.sum(axis=1, keepdims=True), 1e-300)
    spread = (held**2 / np.maximum(n, 1)).sum(axis=1)
    p = told.standardised
    return np.asarray(np.round(Z * np.sqrt(p * (1 - p) * spread[:, None]), 4))
