"""Explanations: what the codes and features of a record say for and against each cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions import KINDS
from comorb.model.emissions.base import Feature, Variable
from comorb.model.emissions.category import Category
from comorb.model.features import parameter_slices
from comorb.model.mixture import EDGE, Mixture
from comorb.profiles.contents import FeatureModel
from comorb.records.codes import search
from comorb.records.values import same_sexes, yes_no

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile


@dataclass(frozen=True, eq=False)
class Explanation:
    """The posterior of one record, taken apart.

    log P(Y = j | x) is, up to a constant, ``base[j]`` + Σ ``contributions[:, j]``; so the
    difference of two columns is what a code adds to the log-odds of one cluster against
    another, compared with the same record without the code.
    """

    codes: tuple[str, ...]  # those that the model knows, and then values such as age=82
    unknown: tuple[str, ...]  # those that it doesn't, which count for nothing
    posterior: Floats  # (k,)
    base: Floats  # (k,): log-probabilities for a record without codes; the highest is 0
    contributions: Floats  # (codes, k): positive where likelier than in the mixture as a whole

    def against(self, cluster: int, other: int) -> Floats:
        """Return what each code adds to the log-odds of one cluster against another."""
        return np.asarray(self.contributions[:, cluster] - self.contributions[:, other])


def explain(
    model: Mixture,
    codes: Sequence[str],
    given: Sequence[str],
    values: Mapping[str, tuple[int, float]] = MappingProxyType({}),
) -> Explanation:
    """Explain the posterior of a record that has the codes ``given``; repeated ones count once.

    ``codes`` are those of the model's columns. A code i contributes logit μᵢⱼ − logit Σₕ μᵢₕ ωₕ,
    and a value x of a feature log pⱼ(x) − log Σₕ pₕ(x) ωₕ: ``values`` has the feature's place in
    the model and its value, as the model sees it, by how it is called. O(k·d).
    """
    place = {code: column for column, code in enumerate(codes)}
    listed = list(dict.fromkeys(given))
    known = [code for code in listed if code in place]
    base, logits = model.tables()
    overall = np.clip(model.weights @ model.means, EDGE, 1 - EDGE)
    columns = [place[code] for code in known]
    mixed = np.log(overall) - np.log1p(-overall)
    of_codes = logits[columns] - mixed[columns, None]
    of_features = [_feature_contribution(model, at, value) for at, value in values.values()]
    contributions = np.vstack([of_codes, *of_features])
    total = base + contributions.sum(axis=0)
    posterior = np.exp(total - total.max())
    unknown = tuple(code for code in listed if code not in place)
    return Explanation(
        (*known, *values), unknown, posterior / posterior.sum(), base - base.max(), contributions
    )


def _feature_contribution(model: Mixture, at: int, value: float) -> Floats:
    """Return what a value contributes to each cluster, (k,)."""
    variable, own = list(parameter_slices(model.variables))[at]
    if variable.n_values is None:
        statistics = np.array([1.0, value, value**2])
    else:
        statistics = variable.cells(int(value) + 1)[-1]
        if variable.feature.levels:
            statistics = np.eye(variable.n_statistics)[int(value)]
    logs = statistics @ variable.natural(model.parameters[:, own])
    top = logs.max()
    overall = top + np.log(model.weights @ np.exp(logs - top))
    return np.asarray(variable.influence * (logs - overall))


def feature_models(model: Mixture) -> tuple[FeatureModel, ...]:
    """Return what a profile keeps of the features of a model."""
    return tuple(
        FeatureModel(
            variable.feature, variable.influence, variable.facts, model.parameters[:, own].copy()
        )
        for variable, own in parameter_slices(model.variables)
    )


def variable_of(kept: FeatureModel) -> Variable:
    """Return the feature as the model sees it."""
    return KINDS[kept.feature.kind].from_facts(kept.feature, kept.tempered, kept.facts)


def model_from_profile(profile: Profile) -> Mixture:
    """Return the mixture that a full profile describes."""
    kept = [one.model for one in profile.features if one.model is not None]
    parameters = [one.parameters for one in kept]
    return Mixture(
        profile.weights / profile.weights.sum(),
        profile.means[:, : profile.n_codes],
        tuple(map(variable_of, kept)),
        np.hstack([np.empty((profile.k, 0)), *parameters]),
    )


def model_from_counts(shown: Profile) -> Mixture:
    """Return the mixture that the counts of a protected profile give.

    A suppressed count stands in the middle of what it may be, a suppressed cluster has the shares
    of all records. A feature is a category, of its levels or its parts.
    """
    sizes = np.array([float(cluster.size or 0) for cluster in shown.clusters])[:, None]
    middle = np.minimum((shown.min_cell - 1) / 2, sizes / 2)
    overall = np.where(np.isnan(shown.totals), middle.max(), shown.totals) / shown.source.records
    counts = np.where(np.isnan(shown.counts), middle, shown.counts)
    means = np.where(sizes > 0, (counts + 0.5) / (sizes + 1), overall)
    weights = np.nan_to_num(shown.weights, nan=1 / shown.source.records)
    weights = weights / weights.sum()
    categories, parameters = [], [np.empty((shown.k, 0))]
    for one in shown.features:
        shares = np.clip(means[:, list(one.columns)], 1e-9, 1)
        if one.kind == "binary":
            shares = np.hstack([np.clip(1 - shares, 1e-9, 1), shares])
        shares = shares / shares.sum(axis=1, keepdims=True)
        feature = Feature(one.name, "category", tuple(map(str, range(shares.shape[1]))))
        categories.append(Category(feature, 1.0, tuple((weights @ shares).tolist())))
        parameters.append(shares)
    means = np.clip(means[:, : shown.n_codes], 0, 1)
    return Mixture(weights, means, tuple(categories), np.hstack(parameters))


def parse_values(
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
        found = None if at is None else _parse_value(profile, at, value)
        if at is None or found is None:
            codes.append(text)
        else:
            values = {key: one for key, one in values.items() if one[0] != at}
            values[f"{profile.features[at].name}={value}"] = (at, found)
    return values, codes


def _parse_value(profile: Profile, at: int, text: str) -> float | None:
    """Return a value as the model sees it; None for a level that it doesn't know."""
    one = profile.features[at]
    if one.kind in ("category", "binary"):
        levels = [profile.codes[place].removeprefix(f"{one.name}=") for place in one.columns]
        return _find_level(one.name, text, ["no", *levels] if one.kind == "binary" else levels)
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number) or (one.kind == "count" and (number < 0 or number % 1)):
        wanted = Message("noun.whole_number" if one.kind == "count" else "noun.number")
        raise InputError("explain.value", wanted=wanted, name=one.name, text=text)
    if profile.min_cell or one.model is None:
        return float(np.searchsorted(one.edges, number))
    return float(variable_of(one.model).prepare(np.array([number]))[0])


def _find_level(name: str, text: str, levels: Sequence[str]) -> float | None:
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


MAX_CHOICES = 8  # codes that are offered for one word


@dataclass(frozen=True)
class CodeQuery:
    """What was typed, as the profile knows it.

    ``given`` are codes and values such as age=82; ``choices`` has, for each text that may mean
    several codes, the places of these in the profile, the most common first.
    """

    given: tuple[str, ...]
    choices: tuple[tuple[str, tuple[int, ...]], ...] = ()


def resolve_codes(profile: Profile, texts: Sequence[str]) -> CodeQuery:
    """Return the codes that texts mean, such as '428', 'heart failure', 'CHF' or 'V*'.

    A text that means one code is that code, one that means several is to be chosen from; what is
    not known stays as it is.
    """
    codes = profile.codes[: profile.n_codes]
    words = search.everyday_words(codes, profile.names[: profile.n_codes], profile.source.system)
    given: list[str] = []
    choices: list[tuple[str, tuple[int, ...]]] = []
    for text in (part for whole in texts for part in search.split_list(whole)):
        tokens = text.replace(" =", "=").replace("= ", "=").split()
        coded = all(any(sign.isdigit() or sign == "=" for sign in token) for token in tokens)
        if coded and not search.is_pattern(text):
            given += tokens
            continue
        found = [] if "=" in text else _matching_codes(profile, codes, words, text)
        if len(found) == 1:
            given.append(codes[found[0]])
        elif found:
            choices.append((text, tuple(found[:MAX_CHOICES])))
        else:
            given.append(text)
    return CodeQuery(tuple(given), tuple(choices))


def _matching_codes(
    profile: Profile, codes: Sequence[str], words: Sequence[tuple[str, ...]], text: str
) -> list[int]:
    """Return the places of the codes that a text means, the most common first."""
    sought = search.fold_text(text)
    labels = [search.fold_text(one) for one in profile.labels[: len(codes)]]
    titles = [
        search.fold_text(f"{label} {name}")
        for label, name in zip(labels, profile.names, strict=False)
    ]
    every = range(len(codes))
    found = (
        search.find_codes(text, codes, [False] * len(codes))
        or [i for i in every if labels[i] == sought]
        or [i for i in every if sought in words[i]]
        or [i for i in every if all(word in titles[i] for word in sought.split())]
    )
    common = np.nan_to_num(profile.overall)
    return sorted(found, key=lambda i: (-common[i], i))
