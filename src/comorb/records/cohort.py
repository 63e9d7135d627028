"""Cohort: a sparse 0/1 matrix of records × codes, who and what its rows and columns are, a ledger.

Every operation returns a new cohort and writes what it did into the ledger.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from html import escape
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from comorb.errors import EmptyCohortError, InputError, RecordsError
from comorb.messages import Message
from comorb.model.arrays import Floats, Indices, Ints, Mask
from comorb.model.blocks import AnyInts, Blocks, from_csr, move_columns
from comorb.model.emissions.base import FeatureTable, Variable
from comorb.model.features import PreparedFeatures, prepare_for
from comorb.model.tabular import html_table, import_package
from comorb.records.codes import search
from comorb.records.codes.systems import systems_by_kind
from comorb.records.features import (
    AnyFeature,
    FeatureSpec,
    decide_features,
    feature_table,
    find_covariate,
    summarise_column,
)
from comorb.records.ledger import NO_UNIQUE_ID, Ledger, relaxed_note
from comorb.records.values import same_sexes
from comorb.storage import fingerprint

N_SHOWN_CODES = 10  # in a notebook


Interval = tuple[float | None, float | None]
Period = tuple[date | str | None, date | str | None]


@dataclass(frozen=True, eq=False)
class Cohort:
    """Records as the rows of a sparse 0/1 matrix, with their ids, codes and covariates.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (records, features)
        Ones of uint8, int32 indices, sorted in each row.
    ids : pyarrow.Array of strings
        The id of each record.
    codes, names : tuple of str
        The code of each feature and what it means.
    system, level : str
        The coding system of the codes and the level at which they are features.
    covariates : pyarrow.Table
        Age, sex, date and whatever else the file carries, one row for each record.
    ledger : Ledger
        What became of every input row on the way here.
    weights : numpy.ndarray of float64, optional
        A survey or frequency weight for each record.
    left_out : tuple of str
        Codes that these records have and that were left out on purpose.
    least_codes : int
        How many codes a record needs to be of use: 3 of a list of codes, none of a table with a
        column for each item, where a row without a yes is informative too.
    gone : tuple of str
        Codes that only records have which rules left out: to name one matches nothing, and is no
        mistake.
    features : FeatureTable, optional
        What the model learns from besides the codes: covariates of a kind each, NaN where missing.
    items : tuple of FeatureSpec
        Covariates that always become features: items of a table that are more than yes and no.
    patient : str, optional
        The covariate with the ids of patients, where a record is a visit.
    """

    matrix: csr_array[Any]
    ids: pa.Array
    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    level: str
    covariates: pa.Table
    ledger: Ledger
    weights: Floats | None = None
    left_out: tuple[str, ...] = ()
    least_codes: int = 3
    gone: tuple[str, ...] = ()
    features: FeatureTable | None = None
    items: tuple[FeatureSpec, ...] = ()
    patient: str | None = None
    path: ClassVar[None] = None  # a cohort in memory has no file

    def __post_init__(self) -> None:
        n, d = self.matrix.shape
        sizes = {
            "ids": (len(self.ids), n),
            "codes": (len(self.codes), d),
            "names": (len(self.names), d),
            "weights": (n if self.weights is None else len(self.weights), n),
            "covariates": (self.covariates.num_rows if self.covariates.num_columns else n, n),
            "features": (n if self.features is None else len(self.features.values), n),
            "the ledger's records": (self.ledger.left("records") or 0, n),
            "the ledger's features": (self.ledger.left("features") or 0, d),
        }
        for what, (came, expected) in sizes.items():
            if came != expected:
                raise InputError("cohort.shape", n=n, d=d, expected=expected, what=what, came=came)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def asked(self) -> tuple[FeatureSpec, ...]:
        """The items, by their name in version 0.1; it goes with version 0.3."""
        warnings.warn("Cohort.asked is Cohort.items now", DeprecationWarning, stacklevel=2)
        return self.items

    @property
    def shape(self) -> tuple[int, int]:
        """How many records there are, and how many codes."""
        return len(self), len(self.codes)

    def __getitem__(self, rows: Any) -> Cohort:
        """Return the records at some places, or of a mask, as for folds of scikit-learn.

        All codes stay, so that a model of some records knows those of the others.
        """
        own = rows[0] if isinstance(rows, tuple) else rows
        places = np.atleast_1d(np.arange(len(self))[own])
        rule = Message("ledger.by_place")
        return self._at(places, self.ledger.add("records", rule, len(self), len(places)))

    def __repr__(self) -> str:
        """Return how large the cohort is, and nothing about its patients."""
        more = f" and {len(self.features.features)} features" if self.features else ""
        return (
            f"<Cohort: {len(self):,} records × {len(self.codes):,} codes{more}, "
            f"{self.system} {self.level}>"
        )

    @property
    def numbered(self) -> bool:
        """Whether ids are the numbers of rows, as the file has none."""
        return NO_UNIQUE_ID in self.ledger.notes

    def having(self, *codes: str) -> Cohort:
        """Keep the records that have at least one of the codes.

        A code is matched whole; on full codes it also matches all that begin with it. What stands
        before a colon, as in 'drug:A10B' or 'icd9cm:428', may be left out when no code is meant
        without it. A text that is no code may be a pattern ('V*', 'V01-V91', 'all V codes'), or a
        list of codes and patterns with commas or new lines between.
        """
        rule = Message("ledger.having", codes=self._name_codes(codes))
        return self._keep(self._has(codes), rule)

    def without(self, *codes: str) -> Cohort:
        """Keep the records that have none of the codes, matched as in `having`."""
        rule = Message("ledger.without", codes=self._name_codes(codes))
        return self._keep(~self._has(codes), rule)

    def check_codes(self, *codes: str) -> None:
        """Refuse codes, matched as in `having`, that no record has or had."""
        self._matching(codes)

    def where(
        self,
        *,
        age: Interval | None = None,
        sex: str | Collection[str] | None = None,
        dates: Period | None = None,
    ) -> Cohort:
        """Keep the records whose covariates lie in the given bounds.

        Parameters
        ----------
        age : (low, high), optional
            Ages in years, both ends included; None leaves an end open.
        sex : str or collection of str, optional
            The values of the column 'sex' to keep, in any case; 'female', 'male' and 'other' also
            stand for the words and letters that files have for them.
        dates : (first, last), optional
            Dates or ISO strings, both ends included; None leaves an end open.

        Returns
        -------
        Cohort
            The records that meet every condition; a record whose value is missing meets none.
        """
        cohort = self
        if age is not None:
            ages = cohort._covariate("age")
            if not (pa.types.is_floating(ages.type) or pa.types.is_integer(ages.type)):
                raise RecordsError("cohort.no_ages")
            cohort = cohort._keep(_between(ages, *age), Message("ledger.age", span=_span(*age)))
        if sex is not None:
            wanted = [sex] if isinstance(sex, str) else list(sex)
            column = pc.cast(cohort._covariate("sex"), pa.string())
            words = [word for word in pc.unique(column).to_pylist() if word is not None]
            kept = pa.array(same_sexes(words, wanted), pa.string())
            rule = Message("ledger.sex", values=wanted)
            cohort = cohort._keep(_as_mask(pc.is_in(column, kept)), rule)
        if dates is not None:
            column = cohort._covariate("date")
            if not pa.types.is_date(column.type):
                raise RecordsError("cohort.no_dates")
            ends = [date.fromisoformat(end) if isinstance(end, str) else end for end in dates]
            rule = Message("ledger.dates", span=_span(*ends))
            cohort = cohort._keep(_between(column, *ends), rule)
        return cohort

    def among(self, ids: pa.Array, rule: str) -> Cohort:
        """Keep the records with these ids; ``rule`` is their line in the ledger."""
        return self._keep(_as_mask(pc.is_in(self.ids, ids)), rule)

    def only(self, mask: Mask, rule: str) -> Cohort:
        """Keep some records and every code, also those that none of them has."""
        places = np.flatnonzero(mask)
        return self._at(places, self.ledger.add("records", rule, len(self), len(places)))

    def at_least(self, number: int) -> Cohort:
        """Keep the records with at least so many distinct codes (the paper's rule: 3)."""
        counts = np.diff(self.matrix.indptr)
        return self._keep(counts >= number, Message("ledger.at_least", limit=number))

    def relax_least(self) -> Cohort:
        """Return the cohort with the most codes a record needs that at least half of them have."""
        counts = self._code_counts()
        fine = (n for n in range(self.least_codes, 1, -1) if 2 * (counts >= n).sum() >= len(counts))
        least = next(fine, min(self.least_codes, 1))
        return self if least == self.least_codes else self._with_least(least)

    def _code_counts(self) -> Ints:
        """Return how many codes each record has."""
        return np.diff(self.matrix.indptr)

    def _with_least(self, least: int) -> Cohort:
        return replace(self, least_codes=least, ledger=self.ledger.noted(relaxed_note(least)))

    def drop_codes(self, *codes: str) -> Cohort:
        """Drop codes, matched as in `having`, and keep every record."""
        return self.leave_out(self.rule_for_codes(codes))

    def rule_for_codes(self, codes: tuple[str, ...]) -> tuple[str, Mask]:
        """Return the rule that drops codes, for the ledger, and a mask of them."""
        gone = self._matching(codes)
        return Message("ledger.drop", codes=self._name_codes(codes)), gone

    def rule_for_rare(self, min_records: int, counts: Ints) -> tuple[str, Mask]:
        """Return the rule that drops rare codes, for the ledger, and a mask of them."""
        return Message("ledger.rare", limit=min_records), counts < min_records

    def matched(self, text: str) -> dict[str, tuple[str, ...]]:
        """Return the codes that each part of a text stands for, as in `having`; none may match."""
        whole = (*self.codes, *self.gone)
        parts = [text] if self._find(text) else search.split_list(text)
        return {part: tuple(whole[i] for i in self._find(part)) for part in parts}

    def drop_rare(self, min_records: int) -> Cohort:
        """Drop the codes that fewer than so many records have."""
        return self.leave_out(self.rule_for_rare(min_records, self.counts()))

    def drop_universal(self) -> Cohort:
        """Drop the codes that every record has: they don't distinguish records."""
        return self._drop((Message("ledger.universal"), self.counts() == len(self)))

    def drop_unused(self) -> Cohort:
        """Drop the codes that no record has."""
        gone = self.counts() == 0
        return self._drop((Message("ledger.in_no_record"), gone)) if gone.any() else self

    def split(self, by: str) -> dict[str, Cohort]:
        """Return one cohort for each value of a covariate, in the order of the values."""
        column = pc.cast(self._covariate(by), pa.string())
        return {
            "missing" if value is None else value: self._keep(
                _as_mask(pc.is_in(column, pa.array([value], pa.string()))), f"{by} = {value}"
            )
            for value in sorted(pc.unique(column).to_pylist(), key=lambda v: (v is None, v or ""))
        }

    def with_features(self, *specs: AnyFeature) -> Cohort:
        """Return the cohort with covariates as features besides its codes, in place of others.

        The values of these records decide on kinds and levels, as the ledger notes; a `Feature` of
        a model stays as it is, and values that it doesn't know are missing.
        """
        if not specs:
            return self
        columns = [summarise_column(one, self.covariates) for one in specs]
        features, notes = decide_features(specs, columns)
        table = feature_table(features, self.covariates, len(self)) if features else None
        return replace(self, features=table, ledger=self.ledger.noted(*notes))

    def check_features(self, *names: str) -> None:
        """Refuse features that are no covariate of any record."""
        for name in names:
            find_covariate(name, self.covariates)

    def counts(self) -> Ints:
        """Return how many records have each code."""
        return np.bincount(self.matrix.indices, minlength=len(self.codes))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features besides the codes."""
        return tuple(one.name for one in self.features.features) if self.features else ()

    def load(self) -> Cohort:
        """Return the cohort in memory: itself."""
        return self

    def schema(self) -> pa.Schema:
        """Return the covariates and their types."""
        return self.covariates.schema

    def covariate(self, name: str) -> Iterator[pa.ChunkedArray]:
        """Yield the values of a covariate, here all at once."""
        yield self.covariates[name]

    def blocks(self, variables: tuple[Variable, ...] | None = None) -> Blocks:
        """Return the rows in blocks, for passes over them.

        Features are as ``variables`` of a model see them, or learned from these records.
        """
        features: FeatureTable | PreparedFeatures | None = self.features
        if variables is not None:
            nothing = FeatureTable((), np.empty((len(self), 0)))
            features = prepare_for(variables, self.features or nothing)
        ones = self.matrix.indptr, self.matrix.indices
        return from_csr(*ones, len(self.codes), self.weights, features=features)

    def ids_of(self, block: int, start: int, size: int) -> pa.Array:
        """Return the ids of the rows of a block, which begins with the row ``start``."""
        return self.ids.slice(start, size)

    def part(self, block: int, start: int, size: int) -> Cohort:
        """Return the records of a block, which begins with the row ``start``."""
        ledger = self.ledger.of_part(size, len(self.codes))
        return self._at(np.arange(start, start + size), ledger)

    def sample(self, most: int, executor: Executor | None = None) -> tuple[Cohort, int]:
        """Return a sample of the records, and the step between them: here, all."""
        return self, 1

    def digest(self) -> str:
        """Return a hash of the records' codes, weights and features, in any order of them."""
        return fingerprint(self.matrix, self.codes, self.weights, self.features)

    def _matching(self, codes: tuple[str, ...]) -> Mask:
        if not all(isinstance(code, str) for code in codes):
            raise InputError("cohort.codes_as_texts", types=[type(code).__name__ for code in codes])
        matching = np.zeros(len(self.codes), dtype=bool)
        for part, found in (pair for text in codes for pair in self.matched(text).items()):
            if not found:
                raise RecordsError(self._unknown(part))
            matching |= np.isin(self.codes, found)
        return matching

    def _unknown(self, text: str) -> str:
        """Return the error message for a text that stands for no code."""
        codes, names = (*self.codes, *self.gone), (*self.names, *("" for _ in self.gone))
        words = zip(codes, search.everyday_words(codes, names, self.system), strict=True)
        near = [code for code, own in words if search.fold_text(text) in own][:5]
        above = [code for code in codes if text.replace(".", "").upper().startswith(code)]
        near = near or list(dict.fromkeys([*above, *get_close_matches(text, codes, 3)]))[:3]
        key = "cohort.no_code_like" if search.is_pattern(text) else "cohort.no_code"
        parts = [Message(key, text=text, level=self.level, system=self.system)]
        parts += [Message("cohort.nearest", near=near)] if near else []
        return Message("text.sentences", parts=[*parts, Message("cohort.check_code")])

    def _name_codes(self, codes: tuple[str, ...]) -> list[str]:
        """Return codes for the ledger, patterns with how many codes they stand for."""
        named: list[str] = []
        for part, found in (pair for text in codes for pair in self.matched(text).items()):
            is_code = search.normalise_code(part) in map(search.normalise_code, found)
            several = search.is_pattern(part) and not is_code
            named.append(Message("ledger.pattern", code=part, n=len(found)) if several else part)
        return named

    def _find(self, text: str) -> list[int]:
        """Return the places of the codes that a text stands for, among all there are or were."""
        systems, whole = systems_by_kind(self.system), (*self.codes, *self.gone)
        full = "full" in self.level.split("+")
        own = (systems.get(one.partition(":")[0]) or systems.get("") for one in whole)
        return search.find_codes(text, whole, [full and system != "opaque" for system in own])

    def _has(self, codes: tuple[str, ...]) -> Mask:
        columns = self._matching(codes).astype(np.uint16)
        return np.asarray(self.matrix @ columns) > 0

    def _covariate(self, name: str) -> pa.ChunkedArray:
        if name not in self.covariates.column_names:
            have = self.covariates.column_names or Message("text.none")
            raise RecordsError("cohort.no_covariate", name=name, have=have)
        return self.covariates[name]

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        if not mask.any():
            raise EmptyCohortError("cohort.empty", rule=rule)
        kept = self.only(mask, rule).drop_unused()
        gone = {*self.gone, *self.codes} - {*kept.codes}
        return replace(kept, gone=tuple(sorted(gone)))

    def _at(self, rows: Ints, ledger: Ledger) -> Cohort:
        return replace(
            self,
            matrix=self.matrix[rows],
            ids=self.ids.take(pa.array(rows)),
            covariates=self.covariates.take(pa.array(rows)),
            weights=None if self.weights is None else self.weights[rows],
            features=None if self.features is None else self.features.at(rows),
            ledger=ledger,
        )

    def leave_out(self, *rules: tuple[str, Mask]) -> Cohort:
        """Drop codes on purpose, by rules that each have a line for the ledger and a mask."""
        cohort = self._drop(*rules)
        codes = {*self.left_out, *self.codes} - {*cohort.codes}
        return replace(cohort, left_out=tuple(sorted(codes)))

    def _drop(self, *rules: tuple[str, Mask]) -> Cohort:
        kept, ledger = follow_rules(rules, np.ones(len(self.codes), dtype=bool), self.ledger)
        matrix, places = self.matrix, np.flatnonzero(kept)
        if len(places) < len(kept):
            ones = move_columns(matrix.indptr, matrix.indices, new_places(kept))
            matrix = as_matrix(*ones, len(places))
        return replace(
            self,
            matrix=matrix,
            codes=tuple(self.codes[i] for i in places),
            names=tuple(self.names[i] for i in places),
            ledger=ledger,
        )

    def to_arrow(self) -> pa.Table:
        """Return a row for each record: its id, the list of its codes, its covariates and weight.

        Examples
        --------
        >>> from comorb import read_records
        >>> rows = pa.table({"id": ["a", "a", "b"], "icd_code": ["428.0", "250.00", "428.1"]})
        >>> read_records(rows).to_arrow()["codes"].to_pylist()
        [['250', '428'], ['428']]
        """
        codes = pa.DictionaryArray.from_arrays(
            pa.array(self.matrix.indices, pa.int32()), pa.array(self.codes, pa.string())
        ).cast(pa.string())
        lists = pa.LargeListArray.from_arrays(pa.array(self.matrix.indptr, pa.int64()), codes)
        table = pa.table({"id": self.ids, "codes": lists})
        for name in self.covariates.column_names:
            table = table.append_column(name, self.covariates[name])
        if self.weights is not None and "weight" not in table.column_names:
            table = table.append_column("weight", pa.array(self.weights))
        return table

    def to_pandas(self) -> Any:
        """Return what `to_arrow` does as a pandas frame."""
        import_package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return what `to_arrow` does as a polars frame."""
        return import_package("polars").from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        counts = self.counts()
        order = np.argsort(-counts, kind="stable")[:N_SHOWN_CODES].tolist()
        columns = {
            "code": [self.codes[i] for i in order],
            "name": [self.names[i] for i in order],
            "records": [int(counts[i]) for i in order],
        }
        return f"<p>{escape(repr(self))}</p>" + html_table(columns, "The most common codes")


def follow_rules(
    rules: Iterable[tuple[str, Mask]], kept: Mask, ledger: Ledger
) -> tuple[Mask, Ledger]:
    """Return which codes rules leave of those that records have, and the ledger with each rule."""
    ledger = ledger.less("features", Message("ledger.in_no_record"), int((~kept).sum()))
    for rule, gone in rules:
        before, kept = int(kept.sum()), kept & ~gone
        ledger = ledger.add("features", rule, before, int(kept.sum()))
    return kept, ledger


def new_places(kept: Mask) -> Indices:
    """Return the place of each column among those that are kept, −1 for the others."""
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)


def as_matrix(indptr: AnyInts, indices: Indices, width: int) -> csr_array[Any]:
    """Return a 0/1 matrix by the places of its ones, which are sorted in each row."""
    small = np.int32 if len(indices) < 2**31 else np.int64
    ones = np.ones(len(indices), np.uint8)
    matrix = csr_array((ones, indices, indptr.astype(small)), shape=(len(indptr) - 1, width))
    matrix.has_sorted_indices = True
    return matrix


def _as_mask(flags: pa.Array | pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False))


def _between(column: pa.ChunkedArray, low: Any, high: Any) -> Mask:
    inside = pc.is_valid(column)
    if low is not None:
        inside = pc.and_kleene(inside, pc.greater_equal(column, pa.scalar(low)))
    if high is not None:
        inside = pc.and_kleene(inside, pc.less_equal(column, pa.scalar(high)))
    return _as_mask(inside)


def _span(low: object, high: object) -> str:
    if low is None or high is None:
        return Message("span.up_to", high=high) if low is None else Message("span.from", low=low)
    return Message("span.between", low=low, high=high)
