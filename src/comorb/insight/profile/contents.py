"""What a profile holds: where it comes from, its clusters, outcomes and heat-map."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from comorb.model.arrays import Floats
from comorb.records.ledger import Line

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Provenance:
    """What was clustered and how, so that a reader can judge it and do it again.

    Attributes
    ----------
    title : str
        What the data are, in the user's words.
    records, features : int
        How many records, and how many codes.
    weight : float or None
        How many patients the weighted records stand for; None without weights.
    effective : float
        Kish's effective number of records, for intervals.
    system, level : str
        The coding system and the level of the codes.
    lines : tuple of Line
        The ledger: each rule, with what was there before and after it.
    notes : tuple of str
        What else a reader should know about the data.
    reason : str
        Why this number of clusters.
    command, version, digest : str
        What was run, by which version of comorb, and the fingerprint of the data it ran on.
    """

    title: str
    records: int
    features: int
    weight: float | None
    effective: float
    system: str
    level: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    reason: str
    command: str
    version: str
    digest: str


@dataclass(frozen=True)
class Cluster:
    """One cluster; a number that is suppressed is None.

    Attributes
    ----------
    number : int
        From 1 on in a run of its own; a cluster that goes on in another run keeps its number.
    name : str
        Made from the most relevant codes, or given by the user.
    size : int or None
        Records whose most probable cluster this is.
    share, soft_share : float or None
        Weighted shares of the records: each counted where it most probably belongs, and each
        counted everywhere by its probabilities.
    soft_size : float or None
        The soft share times the number of records.
    effective : float or None
        Kish's effective number of records, for intervals.
    top, margin, entropy : float or None
        Confidence: the means of `Assignment`'s three arrays over the records of the cluster.
    stability : float or None
        Mean Jaccard overlap with the same cluster fitted on other subsets of the records.
    """

    number: int
    name: str
    size: int | None
    share: float | None
    soft_size: float | None
    soft_share: float | None
    effective: float | None
    top: float | None
    margin: float | None
    entropy: float | None
    stability: float | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A covariate per cluster, and over all records in the last column; NaN is suppressed.

    Attributes
    ----------
    name : str
        The column.
    kind : {"number", "share"}
        Whether ``values`` are statistics of numbers or categories with shares.
    values : tuple of str
        ("mean", "median"), or the categories; of two categories one, such as yes or true.
    known : ndarray of shape (k + 1,)
        How many records have a value.
    counts : ndarray of shape (v, k + 1)
        How many have each category; no rows for numbers.
    estimate, low, high : ndarray of shape (v, k + 1)
        Weighted, with 95% intervals.
    """

    name: str
    kind: Literal["number", "share"]
    values: tuple[str, ...]
    known: Floats
    counts: Floats
    estimate: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Heatmap:
    """Records × common codes as bits, ordered by cluster; no ids, and not in the file's order.

    Attributes
    ----------
    columns : tuple of int
        The codes, as places in ``Profile.codes``, most common first.
    lines : tuple of int
        How many lines each cluster has.
    per_line : int
        Records in a line at least: 1 unless the cohort is large or counts are suppressed.
    bits : str
        Base64 of the lines, each packed to whole bytes, first column in the highest bit.
    """

    columns: tuple[int, ...]
    lines: tuple[int, ...]
    per_line: int
    bits: str

    def rows(self) -> Bits:
        """Return the bits as an array of shape (lines, columns)."""
        width = -(-len(self.columns) // 8)
        packed = np.frombuffer(base64.b64decode(self.bits), np.uint8)
        whole = np.unpackbits(packed.reshape(sum(self.lines), width), axis=1)
        return whole[:, : len(self.columns)].astype(bool)
