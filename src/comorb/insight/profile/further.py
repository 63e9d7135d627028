"""Further parts of a profile as plain values and back: burden, slices, rules, grey zone, keys."""

from __future__ import annotations

import base64
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from comorb.insight.profile.burden import Burden, BurdenCells
from comorb.insight.profile.grey import GreyCells, GreyZone
from comorb.insight.profile.rules import Condition, RuleCells, RuleList
from comorb.insight.profile.slices import SliceCells, Slices
from comorb.model.arrays import Floats

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile

Keyed = TypeVar("Keyed", BurdenCells, SliceCells, RuleCells, GreyCells)
_BURDEN = tuple(field.name for field in fields(BurdenCells))
_RULES = tuple(field.name for field in fields(RuleCells))


def plain_parts(profile: Profile) -> dict[str, Any]:
    """Return burden, slices, rules and grey zone for JSON; a number that isn't told is null."""
    return {
        "burden": None if profile.burden is None else plain_part(profile.burden),
        "slices": [plain_part(one) for one in profile.slices],
        "rules": [plain_part(one) for one in profile.rules],
        "grey": None if profile.grey is None else plain_part(profile.grey),
    }


def read_parts(plain: dict[str, Any], k: int, d: int) -> dict[str, Any]:
    """Return the parts that `plain_parts` made plain; profiles of earlier versions have none."""
    burden, grey = plain.get("burden"), plain.get("grey")
    return {
        "burden": None if burden is None else _burden(burden, k + 1),
        "slices": tuple(_slices(one, k) for one in plain.get("slices", ())),
        "rules": tuple(_rules(one, d) for one in plain.get("rules", ())),
        "grey": None if grey is None else _grey(grey, k),
    }


def plain_keys(profile: Profile) -> dict[str, Any]:
    """Return the keys of these parts as plain values, for the document of keys."""
    parts: dict[str, list[BurdenCells | SliceCells | RuleCells | GreyCells | None]] = {
        "burden": [] if profile.burden is None else [profile.burden.cells],
        "slices": [one.cells for one in profile.slices],
        "rules": [one.cells for one in profile.rules],
        "grey": [] if profile.grey is None else [profile.grey.cells],
    }
    return {
        name: [_packed(cells) for cells in some if cells is not None]
        for name, some in parts.items()
    }


def with_keys(profile: Profile, plain: dict[str, Any]) -> Profile:
    """Return a profile whose parts have the keys of a document; ValueError for those of another."""
    burden = profile.burden
    if burden is not None and plain.get("burden"):
        shapes = {name: getattr(burden, name).shape for name in vars(burden) if name in _BURDEN}
        shapes["largest"] = burden.known.shape
        burden = replace(burden, cells=_unpacked(BurdenCells, plain["burden"][0], shapes))
    slices, rules = profile.slices, profile.rules
    if plain.get("slices"):
        slices = tuple(
            replace(one, cells=_unpacked(SliceCells, cells, _of_slices(one, cells)))
            for one, cells in zip(slices, plain["slices"], strict=True)
        )
    if plain.get("rules"):
        rules = tuple(
            replace(one, cells=_unpacked(RuleCells, cells, dict.fromkeys(_RULES, (1,))))
            for one, cells in zip(rules, plain["rules"], strict=True)
        )
    grey = profile.grey
    if grey is not None and plain.get("grey"):
        shapes = {name: getattr(grey, name).shape for name in vars(grey) if name != "cells"}
        grey = replace(grey, cells=_unpacked(GreyCells, plain["grey"][0], shapes))
    return replace(profile, burden=burden, slices=slices, rules=rules, grey=grey)


def _of_slices(slices: Slices, plain: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the keys of slices; they say themselves how many strata there are."""
    (s, width), (g,) = slices.counts.shape, plain["mix"]["shape"]
    strata = dict.fromkeys(("strata_keys", "strata"), (s, g, width))
    return {"counts": (s, width), **strata, "strata_share": (s, g, width - 1), "mix": (g,)}


def plain_part(part: Burden | Slices | RuleList | GreyZone) -> dict[str, Any]:
    """Return one part for JSON, without its keys; a number that isn't told is null."""
    made: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name == "cells":
            continue
        if isinstance(value, np.ndarray):
            objects = value.astype(object)
            objects[np.isnan(value)] = None
            made[field.name] = objects.tolist()
        elif isinstance(value, float):
            made[field.name] = None if np.isnan(value) else value
        elif field.name == "conditions":
            made[field.name] = [vars(one) for one in value]
        else:
            made[field.name] = value
    return made


def _array(plain: dict[str, Any], name: str, *shape: int) -> Floats:
    values = np.array(plain[name], dtype=np.float64)
    if values.size != int(np.prod(shape)) or np.isinf(values).any():
        raise ValueError(name)
    return values.reshape(shape)


def _burden(plain: dict[str, Any], width: int) -> Burden:
    m, r = len(plain["columns"]), len(plain["rates"])
    return Burden(
        records=_array(plain, "records", width),
        share=_array(plain, "share", width),
        patients=_array(plain, "patients", width if plain["patients"] else 0),
        columns=tuple(plain["columns"]),
        known=_array(plain, "known", m, width),
        mass=_array(plain, "mass", m, width),
        totals=_array(plain, "totals", m, width),
        shares=_array(plain, "shares", m, width),
        rates=tuple(plain["rates"]),
        rate_known=_array(plain, "rate_known", r, width),
        rate_counts=_array(plain, "rate_counts", r, width),
        rate=_array(plain, "rate", r, width),
        low=_array(plain, "low", r, width),
        high=_array(plain, "high", r, width),
        notes=tuple(plain["notes"]),
    )


def _slices(plain: dict[str, Any], k: int) -> Slices:
    s = len(plain["labels"])
    return Slices(
        by=plain["by"],
        labels=tuple(plain["labels"]),
        ordered=bool(plain["ordered"]),
        counts=_array(plain, "counts", s, k + 1),
        effective=_array(plain, "effective", s),
        share=_array(plain, "share", s, k),
        low=_array(plain, "low", s, k),
        high=_array(plain, "high", s, k),
        z=_array(plain, "z", k),
        p=_array(plain, "p", k),
        mix=tuple(plain["mix"]),
        standardised=_array(plain, "standardised", s, k),
        covered=_array(plain, "covered", s),
        notes=tuple(plain["notes"]),
    )


def _rules(plain: dict[str, Any], d: int) -> RuleList:
    conditions = tuple(Condition(**one) for one in plain["conditions"])
    if not all(0 <= one.code < d for one in conditions):
        raise ValueError("rules")
    names = ("matched", "right", "members", "review", "precision", "recall")
    matched, right, members, review, precision, recall = (
        np.nan if plain[name] is None else float(plain[name]) for name in names
    )
    figures = (matched, right, members, review, precision, recall)
    if np.isinf(figures).any():
        raise ValueError("rules")
    return RuleList(conditions, bool(plain["otherwise"]), *figures)


def _grey(plain: dict[str, Any], k: int) -> GreyZone:
    return GreyZone(
        _array(plain, "members", k), _array(plain, "doubtful", k), _array(plain, "between", k, k)
    )


def _packed(cells: BurdenCells | SliceCells | RuleCells | GreyCells) -> dict[str, Any]:
    """Return arrays with their shapes, keys as base64 of their bytes."""
    return {
        name: {"shape": values.shape}
        | (
            {"keys": base64.b64encode(values.astype("<u8").tobytes()).decode("ascii")}
            if values.dtype == np.uint64
            else {"numbers": values.ravel().tolist()}
        )
        for name, values in vars(cells).items()
    }


def _unpacked(
    kind: type[Keyed], plain: dict[str, Any], shapes: dict[str, tuple[int, ...]]
) -> Keyed:
    """Return arrays with the shapes that they must have; ValueError for others."""
    arrays = {}
    types = {field.name: "keys" if field.type == "Keys" else "numbers" for field in fields(kind)}
    for name, packed in plain.items():
        if types.get(name) not in packed or tuple(packed["shape"]) != shapes[name]:
            raise ValueError(name)
        if "keys" in packed:
            values = np.frombuffer(base64.b64decode(packed["keys"]), "<u8").astype(np.uint64)
        else:
            values = np.array(packed["numbers"], dtype=np.float64)
        arrays[name] = values.reshape(packed["shape"])
    return kind(**arrays)
