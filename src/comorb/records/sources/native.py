"""Isolated readers: native code runs in its own process, which a damaged file may crash."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message, unpack
from comorb.records.sources.files import check_expanded, current_limits

Answer = dict[str, Any]
_SCRIPT = """
import importlib, json, sys
room, limits, module, name, *arguments = sys.argv[1:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(room), int(room)))
except (ImportError, ValueError, OSError):
    pass
from comorb.messages import pack
from comorb.records.sources.files import Limits, set_limits
set_limits(Limits(*json.loads(limits)))
print(json.dumps(pack(getattr(importlib.import_module(module), name)(*arguments))))
"""
# The memory and the time that a reader has, and what each byte of its file adds.
_BASE_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 200
_BASE_SECONDS, _SECONDS_PER_BYTE = 60, 1e-5


def run_isolated(task: Callable[..., Answer], damaged: str, file: str, *arguments: str) -> Answer:
    """Run a function of a module on a file in another process, and return its answer.

    A refusal in the answer is raised here, and the message ``damaged`` when there is no answer.
    """
    size, limits = Path(file).stat().st_size, current_limits()
    room = min(_BASE_MEMORY + _MEMORY_PER_BYTE * size, limits.memory or sys.maxsize)
    command = [sys.executable, "-c", _SCRIPT, str(room), json.dumps(astuple(limits))]
    command += [task.__module__, task.__name__, file, *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_BASE_SECONDS + _SECONDS_PER_BYTE * size,
        )
        answer: Answer = unpack(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise RecordsError(damaged) from None
    except ValueError:
        if b"MemoryError" in done.stderr:
            damaged = Message("file.too_much_memory", file=Path(file).name, gb=room / 1e9)
        raise RecordsError(damaged) from None
    if "refusal" in answer:
        raise RecordsError(answer["refusal"])
    return answer


def read_text_columns(file: Path) -> pa.Table:
    """Return the text columns of an Arrow file, mapped into memory."""
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


def format_number(value: float, digits: int = 15) -> str | None:
    """Return a number with the digits that were stored, and without a needless '.0'.

    Examples
    --------
    >>> format_number(428.0), format_number(250.1), format_number(250.10000610351562, 7)
    ('428', '250.1', '250.1')
    """
    if math.isnan(value):
        return None
    if abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return f"{value:.{digits}g}"


def format_cell(value: Any, number: Callable[[float], str | None] = format_number) -> str | None:
    """Return a value as text, None when it is blank: days as 2010-02-03, numbers by a function."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(float(value)) if abs(value) < 2**53 else str(value)
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else value.isoformat(" ", "seconds")
    return value.isoformat() if isinstance(value, date | time) else str(value)
