"""The block file: records in row groups of Parquet files, each a block that is read and dropped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comorb.errors import StorageError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Journal, Rows, snap_to_grid
from comorb.model.emissions.base import Feature, FeatureTable, Variable
from comorb.model.features import prepare_features, prepare_for
from comorb.remote import Place, Remote, opened, place_of


def places_of(path: str | Place, header: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the file and the number there of each row group of a cohort."""
    sizes = sizes_of(path, header)
    return [(file, number) for file, groups in sizes.items() for number in range(len(groups))]


def sizes_of(path: str | Place, header: dict[str, Any]) -> dict[str, list[int]]:
    """Return how many records are in each row group of each file of a cohort."""
    path = place_of(path).resolve()
    try:
        if "parts" in header:
            sizes = {str(path / part["file"]): part["groups"] for part in header["parts"]}
        else:
            with opened(path) as source:
                file = pq.read_metadata(source)
            sizes = {str(path): [file.row_group(i).num_rows for i in range(file.num_row_groups)]}
        if sum(map(sum, sizes.values())) != header["records"]:
            raise ValueError(Message("cohort_file.records"))
    except StorageError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError("cohort_file.damaged", file=path.name, reason=error) from None
    return sizes


VERSION, VERSION_WITH_FEATURES = 1, 2
HEADER, SEAL = b"comorb.cohort", b"comorb.seal"
MANIFEST = "cohort.json"  # of a folder of files: its seal, and its header
ID, CODES, WEIGHT = "comorb.id", "comorb.codes", "comorb.weight"
FEATURE = "comorb.feature."  # and the feature's name: numbers, null where one is missing
ROWS_A_GROUP = 1 << 17
_TEXTS, _LISTS, _COUNTS = ("system", "level"), ("codes", "names"), ("version", "records", "ones")


@dataclass(frozen=True)
class RowGroup:
    """A loader of one row group, which can be sent to another machine that sees the file.

    ``total`` is the sum of all weights of the file, None when it has none. ``features`` are those
    that are read, and ``variables`` those of the model that they are prepared for.
    """

    path: str
    number: int
    n_columns: int
    total: float | None = None
    features: tuple[Feature, ...] = ()
    variables: tuple[Variable, ...] = ()

    def __call__(self) -> Rows:
        """Read the row group; what is damaged is named."""
        table = read_group(self.path, self.number, self._columns)
        indptr, indices = ones_of(table)
        if indices.size and not 0 <= indices.min() <= indices.max() < self.n_columns:
            raise _damaged_group(self.path, self.number)
        rows = Rows(indptr, indices, np.empty(0))
        if self.total is not None:
            rows = rows._replace(weights=snap_to_grid(table[WEIGHT].to_numpy(), self.total))
        if self.features:
            seen = prepare_for(self.variables, features_in(table, self.features))
            rows = rows._replace(values=seen.values)
        return rows

    @property
    def size(self) -> int:
        """The bytes that a pass reads of it."""
        group = _footer(self.path).row_group(self.number)
        chunks = (group.column(i) for i in range(group.num_columns))
        read = (one for one in chunks if one.path_in_schema.startswith(tuple(self._columns)))
        return sum(one.total_compressed_size for one in read)

    @property
    def _columns(self) -> list[str]:
        own = [CODES] if self.total is None else [CODES, WEIGHT]
        return own + [FEATURE + feature.name for feature in self.features]


def read_group(path: str | Path, number: int, columns: list[str] | None = None) -> pa.Table:
    """Return columns of one row group of a block file."""
    place = place_of(path)
    options = {"pre_buffer": isinstance(place, Remote), "page_checksum_verification": True}
    try:
        footer = _footer(place)
        with opened(place) as source, pq.ParquetFile(source, metadata=footer, **options) as file:
            return file.read_row_group(number, columns, use_threads=False)
    except (pa.ArrowException, OSError):
        raise _damaged_group(path, number) from None
    except StorageError as error:
        raise StorageError("cohort_file.group", number=number, error=error) from None


def _footer(path: str | Place) -> pq.FileMetaData:
    """Return the footer of a file; it grows with the file, and a block must not."""
    place = place_of(path)
    if isinstance(place, Remote):
        return _read_footer(str(place), place.stamp())
    state = place.stat()
    return _read_footer(str(path), (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def _read_footer(path: str, _stamp: tuple[int, int] | None) -> pq.FileMetaData:
    with opened(place_of(path)) as file:
        return pq.read_metadata(file)


def ones_of(table: pa.Table) -> tuple[Any, Any]:
    """Return indptr (int64) and indices (int32) of the records of a row group."""
    lists = table[CODES].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], lists.flatten().to_numpy()


def _damaged_group(path: str | Path, number: int) -> StorageError:
    return StorageError("cohort_file.damaged_group", file=Path(path).name, number=number)


def metadata(header: dict[str, Any], schema: pa.Schema) -> dict[bytes, bytes]:
    """Return the metadata of a block file: a header, and a digest that seals it."""
    text = json.dumps(header | {"columns": schema.names, "types": _types(schema)}).encode()
    return {HEADER: text, SEAL: sha256(text).hexdigest().encode()}


def describe(path: str | Place) -> dict[str, Any]:
    """Return the header of a block file: codes, names, records, ledger and so on.

    `StorageError` when the file isn't there, is no cohort, is cut off, was altered or is of a newer
    comorb. A file of an earlier version has no seal.
    """
    path = place_of(path)
    inside, schema = (path / MANIFEST).is_file(), None
    if not inside and not path.is_file():
        raise StorageError("cohort_file.missing", path=path)
    try:
        if inside:
            seal, text = (path / MANIFEST).read_bytes().split(b"\n", 1)
            found = {HEADER: text, SEAL: seal}
        else:
            file = _footer(path)
            found, schema = file.metadata or {}, file.schema.to_arrow_schema()
    except StorageError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        raise StorageError("cohort_file.no_parquet", file=path.name) from None
    if HEADER not in found:
        raise StorageError("cohort_file.no_cohort", file=path.name)
    try:
        if SEAL in found and found[SEAL] != sha256(found[HEADER]).hexdigest().encode():
            raise ValueError(Message("cohort_file.altered"))
        header = _check_header(json.loads(found[HEADER]), path.name)
        own = {ID, CODES, *(FEATURE + feature.name for feature in features_of(header))}
        columns = header["columns"] if schema is None else schema.names
        types = header["types"] if schema is None else _types(schema)
        same = (header.get("columns", columns), header.get("types", types)) == (columns, types)
        if not same or not own <= set(columns):
            raise ValueError(Message("cohort_file.columns"))
        return header
    except StorageError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StorageError("cohort_file.damaged", file=path.name, reason=error) from None


def manifest(header: dict[str, Any], schema: pa.Schema) -> bytes:
    """Return the manifest of a folder of files: a seal and a header.

    ``parts`` of the header are the files, each with the rows of its row groups.
    """
    sealed = metadata(header, schema)
    return sealed[SEAL] + b"\n" + sealed[HEADER]


def _types(schema: pa.Schema) -> list[str]:
    """Return the types of all columns but the codes, of which Parquet renames the parts."""
    return [str(column.type) for column in schema if column.name != CODES]


def _check_header(header: Any, name: str) -> dict[str, Any]:
    """Return a header that has all that a cohort needs, each of its own type."""
    if not isinstance(header, dict) or type(header.get("version")) is not int:
        raise TypeError(Message("cohort_file.no_version"))
    if header["version"] > VERSION_WITH_FEATURES:
        raise StorageError(
            "cohort_file.version", file=name, version=header["version"], known=VERSION_WITH_FEATURES
        )
    for key in (*_COUNTS, *_TEXTS, *_LISTS, "ledger"):
        if key not in header:
            raise KeyError(Message("cohort_file.lacks", part=key))
    texts = [header[key] for key in _TEXTS]
    for key in (*_LISTS, "left_out"):
        some = header.get(key, [])
        if not isinstance(some, list):
            raise TypeError(Message("cohort_file.no_list", part=key))
        texts += some
    counts = [header[key] for key in _COUNTS] + [header.get("least_codes", 3)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(Message("cohort_file.no_text"))
    if not all(type(count) is int and 0 <= count < 1 << 62 for count in counts):
        raise TypeError(Message("cohort_file.no_number"))
    if len(set(header["codes"])) < len(header["codes"]):
        raise ValueError(Message("storage.code_twice"))
    return header


def feature_columns(table: FeatureTable | None) -> dict[str, pa.Array]:
    """Return the columns of a block file that hold features, by their names there."""
    if table is None:
        return {}
    return {
        FEATURE + feature.name: pa.array(column, from_pandas=True)
        for feature, column in zip(table.features, table.values.T, strict=True)
    }


def features_in(table: pa.Table, features: tuple[Feature, ...]) -> FeatureTable:
    """Return the values of features in rows of a block file."""
    columns = [_numbers(table, feature) for feature in features]
    values = np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
    return FeatureTable(features, values)


def _numbers(table: pa.Table, feature: Feature) -> Floats:
    column = table[FEATURE + feature.name].cast(pa.float64())
    return np.asarray(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def features_of(header: dict[str, Any]) -> tuple[Feature, ...]:
    """Return the features that the metadata of a block file name under ``features``."""
    try:
        return tuple(map(Feature.from_dict, header.get("features", [])))
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError("cohort_file.features", error=error) from None


def open_blocks(
    path: str | Place, journal: Journal | None = None, variables: tuple[Variable, ...] | None = None
) -> Blocks:
    """Open a cohort file as blocks that are read when they are needed.

    Parameters
    ----------
    path : path
        A file that `save_cohort` or `write_cohort` wrote.
    journal : Journal, optional
        Where to keep each E-step, so that an interrupted fit can go on; see `FileJournal`.
    variables : tuple of Variable, optional
        The features of a model that is to be applied; by default the file's own are learned from
        it, a column at a time.

    Returns
    -------
    Blocks
        For `BernoulliMixture.fit_blocks`; each block is one row group.

    Examples
    --------
    >>> import tempfile
    >>> from comorb.records.cohort_file import save_cohort
    >>> from comorb.records.datasets import heart_failure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_cohort(heart_failure(), f"{folder}/heart.parquet")
    ...     open_blocks(f"{folder}/heart.parquet").n_rows
    23154
    """
    header = describe(path)
    groups, total, n_weighted = places_of(path, header), None, None
    rows, d, weights = header["records"], len(header["codes"]), None
    columns = header.get("columns") or _footer(path).schema.to_arrow_schema().names
    if WEIGHT in columns:
        own = np.concatenate([read_group(*place, [WEIGHT])[WEIGHT].to_numpy() for place in groups])
        total = fsum(own)
        weights = snap_to_grid(own, total)
        n_weighted = int(np.count_nonzero(weights))
    weight = float(total or rows)
    features = features_of(header)
    if variables is not None:
        wanted = {variable.feature.name for variable in variables}
        features = tuple(feature for feature in features if feature.name in wanted)
    known, mean_square = _learn_variables(groups, features, variables, weights, weight)
    read = features if known else ()
    loaders = tuple(RowGroup(*place, d, total, read, known) for place in groups)
    return Blocks(loaders, rows, d, weight, journal, known, mean_square, n_weighted)


def _learn_variables(
    groups: list[tuple[str, int]],
    features: tuple[Feature, ...],
    variables: tuple[Variable, ...] | None,
    weights: Floats | None,
    weight: float,
) -> tuple[tuple[Variable, ...], float]:
    """Return the variables of a file's features, and a bound of their mean squares."""
    found: list[Variable] = []
    mean_square = 1.0
    for feature in features:
        name = FEATURE + feature.name
        column = [_numbers(read_group(*place, [name]), feature) for place in groups]
        table = FeatureTable((feature,), np.concatenate(column)[:, None])
        if variables is None:
            seen = prepare_features(table, weights, weight)
            found += seen.variables
        else:
            own = tuple(v for v in variables if v.feature.name == feature.name)
            seen = prepare_for(own, table)
        mean_square = max(mean_square, seen.mean_square(weights, weight))
    return (tuple(found) if variables is None else variables), mean_square


def identity(path: str | Place) -> str:
    """Return a digest of a block file's footer, or of a folder's manifest but for file names."""
    path = place_of(path)
    if (path / MANIFEST).is_file():
        header = describe(path)
        parts = [{**part, "file": ""} for part in header["parts"]]
        return sha256(json.dumps(header | {"parts": parts}).encode()).hexdigest()
    with path.open("rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return sha256(file.read(length)).hexdigest()
