"""Build: a model and the cohort it was fitted on, counted, checked and described as a `Profile`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from comorb import __version__
from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Blocks, workers
from comorb.model.diagnostics import balance, intervals, lengths, residuals, temperature
from comorb.model.fit import MixtureFit
from comorb.model.mixture import Mixture
from comorb.model.moments import DENSE_COLUMNS, moments
from comorb.profiles import contents
from comorb.profiles.assignment import Assignment, assign, check_codes, count_uncertain
from comorb.profiles.burden import Burden, BurdenSums
from comorb.profiles.indicators import Indicators, feature_profiles, summarise_features
from comorb.profiles.intervals import effective_size, round_nine_digits
from comorb.profiles.labels import label
from comorb.profiles.noise import count_cells, record_keys
from comorb.profiles.outcomes import classification_of, classification_rows, summarise
from comorb.profiles.profile import Profile
from comorb.profiles.rules import learn_rules
from comorb.profiles.slices import By, Slices, coarsen, date_ends, default_slices, slice_records
from comorb.records.cohort import Cohort

MAX_PAIRS = 8  # of unexpected pairs of codes that are shown
MIN_RESIDUAL_Z = 5.0  # of each of them
N_RESIDUALS = 200


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """What a model leaves unexplained, and how well its means are known."""

    caveats: contents.Caveats
    low: Floats  # (k, d): the ends of the 95% interval of each mean
    high: Floats
    lengths: Floats  # (k,): the mean number of codes in a record of each cluster
    of_length: Floats  # (k,): how much of what sets the cluster apart is that number
    influence: tuple[float, ...] = ()  # the share of each feature in what sets clusters apart


def check_model(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> ModelCheck:
    """Return what the clusters of some records leave unexplained, in a few passes over them.

    Pairs are counted in records, by weight where there are weights; where there are more than 4,096
    codes, none are looked for. Intervals are for Kish's effective number of records.
    """
    found = lengths(model, blocks, executor)
    low, high = intervals(model, blocks, executor=executor, records=found.records)
    worst, share = [], blocks.n_rows / blocks.weight
    if 0 < blocks.n_columns <= DENSE_COLUMNS:
        worst = residuals(model, moments(blocks, executor), N_RESIDUALS)
    pairs = [
        contents.Pair(r.first, r.second, round(r.observed * share), round(r.expected * share, 1))
        for r in worst
        if r.z >= MIN_RESIDUAL_Z
    ]
    caveats = contents.Caveats(
        temperature=round(temperature(model, blocks, executor), 6),
        length=round(found.overall, 3) if blocks.n_columns else None,
        explained_by_length=round(found.explained, 6) if blocks.n_columns else None,
        pairs=tuple(pairs[:MAX_PAIRS]),
    )
    influence = balance(model, blocks, executor)[1] if model.variables else ()
    return ModelCheck(caveats, low, high, found.means, found.of_profile, influence)


SLICE_COLUMNS = ("age", "sex", "site", "date")
_LABEL, _RECORDS, _KEY = "comorb.label", "comorb.records", "comorb.key"


class RecordAccumulator:
    """The burden and the slices of clusters, from records that come block by block.

    Where it is ``narrow``, records that are sliced alike are one row, so that what is gathered on
    several machines stays small; weighted ones are kept each.
    """

    def __init__(
        self,
        k: int,
        secret: bytes | None,
        wanted: Sequence[str] | None = None,
        columns: Sequence[str] = SLICE_COLUMNS,
        narrow: bool = False,
    ) -> None:
        self.k, self.secret, self.wanted, self.columns = k, secret, wanted, columns
        self.narrow = narrow
        self.sums: BurdenSums | None = None
        self._ends: tuple[Any, Any] | None = None
        self._tables: list[pa.Table] = []
        self._weights: list[Floats] = []

    def add(self, part: Cohort, labels: Ints, keys: Keys | None = None) -> BurdenSums:
        """Add the records of a block, and the cluster of each; return what was added up so far.

        ``keys`` are those of the records, where they are known already.
        """
        table = part.covariates
        if self.sums is None:
            self.sums = BurdenSums(table.schema, self.k, part.patient, self.wanted)
        if keys is None and self.secret is not None:
            keys = record_keys(part, self.secret)
        self.sums.add(table, labels, part.weights, keys)
        rows = table.select([name for name in self.columns if name in table.column_names])
        alike = self.narrow and part.weights is None
        if alike:
            if "date" in rows.column_names and pa.types.is_temporal(rows["date"].type):
                self._ends = _join_ends(self._ends, date_ends(rows["date"]))
            rows = coarsen(rows)
        columns = {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        }
        columns[_LABEL] = pa.array(labels.astype(np.int32))
        if keys is not None:
            columns[_KEY] = pa.array(keys)
        if alike:
            columns[_RECORDS] = pa.array(np.ones(labels.size, np.int64))
        rows = pa.table(columns)
        self._tables.append(_collapse_rows([rows]) if alike else rows)
        if part.weights is not None:
            self._weights.append(part.weights)
        return self.sums

    def __iadd__(self, other: Self) -> Self:
        if other.sums is not None and self.sums is not None:
            self.sums += other.sums
        self.sums = self.sums or other.sums
        self._ends = _join_ends(self._ends, other._ends)
        self._weights += other._weights
        self._tables += other._tables
        if self.narrow and not self._weights and self._tables:
            self._tables = [_collapse_rows(self._tables)]
        return self

    def burden(self, notes: Sequence[str]) -> Burden | None:
        """Return what clusters use; ``notes`` are those of the records' ledger."""
        return None if self.sums is None else self.sums.result(notes, self.secret)

    def slices(self, bys: Sequence[By] | None = None) -> tuple[Slices, ...]:
        """Return the shares of clusters within slices; by default of those that can be made."""
        if not self._tables:
            return ()
        every = pa.concat_tables(self._tables).unify_dictionaries()
        own = [name for name in (_LABEL, _RECORDS, _KEY) if name in every.column_names]
        arrays = {name: every[name].to_numpy() for name in own}
        table, labels = every.drop_columns(own), arrays[_LABEL].astype(np.int64)
        records, keys = arrays.get(_RECORDS), arrays.get(_KEY)
        if bys is None:
            bys = default_slices(table, self._ends, records)
        weights = np.concatenate(self._weights) if self._weights else None
        some: dict[str, Any] = {"weights": weights, "keys": keys, "records": records}
        return tuple(slice_records(table, labels, self.k, by, **some) for by in bys)


def _join_ends(one: tuple[Any, Any] | None, two: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    """Return the first and the last of two pairs of dates."""
    known = [ends for ends in (one, two) if ends is not None and ends[0] is not None]
    if not known:
        return one or two
    return min(first for first, _ in known), max(last for _, last in known)


def _collapse_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Return rows that are the same once, with how many they are and the sum of their keys."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    added = [name for name in (_RECORDS, _KEY) if name in table.column_names]
    names = [name for name in table.column_names if name not in added]
    made = table.group_by(names).aggregate([(name, "sum") for name in added])
    made = made.rename_columns([name.removesuffix("_sum") for name in made.column_names])
    return made.select(table.column_names).cast(table.schema)


def accumulate_records(
    cohort: Cohort, labels: Ints, k: int, secret: bytes | None, wanted: Sequence[str] | None = None
) -> RecordAccumulator:
    """Return the burden and slices of all records of a cohort in memory."""
    accumulator = RecordAccumulator(k, secret, wanted)
    accumulator.add(cohort, labels)
    return accumulator


def profile(  # noqa: PLR0913 - what goes with the data is given by name
    model: Mixture | MixtureFit,
    cohort: Cohort,
    *,
    title: str = "",
    reason: str = "",
    command: str = "",
    stability: Sequence[float] | None = None,
    outcomes: Sequence[str] | None = None,
    assigned: Assignment | None = None,
    numbers: Sequence[int] | None = None,
    check: ModelCheck | None = None,
    secret: bytes | None = None,
    accumulator: RecordAccumulator | None = None,
) -> Profile:
    """Profile the clusters of a cohort.

    Parameters
    ----------
    model, cohort : Mixture or fitted estimator, Cohort
        The fitted clusters, over the codes of the records in their order, and the records.
    title, reason, command : str, optional
        What the data are, why this number of clusters, and what was run.
    stability, numbers : sequence of float, sequence of int, optional
        How well each cluster comes out again, from 0 to 1, and its number, by default from 1 on.
    outcomes, assigned : sequence of str, Assignment, optional
        The covariates to sum up, by default all; clusters that aren't the most probable ones.
    check, secret, accumulator : Check, bytes, RecordAccumulator, optional
        What `check_model` returned for more records than these, what the keys of records are made
        with (`own_secret()`), without which the profile can't be protected, and burden and slices
        of more records.

    Returns
    -------
    Profile
        Sizes, prevalence, names, confidence, outcomes, burden, slices, rules and the heat-map.

    Examples
    --------
    >>> from comorb import BernoulliMixture
    >>> from comorb.records.datasets import heart_failure
    >>> profile(BernoulliMixture(5).fit(heart_failure()), heart_failure()).k
    5
    """
    mixture = _mixture(model, cohort)
    weights = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    check = check or _check_cohort(mixture, cohort)
    assigned = assigned or assign(mixture, cohort, temperature=check.caveats.temperature)
    labels, k, keys = assigned.labels, mixture.n_components, _record_keys(cohort, assigned, secret)
    source = _provenance(cohort, weights, title, reason, command)
    table, counted = _code_table(mixture, cohort, labels, weights, source, check, keys)
    accumulator = accumulator or accumulate_records(counted, labels, k, secret, outcomes)
    own = (_outcome_names(cohort, outcomes), keys, classification_of(assigned.table))
    return Profile(
        **vars(table),
        clusters=_clusters(assigned, weights, numbers, table, check, stability),
        weights=round_nine_digits(mixture.weights),
        outcomes=summarise(cohort.covariates, labels, k, weights, *own),
        **_describe_clusters(table, counted, assigned, keys, check.caveats, accumulator),
    )


def _describe_clusters(
    table: contents.CodeTable,
    cohort: Cohort,
    assigned: Assignment,
    keys: Keys | None,
    caveats: contents.Caveats,
    accumulator: RecordAccumulator,
) -> dict[str, Any]:
    """Return what is shown of the clusters besides their codes and outcomes."""
    k, columns = len(table.counts), table.common(contents.HEATMAP_COLUMNS)
    labels = assigned.labels
    return {
        "burden": accumulator.burden(cohort.ledger.notes),
        "slices": accumulator.slices(),
        "heatmap": contents.count_heatmap(cohort.matrix, labels, assigned.top, columns, k),
        "caveats": replace(caveats, classification=classification_rows(assigned.table)),
        "cells": None if keys is None else count_cells(cohort, labels, k, keys, caveats.pairs),
        "rules": learn_rules(cohort, assigned, k, keys),
        "uncertain": count_uncertain(assigned, k, keys),
    }


def _mixture(model: Mixture | MixtureFit, cohort: Cohort) -> Mixture:
    """Return the mixture itself, over the codes of a cohort; what is neither is refused."""
    found = getattr(model, "mixture_", model)
    if not isinstance(found, Mixture) or not isinstance(cohort, Cohort):
        kinds = {"type": type(model).__name__, "type2": type(cohort).__name__}
        raise InputError("profile.arguments", **kinds)
    check_codes(found, cohort)
    return found


def _check_cohort(model: Mixture, cohort: Cohort) -> ModelCheck:
    with workers(-1) as executor:
        return check_model(model, cohort.blocks(model.variables), executor)


def _record_keys(cohort: Cohort, assigned: Assignment, secret: bytes | None) -> Keys | None:
    """Return the keys of the records, None where the profile isn't to be protected."""
    if secret is None:
        return None
    return record_keys(cohort, secret) if assigned.keys is None else assigned.keys


def _outcome_names(cohort: Cohort, wanted: Sequence[str] | None) -> Sequence[str] | None:
    """Return the covariates to sum up: all that aren't features, unless some are named."""
    if wanted is not None or cohort.features is None:
        return wanted
    own = {feature.name for feature in cohort.features.features}
    return [name for name in cohort.covariates.column_names if name not in own]


def _code_table(
    model: Mixture,
    cohort: Cohort,
    labels: Ints,
    weights: Floats,
    source: contents.Provenance,
    check: ModelCheck,
    keys: Keys | None,
) -> tuple[contents.CodeTable, Cohort]:
    """Return the columns of a profile, and the cohort with a column for each of them."""
    columns = _code_columns(model, cohort, labels, weights, check)
    if cohort.features is None:
        return contents.CodeTable(**vars(columns), source=source), cohort
    k, d = columns.counts.shape
    indicators = Indicators.of(cohort.features, weights)
    summaries = summarise_features(cohort.features, labels, k, weights, keys)
    features = feature_profiles(indicators, model, check.influence, d, summaries)
    columns += indicators.code_columns(labels, weights, k)
    table = contents.CodeTable(**vars(columns), source=source, features=features)
    return table, indicators.append_to(cohort)


def _code_columns(
    model: Mixture, cohort: Cohort, labels: Ints, weights: Floats, check: ModelCheck
) -> contents.CodeColumns:
    """Return the codes with their labels, counts, shares, intervals and means of the model."""
    k, n = model.n_components, len(cohort)

    def positive(weights: Floats) -> Floats:
        """Return the weight of the records with each code in each cluster, (k, d)."""
        members = csr_array((weights, (labels, np.arange(n))), shape=(k, n))
        return np.asarray((members @ cohort.matrix).toarray())

    counts = positive(np.ones(n))
    sums = counts if cohort.weights is None else positive(weights)
    mass = np.bincount(labels, weights, k)
    prevalence = round_nine_digits(sums / np.maximum(mass, 1e-300)[:, None])
    return contents.CodeColumns(
        codes=cohort.codes,
        names=cohort.names,
        labels=tuple(map(partial(label, system=cohort.system), cohort.codes, cohort.names)),
        counts=counts,
        prevalence=prevalence,
        totals=counts.sum(axis=0),
        overall=round_nine_digits(sums.sum(axis=0) / weights.sum()),
        low=round_nine_digits(np.minimum(check.low, prevalence)),
        high=round_nine_digits(np.maximum(check.high, prevalence)),
        means=round_nine_digits(model.means),
        expected=round_nine_digits(model.weights @ model.means),
    )


def _clusters(
    assigned: Assignment,
    weights: Floats,
    numbers: Sequence[int] | None,
    table: contents.CodeTable,
    check: ModelCheck,
    stability: Sequence[float] | None,
) -> tuple[contents.Cluster, ...]:
    """Return the clusters with their sizes, confidence, codes a record and stability."""
    total, n, k = float(weights.sum()), weights.size, len(assigned.soft)
    numbers = numbers or range(1, k + 1)
    names = table.names_of(numbers)
    again = [None] * k if stability is None else contents.round_stability(stability, k)
    clusters = []
    for place, (number, soft) in enumerate(zip(numbers, assigned.soft, strict=True)):
        rows = np.flatnonzero(assigned.labels == place)
        w = weights[rows]
        top, margin, entropy = (
            round(float(np.average(values[rows], weights=w)), 6) if w.any() else None
            for values in (assigned.top, assigned.margin, assigned.entropy)
        )
        clusters.append(
            contents.Cluster(
                number=number,
                name=names[place],
                size=rows.size,
                share=round(float(w.sum()) / total, 9),
                soft_size=round(n * float(soft) / total, 3),
                soft_share=round(float(soft) / total, 9),
                effective=round(effective_size(w), 3),
                top=top,
                margin=margin,
                entropy=entropy,
                stability=again[place],
                length=round(float(check.lengths[place]), 3),
                of_length=round(float(check.of_length[place]), 6),
            )
        )
    return tuple(clusters)


def _provenance(
    cohort: Cohort, weights: Floats, title: str, reason: str, command: str
) -> contents.Provenance:
    """Return what was clustered, with the fingerprint of its codes and weights."""
    return contents.Provenance(
        title=title or "Records",
        records=len(cohort),
        features=len(cohort.codes),
        weight=None if cohort.weights is None else float(weights.sum()),
        effective=round(effective_size(weights), 3),
        system=cohort.system,
        level=cohort.level,
        lines=cohort.ledger.lines,
        notes=cohort.ledger.notes,
        reason=reason,
        command=command,
        version=__version__,
        digest=cohort.digest(),
    )
