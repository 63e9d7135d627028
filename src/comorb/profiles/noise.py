"""Noise: the secret key of each record, and noise on a count by the sum of its records' keys."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from comorb.errors import StorageError
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.profiles.contents import Cells, Pair
from comorb.records.cohort import Cohort
from comorb.storage import mixed

HOME_VARIABLE, SECRET_FILE = "COMORB_HOME", "protection.key"
_BYTES = 32


def own_secret() -> bytes:
    """Return the secret of whoever runs this, made when it is first needed.

    It is in the folder that COMORB_HOME names, or else in ``.config/comorb`` of the home folder.
    Give it to `profile` where counts are to be protected. Whoever knows it can remove the noise.
    """
    return secret_in(Path(os.environ.get(HOME_VARIABLE) or Path.home() / ".config" / "comorb"))


def secret_in(folder: Path, made: bytes | None = None) -> bytes:
    """Return the secret that a folder keeps; where it has none, the one ``made``, or a new one.

    Whoever has it can take the noise off protected counts, so only its owner may read it.
    """
    path = folder / SECRET_FILE
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = path.with_name(f".{SECRET_FILE}.{secrets.token_hex(4)}")
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                file.write((made or secrets.token_bytes(_BYTES)).hex() + "\n")
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, RuntimeError) as error:
        raise StorageError(
            "secret.no_place",
            folder=folder,
            error=getattr(error, "strerror", None) or error,
            home=HOME_VARIABLE,
        ) from None
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise StorageError("secret.damaged", path=path)
    return secret


def hash_texts(texts: Iterable[str], secret: bytes) -> Keys:
    """Return a keyed hash of each text."""
    hashed = partial(blake2b, key=secret, digest_size=8)
    joined = b"".join(hashed(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64)


def record_keys(cohort: Cohort, secret: bytes) -> Keys:
    """Return the key of each record: of its id, or of what it holds where it has none of its own.

    What it holds are its covariates; without any, it goes by the number of its row. Codes are in no
    key: with other ones left out, or at another level, the same records would have other noise.
    """
    if not (cohort.numbered and cohort.covariates.num_columns):
        return hash_texts(cohort.ids.to_pylist(), secret)
    names = sorted(cohort.covariates.column_names)
    parts = [pc.cast(cohort.covariates[name], pa.string()) for name in names]
    joined = pc.binary_join_element_wise(
        *parts, "\x1f", null_handling="replace", null_replacement="\x00"
    ).combine_chunks()
    texts = pc.dictionary_encode(joined)
    each = hash_texts((f"\x1f{text}" for text in texts.dictionary.to_pylist()), secret)
    return np.asarray(each[texts.indices.to_numpy()])


MAX_NOISE = 5  # the largest noise of a published count
NOISE_VARIANCE = 5.3  # of it
MAX_HIDDEN_NOISE = 10  # of a suppressed count that enters published sums; its variance is 20
MAX_ANSWER_NOISE = 50  # of an answer to one of many questions; its variance is 488
_NOISE_SHAPE = 2.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def noise_odds(most: int = MAX_NOISE) -> tuple[Ints, Floats]:
    """Return the noise that a published count may have, and how probable each is."""
    steps = np.arange(-most, most + 1)
    odds = np.exp(-_NOISE_SHAPE * (steps / most) ** 2)
    return steps, odds / odds.sum()


def noise(keys: Keys, most: int = MAX_NOISE) -> Ints:
    """Return the noise of sets of records by their keys: whole numbers from −most to most.

    Their mean is 0; j has the probability exp(−2 (j / most)²), up to a constant.
    """
    steps, odds = noise_odds(most)
    edges = np.cumsum(odds)
    uniform = (mixed(keys + _GOLDEN) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.asarray(steps[np.minimum(np.searchsorted(edges, uniform, "right"), 2 * most)])


@dataclass(frozen=True)
class CountProtector:
    """How the counts of one cohort are protected."""

    min_cell: int  # the smallest count that is published: fewer, none included, are NaN
    cohort: np.uint64  # the key of all records of the cohort

    def keys(self, keys: Keys) -> Keys:
        """Return the keys of sets as sets of this cohort."""
        return np.asarray(mixed(np.asarray(keys) + mixed(np.array([self.cohort], np.uint64))))

    def counts(self, counts: Floats, keys: Keys) -> Floats:
        """Return counts with their noise; NaN below ``min_cell``, before the noise or after.

        >>> one = CountProtector(11, np.uint64(3))
        >>> one.counts(np.array([0.0, 4.0]), np.array([0, 7], dtype=np.uint64))
        array([nan, nan])
        """
        return self._suppress(counts, counts + self._draw_noise(counts, keys))

    def table(self, counts: Floats, keys: Keys, published: Floats | None = None) -> Floats:
        """Return counts of sets and, last on the last axis, of all of them together.

        The noise of the sets adds up to that of the whole. Otherwise every other way to divide the
        same records would be another look at the whole, and its noise would average out.
        ``published`` are the counts of the wholes, where these are published already.
        """
        noisy = counts + self.table_noise(counts, keys, published)
        shown = self._suppress(counts, noisy)
        return np.where(np.isnan(shown[..., -1:]), np.nan, shown)

    def table_noise(self, counts: Floats, keys: Keys, published: Floats | None = None) -> Ints:
        """Return the noise of a `table`, also of the suppressed counts."""
        drawn = self._draw_noise(counts, keys)
        whole = noise(self.keys(keys[..., -1:]))[..., 0]
        if published is not None:
            whole = np.nan_to_num(published - counts[..., -1]).astype(np.int64)
        k = counts.shape[-1] - 1
        left, over = np.divmod(whole - drawn[..., :-1].sum(axis=-1), max(k, 1))
        first = np.argsort(np.argsort(self.keys(keys[..., :-1]), axis=-1, kind="stable"), axis=-1)
        parts = drawn[..., :-1] + left[..., None] + (first < over[..., None])
        return np.concatenate([parts, whole[..., None]], axis=-1)

    def cross_table(self, counts: Floats, keys: Keys) -> Floats:
        """Return counts of sets by two divisions of the same records, (a, b).

        Their noise adds up to that of the sets of either division, but for rounding.
        """
        drawn = self._draw_noise(counts, keys).astype(np.float64)
        drawn += drawn.mean() - drawn.mean(axis=0) - drawn.mean(axis=1, keepdims=True)
        rows, columns = (self.table_noise(*_margins(counts, keys, axis)) for axis in (1, 0))
        a, b = counts.shape
        drawn += rows[:-1, None] / b + columns[:-1] / a - rows[-1] / (a * b)
        return self._suppress(counts, counts + np.round(drawn))

    def fit_within(
        self,
        parts: Floats,
        counts: Floats,
        published: Floats,
        wholes: Floats,
        left: int | None = None,
    ) -> Floats:
        """Return counts of parts that fit those of their wholes, which are ``published``.

        Where fewer than ``min_cell`` of the whole are not in the part, none included, ``left`` are:
        by default the middle of what may be.
        """
        over = self.min_cell // 2 if left is None else left
        nearly = (wholes - counts < self.min_cell) | (published - parts < self.min_cell)
        parts = np.where(nearly & (counts >= self.min_cell), published - over, parts)
        return np.where(np.isnan(published) | (parts < self.min_cell), np.nan, parts)

    def part_counts(
        self, counts: Floats, keys: Keys, published: Floats, wholes: Floats, left: int | None = None
    ) -> Floats:
        """Return counts of sets that are parts of wholes."""
        return self.fit_within(self.counts(counts, keys), counts, published, wholes, left)

    def part_table(
        self, counts: Floats, keys: Keys, published: Floats, wholes: Floats, left: int | None = None
    ) -> Floats:
        """Return a `table` of sets that are parts of wholes."""
        return self.fit_within(self.table(counts, keys), counts, published, wholes, left)

    def shares(
        self,
        parts: Floats,
        published: Floats,
        counts: Floats,
        wholes: Floats,
        weighted: Floats | None,
    ) -> Floats:
        """Return the shares that protected ``parts`` have in their ``published`` wholes.

        ``weighted`` are the weighted shares of the true ``counts`` in their ``wholes``, None
        without weights: protected shares are larger by the same ratio.
        """
        ratio: Floats | float = 1.0
        if weighted is not None:
            ratio = self.weight_ratio(weighted, counts, wholes, parts, published)
        share = parts / np.where(published > 0, published, np.nan) * ratio
        return round_shares(np.clip(share, 0, 1))

    def weight_ratio(
        self, shares: Floats, counts: Floats, wholes: Floats, parts: Floats, published: Floats
    ) -> Floats:
        """Return by how much weighted shares are larger than those of counts, in two digits.

        It is 1 where a part is suppressed, or less than ``min_cell`` of the whole is left over.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = round_two_digits(shares * wholes / counts)
        known = (published - parts >= self.min_cell) & np.isfinite(ratio)
        return np.where(known, ratio, 1.0)

    def _draw_noise(self, counts: Floats, keys: Keys) -> Ints:
        own = self.keys(keys)
        return np.where(counts < self.min_cell, noise(own, MAX_HIDDEN_NOISE), noise(own))

    def _suppress(self, counts: Floats, noisy: Floats) -> Floats:
        few: Mask = (counts < self.min_cell) | (noisy < self.min_cell)
        return np.where(few, np.nan, noisy)


def append_whole(parts: Floats, keys: Keys) -> tuple[Floats, Keys]:
    """Return counts and keys of sets with those of all of them together at the end."""
    return _margins(parts[:, None], keys[:, None], 1)


def _margins(counts: Floats, keys: Keys, axis: int) -> tuple[Floats, Keys]:
    """Return the sums over one axis of two, and the sum of all at the end."""
    sums, key_sums = counts.sum(axis=axis), keys.sum(axis=axis, dtype=np.uint64)
    return np.append(sums, sums.sum()), np.append(key_sums, key_sums.sum(dtype=np.uint64))


def round_two_digits(values: Floats | float) -> Floats:
    """Return numbers with two significant digits."""
    given = np.asarray(values, dtype=np.float64)
    flat = [float(f"{one:.2g}") for one in given.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(given.shape)


def round_shares(values: Floats) -> Floats:
    """Return shares with the digits that a protected count supports."""
    return np.asarray(np.round(values, 4))


def count_cells(cohort: Cohort, labels: Ints, k: int, keys: Keys, pairs: Iterable[Pair]) -> Cells:
    """Return the keys of clusters, of their records with each code, and of those with pairs.

    The last of the clusters are all records.
    """
    own = csr_array((keys, (labels, np.arange(keys.size))), shape=(k, keys.size))
    ones = cohort.matrix.astype(np.uint64)
    clusters = np.asarray(own.sum(axis=1), dtype=np.uint64)
    codes, columns = (own @ ones).toarray(), ones.tocsc()
    codes = np.vstack([codes, codes.sum(axis=0, dtype=np.uint64)])
    both = (columns[:, [pair.first]].multiply(columns[:, [pair.second]]) for pair in pairs)
    pair_keys = np.array([int(one.T.dot(keys)[0]) for one in both], dtype=np.uint64)
    return Cells(np.append(clusters, clusters.sum(dtype=np.uint64)), codes, pair_keys)
