"""The model file, and atomic writes: a file or a folder is written whole or not at all.

A model file is two lines of text, raw numbers, and a seal::

    comorb model 1
    {"clusters": [...], "codes": [...], ...}     one line of JSON, UTF-8
    ω (k), M (k × d), features' (k × m)          little-endian float64
    SHA-256 of all of the above                  32 bytes

It holds no time and no path: the same model gives the same bytes. A model with
features besides codes has version 2, others version 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from comorb import __version__
from comorb.errors import InputError, StorageError
from comorb.messages import Message
from comorb.model.arrays import Floats, Keys
from comorb.model.blocks import Rows
from comorb.model.emissions import from_dict, to_dict
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.features import n_parameters
from comorb.model.kernels import row_keys
from comorb.model.mixture import Mixture
from comorb.remote import Place, Remote, place_of, written

VERSION = 2
_MAGIC = b"comorb model "
_SEAL = 32
_READY, _DRAFT = ".ready", ".draft-"
_TEXTS = ("system", "level", "data_hash", "version")
_LISTS = ("codes", "names", "clusters", "numbers", "left_out")
_TABLES = ("preparation", "run")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted mixture with all that is needed to apply and to explain it.

    A code has a name, and a cluster has a name and a number; numbers ascend. ``left_out`` are codes
    of the training records that were left out on purpose, ``data_hash`` is their `fingerprint`.
    ``preparation`` says how records became rows, ``run`` what explains the model: plain values.
    """

    mixture: Mixture
    codes: tuple[str, ...]
    names: tuple[str, ...]
    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    system: str
    level: str
    left_out: tuple[str, ...] = ()
    preparation: dict[str, Any] = field(default_factory=dict)
    data_hash: str = ""
    run: dict[str, Any] = field(default_factory=dict)
    version: str = __version__

    def __post_init__(self) -> None:
        k, d = self.mixture.means.shape
        came = (len(self.clusters), len(self.codes), len(self.names))
        if came != (k, d, d):
            named = dict(zip(("clusters", "codes", "names"), came, strict=True))
            raise InputError("storage.names", k=k, d=d, **named)
        if len(self.numbers) != k or list(self.numbers) != sorted(set(self.numbers)):
            raise InputError("storage.numbers", k=k)


def save_model(model: SavedModel, path: str | Path) -> None:
    """Write a model to one file; a file that is there is replaced once the new one is whole."""
    header = {key: getattr(model, key) for key in (*_TEXTS, *_LISTS, *_TABLES)}
    mixture, version = model.mixture, 1
    if mixture.variables:
        version = VERSION
        header["features"] = [to_dict(variable) for variable in mixture.variables]
    text = json.dumps(header, ensure_ascii=False, sort_keys=True, allow_nan=False)
    parts = (mixture.weights, mixture.means.ravel(), mixture.parameters.ravel())
    numbers = np.concatenate(parts).astype("<f8").tobytes()
    body = b"%s%d\n%s\n" % (_MAGIC, version, text.encode()) + numbers
    with write_whole(path) as file:
        file.write(body + hashlib.sha256(body).digest())


def load_model(path: str | Place) -> SavedModel:
    """Read a model that `save_model` wrote; `StorageError` for what is none, damaged or too new."""
    path = place_of(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise StorageError("storage.no_model", path=path) from None
    except OSError as error:
        raise StorageError("storage.unreadable", path=path, reason=error.strerror) from None
    title, _, rest = content[:-_SEAL].partition(b"\n")
    version = title.removeprefix(_MAGIC)
    if not content.startswith(_MAGIC) or not version.isdigit():
        raise StorageError("storage.not_a_model", path=path)
    if not 1 <= int(version) <= VERSION:
        raise StorageError("storage.version", path=path, version=int(version), known=VERSION)
    if hashlib.sha256(content[:-_SEAL]).digest() != content[-_SEAL:]:
        raise StorageError("storage.altered", path=path)
    text, _, numbers = rest.partition(b"\n")
    try:
        return _restore(json.loads(text), numbers)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise StorageError("storage.invalid", path=path, error=error) from None
    except RecursionError:
        raise StorageError("storage.nested", path=path) from None


def _restore(header: Any, numbers: bytes) -> SavedModel:
    if not isinstance(header, dict):
        raise TypeError(Message("storage.no_header"))
    header.setdefault("numbers", list(range(1, len(header["clusters"]) + 1)))
    kinds = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_LISTS, list) | dict.fromkeys(_TABLES, dict)
    for key, kind in kinds.items():
        if not isinstance(header[key], kind):
            raise TypeError(Message("storage.type", part=key, type=kind.__name__))
        wanted = int if key == "numbers" else str
        if kind is list and not all(type(one) is wanted for one in header[key]):
            raise TypeError(Message("storage.only", part=key, type=wanted.__name__))
    json.dumps([header[key] for key in _TABLES], allow_nan=False)  # as they must be written again
    if len(set(header["codes"])) < len(header["codes"]):
        raise ValueError(Message("storage.code_twice"))
    variables = tuple(map(from_dict, header.get("features", [])))
    if len({variable.feature.name for variable in variables}) < len(variables):
        raise ValueError(Message("storage.feature_twice"))
    k, d, m = len(header["clusters"]), len(header["codes"]), n_parameters(variables)
    if len(numbers) != 8 * k * (1 + d + m):
        raise ValueError(Message("storage.size", k=k, d=d, m=m, n=k * (1 + d + m)))
    values = np.frombuffer(numbers, "<f8").astype(np.float64)
    means, parameters = np.split(values[k:], [k * d])
    mixture = Mixture(values[:k], means.reshape(k, d), variables, parameters.reshape(k, m))
    parts: dict[str, Any] = {key: header[key] for key in kinds}
    return SavedModel(mixture, **parts | {key: tuple(parts[key]) for key in _LISTS})


@contextmanager
def write_whole(path: str | Place) -> Iterator[BinaryIO]:
    """Yield a file that becomes ``path`` when the block ends well, and vanishes when it doesn't.

    Until then a file of that name stays as it was: the new one is written next to it under a
    temporary name, flushed to the disk and renamed. One that a killed process left is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_whole(f"{folder}/notes.txt") as file:
    ...         _ = file.write(b"done")
    ...     Path(folder, "notes.txt").read_text()
    'done'
    """
    path = place_of(path)
    if isinstance(path, Remote):
        with written(path) as file:
            yield file
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        for left in path.parent.glob(f".{escape(path.name)}.*-{'[0-9a-f]' * 8}"):
            if not _alive(left.name.removeprefix(f".{path.name}.").partition("-")[0]):
                left.unlink(missing_ok=True)
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError("storage.untouched", path=path, reason=reason) from None
    finally:
        draft.unlink(missing_ok=True)


def write_text(text: str, path: str | Place) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with write_whole(path) as file:
        file.write(text.encode())


@contextmanager
def write_folder(directory: str | Place, force: bool = False) -> Iterator[Path]:
    """Yield a folder whose files move to ``directory`` when the block ends well, all or none.

    An interrupted block changes nothing. Files of other names that are there stay there; those of
    the same names are replaced by ``force`` only, as `check_folder` says. The files are first
    renamed, at once, to a hidden folder: from there `settle` moves them to their places, now or,
    after a kill, when the folder is next looked at. In a store each file is there when it is whole.
    """
    directory = place_of(directory).absolute()
    check_folder(directory, force)
    if isinstance(directory, Remote):
        with TemporaryDirectory(prefix="comorb-") as draft:
            yield Path(draft)
            for one in sorted(Path(draft).iterdir()):
                with one.open("rb") as file:
                    (directory / one.name).send(file)
        return
    try:
        new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with TemporaryDirectory(prefix=f"{_DRAFT}{os.getpid()}-", dir=directory) as draft:
                yield Path(draft)
                Path(draft).rename(directory / _READY)
            settle(directory)
        finally:
            if new and not any(directory.iterdir()):
                directory.rmdir()
    except OSError as error:
        reason = error.strerror or error
        raise StorageError("write.choose_place", path=directory, reason=reason) from None


def settle(directory: Path) -> None:
    """Finish what a killed process began: put files that are complete in place, drop the others."""
    ready = directory / _READY
    try:
        for file in sorted(ready.iterdir()) if ready.is_dir() else ():
            with suppress(FileNotFoundError):  # another process is at it, too
                file.replace(directory / file.name)
        with suppress(FileNotFoundError):
            ready.rmdir()
        for draft in directory.glob(f"{_DRAFT}*"):
            if not _alive(draft.name.removeprefix(_DRAFT).partition("-")[0]):
                shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError("storage.interrupted", directory=directory, reason=reason) from None


def _alive(process: str) -> bool:
    """Return whether there is a process of a number; where that can't be known, there is."""
    if hasattr(os, "killpg"):  # Windows has no signal 0, and ends the process
        with suppress(OSError, ValueError, OverflowError):
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                return False
    return True


def check_file(path: Place, endings: Sequence[str], force: bool) -> None:
    """Refuse a file of another kind, and one that is there unless it may be replaced."""
    if path.suffix.lower() not in endings:
        raise StorageError("storage.ending", endings=" or ".join(endings), name=path.name)
    if path.exists() and not force:
        raise StorageError("storage.file_exists", path=path)
    if isinstance(path, Path):
        _check_place(path)


def check_folder(directory: str | Place, force: bool) -> None:
    """Refuse a folder with something in it, unless that may be replaced."""
    directory = place_of(directory)
    if isinstance(directory, Remote):
        if not force and directory.exists():
            raise StorageError("storage.store_in_use", directory=directory)
        return
    if directory.is_file():
        raise StorageError("storage.not_a_folder", directory=directory)
    if directory.is_dir():
        settle(directory)
    if not force and directory.is_dir() and any(directory.iterdir()):
        raise StorageError("storage.folder_in_use", directory=directory)
    _check_place(directory / "results")


def _check_place(path: Path) -> None:
    """Refuse early a path that nothing could be written to after a long fit."""
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise StorageError("storage.read_only", folder=above)


def fingerprint(
    matrix: sparse.csr_array[Any],
    codes: Sequence[str],
    weights: Floats | None = None,
    table: FeatureTable | None = None,
) -> str:
    """Return a hash of what a model learns from: each record's codes, weight and features.

    The order of the records and of the columns, and the records' ids, don't enter.

    >>> one = sparse.csr_array(np.array([[1, 1], [0, 1]]))
    >>> fingerprint(one, ["250", "428"]) == fingerprint(one[::-1, ::-1], ["428", "250"])
    True
    """
    weights = np.empty(0) if weights is None else weights
    table = FeatureTable((), np.empty((matrix.shape[0], 0))) if table is None else table
    rows = Rows(matrix.indptr.astype(np.int64), matrix.indices, weights, table.values)
    return fingerprint_of([rows], codes, table.features)


def fingerprint_of(
    parts: Iterable[Rows], codes: Sequence[str], features: Sequence[Feature] = ()
) -> str:
    """Return the `fingerprint` of records that come in parts, features as people write them.

    A record's hash is Σ hash(code) + Σ hash(feature, value), mixed; a value that is missing adds
    nothing. Four other mixes of it are each added up over all records modulo 2⁶⁴, and the sums go
    through SHA-256. O(ones).
    """
    return fingerprint_from(fingerprint_sums(parts, codes, features))


def fingerprint_from(sums: Keys) -> str:
    """Return the `fingerprint` of records by their sums."""
    return hashlib.sha256(sums.astype("<u8").tobytes()).hexdigest()


def fingerprint_sums(
    parts: Iterable[Rows], codes: Sequence[str], features: Sequence[Feature] = ()
) -> Keys:
    """Return the five sums of a `fingerprint`; those of parts add up to those of all."""
    keys = _text_keys(codes)
    total = np.zeros(5, dtype=np.uint64)
    for part in parts:
        sums = row_keys(part.indptr, part.indices, keys)
        for feature, values in zip(features, part.values.T, strict=True):
            sums = sums + _value_keys(feature, values)
        if part.weights.size:
            sums = mixed(sums) + np.asarray(part.weights, "<f8").view("<u8")
        rows = mixed(sums)
        counted = [np.uint64(rows.size)]
        for place in range(1, 5):
            rows = mixed(rows + np.uint64(place))
            counted.append(rows.sum(dtype=np.uint64))
        total = total + np.array(counted, dtype=np.uint64)
    return total


def _text_keys(texts: Sequence[str]) -> Keys:
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _value_keys(feature: Feature, values: Floats) -> Keys:
    """Return a hash of each value of a feature: of the level's text, or of the number."""
    title = f"{feature.name}\n{feature.kind}\n{feature.transform}\n"
    there = ~np.isnan(values)
    keys = np.zeros(values.size, dtype=np.uint64)
    if feature.levels:
        levels = _text_keys([title + level for level in feature.levels])
        keys[there] = levels[values[there].astype(np.int64)]
    else:
        bits = np.asarray(values[there] + 0.0, "<f8").view("<u8")
        keys[there] = mixed(bits + _text_keys([title])[0])
    return keys


def mixed(values: Any) -> Any:
    """Scramble 64-bit numbers (the finaliser of splitmix64), so that sums don't collide."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
