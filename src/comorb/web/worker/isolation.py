"""Isolation: what the process of a worker may have: so much memory, a folder, and no network."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from comorb.records.sources.limits import Limits, impose

_NETWORK = frozenset(
    f"socket.{name}"
    for name in ("__new__", "connect", "bind", "sendto", "sendmsg", "getaddrinfo", "gethostbyname")
)
# The kernel's: its name of a kind of processor, and the number of the call that makes a socket.
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_URING, _OTHER_CALLS = 425, 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
_NO_NEW_RIGHTS, _SECCOMP, _FILTER = 38, 22, 2


@dataclass(frozen=True)
class Bounds:
    """What a worker may have; 0 is without a limit.

    Attributes
    ----------
    memory : int
        Bytes that its process may ask for, and each that it starts: the system refuses more.
    resident : int
        Bytes that its process may hold: the server ends one that holds more, as compiled threads
        don't get over a refusal.
    limits : Limits
        Of what it reads.
    folder : str
        Where it writes what it needs for a while; the system's folder if empty.
    """

    memory: int = 0
    resident: int = 0
    limits: Limits = field(default_factory=Limits)
    folder: str = ""


def isolate(bounds: Bounds) -> None:
    """Bind this process, and those that it starts, for good."""
    if bounds.folder:
        os.environ["TMPDIR"] = tempfile.tempdir = bounds.folder
    impose(bounds.limits)
    _limit(bounds.memory)
    _be_ended_first()
    close_network()


def resident(process: int) -> int:
    """Return the bytes that a process holds for itself; 0 where that isn't told."""
    try:
        told = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
        return (int(told[1]) - int(told[2])) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return 0


def _be_ended_first() -> None:
    """Have Linux end this process before the server when the machine's memory is short."""
    if hasattr(os, "uname"):
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def _limit(memory: int) -> None:
    """Let this process have so many bytes where that can be said, and leave no core behind."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError, OSError):
        return


def close_network() -> None:
    """Refuse sockets: to Python everywhere, and on Linux to native code and programs it starts."""
    sys.addaudithook(_refuse_network)
    if hasattr(os, "uname") and sys.platform == "linux":
        known = _MACHINES.get(os.uname().machine)
        if known is not None:
            _refuse_calls(*known)


def _refuse_network(event: str, _: object) -> None:
    if event in _NETWORK:
        raise PermissionError(errno.EACCES, "Workers have no network.")


class _Instruction(ctypes.Structure):
    """One step of a filter of calls."""

    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    """A filter of calls."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Instruction)))


def _refuse_calls(machine: int, socket: int) -> None:
    """Have the kernel refuse the calls that make a socket, and those of another machine's kind."""
    steps = [
        _Instruction(_LOAD, 0, 0, 4),  # the kind of processor
        _Instruction(_EQUAL, 0, 5, machine),
        _Instruction(_LOAD, 0, 0, 0),  # the number of the call
        _Instruction(_AT_LEAST, 3, 0, _OTHER_CALLS),
        _Instruction(_EQUAL, 2, 0, socket),
        _Instruction(_EQUAL, 1, 0, _URING),  # which makes sockets too
        _Instruction(_RETURN, 0, 0, _ALLOW),
        _Instruction(_RETURN, 0, 0, _REFUSE),
    ]
    program = _Program(len(steps), (_Instruction * len(steps))(*steps))
    kernel = ctypes.CDLL(None).prctl
    word = ctypes.c_ulong
    kernel.argtypes = (ctypes.c_int, word, ctypes.c_void_p, word, word)
    if kernel(_NO_NEW_RIGHTS, 1, None, 0, 0) == 0:
        kernel(_SECCOMP, _FILTER, ctypes.addressof(program), 0, 0)
