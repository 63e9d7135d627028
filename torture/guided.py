"""Guided: the same targets under Atheris, which looks for inputs that reach new lines of code."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from torture.processes import GIGABYTE, ROOT, environment, limited
from torture.verdict import keep

_SECONDS = 600
# What is looked at for new lines; compiled code can't be.
_GUIDING = ("comorb.records.codes", "comorb.records.values", "comorb.storage", "comorb.engines")


def guided(executions: int, names: Sequence[str]) -> tuple[int, list[str], str]:
    """Attack some targets; return how many executions were made, what they found, and a word."""
    if find_spec("atheris") is None:
        return 0, [], "Atheris is not installed, so none was guided"
    each = executions // max(len(names), 1)
    made, findings = 0, []
    with ThreadPoolExecutor(2) as pool:
        for count, found in pool.map(lambda name: _attack(name, each), names if each else ()):
            made += count
            findings += found
    return made, findings, f"{made:,} of them guided by coverage"


def _attack(name: str, executions: int) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        words = [sys.executable, "-m", "torture.guided", name, place]
        limited(words, ROOT, environment(folder), _SECONDS, 6 * GIGABYTE)
        words.append(str(executions))
        ended = limited(words, ROOT, environment(folder), _SECONDS, 6 * GIGABYTE)
        told = re.findall(r"Done (\d+) runs|^#(\d+)\s", ended.err, re.MULTILINE)
        count = max((int(one or two) for one, two in told), default=0)
        if ended.code == 0 and count:
            return count, []
        crashes = [keep(f"guided {name}", path.read_bytes()) for path in folder.glob("found-*")]
        said = next((line for line in ended.err.splitlines()[::-1] if "Error" in line), "")
        told_end = f"guided {name}: {said.strip()[:200] or ended.told()}; {[*map(str, crashes)]}"
        return count, [told_end]


def _write_seeds(name: str, folder: Path) -> None:
    """Write the seeds of a target, which may take compiled code, before any is looked at."""
    from torture.fuzz import all_targets

    corpus = folder / "corpus"
    corpus.mkdir()
    seeds = all_targets(("codes", "files"))[name].seeds(folder)
    for number, seed in enumerate(seeds[:200]):
        (corpus / str(number)).write_bytes(seed)


def _fuzz(name: str, folder: Path, executions: int) -> None:
    import atheris

    with atheris.instrument_imports(include=list(_GUIDING)):
        from torture.fuzz import all_targets
        from torture.target import ends_well

        target = all_targets(("codes", "files"))[name]

    def attack(data: bytes) -> None:
        ends_well(target, data, folder)

    options = [f"-runs={executions}", "-seed=1", "-timeout=25", "-rss_limit_mb=4000"]
    words = [sys.argv[0], f"{folder}/corpus", *options, "-max_len=60000"]
    atheris.Setup([*words, f"-artifact_prefix={folder}/found-"], attack)
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _fuzz(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        _write_seeds(sys.argv[1], Path(sys.argv[2]))
