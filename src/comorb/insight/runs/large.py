"""Large: the whole job on records that don't fit in memory, or on a cluster.

The records become a cohort file beside the results; the model is fitted on its row groups, and
each E-step is kept in a journal. A run that was interrupted goes on when it is started again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from comorb.engines import FileJournal, open_blocks, open_engine
from comorb.engines.blockfile import (
    CODES,
    ID,
    WEIGHT,
    RowGroup,
    describe,
    identity,
    ones_of,
    read_group,
)
from comorb.errors import StorageError
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assign import MODEL, Tell, as_rows, silent
from comorb.insight.runs.folder import ASSIGNMENTS, names_of, save_profile
from comorb.insight.runs.pace import Pace
from comorb.insight.runs.run import measured_stability
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Blocks, Rows, map_blocks
from comorb.model.em import Stopping
from comorb.model.estimator import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.records.archive import load_cohort
from comorb.records.cohort import Cohort
from comorb.records.export import export
from comorb.records.layouts.covariates import typed
from comorb.records.layouts.layout import Layout
from comorb.records.preparation import Preparation
from comorb.records.streaming import write_cohort
from comorb.storage import SavedModel, check_folder, fingerprint_of, save_model, write_folder

COHORT, JOURNAL = "cohort.parquet", "journal"
DESCRIBED = 500_000  # records that the profile is made of, at most


def run_large(  # noqa: PLR0913 - what is told beside the data is told by name
    records: str | Path,
    directory: str | Path,
    k: int | Literal["auto"] = "auto",
    preparation: Preparation | None = None,
    *,
    title: str = "",
    command: str = "",
    outcomes: Sequence[str] | None = None,
    repeats: int = 3,
    memory: str | None = None,
    engine: str = "threads",
    force: bool = False,
    tell: Tell = silent,
) -> Profile:
    """Read records of any number, find their clusters, and write the results to a folder.

    Parameters
    ----------
    records : path or str
        What `read_records` reads, or a cohort file, which is taken as it stands.
    directory : path
        Where the results go; see `Run.save`. While the run is under way its cohort file and its
        journal are in a hidden folder beside it, and a run that is started again goes on there.
    k, preparation, title, command, outcomes, repeats, tell
        As in `run`. Beyond half a million records the clusters are described, and their
        stability measured, on that many of them, evenly spread.
    memory : str, optional
        About the most to hold, such as '2GB'.
    engine : str, default="threads"
        Who maps the blocks; see `comorb.engines.open_engine`.
    force : bool, default=False
        Whether an earlier run in the folder may be replaced.

    Returns
    -------
    Profile
        What there is to know about the clusters.
    """
    directory = Path(directory).absolute()
    preparation = preparation or Preparation()
    check_folder(directory, force)
    with _workshop(directory, records, preparation) as shop, open_engine(engine) as executor:
        path = _cohort_file(records, shop, preparation, memory, tell)
        told = describe(path)
        pace = Pace(Stopping().limit, tell)
        journal = FileJournal(shop / JOURNAL, identity(path), pace.begin)
        blocks = open_blocks(path, journal)
        fitted = BernoulliMixture(k).fit_blocks(blocks, executor, pace.gained)
        reason = fitted.choice_.reason if k == "auto" else f"{k}, as asked"
        mixture = fitted.mixture_
        sample = _sample(path)
        stable = measured_stability(sample, fitted, repeats, tell)
        tell("Describing the clusters")
        about = profile(
            mixture,
            sample,
            title=title,
            reason=reason,
            command=command,
            stability=stable.jaccard if stable else None,
            outcomes=outcomes,
        )
        with write_folder(directory, force) as folder:
            tell("Writing the cluster of each record")
            export(_assignments(mixture, path, blocks, executor), folder / ASSIGNMENTS)
            read = sum(load.size for load in blocks.loaders if isinstance(load, RowGroup))
            model = SavedModel(
                mixture,
                tuple(told["codes"]),
                tuple(told["names"]),
                names_of(about),
                about.numbers,
                told["system"],
                told["level"],
                tuple(told.get("left_out", ())),
                preparation.to_dict(),
                fingerprint_of(_matrices(path, blocks), told["codes"]),
                {
                    "title": title,
                    "records": blocks.n_rows,
                    "reason": reason,
                    "passes": fitted.n_iter_,
                    "converged": fitted.converged_,
                    "log_likelihood": fitted.log_likelihood_,
                    "smoothing": fitted.smoothing_,
                    "passes_over_the_file": journal.passes + journal.recalled,
                    "bytes_a_pass": read,
                },
            )
            save_model(model, folder / MODEL)
            save_profile(about, folder)
    return about


@contextmanager
def _workshop(directory: Path, records: str | Path, preparation: Preparation) -> Iterator[Path]:
    """Yield the hidden folder of a run, removed when the run ends well or has made nothing yet.

    What lies there from other records, or from other rules, is removed at once.
    """
    shop = directory.with_name(f".{directory.name}.unfinished")
    source = Path(records)
    found = source.stat() if source.is_file() else None
    state = [str(source), found and [found.st_size, found.st_mtime_ns], preparation.to_dict()]
    wanted = json.dumps(state, sort_keys=True)
    note = shop / "records.json"
    if not note.is_file() or note.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(shop, ignore_errors=True)
        shop.mkdir(parents=True)
        note.write_text(wanted, encoding="utf-8")
    try:
        yield shop
    except BaseException:
        if not any((shop / name).exists() for name in (COHORT, JOURNAL)):
            shutil.rmtree(shop)
        raise
    shutil.rmtree(shop)


def _cohort_file(
    records: str | Path, shop: Path, preparation: Preparation, memory: str | None, tell: Tell
) -> Path:
    if is_cohort(records):
        return Path(records)
    path = shop / COHORT
    if not path.exists():
        tell("Reading the records")
        write_cohort(records, path, preparation, memory)
    return path


def is_cohort(path: str | Path) -> bool:
    """Tell whether a path is a cohort file."""
    try:
        return bool(describe(path))
    except StorageError:
        return False


def _sample(path: Path) -> Cohort:
    """Return the records that the profile is made of; text that holds numbers becomes numbers."""
    cohort = load_cohort(path, DESCRIBED)
    return replace(cohort, covariates=typed(cohort.covariates, Layout()))


def _assignments(
    mixture: Mixture, path: Path, blocks: Blocks, executor: Executor | None
) -> Iterator[pa.RecordBatch]:
    found = map_blocks(partial(_labels, mixture), blocks, executor)
    for number, (labels, top) in enumerate(found):
        ids = read_group(path, number, [ID])[ID].combine_chunks()
        yield as_rows(ids, labels, top, range(1, mixture.n_components + 1))


def _labels(mixture: Mixture, rows: Rows) -> tuple[Ints, Floats]:
    posterior = mixture.posterior(rows)[0]
    return posterior.argmax(axis=1), posterior.max(axis=1)


def _matrices(path: Path, blocks: Blocks) -> Iterator[tuple[csr_array[Any], Floats | None]]:
    for number, load in enumerate(blocks.loaders):
        weighted = isinstance(load, RowGroup) and load.total is not None
        table = read_group(path, number, [CODES, *([WEIGHT] if weighted else [])])
        indptr, indices = ones_of(table)
        ones = np.ones(len(indices), np.uint8)
        matrix = csr_array((ones, indices, indptr), shape=(len(table), blocks.n_columns))
        yield matrix, table[WEIGHT].to_numpy() if weighted else None
