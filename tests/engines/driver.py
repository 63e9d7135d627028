"""The command line in a process that is killed on its way: ``python -m tests.engines.driver``.

The first word says when: ``reading``, once a task has written rows; a number, in that pass;
``assigning``, once a task has written clusters; ``never``. The others are those of comorb. In the
end the passes that were begun, and those that were recalled, are told on standard error.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from comorb.__main__ import main
from comorb.engines.checkpoints import FileJournal
from comorb.model import start
from comorb.records.distributed import shuffle
from comorb.runs import run

FILES = {"reading": "*.arrow", "assigning": "part-*.csv"}
_SOON = 0.2  # seconds from the beginning of a pass into its middle


def _tell() -> None:
    for journal in Mortal.made:
        sys.stderr.write(f"begun {journal.passes}, recalled {journal.recalled}\n")
        sys.stderr.flush()


def _die() -> None:
    _tell()
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(folder: Path, pattern: str) -> None:
    while not any(folder.rglob(pattern)):
        time.sleep(0.005)
    _die()


class Mortal(FileJournal):
    """A journal in one of whose passes this process dies."""

    at = "never"
    made: ClassVar[list[FileJournal]] = []

    def __init__(self, *about):
        super().__init__(*about)
        self.made.append(self)

    def begin(self):
        super().begin()
        if str(self.passes + self.recalled) == self.at:
            threading.Timer(_SOON, _die).start()


def drive(when: str, words: list[str]) -> None:
    """Run a command whose results go to the folder after ``-o``."""
    shuffle.PARTITION_ROWS = 4000  # rows of a part, so that there are several
    start.CONFIG = replace(
        start.CONFIG, final_rows=1
    )  # so that the start is made on some of the rows, as that of millions is
    run.FileJournal, Mortal.at = Mortal, when
    if when in FILES:
        folder = Path(words[words.index("-o") + 1]).parent
        threading.Thread(target=_watch, args=(folder, FILES[when]), daemon=True).start()
    sys.argv = ["comorb", *words]
    try:
        main()
    finally:
        _tell()


if __name__ == "__main__":
    drive(sys.argv[1], sys.argv[2:])
