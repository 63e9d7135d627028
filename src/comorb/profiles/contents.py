"""Contents: the parts of a profile: its source, clusters, codes, outcomes and heat-map."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.emissions.base import Feature, Kind
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.labels import DEFAULT_LAMBDA, automatic_names, relevance
from comorb.records.ledger import Line
from comorb.storage import mixed

MIN_PREVALENCE, MIN_RECORDS, NAMING_LAMBDA = 0.02, 5, 0.5
MIN_INDICATOR_LIFT = 1.1  # times as common as over all an indicator is at least, to be relevant


@dataclass(frozen=True)
class Provenance:
    """What was clustered and how, so that a reader can judge it and do it again."""

    title: str  # what the data are, in the user's words
    records: int
    features: int  # how many codes
    weight: float | None  # how many patients the weighted records stand for; None without weights
    effective: float  # Kish's effective number of records, for intervals
    system: str
    level: str
    lines: tuple[Line, ...]  # the ledger: each rule, with what was there before and after it
    notes: tuple[str, ...]  # what else a reader should know about the data
    reason: str  # why this number of clusters
    command: str  # what was run
    version: str  # of comorb
    digest: str  # the fingerprint of the data


@dataclass(frozen=True)
class Cluster:
    """One cluster; a suppressed number is None.

    Numbers count from 1; a cluster that goes on in another run keeps its own.
    """

    number: int
    name: str  # made from the most relevant codes, or given by the user
    size: int | None  # records whose most probable cluster this is
    share: float | None  # their weighted share
    soft_size: float | None  # the soft share times the number of records
    soft_share: float | None  # weighted, each record counted everywhere by its probabilities
    effective: float | None  # Kish's effective number of records, for intervals
    top: float | None  # confidence: the means of `Assignment`'s three arrays over the cluster
    margin: float | None
    entropy: float | None
    stability: float | None = None  # mean Jaccard overlap with the same cluster in other subsets
    length: float | None = None  # the mean number of codes in a record
    of_length: float | None = None  # how much of what sets it apart is that number, from 0 to 1
    note: str = field(default="", kw_only=True)  # what people wrote of it
    owner: str = field(default="", kw_only=True)  # who looks after its patients
    pathway: str = field(default="", kw_only=True)  # the way of care that they follow


def round_stability(stability: Sequence[float], k: int) -> list[float]:
    """Return the stability of k clusters as a profile holds it; that of others is an error."""
    if len(stability) != k:
        raise InputError("profile.stability", k=k, n=len(stability))
    return [round(float(value), 6) for value in stability]


@dataclass(frozen=True)
class Pair:
    """Two codes, as places in ``Profile.codes``, that more records have than clusters explain."""

    first: int
    second: int
    observed: int  # records with both
    expected: float  # how many the model expects


@dataclass(frozen=True)
class Caveats:
    """What the model of the clusters leaves unexplained."""

    temperature: float = 1.0  # of the evidence that the model sees in a record's codes, the share
    # that is real; probabilities of clusters are tempered by it
    length: float | None = None  # the mean number of codes in a record
    explained_by_length: float | None = None  # share of that number's variance between clusters
    pairs: tuple[Pair, ...] = ()  # the least expected first
    classification: tuple[tuple[float, ...], ...] = ()  # how often a record of a cluster (a row)
    # is taken for one of each; outcomes are corrected by it


@dataclass(frozen=True, eq=False)
class CorrectedFigures:
    """An outcome as it would be if every record were in its own cluster: (v, k + 1) each."""

    estimate: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """A covariate per cluster, and over all records in the last column; NaN is suppressed.

    Its own figures are what was counted: those of the records taken for each cluster, which are
    shown first. ``corrected`` has them with BCH weights, where that can be done, and medians as
    they are; it comes second, as it holds only where outcome and codes are independent in clusters.
    """

    name: str
    kind: Literal["number", "share"]
    values: tuple[str, ...]  # ("mean", "median"), or the categories; of two one, such as yes
    known: Floats  # (k + 1,): how many records have a value
    counts: Floats  # (v, k + 1): how many have each category; no rows for numbers
    estimate: Floats  # (v, k + 1): weighted, like both ends of the 95% interval
    low: Floats
    high: Floats
    cells: OutcomeCells | None = None
    corrected: CorrectedFigures | None = None

    def differs(self, value: int, place: int) -> bool:
        """Return whether the observed figure lies outside the interval of the corrected one."""
        if self.corrected is None:
            return False
        seen, better = self.estimate[value, place], self.corrected
        return bool(seen < better.low[value, place] or seen > better.high[value, place])


@dataclass(frozen=True, eq=False)
class FeatureProfile:
    """A feature, besides the codes, that the clusters were found by."""

    name: str
    kind: Kind
    columns: tuple[int, ...]  # its levels, or the parts of its numbers, as places in ``codes``
    edges: tuple[float, ...]  # the upper ends of the parts of a number but the last
    influence: float  # its share of what sets the clusters apart; that of the codes is the rest
    summary: Outcome  # means or shares per cluster, and how many records have a value
    model: FeatureModel | None = None  # what explains a record by it; None where it is protected


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """A feature in the model: what it is, what is known of it over all, and of each cluster."""

    feature: Feature
    tempered: float  # what its evidence is multiplied by
    facts: tuple[float, ...]
    parameters: Floats  # (k, m)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CodeColumns:
    """Codes, or indicators of features, and how common they are; see `Profile`."""

    codes: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Floats
    prevalence: Floats
    totals: Floats
    overall: Floats
    low: Floats
    high: Floats
    means: Floats
    expected: Floats

    def __add__(self, other: CodeColumns) -> CodeColumns:
        """Return these columns with others behind them."""
        joined: dict[str, Any] = {}
        for name, more in vars(other).items():
            own = getattr(self, name)
            text = isinstance(own, tuple)
            joined[name] = own + more if text else np.concatenate([own, more], axis=-1)
        return CodeColumns(**joined)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CodeTable(CodeColumns):
    """All columns of a profile, ranked: which codes are common, and which mark a cluster."""

    source: Provenance
    features: tuple[FeatureProfile, ...] = ()
    min_cell: int = 0

    @property
    def lift(self) -> Floats:
        """How many times likelier each code is in each cluster than overall, (k, d)."""
        return np.asarray(self.prevalence / np.where(self.overall > 0, self.overall, np.nan))

    @property
    def universal(self) -> tuple[int, ...]:
        """The codes that every record has, as places in ``codes``: they mark no cluster.

        In a protected profile, those that all records have, or all but few.
        """
        without = self.source.records - self.totals
        return tuple(np.flatnonzero(without < max(self.min_cell, 1)).tolist())

    @property
    def n_codes(self) -> int:
        """How many of ``codes`` are codes: the others are indicators of features."""
        places = (place for one in self.features for place in one.columns)
        return min(places, default=len(self.codes))

    @property
    def influence(self) -> dict[str, float]:
        """The shares of 'codes' and of each feature in what sets the clusters apart."""
        own = {one.name: one.influence for one in self.features}
        return {"codes": max(1 - sum(own.values()), 0.0), **own}

    def overall_intervals(self) -> tuple[Floats, Floats]:
        """Return the ends of the 95% interval of each overall prevalence, (d,) each."""
        return wilson_interval(self.overall, np.array(self.source.effective))

    def common(self, n: int = 20) -> Ints:
        """Return the n most frequent codes, as places in ``codes``, without universal ones.

        These are the rows of the paper's disease-frequency chart; indicators of features are among
        them where there are no codes.
        """
        among = self.overall[: self.n_codes or None]
        order = np.argsort(-np.nan_to_num(among), kind="stable")
        shown = [i for i in order if self.overall[i] > 0 and i not in self.universal]
        return np.array(shown[:n], dtype=np.int64)

    def relevance(self, lam: float = DEFAULT_LAMBDA) -> Floats:
        """Return the relevance of each code for each cluster, (k, d); see `relevance`."""
        return relevance(self.means, self.expected, lam)

    def top(
        self, cluster: int, lam: float = DEFAULT_LAMBDA, n: int = 10, floor: float = MIN_PREVALENCE
    ) -> Ints:
        """Return the n most relevant codes of a cluster, as places in ``codes``.

        Parameters
        ----------
        cluster : int
            From 0.
        lam : float, default=0.6
            λ: 0 for the most specific codes first, 1 for the most frequent.
        n : int, default=10
            How many, at most.
        floor : float, default=0.02
            The least that the lower end of the interval of the prevalence must reach; a code
            of fewer than five records of the cluster never wins.

        Returns
        -------
        ndarray of int
            Without universal and suppressed codes. An indicator of a feature, of which every
            record has one, is there where it is surely a tenth more common than over all.
        """
        k, n_codes = len(self.counts), self.n_codes
        if not 0 <= cluster < k:
            raise InputError("profile.place", k=k - 1, cluster=cluster)
        scores, low = self.relevance(lam)[cluster].copy(), self.low[cluster]
        scores[list(self.universal)] = np.nan
        scores[~((low >= floor) & (self.counts[cluster] >= MIN_RECORDS))] = np.nan
        common = MIN_INDICATOR_LIFT * self.overall
        scores[n_codes:][low[n_codes:] < common[n_codes:]] = np.nan
        order = np.argsort(-scores, kind="stable")
        return np.asarray(order[: min(n, int(np.sum(~np.isnan(scores))))])

    def names_of(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return a name for each cluster of a number, made from its most relevant diseases."""
        ranked = {n: self.top(j, NAMING_LAMBDA, 30).tolist() for j, n in enumerate(numbers)}
        indicators = self.codes[self.n_codes :]
        return automatic_names(ranked, self.codes, self.labels, self.source.system, indicators)


@dataclass(frozen=True, eq=False)
class OutcomeCells:
    """The keys of the sets that an outcome counts, and what one record can do to a mean."""

    known: Keys  # (k + 1,)
    counts: Keys  # (v, k + 1)
    reach: Floats  # (k + 1,): the most that a record moves the mean; 0 for shares


@dataclass(frozen=True, eq=False)
class Cells:
    """The key of each set of records that a profile counts: what protecting it takes."""

    clusters: Keys  # (k + 1,), the last of all records
    codes: Keys  # (k + 1, d)
    pairs: Keys  # those of ``Caveats.pairs``


@dataclass(frozen=True)
class Heatmap:
    """Records × common codes as bits, ordered by cluster; no ids, and not in the file's order."""

    columns: tuple[int, ...]  # the codes, as places in ``Profile.codes``, most common first
    lines: tuple[int, ...]  # how many lines each cluster has
    per_line: int  # records in a line at least: 1 unless the cohort is large or protected
    bits: str  # base64 of the lines, each packed to whole bytes, first column in the highest bit

    def rows(self) -> Mask:
        """Return the bits as an array of shape (lines, columns)."""
        width = -(-len(self.columns) // 8)
        packed = np.frombuffer(base64.b64decode(self.bits), np.uint8)
        whole = np.unpackbits(packed.reshape(sum(self.lines), width), axis=1)
        return whole[:, : len(self.columns)].astype(bool)


HEATMAP_COLUMNS = 40
MAX_LINES = 50_000


def count_heatmap(
    matrix: csr_array[Any], labels: Ints, top: Floats, columns: Ints, k: int
) -> Heatmap:
    """Return the heat-map of some columns of a 0/1 matrix.

    Inside a cluster the surest records come first, and ties are in an order made from their
    bits: nothing depends on the order of the file. More than 50,000 records are drawn several
    to a line.
    """
    places = np.zeros(matrix.shape[1], dtype=np.int64)
    places[columns] = 1 << np.arange(len(columns))
    keys = (matrix.astype(np.int64) @ places).astype("<u8")
    mixed = keys * np.uint64(0x9E3779B97F4A7C15)
    order = np.lexsort((mixed, -top, labels))
    bits = np.unpackbits(keys[order, None].view(np.uint8), axis=1, bitorder="little")
    rows = bits[:, : len(columns)].astype(bool)
    sizes = np.bincount(labels, minlength=k)
    whole = pack_lines(rows, columns, sizes, 1)
    return merge_lines(whole, -(-len(labels) // MAX_LINES)) if len(labels) > MAX_LINES else whole


def pack_lines(rows: Mask, columns: Iterable[int], lines: Iterable[int], per_line: int) -> Heatmap:
    """Return lines of bits as a heat-map."""
    bits = base64.b64encode(np.packbits(rows, axis=1).tobytes()).decode("ascii")
    return Heatmap(tuple(map(int, columns)), tuple(map(int, lines)), per_line, bits)


def merge_lines(whole: Heatmap, times: int) -> Heatmap:
    """Return a heat-map in which a line stands for at least ``times`` lines of the first.

    A line has a code where the running count of its records passes a multiple of the line's
    height: the shade of every stretch of lines stays right to within one line, and no dot
    stands for fewer records than a line has.
    """
    rows = whole.rows()
    ends = np.cumsum(whole.lines)
    parts = []
    lines = [min(max(size // times, 1), size) for size in whole.lines]
    for end, size, count in zip(ends, whole.lines, lines, strict=True):
        if count:
            edges = (np.arange(count + 1) * size) // count
            carriers = np.add.reduceat(rows[end - size : end], edges[:-1], axis=0, dtype=np.int64)
            passed = (2 * np.cumsum(carriers, axis=0) * count + size) // (2 * size)
            parts.append(np.diff(passed, axis=0, prepend=0) > 0)
    dots = np.concatenate(parts) if parts else rows[:0]
    return pack_lines(dots, whole.columns, lines, whole.per_line * times)


def draw_heatmap(
    shares: Floats, columns: Ints, sizes: Sequence[int | None], min_cell: int
) -> Heatmap:
    """Return the heat-map that shares of clusters (k, d) give, without looking at a record.

    A line stands for ``min_cell`` records or more. A code's share of the lines have it; which ones
    is drawn by the code's place. A suppressed share has no dot, a suppressed cluster no
    line.
    """
    per_line = max(min_cell, -(-sum(size or 0 for size in sizes) // MAX_LINES))
    lines = [max(size // per_line, 1) if size else 0 for size in sizes]
    parts = []
    for own, count in zip(np.nan_to_num(shares[:, columns]), lines, strict=True):
        places = np.arange(count, dtype=np.uint64)[:, None] * np.uint64(HEATMAP_COLUMNS)
        order = mixed(places + np.arange(len(columns), dtype=np.uint64)).argsort(axis=0).argsort(0)
        parts.append(order < np.round(own * count))
    return pack_lines(np.concatenate(parts), columns, lines, per_line)
