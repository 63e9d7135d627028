"""Remote: files in a store, such as s3://bucket/claims, by Arrow's file systems.

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
    """Tell the address of a store from a path."""
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
        """Tell whether it is a file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Tell whether there is something below it."""
        return any(True for _ in self.below())

    def exists(self) -> bool:
        """Tell whether there is anything."""
        return self.is_file() or self.is_dir()

    def below(self) -> list[Remote]:
        """Return all files below it, by their names."""
        from pyarrow.fs import FileSelector

        found, path = _system(self.uri)
        with _told(self.uri):
            every = found.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
        names = sorted(str(one.path)[len(path) :].strip("/") for one in every if one.is_file)
        return [self / name for name in names]

    def iterdir(self) -> list[Remote]:
        """Return the files in it."""
        return [one for one in self.below() if one.parent == self]

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a store has no empty folders."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        found, path = _system(self.uri)
        with _told(self.uri):
            found.delete_file(path)

    def move(self, place: Place) -> None:
        """Give a file another name in the same store."""
        (found, path), there = _system(self.uri), _system(str(place))[1]
        with _told(self.uri):
            try:
                found.move(path, there)
            except NotImplementedError:  # of Azure without folders of its own
                found.copy_file(path, there)
                found.delete_file(path)

    def source(self) -> Any:
        """Return a file of Arrow, to read at any place."""
        found, path = _system(self.uri)
        with _told(self.uri):
            return found.open_input_file(path)

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
        with self.source() as file, path.open("wb") as copy, _told(self.uri):
            while content := file.read(_AT_ONCE):
                copy.write(content)

    def send(self, file: BinaryIO) -> None:
        """Write what a file holds from where it stands; there is nothing until it is whole."""
        found, path = _system(self.uri)
        with _told(self.uri), found.open_output_stream(path) as sink:
            while content := file.read(_AT_ONCE):
                sink.write(content)

    def _info(self) -> Any:
        found, path = _system(self.uri)
        with _told(self.uri):
            return found.get_file_info(path)


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
    """Yield what Arrow reads a file by; a store that is lost meanwhile is told."""
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
    found, path = _system(folder.uri)
    if folder.is_dir():
        with _told(folder.uri), suppress(FileNotFoundError):  # Google's has only its files
            found.delete_dir(path)


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
    """Tell whether a path fits a pattern, in which ** stands for any number of folders.

    >>> fits("2020/01/a.csv", "**/*.csv"), fits("a.csv", "**/*.csv"), fits("b/a.csv", "*.csv")
    (True, True, False)
    """
    return _fits(name.split("/"), pattern.split("/"))


def _fits(steps: list[str], pattern: list[str]) -> bool:
    if not pattern or not steps:
        return not steps and all(step == "**" for step in pattern)
    if pattern[0] == "**":
        return _fits(steps, pattern[1:]) or _fits(steps[1:], pattern)
    return fnmatchcase(steps[0], pattern[0]) and _fits(steps[1:], pattern[1:])


@lru_cache(maxsize=64)
def _store(root: str) -> Any:
    """Return the file system of a bucket, and the bucket."""
    from pyarrow.fs import FileSystem

    scheme, _, bucket = root.partition("://")
    amazon = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    with _told(root):
        if scheme == "s3" and amazon:
            from pyarrow.fs import S3FileSystem

            return S3FileSystem(endpoint_override=amazon), bucket
        if scheme == "gs" and "@" not in bucket:
            return _of_google(os.environ.get("STORAGE_EMULATOR_HOST")), bucket
        return FileSystem.from_uri(root)


def _of_google(other: str | None) -> Any:
    """Return Google's file system, or that of another server, at an address without credentials."""
    from pyarrow.fs import GcsFileSystem

    if other is None:
        return GcsFileSystem(retry_time_limit=_PATIENCE)
    scheme, _, host = other.rpartition("://")
    return GcsFileSystem(
        anonymous=True,
        scheme=scheme or "http",
        endpoint_override=host.rstrip("/"),
        retry_time_limit=_PATIENCE,
    )


def _system(uri: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    scheme, _, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    if (":" in host.partition("@")[0] and "@" in host) or "?" in uri:
        raise StorageError("remote.credentials", scheme=scheme)
    found, root = _store(f"{scheme}://{host}")
    return found, f"{root.rstrip('/')}/{path}" if root.strip("/") else f"/{path}"


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """Tell what a store can't do in one line."""
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
