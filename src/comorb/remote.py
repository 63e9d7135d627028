"""Files in a store, such as s3://bucket/claims, by Arrow's file systems.

A `Remote` has what is needed of a `Path`, so that a cohort, its journal and results lie on the disk
or in a store alike. Credentials come from where the store's own tools look for them (the
environment, ``~/.aws``, a role), and never from an address.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from comorb.errors import StorageError

_ADDRESS = re.compile(r"(s3|gs|hdfs|abfss?):(//|/(?!/))(.*)")  # a Path has lost a slash
_BY_GOOGLE = re.compile(r"Status\((\w+): (?:.*? last message of )?(.*?)(?: error_info=|\)\.|\)$)")
_AT_ONCE = 1 << 20
_PATIENCE = timedelta(seconds=30)  # with a request to Google, on which Arrow spends 15 min


def is_remote(place: Any) -> bool:
    """Return whether a place is the address of a store, and not a path."""
    return isinstance(place, Remote) or (
        isinstance(place, str | Path) and _ADDRESS.fullmatch(str(place)) is not None
    )


def place_of(place: str | Place) -> Place:
    """Return a path, or what an address in a store stands for."""
    if isinstance(place, Remote):
        return place
    address = _ADDRESS.fullmatch(str(place))
    return Remote(f"{address[1]}://{address[3].rstrip('/')}") if address else Path(place)


@dataclass(frozen=True)
class Remote:
    """A file or a folder in a store, with what is needed of a `Path`."""

    uri: str

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.uri}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.uri.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """How the name ends."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Remote:
        """The folder that it is in."""
        return Remote(self.uri.rpartition("/")[0])

    def with_name(self, name: str) -> Remote:
        """Return another one in the same folder."""
        return self.parent / name

    def absolute(self) -> Remote:
        """Return itself."""
        return self

    resolve = absolute

    def stamp(self) -> tuple[int, int] | None:
        """Return the size and the time of the last change of a file, None where there is none."""
        one = self._info()
        return (one.size or 0, one.mtime_ns or 0) if one.is_file else None

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Return whether there is something below it."""
        return any(True for _ in self.below())

    def exists(self) -> bool:
        """Return whether there is anything."""
        return self.is_file() or self.is_dir()

    def below(self) -> list[Remote]:
        """Return all files below it, by their names."""
        from pyarrow.fs import FileSelector

        with _system(self.uri) as (system, path):
            every = system.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
        names = sorted(str(one.path)[len(path) :].strip("/") for one in every if one.is_file)
        return [self / name for name in names]

    def iterdir(self) -> list[Remote]:
        """Return the files in it."""
        return [one for one in self.below() if one.parent == self]

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a store has no empty folders."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        with _system(self.uri) as (system, path):
            system.delete_file(path)

    def move(self, place: Place) -> None:
        """Give a file another name in the same store."""
        with _system(self.uri) as (system, path):
            there = _find_system(str(place))[1]
            try:
                system.move(path, there)
            except NotImplementedError:  # of Azure without folders of its own
                system.copy_file(path, there)
                system.delete_file(path)

    def source(self) -> Any:
        """Return a file of Arrow, to read at any place."""
        with _system(self.uri) as (system, path):
            return system.open_input_file(path)

    @contextmanager
    def open(self, _mode: str = "rb") -> Iterator[BinaryIO]:
        """Open a file to read it."""
        with opened(self) as file:
            yield BufferedReader(file)

    def read_bytes(self) -> bytes:
        """Return what a file holds."""
        with opened(self) as file:
            content: bytes = file.read()
        return content

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the text that a file holds."""
        return self.read_bytes().decode(encoding)

    def fetch(self, path: Path) -> None:
        """Copy a file to the disk."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.source() as file, path.open("wb") as copy, _store_errors(self.uri):
            shutil.copyfileobj(file, copy, _AT_ONCE)

    def send(self, file: BinaryIO) -> None:
        """Write what a file holds from where it stands; there is nothing until it is whole."""
        with _system(self.uri) as (system, path), system.open_output_stream(path) as sink:
            shutil.copyfileobj(file, sink, _AT_ONCE)

    def _info(self) -> Any:
        with _system(self.uri) as (system, path):
            return system.get_file_info(path)


Place = Path | Remote  # a file or a folder, on the disk or in a store


@contextmanager
def written(place: Place) -> Iterator[BinaryIO]:
    """Yield a file to write; in a store it is there once the block ends well."""
    if isinstance(place, Path):
        with place.open("wb") as own:
            yield own
        return
    with TemporaryFile() as draft:
        yield draft
        draft.seek(0)
        place.send(draft)


@contextmanager
def opened(place: Place) -> Iterator[Any]:
    """Yield what Arrow reads a file by; a store that is lost meanwhile is an error."""
    if isinstance(place, Path):
        yield str(place)
        return
    with place.source() as file:
        try:
            yield file
        except OSError as error:
            raise _lost(place.uri, error) from None


def removed(folder: Place) -> None:
    """Remove a folder and all that is in it."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
        return
    if folder.is_dir():
        with _system(folder.uri) as (system, path), suppress(FileNotFoundError):
            system.delete_dir(path)  # not found in Google's, which has only its files


def matching(place: Remote) -> tuple[Remote, list[Remote]]:
    """Return a folder and the files of it that an address with *, ** or [ stands for, or all."""
    steps = place.uri.split("/")
    wild = [at for at, step in enumerate(steps) if any(mark in step for mark in "*[")]
    if not wild:
        return (place.parent, [place]) if place.is_file() else (place, place.below())
    root = Remote("/".join(steps[: wild[0]]))
    pattern = "/".join(steps[wild[0] :])
    start = len(root.uri) + 1
    return root, [one for one in root.below() if fits(one.uri[start:], pattern)]


def fits(name: str, pattern: str) -> bool:
    """Return whether a path fits a pattern, in which ** stands for any number of folders.

    >>> fits("2020/01/a.csv", "**/*.csv"), fits("a.csv", "**/*.csv"), fits("b/a.csv", "*.csv")
    (True, True, False)
    """

    def fit(steps: list[str], wanted: list[str]) -> bool:
        if not wanted or not steps:
            return not steps and all(step == "**" for step in wanted)
        if wanted[0] == "**":
            return fit(steps, wanted[1:]) or fit(steps[1:], wanted)
        return fnmatchcase(steps[0], wanted[0]) and fit(steps[1:], wanted[1:])

    return fit(name.split("/"), pattern.split("/"))


@lru_cache(maxsize=64)
def _store(root: str) -> Any:
    """Return the file system of a bucket, and the bucket."""
    from pyarrow.fs import FileSystem

    scheme, _, bucket = root.partition("://")
    amazon = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    with _store_errors(root):
        if scheme == "s3" and amazon:
            from pyarrow.fs import S3FileSystem

            return S3FileSystem(endpoint_override=amazon), bucket
        if scheme == "gs" and "@" not in bucket:
            from pyarrow.fs import GcsFileSystem

            other: dict[str, Any] = {}
            if (address := os.environ.get("STORAGE_EMULATOR_HOST")) is not None:
                own, _, host = address.rpartition("://")  # another server, without credentials
                other = {"scheme": own or "http", "endpoint_override": host.rstrip("/")}
                other["anonymous"] = True
            return GcsFileSystem(retry_time_limit=_PATIENCE, **other), bucket
        return FileSystem.from_uri(root)


def _find_system(uri: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    scheme, _, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    if (":" in host.partition("@")[0] and "@" in host) or "?" in uri:
        raise StorageError("remote.credentials", scheme=scheme)
    system, root = _store(f"{scheme}://{host}")
    return system, f"{root.rstrip('/')}/{path}" if root.strip("/") else f"/{path}"


@contextmanager
def _system(uri: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of an address and the path in it; its errors become `StorageError`."""
    found = _find_system(uri)
    with _store_errors(uri):
        yield found


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Raise the errors of a store as `StorageError`, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise StorageError("remote.missing", uri=uri) from None
    except OSError as error:
        raise _lost(uri, error) from None
    except (ValueError, NotImplementedError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise StorageError("remote.no_store", uri=uri, reason=reason) from None


def _lost(uri: str, error: OSError) -> StorageError:
    reason = str(error.strerror or error).partition("\n")[0]
    if (google := _BY_GOOGLE.search(reason)) is not None:
        reason = f"{google[1]}: {google[2]}"
    return StorageError("remote.reason", uri=uri, reason=reason)
