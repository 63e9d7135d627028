"""Readers in native code, run in a process of their own: a damaged file can't take this one down.

Memory and time are limited by the size of the file, so that it can't take the machine down either.
What they read comes back as an Arrow file of text columns and a few words about it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.limits import check_expanded, in_force

Answer = dict[str, Any]
_RUN = """
import importlib, json, sys
room, limits, module, name, *arguments = sys.argv[1:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(room), int(room)))
except (ImportError, ValueError, OSError):
    pass
from comorb.records.sources.limits import Limits, impose
impose(Limits(*json.loads(limits)))
print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))
"""
# What a reader may use for a file of no size, and for each byte of it.
_BYTES, _BYTES_A_BYTE = 4 << 30, 200
_SECONDS, _SECONDS_A_BYTE = 60, 1e-5


def run_apart(task: Callable[..., Answer], damaged: str, file: str, *arguments: str) -> Answer:
    """Run a function of a module on a file and texts, elsewhere, and return its answer.

    A refusal in the answer is raised here; when there is no answer, the file is ``damaged``.
    """
    size, limits = Path(file).stat().st_size, in_force()
    room = min(_BYTES + _BYTES_A_BYTE * size, limits.memory or sys.maxsize)
    command = [
        sys.executable,
        "-c",
        _RUN,
        str(room),
        json.dumps(astuple(limits)),
        task.__module__,
        task.__name__,
        file,
        *arguments,
    ]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS + _SECONDS_A_BYTE * size,
        )
        answer: Answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise RecordsError(damaged) from None
    except ValueError:
        if b"MemoryError" in done.stderr:
            damaged = (
                f"{Path(file).name} needs more than {room / 1e9:.1f} GB of memory to be read, so "
                "it is probably damaged; save it as CSV and read that."
            )
        raise RecordsError(damaged) from None
    if "refusal" in answer:
        raise RecordsError(answer["refusal"])
    return answer


def read_text_columns(file: Path) -> pa.Table:
    """Return the columns that were written apart; they stay on the disk until they are read."""
    with pa.memory_map(str(file)) as mapped:
        return pa.ipc.open_stream(mapped).read_all()


def write_text_columns(file: str, names: list[str], parts: Any, label: str) -> None:
    """Write parts of text columns, each a list of lists, to an Arrow file."""
    schema = pa.schema([(name, pa.string()) for name in names])
    size = 0
    with pa.ipc.new_stream(file, schema) as out:
        for columns in parts:
            arrays = [pa.array(column, pa.string()) for column in columns]
            batch = pa.record_batch(arrays, schema=schema)
            size += batch.nbytes
            check_expanded(label, size)
            out.write_batch(batch)
