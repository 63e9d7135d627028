"""The folder of a run: the names of its files, read and written in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from comorb import storage
from comorb.errors import StorageError
from comorb.messages import Message
from comorb.profiles import codec
from comorb.profiles.outcomes import outcome_rows
from comorb.profiles.profile import Profile
from comorb.records.export import export, without_apostrophes
from comorb.remote import Place, Remote, place_of
from comorb.views.board import Board
from comorb.views.pdf import report_pdf
from comorb.views.report import report

PROFILE, KEYS = "profile.json", "keys.json"
_FIGURES = ("estimate", "low", "high", "naive")
OUTCOME_ROWS = pa.schema(
    [("cluster", pa.int64()), ("outcome", pa.string()), ("value", pa.string())]
    + [(name, pa.float64()) for name in _FIGURES]
    + [("corrected", pa.bool_()), ("differs", pa.bool_())]
    + [(name, pa.float64()) for name in ("observed", "observed_low", "observed_high")]
    + [("events", pa.int64()), ("records", pa.int64())]
)


class RunFolder:
    """Where the files of a run are; those of edits are there only where there were edits."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            storage.settle(self.path)
        self.model = self.path / "model.comorb"
        self.base = self.path / "base.comorb"  # the model before clusters were merged by an edit
        self.moved = self.path / "moved.csv"  # the records that were moved by an edit
        self.assignments = self.path / "assignments.csv"  # the cluster of each record
        self.profile = self.path / PROFILE
        self.keys = self.path / KEYS  # what protecting the profile takes
        self.tree = self.path / "tree.json"  # how groups split, where their number was chosen
        self.report = self.path / "report.html"
        self.outcomes = self.path / "outcomes.csv"  # outcomes as counted and corrected

    @classmethod
    @contextmanager
    def write(cls, directory: str | Place, force: bool = False) -> Iterator[RunFolder]:
        """Yield a folder whose files move to ``directory`` when the block ends well."""
        with storage.write_folder(directory, force) as draft:
            yield cls(draft)

    def save_assignments(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write the cluster of each record, batch by batch."""
        export(batches, self.assignments)

    def save_profile(self, profile: Profile, protected: int = 0) -> None:
        """Write a full profile and its report, protected below a count where one is given."""
        storage.write_text(profile.to_json(), self.profile)
        if (keys := codec.encode_cells(profile)) is not None:
            storage.write_text(keys, self.keys)
        if profile.outcomes:
            export([outcome_batch(profile)], self.outcomes, force=True)
        shown = profile.protected(protected) if protected else profile
        storage.write_text(report(shown), self.report)

    def load_assignments(self) -> pa.Table:
        """Read the number of the cluster of each record, and its confidence."""
        return read_assignments(self.assignments)


def read_assignments(path: Path) -> pa.Table:
    """Read a .csv file of assignments."""
    types = {"id": pa.string(), "cluster": pa.int64(), "confidence": pa.float64()}
    options = pa_csv.ConvertOptions(column_types=types)
    table = pa_csv.read_csv(path, convert_options=options)
    return table.set_column(0, "id", without_apostrophes(table["id"]))


def outcome_batch(profile: Profile) -> pa.RecordBatch:
    """Return the outcomes of a profile as rows of a table, as counted and corrected."""
    return pa.RecordBatch.from_pylist(outcome_rows(profile), OUTCOME_ROWS)


def load_run_model(run: str | Path) -> storage.SavedModel:
    """Read the model of a run, from its folder or from the file itself."""
    place = place_of(run)
    if isinstance(place, Remote):
        return storage.load_model(place if place.suffix else place / "model.comorb")
    return storage.load_model(RunFolder(run).model if place.is_dir() else run)


def load_profile(run: str | Path) -> Profile:
    """Read the profile of a run, from its folder or from the file itself."""
    path = RunFolder(run).profile if Path(run).is_dir() else Path(run)
    keys = path.with_name(KEYS)
    try:
        profile = Profile.from_json(path.read_text(encoding="utf-8"))
        if Path(run).is_dir():
            _check_same_run(RunFolder(run), profile)
        return codec.attach(profile, keys.read_text(encoding="utf-8")) if keys.exists() else profile
    except FileNotFoundError:
        message: str = Message("folder.no_profile", path=path, profile=PROFILE)
    except (OSError, UnicodeDecodeError):
        message = Message("folder.unreadable", path=path, profile=PROFILE)
    except StorageError as error:
        message = Message("file.problem", file=path, problem=error)
    raise StorageError(message)


def _check_same_run(folder: RunFolder, profile: Profile) -> None:
    """Refuse a profile next to the model of another run.

    A profile of very many records is of a part of them.
    """
    if not folder.model.exists():
        return
    model = storage.load_model(folder.model)
    whole = model.run.get("records") == profile.source.records
    codes = profile.codes[: profile.n_codes]
    if (model.codes, model.numbers) != (codes, profile.numbers) or (
        whole and model.data_hash != profile.source.digest
    ):
        raise StorageError("folder.other_run", model=folder.model.name)


def rename(directory: str | Path, names: Mapping[int, str]) -> Profile:
    """Give clusters of a saved run other names, by their numbers, in all its files."""
    profile = load_profile(directory)
    profile = profile.renamed({profile.place_of(number): name for number, name in names.items()})
    model = replace(load_run_model(directory), clusters=profile.cluster_names)
    with RunFolder.write(directory, force=True) as folder:
        storage.save_model(model, folder.model)
        folder.save_profile(profile)
    return profile


def annotate(directory: str | Path, notes: Mapping[int, Mapping[str, str]]) -> Profile:
    """Write what people noted of clusters of a saved run, by their numbers, into its profile."""
    profile = load_profile(directory)
    profile = profile.noted({profile.place_of(number): one for number, one in notes.items()})
    RunFolder(directory).save_profile(profile)
    return profile


def save_report(board: Board, path: Path) -> None:
    """Write the report of a profile to an HTML or PDF file."""
    if path.suffix.lower() == ".pdf":
        with storage.write_whole(path) as file:
            report_pdf(board, file)
    else:
        storage.write_text(report(board.given, language=board.words.language), path)
