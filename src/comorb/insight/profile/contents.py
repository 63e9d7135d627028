"""What a profile holds: where it comes from, its clusters, outcomes and heat-map."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from comorb.model.arrays import Floats, Keys, Mask
from comorb.model.features import Feature, Kind
from comorb.records.ledger import Line


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
    """One cluster; a number that isn't told is None.

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
class Corrected:
    """An outcome as it would be if every record were in its own cluster: (v, k + 1) each."""

    estimate: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """A covariate per cluster, and over all records in the last column; NaN isn't told.

    Its own figures are those of the records taken for each cluster; ``corrected`` has them with
    BCH weights, where that can be done, and medians as they are.
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
    corrected: Corrected | None = None

    @property
    def shown(self) -> Outcome | Corrected:
        """The figures to show: corrected ones, where there are any."""
        return self.corrected or self

    def differs(self, value: int, place: int) -> bool:
        """Tell whether the naive estimate lies outside the interval of the corrected one."""
        if self.corrected is None:
            return False
        naive, shown = self.estimate[value, place], self.corrected
        return bool(naive < shown.low[value, place] or naive > shown.high[value, place])


@dataclass(frozen=True, eq=False)
class FeatureProfile:
    """A feature that the clusters were found by, beside the codes."""

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
