"""Nothing that Windows lacks is called without asking first whether it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "comorb"
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    *("chown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid"),
    *("getpgrp", "getpriority", "getuid", "initgroups", "killpg", "lchown", "mkfifo", "mknod"),
    *("nice", "pread", "pwrite", "sched_getaffinity", "sched_setaffinity", "sendfile", "setgid"),
    *("setpgid", "setpriority", "setsid", "setuid", "statvfs", "sync", "sysconf", "uname"),
    *("wait", "wait3", "wait4", "O_DIRECTORY", "O_NOFOLLOW", "WNOHANG"),
}
SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
TEXT = {"read_text": 0, "write_text": 1}


def lacks(node: ast.AST) -> str | None:
    """Return what a node uses that Windows lacks, or does otherwise than Linux does."""
    match node:
        case ast.Import(names=names) if {alias.name for alias in names} & MODULES:
            return names[0].name
        case ast.ImportFrom(module="os", names=names) if {name.name for name in names} & NAMES:
            return f"os.{names[0].name}"
        case ast.ImportFrom(module=str(module)) if module in MODULES:
            return module
        case ast.Attribute(ast.Name("os"), name) if name in NAMES:
            return f"os.{name}"
        case ast.Attribute(ast.Name("signal"), name) if name.startswith("SIG"):
            return None if name in SIGNALS else name
        case ast.Attribute(ast.Name("os"), "kill"):
            return "os.kill, which ends the process whatever the signal"
        case ast.Attribute(_, "add_signal_handler"):
            return "add_signal_handler"
        case ast.keyword("preexec_fn" | "start_new_session" as name):
            return name
        case ast.Constant("fork" | "forkserver" as method):
            return f"the start method {method}"
        case ast.Constant(str(text)) if text.startswith(("/tmp", "/dev/", "/proc/", "/etc/")):
            return text
        case ast.Call(ast.Attribute(_, "read_text" | "write_text" as name), words, named):
            known = len(words) > TEXT[name] or any(word.arg == "encoding" for word in named)
            return None if known else f"{name} in the encoding of the machine"
    return None


def asks(node: ast.AST) -> bool:
    """Tell whether what a node holds is reached only where it is there."""
    if isinstance(node, ast.Try | ast.With):
        suppressed = [one.type or node for one in getattr(node, "handlers", [])]
        suppressed += [
            item.context_expr
            for item in getattr(node, "items", [])
            if "suppress" in ast.unparse(item.context_expr)
        ]
        caught = {
            name.id for one in suppressed for name in ast.walk(one) if isinstance(name, ast.Name)
        }
        return bool(caught & {"AttributeError", "ImportError"})
    return isinstance(node, ast.If | ast.IfExp) and "hasattr" in {
        name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)
    }


def unguarded(node: ast.AST) -> Iterator[str]:
    """Yield what is used without asking, with its line."""
    if (name := lacks(node)) is not None:
        yield f"{getattr(node, 'lineno', '')}: {name}"
    inside = getattr(node, "body", []) if asks(node) else []
    guarded = inside if isinstance(inside, list) else [inside]
    for child in ast.iter_child_nodes(node):
        if child not in guarded:
            yield from unguarded(child)


@pytest.mark.parametrize(
    "line",
    [
        "import os\nos.nice(5)",
        "import fcntl",
        "import os\nos.kill(process, 0)",
        "from pwd import getpwnam",
        "from os import fork",
        "import signal\nsignal.signal(signal.SIGHUP, stop)",
        "loop.add_signal_handler(2, stop)",
        "multiprocessing.get_context('fork')",
        "subprocess.run(words, preexec_fn=act)",
        "Path('/dev/null').open()",
        "path.read_text()",
        "path.write_text(text)",
        "if os.nice(5):\n    pass",
        "with suppress(OSError):\n    import resource",
        "if hasattr(os, 'nice'):\n    pass\nelse:\n    os.nice(5)",
    ],
)
def test_what_windows_lacks_is_seen(line):
    assert len(list(unguarded(ast.parse(line)))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "if hasattr(os, 'nice'):\n    os.nice(5)",
        "if hasattr(os, 'killpg'):\n    os.kill(process, 0)",
        "cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1",
        "try:\n    import resource\nexcept ImportError:\n    resource = None",
        "with suppress(ImportError, OSError):\n    import resource",
        "signal.signal(signal.SIGTERM, stop)",
        "path.read_text('utf-8')",
        "path.write_text(text, encoding='utf-8')",
        "multiprocessing.get_context('spawn')",
    ],
)
def test_what_is_asked_for_first_may_be_used(line):
    assert list(unguarded(ast.parse(line))) == []


@pytest.mark.parametrize(
    "module", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_nothing_is_used_that_windows_lacks(module):
    assert list(unguarded(ast.parse(module.read_text("utf-8")))) == []
