"""The cohort file: a cohort in one block file, written whole or not at all, checked when loaded."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comorb.engines import block_files
from comorb.engines.base import Engine
from comorb.errors import StorageError
from comorb.messages import Message
from comorb.model.arrays import Ints
from comorb.model.blocks import Blocks, Rows
from comorb.model.emissions.base import Feature, Variable
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.features import FeatureSpec
from comorb.records.ledger import Ledger
from comorb.remote import Place, opened, place_of, removed, written
from comorb.storage import fingerprint_of, write_whole

# What a cohort, its file and the metadata of that have alike.
SHARED_FIELDS = ("codes", "names", "system", "level", "left_out", "least_codes", "patient")


def save_cohort(cohort: Cohort, path: str | Path) -> None:
    """Write a cohort to a Parquet file.

    Parameters
    ----------
    cohort : Cohort
        What to write.
    path : path
        Where to write it; a file that is there is replaced once the new one is complete.
    """
    write_parts([as_table(cohort)], path, lambda: header_of(cohort))


def header_of(cohort: Cohort) -> dict[str, Any]:
    """Return the metadata of a cohort, apart from the numbers of records and ones."""
    return {
        **{name: getattr(cohort, name) for name in SHARED_FIELDS},
        "ledger": cohort.ledger.to_dict(),
        **({"asked": [one.to_dict() for one in cohort.items]} if cohort.items else {}),
        **feature_header(cohort.features.features if cohort.features else ()),
    }


def feature_header(features: Sequence[Feature]) -> dict[str, Any]:
    """Return the metadata of features; nothing where there are none."""
    plain = [one.to_dict() for one in features]
    return {"version": block_files.VERSION_WITH_FEATURES, "features": plain} if features else {}


def as_table(cohort: Cohort) -> pa.Table:
    """Return the records of a cohort as rows of its file."""
    matrix = cohort.matrix
    lists = pa.LargeListArray.from_arrays(
        pa.array(matrix.indptr.astype(np.int64)), pa.array(matrix.indices.astype(np.int32))
    )
    columns: dict[str, Any] = {block_files.ID: cohort.ids, block_files.CODES: lists}
    if cohort.weights is not None:
        columns[block_files.WEIGHT] = pa.array(cohort.weights)
    columns |= block_files.feature_columns(cohort.features)
    columns |= {name: cohort.covariates[name] for name in cohort.covariates.column_names}
    return pa.table(columns)


def write_parts(
    tables: Iterable[pa.Table], path: str | Path, header: Callable[[], dict[str, Any]]
) -> None:
    """Write tables of one schema as row groups of one size; ``header`` is called at the end."""
    rows = ones = 0
    groups = _regroup(tables)
    first = next(groups)
    with (
        write_whole(path) as sink,
        pq.ParquetWriter(
            sink, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for group in chain([first], groups):
            writer.write_table(group, row_group_size=block_files.ROWS_A_GROUP)
            rows += group.num_rows
            ones += pc.sum(pc.list_value_length(group[block_files.CODES])).as_py() or 0
        counted = {"version": block_files.VERSION, "records": rows, "ones": ones}
        writer.add_key_value_metadata(block_files.metadata(counted | header(), first.schema))


def _regroup(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of some tables in tables of the size of a row group."""
    held: pa.Table | None = None
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        while held.num_rows > block_files.ROWS_A_GROUP:
            yield held.slice(0, block_files.ROWS_A_GROUP)
            held = held.slice(block_files.ROWS_A_GROUP)
    if held is not None:
        yield held


def load_cohort(path: str | Path, most: int | None = None) -> Cohort:
    """Read a cohort that `save_cohort` wrote.

    Parameters
    ----------
    path : path
        The file.
    most : int, optional
        Read at most so many records, evenly spread, and note it in the ledger.

    Raises
    ------
    StorageError
        When the file isn't there, is no cohort, is damaged or comes from a newer comorb.
    """
    file = CohortFile.open(path)
    return file.load(1 if most is None else file.step(most))


@dataclass(frozen=True)
class CohortFile:
    """A cohort on the disk, which is read block by block and may be larger than memory.

    A run uses it as it does a `Cohort`: codes and names, blocks, ids, a sample, a digest.
    """

    path: Place
    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    level: str
    ledger: Ledger
    left_out: tuple[str, ...]
    records: int
    ones: int
    least_codes: int = 3
    features: tuple[Feature, ...] = ()
    items: tuple[FeatureSpec, ...] = ()
    patient: str | None = None
    header: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, path: str | Place) -> CohortFile:
        """Read the metadata of a cohort file; `StorageError` when it is none."""
        header = block_files.describe(path)
        try:
            ledger = Ledger.from_dict(header["ledger"])
        except (KeyError, TypeError, ValueError):
            raise StorageError("cohort_file.ledger", file=place_of(path).name) from None
        return cls(
            place_of(path),
            tuple(header["codes"]),
            tuple(header["names"]),
            header["system"],
            header["level"],
            ledger,
            tuple(header.get("left_out", ())),
            header["records"],
            header["ones"],
            header.get("least_codes", 3),
            block_files.features_of(header),
            tuple(map(FeatureSpec.from_dict, header.get("asked", ()))),
            header.get("patient"),
            header,
        )

    def __len__(self) -> int:
        return self.records

    def blocks(self, variables: tuple[Variable, ...] | None = None) -> Blocks:
        """Return the row groups as blocks; see `Cohort.blocks`."""
        return block_files.open_blocks(self.path, variables=variables)

    def ids_of(self, block: int, start: int, size: int) -> pa.Array:
        """Return the ids of the rows of a block."""
        place = self.places[block]
        return block_files.read_group(*place, [block_files.ID])[block_files.ID].combine_chunks()

    def step(self, most: int) -> int:
        """Return the least step between records with which at most ``most`` are read."""
        return max(-(-self.records // most), 1)

    def sample(self, most: int, executor: Executor | None = None) -> tuple[Cohort, int]:
        """Return evenly spread records, ``most`` at most, and the step between them.

        Where they are many, the workers of an engine pick them, and write them next to the file.
        """
        step = self.step(most)
        if step == 1 or not isinstance(executor, Engine) or "parts" not in self.header:
            return self.load(step), step
        picks, start = [], 0
        for part in self.header["parts"]:
            picks.append((str(self.path / part["file"]), len(part["groups"]), start, step))
            start += sum(part["groups"])
        folder = self.path.with_name(f"{self.path.name}.sample")
        removed(folder)
        folder.mkdir()
        try:
            tables = []
            for name in executor.map_items(partial(_write_sample, str(folder)), picks):
                if name:
                    with opened(folder / name) as file:
                        tables.append(pq.ParquetFile(file).read())
        finally:
            removed(folder)
        return self._check_loaded(pa.concat_tables(tables), start, step), step

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features besides the codes."""
        return tuple(one.name for one in self.features)

    def counts(self) -> Ints:
        """Return how many records have each code."""
        found = np.zeros(len(self.codes), dtype=np.int64)
        for load in self.blocks(()).loaders:
            found += np.bincount(load().indices, minlength=len(self.codes))
        return found

    def schema(self) -> pa.Schema:
        """Return the covariates and their types."""
        with opened(place_of(self.places[0][0])) as file:
            columns = pq.read_schema(file)
        return pa.schema([one for one in columns if not one.name.startswith("comorb.")])

    def covariate(self, name: str) -> Iterator[pa.ChunkedArray]:
        """Yield the values of a covariate, a row group at a time."""
        for place in self.places:
            yield block_files.read_group(*place, [name])[name]

    def digest(self) -> str:
        """Return a hash of what a model learns from, as that of `Cohort.digest`."""
        tables = (block_files.read_group(*place) for place in self.places)
        rows = (rows_in(table, self.features) for table in tables)
        return self.header.get("digest") or fingerprint_of(rows, self.codes, self.features)

    def load(self, step: int = 1) -> Cohort:
        """Read every ``step``-th record into memory."""
        parts, start = [], 0
        for place in self.places:
            part = block_files.read_group(*place)
            parts.append(part if step == 1 else _every(part, start, step))
            start += len(part)
        return self._check_loaded(pa.concat_tables(parts), start, step)

    def _check_loaded(self, table: pa.Table, total: int, step: int) -> Cohort:
        """Return every ``step``-th of all records as a cohort; refuse damaged ones."""
        ledger = self.ledger
        if step > 1:
            ledger = ledger.add("records", Message("ledger.one_in", step=step), total, len(table))
        indptr, indices = block_files.ones_of(table)
        known = not len(indices) or 0 <= indices.min() <= indices.max() < len(self.codes)
        whole = len(table) == ledger.left("records") and (step > 1 or len(indices) == self.ones)
        if not (known and whole):
            raise StorageError("cohort_file.codes", file=self.path.name)
        return self._cohort(table, indptr, indices, ledger)

    def part(self, block: int, start: int, size: int) -> Cohort:
        """Return the records of a block."""
        table = block_files.read_group(*self.places[block])
        ledger = self.ledger.of_part(len(table), len(self.codes))
        return self._cohort(table, *block_files.ones_of(table), ledger)

    def _cohort(self, table: pa.Table, indptr: Any, indices: Any, ledger: Ledger) -> Cohort:
        own = {block_files.ID, block_files.CODES, block_files.WEIGHT} & set(table.column_names)
        own |= {name for name in table.column_names if name.startswith(block_files.FEATURE)}
        # Features are made again where rules choose some of the records.
        items = {one.name for one in self.items}
        features = (one for one in self.features if one.name not in items)
        others = (FeatureSpec(one.name, one.kind, one.transform) for one in features)
        return Cohort(
            matrix=as_matrix(indptr, indices, len(self.codes)),
            ids=table[block_files.ID].combine_chunks(),
            covariates=table.drop_columns(list(own)).replace_schema_metadata(None),
            ledger=ledger,
            weights=table[block_files.WEIGHT].to_numpy() if block_files.WEIGHT in own else None,
            features=block_files.features_in(table, self.features) if self.features else None,
            items=(*others, *self.items),
            **{name: getattr(self, name) for name in SHARED_FIELDS},
        )

    @cached_property
    def starts(self) -> Ints:
        """How many records are before each row group."""
        sizes = block_files.sizes_of(self.path, dict(self.header))
        return np.cumsum([0, *chain.from_iterable(sizes.values())])[:-1]

    @cached_property
    def places(self) -> list[tuple[str, int]]:
        """The file and the number there of each row group."""
        return block_files.places_of(self.path, dict(self.header))


def _every(part: pa.Table, start: int, step: int) -> pa.Table:
    """Return every ``step``-th record of all from a part that begins with the record ``start``."""
    return part.take(np.arange(-start % step, len(part), step))


def _write_sample(folder: str, pick: tuple[str, int, int, int]) -> str:
    """Write every n-th record of a file whose first is at ``start``; return the file's name."""
    path, groups, start, step = pick
    tables = []
    for number in range(groups):
        part = block_files.read_group(path, number)
        tables.append(_every(part, start, step))
        start += len(part)
    table = pa.concat_tables(tables)
    if not len(table):
        return ""
    name = f"{place_of(path).name}-{secrets.token_hex(8)}"
    with written(place_of(folder) / name) as file:
        pq.write_table(table, file, compression="zstd")
    return name


def rows_in(table: pa.Table, features: tuple[Feature, ...]) -> Rows:
    """Return the rows of a cohort file, with their features as in the records."""
    weighted = block_files.WEIGHT in table.column_names
    weights = table[block_files.WEIGHT].to_numpy() if weighted else np.empty(0)
    values = (block_files.features_in(table, features).values,) if features else ()
    return Rows(*block_files.ones_of(table), weights, *values)
