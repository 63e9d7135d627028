"""Temporary folders: what a kill left is removed, and what is at work is not."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from comorb.records.sources.spill import temporary_folder

pytest.importorskip("fcntl", reason="there are no locks of files here")
KILLED = """
import os, signal
from pathlib import Path
from comorb.records.sources.spill import temporary_folder
with temporary_folder() as folder:
    Path(folder, "copy").write_text("an id")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_in_the_end(place):
    with temporary_folder() as folder:
        Path(folder, "copy").write_text("an id")
        assert Path(folder).parent == place
    assert list(place.iterdir()) == []


def test_what_a_kill_left_is_removed_by_the_next_one(place):
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    assert (left / "copy").exists()
    with temporary_folder() as folder:
        assert set(place.iterdir()) == {Path(folder), Path(f"{folder}.lock")}


def test_what_is_at_work_or_of_others_stays(place):
    (place / "comorb-of-another").mkdir()
    with temporary_folder() as first:
        Path(first, "copy").write_text("an id")
        with temporary_folder():
            assert Path(first, "copy").exists()
    assert [path.name for path in place.iterdir()] == ["comorb-of-another"]
