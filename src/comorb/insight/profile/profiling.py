"""Profiling: a model and the cohort it was fitted on, counted and described as a `Profile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from comorb import __version__
from comorb.errors import InputError
from comorb.insight.profile import heatmap
from comorb.insight.profile.assignment import Assignment, assign, check_codes
from comorb.insight.profile.cells import count_cells
from comorb.insight.profile.checking import Check, check_model
from comorb.insight.profile.contents import Caveats, Cluster, Heatmap, Outcome, Provenance
from comorb.insight.profile.corrected import classification_of, classification_rows
from comorb.insight.profile.gathering import Gathering, gathered
from comorb.insight.profile.grey import grey_zone
from comorb.insight.profile.intervals import effective, nine_digits
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.labels import label
from comorb.insight.profile.outcomes import summarise
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.rules import learn_rules
from comorb.insight.profile.signs import outcomes_beside, with_signs
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.fitting import MixtureFit
from comorb.model.mixture import Mixture
from comorb.model.threads import workers
from comorb.records.cohort import Cohort


def profile(  # noqa: PLR0913 - what goes with the data is given by name
    model: Mixture | MixtureFit,
    cohort: Cohort,
    *,
    title: str = "",
    reason: str = "",
    command: str = "",
    stability: Sequence[float] | None = None,
    outcomes: Sequence[str] | None = None,
    assigned: Assignment | None = None,
    numbers: Sequence[int] | None = None,
    check: Check | None = None,
    secret: bytes | None = None,
    gathering: Gathering | None = None,
) -> Profile:
    """Profile the clusters of a cohort.

    Parameters
    ----------
    model, cohort : Mixture or fitted estimator, Cohort
        The fitted clusters, over the codes of the records in their order, and the records.
    title, reason, command : str, optional
        What the data are, why this number of clusters, and what was run.
    stability, numbers : sequence of float, sequence of int, optional
        How well each cluster comes out again, from 0 to 1, and its number, by default from 1 on.
    outcomes, assigned : sequence of str, Assignment, optional
        The covariates to sum up, by default all that can be, and the cluster of each record, where
        it isn't the most probable one.
    check, secret, gathering : Check, bytes, Gathering, optional
        What `check_model` returned for more records than these, what the keys of records are made
        with (`own_secret()`), without which the profile can't be protected, and burden and slices
        of more records.

    Returns
    -------
    Profile
        Sizes, prevalence, names, confidence, outcomes, burden, slices, rules and the heat-map.

    Examples
    --------
    >>> from comorb import BernoulliMixture
    >>> from comorb.records.datasets import heart_failure
    >>> cohort = heart_failure()
    >>> profile(BernoulliMixture(5).fit(cohort), cohort).k
    5
    """
    model = _mixture(model, cohort)
    k = model.n_components
    weights = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    check = check or _check(model, cohort)
    assigned = assigned or assign(model, cohort, temperature=check.caveats.temperature)
    clusters = _clusters(assigned, weights, numbers or range(1, k + 1), check)
    keys = _keys(cohort, assigned, secret)
    summaries = _summaries(cohort, assigned, weights, outcomes, keys)
    source = _provenance(cohort, weights, title, reason, command)
    made = _counted(model, cohort, assigned.labels, weights, source, clusters, summaries)
    made, cohort = with_signs(made, cohort, model, assigned.labels, weights, keys)
    gathering = gathering or gathered(cohort, assigned.labels, k, secret, outcomes)
    made = _used(_checked(made, cohort, assigned, check, keys), gathering, cohort, assigned, keys)
    return made if stability is None else made.with_stability(stability)


def _mixture(model: Mixture | MixtureFit, cohort: Cohort) -> Mixture:
    """Return the mixture itself, over the codes of a cohort; what is neither is refused."""
    found = getattr(model, "mixture_", model)
    if not isinstance(found, Mixture) or not isinstance(cohort, Cohort):
        raise InputError(
            "expected a fitted mixture and the cohort it was fitted on, got "
            f"{type(model).__name__} and {type(cohort).__name__}; fit the estimator first, and "
            "give the Cohort that read_records returns"
        )
    check_codes(found, cohort)
    return found


def _keys(cohort: Cohort, assigned: Assignment, secret: bytes | None) -> Keys | None:
    """Return the keys of the records, None where the profile isn't to be protected."""
    if secret is None:
        return None
    return record_keys(cohort, secret) if assigned.keys is None else assigned.keys


def _summaries(
    cohort: Cohort,
    assigned: Assignment,
    weights: Floats,
    outcomes: Sequence[str] | None,
    keys: Keys | None,
) -> tuple[Outcome, ...]:
    """Return the outcomes of each cluster, corrected."""
    wanted, taken = outcomes_beside(cohort, outcomes), classification_of(assigned.table)
    labels, k = assigned.labels, assigned.soft.size
    return summarise(cohort.covariates, labels, k, weights, wanted, keys, taken)


def _check(model: Mixture, cohort: Cohort) -> Check:
    with workers(-1) as executor:
        return check_model(model, cohort.blocks(model.variables), executor)


def _used(
    made: Profile, gathering: Gathering, cohort: Cohort, assigned: Assignment, keys: Keys | None
) -> Profile:
    """Return the profile with burden, slices, rules and the grey zone."""
    burden, slices = gathering.burden(cohort.ledger.notes), gathering.slices()
    rules = learn_rules(cohort, assigned, made.k, keys)
    grey = grey_zone(assigned, made.k, keys)
    return replace(made, burden=burden, slices=slices, rules=rules, grey=grey)


def _checked(
    made: Profile, cohort: Cohort, assigned: Assignment, check: Check, keys: Keys | None
) -> Profile:
    """Return the profile with its heat-map, names, intervals, caveats and keys."""
    d = made.n_codes
    low = np.hstack([np.minimum(check.low, made.prevalence[:, :d]), made.low[:, d:]])
    high = np.hstack([np.maximum(check.high, made.prevalence[:, :d]), made.high[:, d:]])
    features = tuple(
        replace(one, influence=round(share, 6))
        for one, share in zip(made.features, check.influence, strict=True)
    )
    made = replace(made, low=nine_digits(low), high=nine_digits(high), features=features)
    caveats = replace(check.caveats, classification=classification_rows(assigned.table))
    made = replace(made, caveats=caveats)
    columns = made.common(heatmap.COLUMNS)
    drawn = heatmap.heatmap(cohort.matrix, assigned.labels, assigned.top, columns, made.k)
    made = replace(made, heatmap=drawn)
    if keys is not None:
        pairs = [(pair.first, pair.second) for pair in made.caveats.pairs]
        made = replace(made, cells=count_cells(cohort, assigned.labels, made.k, keys, pairs))
    return made.renamed(dict(enumerate(made.automatic_names())))


def _counted(
    model: Mixture,
    cohort: Cohort,
    labels: Ints,
    weights: Floats,
    source: Provenance,
    clusters: tuple[Cluster, ...],
    outcomes: tuple[Outcome, ...],
) -> Profile:
    """Return the profile with an empty heat-map and clusters without names."""
    k = len(clusters)
    counts = _carriers(cohort, labels, np.ones(len(cohort)), k)
    sums = counts if cohort.weights is None else _carriers(cohort, labels, weights, k)
    mass = np.bincount(labels, weights, k)
    return Profile(
        source=source,
        codes=cohort.codes,
        names=cohort.names,
        labels=tuple(
            label(code, name, cohort.system)
            for code, name in zip(cohort.codes, cohort.names, strict=True)
        ),
        clusters=clusters,
        counts=counts,
        prevalence=nine_digits(sums / np.maximum(mass, 1e-300)[:, None]),
        totals=counts.sum(axis=0),
        overall=nine_digits(sums.sum(axis=0) / weights.sum()),
        low=np.zeros_like(counts),
        high=np.ones_like(counts),
        weights=nine_digits(model.weights),
        means=nine_digits(model.means),
        expected=nine_digits(model.weights @ model.means),
        outcomes=outcomes,
        heatmap=Heatmap((), (0,) * k, 1, ""),
        caveats=Caveats(),
    )


def _carriers(cohort: Cohort, labels: Ints, weights: Floats, k: int) -> Floats:
    """Return the weight of the carriers of each code in each cluster, (k, d)."""
    members = csr_array((weights, (labels, np.arange(weights.size))), shape=(k, weights.size))
    return np.asarray((members @ cohort.matrix).toarray())


def _clusters(
    assigned: Assignment, weights: Floats, numbers: Sequence[int], check: Check
) -> tuple[Cluster, ...]:
    """Return the sizes, the confidence and the codes a record of clusters still without names."""
    total, n = float(weights.sum()), weights.size
    measured = []
    for place, (number, soft) in enumerate(zip(numbers, assigned.soft, strict=True)):
        rows = np.flatnonzero(assigned.labels == place)
        w = weights[rows]
        means = [
            round(float(np.average(values[rows], weights=w)), 6) if w.any() else None
            for values in (assigned.top, assigned.margin, assigned.entropy)
        ]
        shares = round(float(w.sum()) / total, 9), round(float(soft) / total, 9)
        soft_size, n_eff = round(n * float(soft) / total, 3), round(effective(w), 3)
        sizes = rows.size, shares[0], soft_size, shares[1], n_eff
        cluster = Cluster(number, "", *sizes, *means)
        length, share = float(check.lengths[place]), float(check.of_length[place])
        measured.append(replace(cluster, length=round(length, 3), of_length=round(share, 6)))
    return tuple(measured)


def _provenance(
    cohort: Cohort, weights: Floats, title: str, reason: str, command: str
) -> Provenance:
    """Return what was clustered, with the fingerprint of its codes and weights."""
    return Provenance(
        title=title or "Records",
        records=len(cohort),
        features=len(cohort.codes),
        weight=None if cohort.weights is None else float(weights.sum()),
        effective=round(effective(weights), 3),
        system=cohort.system,
        level=cohort.level,
        lines=cohort.ledger.lines,
        notes=cohort.ledger.notes,
        reason=reason,
        command=command,
        version=__version__,
        digest=cohort.digest(),
    )
