"""Feature models: what explains a record by its features, in full or by protected counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.contents import FeatureModel, FeatureProfile
from comorb.model.arrays import Floats
from comorb.model.features import Feature
from comorb.model.kinds import KINDS
from comorb.model.kinds.category import Category
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import Mixture
from comorb.model.traits import by_parameters
from comorb.records.values import same_sexes, yes_no

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile


def feature_models(model: Mixture) -> tuple[FeatureModel, ...]:
    """Return what a profile keeps of the features of a model."""
    return tuple(
        FeatureModel(
            variable.feature, variable.influence, variable.facts, model.parameters[:, own].copy()
        )
        for variable, own in by_parameters(model.variables)
    )


def variable_of(kept: FeatureModel) -> Variable:
    """Return the feature as the model sees it."""
    return KINDS[kept.feature.kind].recalled(kept.feature, kept.tempered, kept.facts)


def full_model(profile: Profile) -> Mixture:
    """Return the mixture that a full profile describes."""
    kept = [one.model for one in profile.features if one.model is not None]
    parameters = [one.parameters for one in kept]
    return Mixture(
        profile.weights / profile.weights.sum(),
        profile.means[:, : profile.n_codes],
        tuple(map(variable_of, kept)),
        np.hstack([np.empty((profile.k, 0)), *parameters]),
    )


def told_model(shown: Profile) -> Mixture:
    """Return the mixture that the counts of a protected profile give.

    A count that is not told stands in the middle of what it may be, a cluster of which nothing is
    told has the shares of all records. A feature is a category, of its levels or its parts.
    """
    sizes = np.array([float(cluster.size or 0) for cluster in shown.clusters])[:, None]
    middle = np.minimum((shown.min_cell - 1) / 2, sizes / 2)
    overall = np.where(np.isnan(shown.totals), middle.max(), shown.totals) / shown.source.records
    counts = np.where(np.isnan(shown.counts), middle, shown.counts)
    means = np.where(sizes > 0, (counts + 0.5) / (sizes + 1), overall)
    weights = np.nan_to_num(shown.weights, nan=1 / shown.source.records)
    parts = [_shares_of_parts(one, means) for one in shown.features]
    return Mixture(
        weights / weights.sum(),
        np.clip(means[:, : shown.n_codes], 0, 1),
        tuple(
            Category(
                Feature(one.name, "category", tuple(map(str, range(part.shape[1])))),
                1.0,
                tuple((weights / weights.sum() @ part).tolist()),
            )
            for one, part in zip(shown.features, parts, strict=True)
        ),
        np.hstack([np.empty((shown.k, 0)), *parts]),
    )


def _shares_of_parts(one: FeatureProfile, means: Floats) -> Floats:
    """Return the shares of the signs of a feature with sum 1, (k, parts)."""
    shares = np.clip(means[:, list(one.columns)], 1e-9, 1)
    if one.kind == "binary":
        shares = np.hstack([np.clip(1 - shares, 1e-9, 1), shares])
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def given_values(
    profile: Profile, given: Sequence[str]
) -> tuple[dict[str, tuple[int, float]], list[str]]:
    """Return the features among what is given, such as 'age=82', and the codes.

    A feature has its place and its value as the model of the profile sees it; one with a level
    that isn't known stays among the codes, which are then unknown too.
    """
    names = {one.name.lower(): place for place, one in enumerate(profile.features)}
    values: dict[str, tuple[int, float]] = {}
    codes = []
    for text in given:
        name, sign, value = (part.strip() for part in text.partition("="))
        at = names.get(name.lower()) if sign else None
        found = None if at is None else _value(profile, at, value)
        if at is None or found is None:
            codes.append(text)
        else:
            values = {key: one for key, one in values.items() if one[0] != at}
            values[f"{profile.features[at].name}={value}"] = (at, found)
    return values, codes


def _value(profile: Profile, at: int, text: str) -> float | None:
    """Return a value as the model sees it; None for a level that it doesn't know."""
    one = profile.features[at]
    if one.kind in ("category", "binary"):
        levels = _levels(profile, one)
        return _place(one.name, text, levels)
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number) or (one.kind == "count" and (number < 0 or number % 1)):
        wanted = "a whole number of 0 or more" if one.kind == "count" else "a number"
        raise InputError(f"expected {wanted} for {one.name!r}, got {text!r}")
    if profile.min_cell or one.model is None:
        return float(np.searchsorted(one.edges, number))
    return float(variable_of(one.model).prepared(np.array([number]))[0])


def _levels(profile: Profile, one: FeatureProfile) -> list[str]:
    """Return the levels of a feature, told by the codes of its signs."""
    said = [profile.codes[place].removeprefix(f"{one.name}=") for place in one.columns]
    return ["no", *said] if one.kind == "binary" else said


def _place(name: str, text: str, levels: Sequence[str]) -> float | None:
    plain = [level.lower() for level in levels]
    if text.lower() in plain:
        return float(plain.index(text.lower()))
    alike = same_sexes(levels, [text]) if name == "sex" else []
    if len(alike) == 1:
        return float(levels.index(alike[0]))
    answer = yes_no(text)
    if levels[-1] == "yes" and len(levels) == 2 and answer is not None:
        return float(answer)
    return None
