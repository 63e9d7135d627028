"""Loaded at the start of a process of the kills: ends it, and whoever it serves, at a point.

A point is a call that changes what is on the disk for good: a rename, a flush, a link, a removal.
``TORTURE_KILL`` says at which point of all processes together, and ``TORTURE_POINTS`` is the file
in which they are counted.
"""

import contextlib
import fcntl
import os
import signal

_FILE = os.environ.get("TORTURE_POINTS", "")
_KILL = int(os.environ.get("TORTURE_KILL", "0"))
_CALLS = ("rename", "replace", "fsync", "link", "unlink", "rmdir", "mkdir", "truncate")


def _count(name: str, given: object) -> int:
    """Write the point down and return its number, from 1."""
    with open(_FILE, "a+b") as file:  # noqa: PTH123
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{name} {given}\n".encode("utf-8", "replace"))
        file.flush()
        file.seek(0)
        return file.read().count(b"\n")


def _wrapped(name: str) -> None:
    call = getattr(os, name)

    def at_a_point(*given: object, **named: object) -> object:
        place = str(given[0]) if given else ""
        if "__pycache__" not in place and ".cache" not in place:
            number = _count(name, place)
            if number == _KILL:
                server = os.environ.get("TORTURE_SERVER_PID")
                if server:
                    with contextlib.suppress(OSError):
                        os.kill(int(server), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)

    setattr(os, name, at_a_point)


if os.environ.get("TORTURE_SERVER"):
    os.environ.setdefault("TORTURE_SERVER_PID", str(os.getpid()))
if _FILE:
    for _name in _CALLS:
        _wrapped(_name)
