"""Zip archives: what they hold is unpacked to a folder of its own and read from there."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from comorb.errors import RecordsError
from comorb.records.sources.limits import check_expanded

_CHUNK = 1 << 22
_SPARE = 1 << 28


def unpack(file: Path, folder: Path) -> list[Path]:
    """Unpack the files of an archive below a folder and return them."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if _is_data(each)]
            _check(file.name, members, folder)
            return [_member(archive, each, folder) for each in members]
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        ValueError,
    ) as e:
        if isinstance(e, RecordsError):
            raise
        message = f"{file.name} is a damaged or cut-off zip archive; copy it again."
    raise RecordsError(message)


def _is_data(member: zipfile.ZipInfo) -> bool:
    parts = [part for part in PurePosixPath(member.filename).parts if part != ".."]
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not member.is_dir() and not hidden and member.file_size > 0


def _check(name: str, members: list[zipfile.ZipInfo], folder: Path) -> None:
    if not members:
        raise RecordsError(f"{name} is a zip archive that holds no data.")
    if any(each.flag_bits & 1 for each in members):
        raise RecordsError(f"{name} is a zip archive with a password; unpack it and read that.")
    needed, free = sum(each.file_size for each in members), shutil.disk_usage(folder).free
    check_expanded(name, needed)
    if needed + _SPARE > free:
        raise RecordsError(
            f"{name} unpacks to {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free in the "
            "folder for temporary files; unpack it elsewhere and read that."
        )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Path:
    """Unpack one file, to a place below the folder whatever its name says."""
    parts = [part for part in PurePosixPath(member.filename).parts if part not in ("/", "..")]
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as packed, path.open("xb") as out:
        shutil.copyfileobj(packed, out, _CHUNK)
    return path
