"""Keys: a permanent number for each record, under a secret; a set of records has their sum.

The same patient has the same key in every file and order, so that the same set of records gets
the same noise wherever it is counted; see `protection`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import StorageError
from comorb.model.arrays import Keys
from comorb.records.cohort import Cohort
from comorb.storage import mixed

HOME, FILE = "COMORB_HOME", "protection.key"
_BYTES = 32


def own_secret() -> bytes:
    """Return the secret of whoever runs this, made when it is first asked for.

    It is in the folder that COMORB_HOME names, or else in ``.config/comorb`` of the home folder.
    Give it to `profile` where counts are to be protected: what is protected with a secret that
    others know, they can lay bare.
    """
    return secret_in(Path(os.environ.get(HOME) or Path.home() / ".config" / "comorb"))


def secret_in(folder: Path, made: bytes | None = None) -> bytes:
    """Return the secret that a folder keeps; where it has none, the one ``made``, or a new one.

    Whoever has it can take the noise off protected counts, so only its owner may read it.
    """
    path = folder / FILE
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = path.with_name(f".{FILE}.{secrets.token_hex(4)}")
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                file.write((made or secrets.token_bytes(_BYTES)).hex() + "\n")
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, RuntimeError) as error:
        raise StorageError(
            f"The secret that counts are protected with can't be kept in {folder}: "
            f"{getattr(error, 'strerror', None) or error}. Name a folder of yours in {HOME}."
        ) from None
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise StorageError(f"{path} is damaged; put back the file that was there, or delete it.")
    return secret


def keys_of(texts: Iterable[str], secret: bytes) -> Keys:
    """Return a keyed hash of each text."""
    hashed = partial(blake2b, key=secret, digest_size=8)
    joined = b"".join(hashed(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64)


def record_keys(cohort: Cohort, secret: bytes) -> Keys:
    """Return the key of each record: of its id, or of what it holds where it has none of its own.

    What it holds are its covariates, so that leaving codes out changes no key, or without any its
    codes.
    """
    if not cohort.numbered:
        return keys_of(cohort.ids.to_pylist(), secret)
    if not cohort.covariates.num_columns:
        ones = cohort.matrix.astype(np.uint64)
        return np.asarray(mixed(ones @ keys_of(cohort.codes, secret)))
    names = sorted(cohort.covariates.column_names)
    parts = [pc.cast(cohort.covariates[name], pa.string()) for name in names]
    joined = pc.binary_join_element_wise(
        *parts, "\x1f", null_handling="replace", null_replacement="\x00"
    ).combine_chunks()
    texts = pc.dictionary_encode(joined)
    each = keys_of((f"\x1f{text}" for text in texts.dictionary.to_pylist()), secret)
    return np.asarray(each[texts.indices.to_numpy()])
