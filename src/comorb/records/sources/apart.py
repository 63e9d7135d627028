"""Readers in native code, run in a process of their own: a damaged file can't take this one down.

What they read comes back as an Arrow file of text columns and a few words about it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError

Answer = dict[str, Any]
_RUN = (
    "import importlib, json, sys; module, name, *arguments = sys.argv[1:]; "
    "print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))"
)


def run_apart(task: Callable[..., Answer], damaged: str, *arguments: str) -> Answer:
    """Run a function of a module on texts, elsewhere, and return its answer.

    A refusal in the answer is raised here; when there is no answer, the file is ``damaged``.
    """
    command = [sys.executable, "-c", _RUN, task.__module__, task.__name__, *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    try:
        answer: Answer = json.loads(done.stdout)
    except ValueError:
        raise RecordsError(damaged) from None
    if "refusal" in answer:
        raise RecordsError(answer["refusal"])
    return answer


def read_text_columns(file: Path) -> pa.Table:
    """Return the columns that were written apart; they stay on the disk until they are read."""
    with pa.memory_map(str(file)) as mapped:
        return pa.ipc.open_stream(mapped).read_all()


def write_text_columns(file: str, names: list[str], parts: Any) -> None:
    """Write parts of text columns, each a list of lists, to an Arrow file."""
    schema = pa.schema([(name, pa.string()) for name in names])
    with pa.ipc.new_stream(file, schema) as out:
        for columns in parts:
            arrays = [pa.array(column, pa.string()) for column in columns]
            out.write_batch(pa.record_batch(arrays, schema=schema))
