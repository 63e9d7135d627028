"""The profile as a document: versioned JSON, checked when it is read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from comorb.errors import StorageError
from comorb.insight.profile import feature_codec
from comorb.insight.profile.contents import (
    Caveats,
    Cluster,
    Corrected,
    Heatmap,
    Outcome,
    Pair,
    Provenance,
)
from comorb.insight.profile.further import plain_parts, read_parts
from comorb.insight.profile.intervals import wilson
from comorb.model.arrays import Floats
from comorb.records.codes.systems import title_of
from comorb.records.ledger import Line

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile

T = TypeVar("T")
FORMAT, VERSION = "comorb-profile", 2
_SEAL = ',"seal":"'  # the last field: SHA-256 of all that stands before it
ARRAYS = (
    *("counts", "prevalence", "totals", "overall", "low", "high", "weights", "means", "expected"),
)
FIGURES = ("estimate", "low", "high")
WHOLE = ("counts", "totals", "known")


def encode(profile: Profile, also: dict[str, Any] | None = None) -> str:
    """Return a profile as JSON, without its keys; a number that isn't told is null.

    What is asked for ``also`` is for those who show it, and passed over when it is read.
    """
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "source": asdict(profile.source) | {"system_title": title_of(profile.source.system)},
        "min_cell": profile.min_cell,
        "codes": profile.codes,
        "names": profile.names,
        "labels": profile.labels,
        "clusters": [asdict(cluster) for cluster in profile.clusters],
        **{name: _plain(profile, name) for name in ARRAYS},
        "outcomes": [_outcome(outcome) for outcome in profile.outcomes],
        "heatmap": asdict(profile.heatmap),
        "caveats": asdict(profile.caveats),
        "ranks": profile.ranks,
        **feature_codec.encode(profile.features, _outcome),
        **plain_parts(profile),
        **(also or {}),
    }
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)[:-1]
    return f'{text}{_SEAL}{hashlib.sha256(text.encode()).hexdigest()}"}}'


def decode(text: str) -> dict[str, Any]:
    """Return the fields of the profile in a document; what is not one is a StorageError."""
    try:
        plain = json.loads(text)
    except RecursionError:
        raise StorageError("the profile is nested too deeply; make it again") from None
    except ValueError as error:
        raise StorageError(
            f"expected a profile as JSON, but it ends or breaks off at character "
            f"{getattr(error, 'pos', 0)}; make it again"
        ) from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise StorageError(f"expected a document of format {FORMAT!r}; this is something else")
    if plain.get("version") not in (1, VERSION):
        raise StorageError(
            f"expected version {VERSION} of a profile, got {plain.get('version')!r}; read it "
            "with the version of comorb that wrote it, or make it again"
        )
    sealed, _, seal = text.rpartition(_SEAL)
    if (plain["version"] == VERSION or "seal" in plain) and (
        seal != f'{hashlib.sha256(sealed.encode()).hexdigest()}"}}'
    ):
        raise StorageError("the profile was altered after it was made; make it again")
    try:
        return _fields(plain)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise StorageError(
            f"the profile is damaged: {error.args[0] if error.args else error!r} is missing or "
            "of the wrong shape; make it again"
        ) from error


def _fields(plain: dict[str, Any]) -> dict[str, Any]:
    source = {key: value for key, value in plain["source"].items() if key != "system_title"}
    source["lines"] = tuple(_typed(Line(**line)) for line in source["lines"])
    source["notes"] = tuple(source["notes"])
    clusters = tuple(
        _typed(Cluster(**{"number": place, **cluster}))
        for place, cluster in enumerate(plain["clusters"], 1)
    )
    if any(one.number >= two.number for one, two in pairwise(clusters)):
        raise ValueError("number")
    k, d = len(clusters), len(plain["codes"])
    shapes = {"counts": (k, d), "prevalence": (k, d), "means": (k, d), "weights": (k,)}
    shapes |= {"totals": (d,), "overall": (d,), "expected": (d,), "low": (k, d), "high": (k, d)}
    if "low" not in plain:
        plain |= _wilson(plain, clusters)
    cells = plain["heatmap"]
    drawn = _typed(
        Heatmap(tuple(cells["columns"]), tuple(cells["lines"]), cells["per_line"], cells["bits"])
    )
    if drawn.rows().shape[0] != sum(drawn.lines) or len(drawn.lines) != k:
        raise ValueError("heatmap")
    return {
        "source": _typed(Provenance(**source)),
        "min_cell": int(plain["min_cell"]),
        **{key: _strings(plain, key, d) for key in ("codes", "names", "labels")},
        "clusters": clusters,
        **{key: _array(plain, key, shape) for key, shape in shapes.items()},
        "outcomes": tuple(_read_outcome(outcome, k + 1) for outcome in plain["outcomes"]),
        "heatmap": drawn,
        "caveats": _caveats(plain.get("caveats", {})),
        "ranks": _ranks(plain.get("ranks", ()), k, d),
        "features": feature_codec.decode(
            plain.get("features", ()), partial(_read_outcome, width=k + 1), k, d
        ),
        **read_parts(plain, k, d),
    }


def _wilson(plain: dict[str, Any], clusters: tuple[Cluster, ...]) -> dict[str, Any]:
    """Return the intervals of a profile of an earlier version, which had none of its own."""
    sizes = np.array([cluster.effective for cluster in clusters], dtype=np.float64)
    low, high = wilson(np.array(plain["prevalence"], dtype=np.float64), sizes[:, None])
    return {"low": low, "high": high}


def _caveats(plain: dict[str, Any]) -> Caveats:
    pairs = tuple(_typed(Pair(**pair)) for pair in plain.get("pairs", ()))
    taken = tuple(tuple(map(float, row)) for row in plain.get("classification", ()))
    return _typed(Caveats(**plain | {"pairs": pairs, "classification": taken}))


def _ranks(plain: Any, k: int, d: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    ranks = tuple(tuple(tuple(codes) for codes in clusters) for clusters in plain)
    if any(len(clusters) != k for clusters in ranks) or not all(
        isinstance(code, int) and 0 <= code < d
        for clusters in ranks
        for codes in clusters
        for code in codes
    ):
        raise ValueError("ranks")
    return ranks


def _read_outcome(plain: dict[str, Any], width: int) -> Outcome:
    v = len(plain["values"])
    rows = v if plain["kind"] == "share" else 0
    shapes = {"known": (width,), "counts": (rows, width)}
    shapes |= {"estimate": (v, width), "low": (v, width), "high": (v, width)}
    known, counts, *figures = (_array(plain, key, shape) for key, shape in shapes.items())
    estimate, low, high = figures
    name, kind, values = plain["name"], plain["kind"], tuple(plain["values"])
    better, told = None, plain.get("corrected")
    if told is not None:
        better = Corrected(*(_array(told, key, (v, width)) for key in FIGURES))
    outcome = Outcome(name, kind, values, known, counts, estimate, low, high, corrected=better)
    return _typed(outcome, ("name", "kind", "values"))


def _typed(made: T, names: tuple[str, ...] = ()) -> T:
    """Return an object of plain values, all or some of them, that are of the types they should."""
    for name, hint in get_type_hints(type(made)).items():
        if (not names or name in names) and not _fits(getattr(made, name), hint):
            raise TypeError(name)
    return made


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:
        return type(value) in (int, float) and isfinite(value)
    return type(value) is hint


def _outcome(outcome: Outcome) -> dict[str, Any]:
    texts = {"name": outcome.name, "kind": outcome.kind, "values": outcome.values}
    arrays = ("known", "counts", *FIGURES)
    better = outcome.corrected
    corrected = None if better is None else {name: _plain(better, name) for name in FIGURES}
    own = {name: _plain(outcome, name) for name in arrays}
    return {**texts, **own, "corrected": corrected}


def _plain(holder: Profile | Outcome | Corrected, name: str) -> Any:
    values: Floats = getattr(holder, name)
    hidden = np.isnan(values)
    numbers = np.where(hidden, 0, values)
    objects = (numbers.astype(np.int64) if name in WHOLE else numbers).astype(object)
    objects[hidden] = None
    return objects.tolist()


def _array(plain: dict[str, Any], key: str, shape: tuple[int, ...]) -> Floats:
    values = np.array(plain[key], dtype=np.float64).reshape((0, shape[-1]) if 0 in shape else -1)
    if values.size != int(np.prod(shape)) or np.isinf(values).any():
        raise ValueError(key)
    return values.reshape(shape)


def _strings(plain: dict[str, Any], key: str, length: int) -> tuple[str, ...]:
    values = tuple(plain[key])
    if len(values) != length or not all(isinstance(value, str) for value in values):
        raise ValueError(key)
    return values
