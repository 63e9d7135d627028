"""The features of a profile in its document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from comorb.insight.profile.contents import FeatureModel, FeatureProfile, Outcome
from comorb.model.features import Feature


def encode(
    features: Iterable[FeatureProfile], summary: Callable[[Outcome], dict[str, Any]]
) -> dict[str, Any]:
    """Return what the document says of features; nothing where there are none."""
    plain = [
        {
            "name": one.name,
            "kind": one.kind,
            "columns": one.columns,
            "edges": one.edges,
            "influence": one.influence,
            "summary": summary(one.summary),
            "model": None if one.model is None else _model(one.model),
        }
        for one in features
    ]
    return {"features": plain} if plain else {}


def _model(kept: FeatureModel) -> dict[str, Any]:
    return {
        "feature": kept.feature.to_dict(),
        "tempered": kept.tempered,
        "facts": kept.facts,
        "parameters": kept.parameters.tolist(),
    }


def decode(
    plain: Iterable[dict[str, Any]],
    summary: Callable[[dict[str, Any]], Outcome],
    k: int,
    d: int,
) -> tuple[FeatureProfile, ...]:
    """Return the features of a document, of k clusters and d codes and signs."""
    return tuple(
        FeatureProfile(
            one["name"],
            one["kind"],
            _places(one["columns"], d),
            tuple(map(float, one["edges"])),
            float(one["influence"]),
            summary(one["summary"]),
            None if one["model"] is None else _read_model(one["model"], k),
        )
        for one in plain
    )


def _places(plain: Iterable[Any], d: int) -> tuple[int, ...]:
    places = tuple(plain)
    if not all(isinstance(place, int) and 0 <= place < d for place in places):
        raise ValueError("columns")
    return places


def _read_model(plain: dict[str, Any], k: int) -> FeatureModel:
    parameters = np.array(plain["parameters"], dtype=np.float64)
    if parameters.ndim != 2 or len(parameters) != k:
        raise ValueError("parameters")
    feature = Feature.from_dict(plain["feature"])
    return FeatureModel(feature, float(plain["tempered"]), tuple(plain["facts"]), parameters)
