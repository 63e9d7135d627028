"""Guided: the same targets under Atheris, which looks for inputs that reach new lines of code."""

from __future__ import annotations

import re
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from torture.processes import GIGABYTE, ROOT, environment, limited
from torture.verdict import keep

_SECONDS = 400


def guided(executions: int) -> tuple[int, list[str], str]:
    """Return how many executions were made, what they found, and a word on them."""
    if find_spec("atheris") is None:
        return 0, [], "Atheris is not installed, so none was guided"
    from torture.fuzz import all_targets

    names = [target.name for target in all_targets().values() if target.guided]
    each = executions // len(names)
    made, findings = 0, []
    for name in names if each else ():
        count, found = _attack(name, each)
        made += count
        findings += found
    return made, findings, f"{made:,} of them guided by coverage"


def _attack(name: str, executions: int) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        words = [sys.executable, "-m", "torture.guided", name, place, str(executions)]
        ended = limited(words, ROOT, environment(folder), _SECONDS, 6 * GIGABYTE)
        told = re.findall(r"Done (\d+) runs|^#(\d+)\s", ended.err, re.MULTILINE)
        count = max((int(one or two) for one, two in told), default=0)
        if ended.code == 0 and count:
            return count, []
        crashes = [keep(f"guided {name}", path.read_bytes()) for path in folder.glob("found-*")]
        said = next((line for line in ended.err.splitlines()[::-1] if "Error" in line), "")
        told_end = f"guided {name}: {said.strip()[:200] or ended.told()}; {[*map(str, crashes)]}"
        return count, [told_end]


def _main(name: str, folder: Path, executions: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["comorb"]):
        from torture.fuzz import all_targets
        from torture.target import ends_well

        target = all_targets()[name]
    corpus = folder / "corpus"
    corpus.mkdir()
    seeds = target.seeds(folder)
    for number, seed in enumerate(seeds[:200]):
        (corpus / str(number)).write_bytes(seed)
    options = [f"-runs={executions}", "-seed=1", "-timeout=25", "-rss_limit_mb=4000", "-max_len=60000"]
    atheris.Setup(
        [sys.argv[0], str(corpus), *options, f"-artifact_prefix={folder}/found-"],
        lambda data: ends_well(target, data, folder),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
