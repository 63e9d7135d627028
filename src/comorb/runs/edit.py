"""Edits of a run: clusters merged, one split into several, a record moved to another cluster."""

from __future__ import annotations

import csv
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import ComorbWarning, InputError, RecordsError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.features import parameter_slices
from comorb.model.fit import MixtureFit
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import Assignment, assign
from comorb.profiles.build import profile
from comorb.profiles.noise import own_secret
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.records.export import without_apostrophes
from comorb.runs.assign import assignment_rows, temperature_of
from comorb.runs.compare import carry_names, carry_notes
from comorb.runs.folder import RunFolder, load_profile
from comorb.storage import SavedModel, load_model, save_model


@dataclass(frozen=True)
class Revision:
    """A run that a person edits, and its records."""

    before: RunFolder
    cohort: Cohort
    groups: Sequence[int] | None = None  # the number that each fitted cluster goes by, once merged
    outcomes: tuple[str, ...] | None = None  # the covariates to sum up; None for all that can be
    secret: bytes | None = None  # what the keys of records are made with; None for one's own

    def merge(self, pair: tuple[int, int], directory: str | Path) -> tuple[Profile, Sequence[int]]:
        """Write the run in which two clusters, by their numbers, are one; see `merge_numbers`.

        A record is in the group with the highest probability, which is the sum over the group's
        clusters. A merged cluster of the saved model has the summed weight of its clusters and
        the average of their means, weighted by their weights.
        """
        earlier, fitted = load_profile(self.before.path), load_model(self._fitted)
        groups = merge_numbers(self.groups or earlier.numbers, pair)
        numbers = tuple(sorted(set(groups)))
        reason = Message("run.merged", k=len(numbers), found=len(groups))
        tau = temperature_of(fitted)
        assigned = assign(fitted.mixture, self.cohort, groups=groups, temperature=tau)
        model = _renumber(fitted, merge_components(fitted.mixture, groups), numbers, reason)
        made = self._profile(model, assigned, earlier, reason)
        made = made.renamed(carry_names(made, [earlier])).noted(carry_notes(made, [earlier]))
        self._write(replace(model, clusters=made.cluster_names), assigned, made, {}, directory)
        return made, groups

    def move(self, record: str, number: int, directory: str | Path) -> Profile:
        """Write the run in which one record, by its id, is in the cluster of a number."""
        earlier, model = load_profile(self.before.path), load_model(self.before.model)
        record = self.cohort.ids[row_of(self.cohort, record)].as_py()
        moves = load_moves(self.before) | {record: number}
        fitted = load_model(self._fitted)
        tau = temperature_of(fitted)
        assigned = assign(fitted.mixture, self.cohort, groups=self.groups, temperature=tau)
        labels = assigned.labels.copy()
        for one, cluster in moves.items():
            labels[row_of(self.cohort, one)] = earlier.place_of(cluster)
        assigned = replace(assigned, labels=labels)
        made = self._profile(model, assigned, earlier, earlier.source.reason)
        made = made.renamed(dict(enumerate(earlier.cluster_names)))
        made = made.noted(carry_notes(made, [earlier]))
        self._write(model, assigned, made, moves, directory)
        return made

    def split(self, number: int, k: int, directory: str | Path) -> Profile:
        """Write the run in which one cluster, by its number, is k clusters and the others stay.

        The k are found among its records alone, and share its weight; the largest keeps its number.
        A record of another cluster goes to one of them only where that fits it better now.
        """
        if self.groups or load_moves(self.before):
            raise InputError("edit.by_hand")
        earlier, model = load_profile(self.before.path), load_model(self.before.model)
        place, tau = earlier.place_of(number), temperature_of(model)
        labels = assign(model.mixture, self.cohort, temperature=tau).labels
        ids = self.cohort.ids.filter(pa.array(labels == place))
        inside = self.cohort.among(ids, Message("ledger.inside", cluster=number))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = MixtureFit(k).fit_blocks(inside.blocks(model.mixture.variables)).mixture_
        if any(issubclass(one.category, ComorbWarning) for one in caught):
            raise InputError("edit.no_parts", cluster=number, k=k)
        numbers = [*earlier.numbers, *range(max(earlier.numbers) + 1, max(earlier.numbers) + k)]
        columns = [model.codes.index(code) for code in inside.codes]
        mixture = split_component(model.mixture, place, found, columns)
        assigned = assign(mixture, self.cohort, temperature=tau)
        reason = Message("run.split", k=mixture.n_components, cluster=number)
        model = _renumber(model, mixture, tuple(numbers), reason)
        made = self._profile(model, assigned, earlier, reason)
        kept = {at: name for at, name in carry_names(made, [earlier]).items() if at != place}
        made = made.renamed(kept)
        self._write(replace(model, clusters=made.cluster_names), assigned, made, None, directory)
        return made

    @property
    def _fitted(self) -> Path:
        """The model before clusters were merged by hand."""
        return self.before.base if self.before.base.exists() else self.before.model

    def _profile(
        self, model: SavedModel, assigned: Assignment, earlier: Profile, reason: str
    ) -> Profile:
        return profile(
            model.mixture,
            self.cohort,
            title=earlier.source.title,
            reason=reason,
            outcomes=self.outcomes,
            assigned=assigned,
            numbers=model.numbers,
            secret=self.secret or own_secret(),
        )

    def _write(
        self,
        model: SavedModel,
        assigned: Assignment,
        made: Profile,
        moves: Mapping[str, int] | None,
        directory: str | Path,
    ) -> None:
        """Write a run; one with ``moves``, be they none, also has the model that was fitted."""
        with RunFolder.write(directory, force=True) as folder:
            if moves is not None:
                shutil.copyfile(self._fitted, folder.base)
            folder.save_assignments([assignment_rows(self.cohort.ids, assigned, model.numbers)])
            save_model(model, folder.model)
            folder.save_profile(made)
            if moves:
                with folder.moved.open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows(moves.items())


def _renumber(
    model: SavedModel, mixture: Mixture, numbers: tuple[int, ...], reason: str
) -> SavedModel:
    """Return a model with another mixture, whose clusters have these numbers and no names yet."""
    run, names = model.run | {"reason": reason}, ("",) * len(numbers)
    return replace(model, mixture=mixture, clusters=names, numbers=numbers, run=run)


def merge_numbers(groups: Sequence[int], pair: tuple[int, int]) -> tuple[int, ...]:
    """Return the number that each cluster of a model goes by, once two numbers are made one.

    >>> merge_numbers((1, 2, 3, 4), (4, 2))
    (1, 2, 3, 2)
    """
    first, second = sorted(pair)
    if first == second or not {first, second} <= set(groups):
        known = ", ".join(map(str, sorted(set(groups))))
        raise InputError("edit.two_clusters", known=known, first=first, second=second)
    return tuple(first if group == second else group for group in groups)


def merge_components(mixture: Mixture, groups: Sequence[int]) -> Mixture:
    """Return the mixture with one cluster for each group, in the order of their numbers.

    Its weight is the sum, its means the weighted average, over the clusters of the group; so are
    the statistics of features.
    """
    numbers = sorted(set(groups))
    mass = np.equal.outer(groups, numbers) * mixture.weights[:, None]
    weights = mass.sum(axis=0)
    means = (mass / weights).T @ mixture.means
    parameters = [
        variable.fit(variable.expectation(mixture.parameters[:, own]) @ mass)
        for variable, own in parameter_slices(mixture.variables)
    ]
    fitted = np.hstack([np.empty((len(numbers), 0)), *parameters])
    return Mixture(weights / weights.sum(), means, mixture.variables, fitted)


def split_component(
    mixture: Mixture, place: int, found: Mixture, columns: Sequence[int]
) -> Mixture:
    """Return the mixture in which one cluster is several: the largest there, the others at the end.

    They have its weight together, and its means of codes that are not among their ``columns``; the
    other clusters stay.
    """
    own = found.at(np.argsort(-found.weights, kind="stable"))
    means = np.tile(mixture.means[place], (own.n_components, 1))
    means[:, columns] = own.means

    def put(whole: Floats, parts: Floats) -> Floats:
        joined = np.concatenate([whole, parts[1:]])
        joined[place] = parts[0]
        return joined

    weights = put(mixture.weights, mixture.weights[place] * own.weights)
    parameters = put(mixture.parameters, own.parameters)
    return Mixture(weights, put(mixture.means, means), mixture.variables, parameters)


def load_moves(folder: RunFolder) -> dict[str, int]:
    """Return the number of the cluster of each record of a run that was moved by hand."""
    if not folder.moved.exists():
        return {}
    with folder.moved.open(newline="", encoding="utf-8") as file:
        return {record: int(cluster) for record, cluster in csv.reader(file)}


def row_of(cohort: Cohort, record: str) -> int:
    """Return the row of the record with an id, also as a .csv file of assignments has it."""
    written = without_apostrophes(pa.chunked_array([[record]], pa.string()))[0].as_py()
    for name in (record, written):
        if (place := pc.index(cohort.ids, pa.scalar(name, cohort.ids.type)).as_py()) >= 0:
            return int(place)
    raise RecordsError("edit.no_record")
