"""Cells: the keys of all sets of records that a profile counts, made, written and read.

They are not a part of the profile's own document: that is the same whoever makes it, and these
depend on a secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from comorb.errors import StorageError
from comorb.insight.profile.contents import Cells, Outcome, OutcomeCells
from comorb.insight.profile.further import plain_keys, with_keys
from comorb.model.arrays import Ints, Keys
from comorb.records.cohort import Cohort

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile

FORMAT, VERSION = "comorb-keys", 1


def count_cells(
    cohort: Cohort, labels: Ints, k: int, keys: Keys, pairs: Iterable[tuple[int, int]]
) -> Cells:
    """Return the key of each cluster, of its carriers of each code, and of those of both of a pair.

    The last of the clusters are all records.
    """
    own = csr_array((keys, (labels, np.arange(keys.size))), shape=(k, keys.size))
    ones = cohort.matrix.astype(np.uint64)
    clusters = np.asarray(own.sum(axis=1), dtype=np.uint64)
    codes = (own @ ones).toarray()
    columns = ones.tocsc()
    both = [int((columns[:, [a]].multiply(columns[:, [b]])).T.dot(keys)[0]) for a, b in pairs]
    return Cells(
        np.append(clusters, clusters.sum(dtype=np.uint64)),
        np.vstack([codes, codes.sum(axis=0, dtype=np.uint64)]),
        np.array(both, dtype=np.uint64),
    )


def encode(profile: Profile) -> str | None:
    """Return the keys of a profile as JSON; None where it has none."""
    if profile.cells is None:
        return None
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "of": profile.source.digest,
        **_texts(profile.cells),
        "outcomes": [_texts(one.cells) for one in profile.outcomes if one.cells],
        "features": [_texts(one.summary.cells) for one in profile.features if one.summary.cells],
        "parts": plain_keys(profile),
    }
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def attach(profile: Profile, text: str) -> Profile:
    """Return a profile with the keys of a document; StorageError for those of another profile."""
    try:
        plain = json.loads(text)
        if (plain["format"], plain["version"]) != (FORMAT, VERSION):
            raise ValueError("format")
        if plain["of"] != profile.source.digest:
            raise ValueError("of")
        k, d = profile.counts.shape
        outcomes = tuple(
            _with_keys(one, keys, k + 1)
            for one, keys in zip(profile.outcomes, plain["outcomes"], strict=True)
        )
        features = tuple(
            replace(one, summary=_with_keys(one.summary, keys, k + 1))
            for one, keys in zip(profile.features, plain.get("features", ()), strict=True)
        )
        pairs = _keys(plain["pairs"], len(profile.caveats.pairs))
        cells = Cells(_keys(plain["clusters"], k + 1), _keys(plain["codes"], k + 1, d), pairs)
        profile = with_keys(profile, plain.get("parts", {}))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise StorageError(
            f"these are not the keys of this profile ({said}); make both again"
        ) from None
    return replace(profile, cells=cells, outcomes=outcomes, features=features)


def _with_keys(one: Outcome, plain: dict[str, Any], width: int) -> Outcome:
    return replace(one, cells=_of_outcome(plain, len(one.counts), width))


def _of_outcome(plain: dict[str, Any], values: int, width: int) -> OutcomeCells:
    reach = np.array(plain["reach"], dtype=np.float64).reshape(width)
    return OutcomeCells(_keys(plain["known"], width), _keys(plain["counts"], values, width), reach)


def _texts(cells: Cells | OutcomeCells) -> dict[str, Any]:
    """Return keys as base64 of their bytes, numbers as they are."""
    return {
        name: base64.b64encode(values.astype("<u8").tobytes()).decode("ascii")
        if values.dtype == np.uint64
        else values.tolist()
        for name, values in vars(cells).items()
    }


def _keys(text: str, *shape: int) -> Keys:
    return np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64).reshape(shape)
