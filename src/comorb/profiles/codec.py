"""Codec: a profile as versioned JSON, checked when it is read, and the keys of its counts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from itertools import pairwise
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from comorb.errors import StorageError
from comorb.messages import Message, pack, unpack
from comorb.model.arrays import Keys
from comorb.model.emissions.base import Feature
from comorb.profiles import contents
from comorb.profiles.assignment import UncertainCells, UncertainRecords
from comorb.profiles.burden import Burden, BurdenCells
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.rules import RuleCells, RuleList
from comorb.profiles.slices import SliceCells, Slices
from comorb.records.codes.systems import format_systems

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

T = TypeVar("T")
Shapes = Mapping[str, tuple[int, ...]]
Part = Burden | Slices | RuleList | UncertainRecords
FORMAT, VERSION = "comorb-profile", 2
_SEAL = ',"seal":"'  # the last field: SHA-256 of all that stands before it
_ARRAYS = [field.name for field in fields(contents.CodeColumns)[3:]]  # but for its texts
_ARRAYS.insert(6, "weights")  # in the order of the document
WHOLE = ("counts", "totals", "known")  # of a profile and its outcomes: without decimals
_PARTS = {  # of the document: the field of the profile, and the kind of its keys
    "burden": ("burden", BurdenCells),
    "slices": ("slices", SliceCells),
    "rules": ("rules", RuleCells),
    "grey": ("uncertain", UncertainCells),
}


def encode(profile: Profile, also: dict[str, Any] | None = None) -> str:
    """Return a profile as JSON, without its keys; a suppressed number is null.

    ``also`` is added for those who show the profile, and ignored when it is read.
    """
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "source": _plain(profile.source) | {"system_title": format_systems(profile.source.system)},
        "min_cell": profile.min_cell,
        "codes": profile.codes,
        "names": profile.names,
        "labels": profile.labels,
        "clusters": _plain(profile.clusters),
        **{name: _plain(getattr(profile, name), name in WHOLE) for name in _ARRAYS},
        "outcomes": _plain(profile.outcomes),
        "heatmap": _plain(profile.heatmap),
        "caveats": _plain(profile.caveats),
        **({"features": _plain(profile.features)} if profile.features else {}),
        **plain_parts(profile),
        **(also or {}),
    }
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)[:-1]
    return f'{text}{_SEAL}{hashlib.sha256(text.encode()).hexdigest()}"}}'


def plain_parts(profile: Profile) -> dict[str, Any]:
    """Return burden, slices, rules and uncertain records for JSON; suppressed numbers are null."""
    plain = {name: _plain(getattr(profile, held)) for name, (held, _) in _PARTS.items()}
    if profile.burden is not None:
        plain["burden"]["means"] = _plain(np.round(profile.burden.means, 6))
    return plain


def plain_part(part: Any) -> dict[str, Any]:
    """Return a dataclass for JSON, without its keys; a suppressed number is null."""
    whole = WHOLE if isinstance(part, contents.Outcome) else ()
    names = [field.name for field in fields(part) if field.name != "cells"]
    return {name: _plain(getattr(part, name), name in whole) for name in names}


def _plain(value: Any, whole: bool = False) -> Any:
    if isinstance(value, np.ndarray):
        hidden = np.isnan(value)
        numbers = np.where(hidden, 0, value)
        objects = (numbers.astype(np.int64) if whole else numbers).astype(object)
        objects[hidden] = None
        return objects.tolist()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        return plain_part(value)
    if isinstance(value, Message):
        return pack(value)
    return None if isinstance(value, float) and isnan(value) else value


def decode(text: str) -> dict[str, Any]:
    """Return the fields of the profile in a document; what is not one is a StorageError."""
    try:
        plain = json.loads(text)
    except RecursionError:
        raise StorageError("profile.nested") from None
    except ValueError as error:
        raise StorageError("profile.no_json", place=getattr(error, "pos", 0)) from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise StorageError("profile.format", format=FORMAT)
    if plain.get("version") not in (1, VERSION):
        raise StorageError("profile.version", version=VERSION, came=plain.get("version"))
    sealed, _, seal = text.rpartition(_SEAL)
    if (plain["version"] == VERSION or "seal" in plain) and (
        seal != f'{hashlib.sha256(sealed.encode()).hexdigest()}"}}'
    ):
        raise StorageError("profile.altered")
    try:
        return _fields(plain)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise StorageError(
            "profile.damaged", part=error.args[0] if error.args else error
        ) from error


def _fields(plain: dict[str, Any]) -> dict[str, Any]:
    source = {key: value for key, value in plain["source"].items() if key != "system_title"}
    clusters = tuple(
        _read(contents.Cluster, {"number": place, **cluster})
        for place, cluster in enumerate(plain["clusters"], 1)
    )
    if any(one.number >= two.number for one, two in pairwise(clusters)):
        raise ValueError("number")
    k, d = len(clusters), len(plain["codes"])
    shapes = {"counts": (k, d), "prevalence": (k, d), "means": (k, d), "weights": (k,)}
    shapes |= {"totals": (d,), "overall": (d,), "expected": (d,), "low": (k, d), "high": (k, d)}
    if "low" not in plain:  # a profile of an earlier version had no intervals of its own
        sizes = np.array([cluster.effective for cluster in clusters], dtype=np.float64)
        shares = np.array(plain["prevalence"], dtype=np.float64)
        plain["low"], plain["high"] = wilson_interval(shares, sizes[:, None])
    texts = {key: tuple(plain[key]) for key in ("codes", "names", "labels")}
    for key, values in texts.items():
        if len(values) != d or not all(isinstance(value, str) for value in values):
            raise ValueError(key)
    drawn = _read(contents.Heatmap, plain["heatmap"])
    if drawn.rows().shape[0] != sum(drawn.lines) or len(drawn.lines) != k:
        raise ValueError("heatmap")
    return {
        "source": _read(contents.Provenance, source),
        "min_cell": int(plain["min_cell"]),
        **texts,
        "clusters": clusters,
        **{key: _array(plain, key, shape) for key, shape in shapes.items()},
        "outcomes": tuple(_read_outcome(outcome, k + 1) for outcome in plain["outcomes"]),
        "heatmap": drawn,
        "caveats": _read(contents.Caveats, plain.get("caveats", {})),
        "features": tuple(_read_feature(one, k, d) for one in plain.get("features", ())),
        **read_parts(plain, k, d),
    }


def _read_outcome(plain: dict[str, Any], width: int) -> contents.Outcome:
    v, corrected = len(plain["values"]), plain.get("corrected")
    figures = dict.fromkeys(("estimate", "low", "high"), (v, width))
    if corrected is not None:
        corrected = _read(contents.CorrectedFigures, corrected, figures)
    rows = v if plain["kind"] == "share" else 0
    shapes = {"known": (width,), "counts": (rows, width), **figures}
    return _read(contents.Outcome, plain, shapes, corrected=corrected)


def _read_feature(plain: dict[str, Any], k: int, d: int) -> contents.FeatureProfile:
    summary, model = _read_outcome(plain["summary"], k + 1), plain["model"]
    if model is not None:
        width = len(model["parameters"][0])
        feature = Feature.from_dict(model["feature"])
        model = _read(contents.FeatureModel, model, {"parameters": (k, width)}, feature=feature)
    one = _read(contents.FeatureProfile, plain, {}, summary=summary, model=model)
    if not all(0 <= place < d for place in one.columns):
        raise ValueError("columns")
    return one


def read_parts(plain: dict[str, Any], k: int, d: int) -> dict[str, Any]:
    """Return the parts that `plain_parts` made plain; profiles of earlier versions have none."""
    burden, uncertain = plain.get("burden"), plain.get("grey")
    if burden is not None:
        m, r, width = len(burden["columns"]), len(burden["rates"]), k + 1
        shapes: dict[str, tuple[int, ...]] = {"records": (width,), "share": (width,)}
        shapes["patients"] = (width if burden["patients"] else 0,)
        shapes |= dict.fromkeys(("known", "mass", "totals", "shares"), (m, width))
        shapes |= dict.fromkeys(("rate_known", "rate_counts", "rate", "low", "high"), (r, width))
        burden = _read(Burden, burden, shapes)
    if uncertain is not None:
        own = {"members": (k,), "doubtful": (k,), "between": (k, k)}
        uncertain = _read(UncertainRecords, uncertain, own)
    return {
        "burden": burden,
        "slices": tuple(_read_slices(one, k) for one in plain.get("slices", ())),
        "rules": tuple(_read_rules(one, d) for one in plain.get("rules", ())),
        "uncertain": uncertain,
    }


def _read_slices(plain: dict[str, Any], k: int) -> Slices:
    s = len(plain["labels"])
    shapes = dict.fromkeys(("share", "low", "high", "standardised"), (s, k))
    sides = {"counts": (s, k + 1), "effective": (s,), "covered": (s,), "z": (k,), "p": (k,)}
    return _read(Slices, plain, {**shapes, **sides})


def _read_rules(plain: dict[str, Any], d: int) -> RuleList:
    names = ("matched", "right", "members", "review", "precision", "recall")
    made = _read(RuleList, plain, dict.fromkeys(names, ()))
    if not all(0 <= one.code < d for one in made.conditions):
        raise ValueError("rules")
    return made


def _read(kind: type[T], plain: dict[str, Any], shapes: Shapes | None = None, **made: Any) -> T:
    """Return a dataclass of plain values, each of the type or the shape that it must have.

    What a document of an earlier version lacks has its default. One with arrays may hold more.
    """
    own = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if shapes is None and not plain.keys() <= own.keys():
        raise TypeError(", ".join(plain.keys() - own.keys()))
    hints = get_type_hints(kind)
    for name, field in own.items():
        if name == "cells" or name in made or (name not in plain and field.default is not MISSING):
            continue
        if shapes and name in shapes:
            made[name] = _array(plain, name, shapes[name])
        else:
            made[name] = _typed(plain[name], hints[name], name)
    return kind(**made)


def _typed(value: Any, hint: Any, name: str) -> Any:
    """Return a plain value as the type that it must have; TypeError for another."""
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(_typed(one, get_args(hint)[0], name) for one in value)
    if is_dataclass(hint) and isinstance(value, dict):
        return _read(hint, value)  # type: ignore[arg-type]
    value = unpack(value) if hint is str else value
    if not _fits(value, hint):
        raise TypeError(name)
    return value


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:
        return type(value) in (int, float) and isfinite(value)
    return type(value) is hint or (hint is str and isinstance(value, Message))


def _array(plain: dict[str, Any], key: str, shape: tuple[int, ...]) -> Any:
    """Return numbers in a shape, or one number where it is (); suppressed ones are NaN."""
    values = np.array(plain[key], dtype=np.float64)
    if values.size != int(np.prod(shape)) or np.isinf(values).any():
        raise ValueError(key)
    return values.reshape(shape) if shape else float(values)


KEYS_FORMAT, KEYS_VERSION = "comorb-keys", 1


def encode_cells(profile: Profile) -> str | None:
    """Return the keys of a profile as JSON; None where it has none."""
    if profile.cells is None:
        return None
    plain = {
        "format": KEYS_FORMAT,
        "version": KEYS_VERSION,
        "of": profile.source.digest,
        **_flat(profile.cells),
        "outcomes": [_flat(one.cells) for one in profile.outcomes if one.cells],
        "features": [_flat(one.summary.cells) for one in profile.features if one.summary.cells],
        "parts": {
            name: [_shaped(one.cells) for one in _parts(profile, held) if one.cells is not None]
            for name, (held, _) in _PARTS.items()
        },
    }
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def attach(profile: Profile, text: str) -> Profile:
    """Return a profile with the keys of a document; StorageError for those of another profile."""
    try:
        plain = json.loads(text)
        if (plain["format"], plain["version"]) != (KEYS_FORMAT, KEYS_VERSION):
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
        cells = contents.Cells(
            _keys(plain["clusters"], k + 1), _keys(plain["codes"], k + 1, d), pairs
        )
        parts = _keyed_parts(profile, plain.get("parts", {}))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise StorageError("profile.other_keys", reason=reason) from None
    return replace(profile, cells=cells, outcomes=outcomes, features=features, **parts)


def _with_keys(one: contents.Outcome, plain: dict[str, Any], width: int) -> contents.Outcome:
    reach = np.array(plain["reach"], dtype=np.float64).reshape(width)
    counts = _keys(plain["counts"], len(one.counts), width)
    return replace(one, cells=contents.OutcomeCells(_keys(plain["known"], width), counts, reach))


def _flat(cells: Any) -> dict[str, Any]:
    """Return keys as base64 of their bytes, numbers as a list."""
    return {
        name: base64.b64encode(values.astype("<u8").tobytes()).decode("ascii")
        if values.dtype == np.uint64
        else values.ravel().tolist()
        for name, values in vars(cells).items()
    }


def _shaped(cells: Any) -> dict[str, Any]:
    """Return keys and numbers with their shapes."""
    shapes = {name: values.shape for name, values in vars(cells).items()}
    return {
        name: {"shape": shapes[name], "keys" if isinstance(values, str) else "numbers": values}
        for name, values in _flat(cells).items()
    }


def _keys(text: str, *shape: int) -> Keys:
    return np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64).reshape(shape)


def _parts(profile: Profile, held: str) -> tuple[Any, ...]:
    part = getattr(profile, held)
    return part if isinstance(part, tuple) else () if part is None else (part,)


def _keyed_parts(profile: Profile, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a profile with the keys of a document; ValueError for those of another.

    Keys of the parts of a profile of an earlier version may be missing.
    """
    changed: dict[str, Any] = {}
    for name, (held, kind) in _PARTS.items():
        parts = _parts(profile, held)
        if parts and plain.get(name):
            keyed = tuple(
                replace(one, cells=_read_cells(kind, cells, _cell_shapes(one, cells)))
                for one, cells in zip(parts, plain[name], strict=True)
            )
            changed[held] = keyed if isinstance(getattr(profile, held), tuple) else keyed[0]
    return changed


def _cell_shapes(part: Part, plain: dict[str, Any]) -> Shapes:
    """Return the shapes of the keys of a part; slices hold themselves how many strata there are."""
    if isinstance(part, Slices):
        (s, width), (g,) = part.counts.shape, plain["mix"]["shape"]
        strata = dict.fromkeys(("strata_keys", "strata"), (s, g, width))
        return {"counts": (s, width), **strata, "strata_share": (s, g, width - 1), "mix": (g,)}
    if isinstance(part, RuleList):
        return dict.fromkeys((field.name for field in fields(RuleCells)), (1,))
    shapes = {name: each.shape for name, each in vars(part).items() if isinstance(each, np.ndarray)}
    return {**shapes, "largest": part.known.shape} if isinstance(part, Burden) else shapes


def _read_cells(kind: Any, plain: dict[str, Any], shapes: Shapes) -> Any:
    """Return arrays with the shapes that they must have; ValueError for others."""
    arrays: dict[str, Any] = {}
    types = {field.name: "keys" if field.type == "Keys" else "numbers" for field in fields(kind)}
    for name, packed in plain.items():
        if types.get(name) not in packed or tuple(packed["shape"]) != shapes[name]:
            raise ValueError(name)
        if "keys" in packed:
            arrays[name] = _keys(packed["keys"], *shapes[name])
        else:
            arrays[name] = np.array(packed["numbers"], dtype=np.float64).reshape(shapes[name])
    return kind(**arrays)
