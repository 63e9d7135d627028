"""Fuzz: readers, normalisers, files and the API, with inputs that nobody should send.

Each execution ends in a right answer or in an error of comorb's own tree. An input follows from the
target's name and a number, so that the same finding comes again; it is kept in ``results/torture``,
and ``python -m torture.fuzz TARGET FILE`` tries it again.
"""

from __future__ import annotations

import mmap
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from torture.processes import GIGABYTE, ROOT, end, environment, start
from torture.verdict import Verdict, keep

EXECUTIONS = 1_000_000
GUIDED = 0.03  # of all executions, where the coverage-guided fuzzer is installed
_AT_ONCE = 2
_MOST, _FEW = 35_000, 500  # executions a process: of what is fast, and of what is slow
_MEMORY = 6 * GIGABYTE
_KINDS = ("codes", "files", "readers", "api")


def all_targets() -> dict[str, "Target"]:  # noqa: UP037
    """Return every target by its name."""
    from importlib import import_module

    found = [one for kind in _KINDS for one in import_module(f"torture.{kind}").targets()]
    return {target.name: target for target in found}


def run(share: float) -> Verdict:
    """Attack every target with its share of the executions, two processes at a time."""
    from torture.guided import guided

    targets = all_targets()
    total = max(int(EXECUTIONS * share), len(targets))
    steered, findings, told = guided(int(total * GUIDED))
    weights = sum(target.weight for target in targets.values())
    chunks = []
    for name, target in targets.items():
        count = max(round((total - steered) * target.weight / weights), 1)
        most = _FEW if target.weight < 10 * _FEW else _MOST
        chunks += [(name, at, min(at + most, count)) for at in range(0, count, most)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done, found in pool.map(lambda chunk: _chunk(*chunk), chunks):
            counts += done
            findings += found
    ends = f"{counts['taken']:,} taken, {counts['refused']:,} refused, {counts['apart']:,} ended apart"
    made = steered + sum(counts.values())
    return Verdict(f"{made:,} executions over {len(targets)} targets ({ends}; {told})", findings)


def _chunk(name: str, first: int, last: int) -> tuple[Counter[str], list[str]]:
    """Attack one target with the inputs of some numbers; go on after a process that ended."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    target = all_targets()[name]
    while first < last and len(findings) < 5:
        with tempfile.TemporaryDirectory(prefix="torture-") as place:
            folder = Path(place)
            (folder / "progress").write_bytes(bytes(40))
            words = [sys.executable, "-m", "torture.fuzz", "--child", name, str(first), str(last)]
            process = start([*words, place], ROOT, environment(folder), _MEMORY)
            try:
                _, err = process.communicate(timeout=1200)
            except subprocess.TimeoutExpired:
                end(process)
                _, err = process.communicate()
            at, taken, refused, wrong = _progress(folder / "progress")
            counts += Counter(taken=taken, refused=refused)
            if wrong:
                findings += [line[7:] for line in err.decode(errors="replace").splitlines() if line.startswith("FOUND: ")]
                counts["wrong"] += wrong
            if process.returncode == 0:
                break
            if at < first:
                findings.append(f"{name}: the attack couldn't begin: {err.decode(errors='replace')[-600:]}")
                break
            data = _input(name, at)
            if process.returncode < 0 and process.returncode != -signal.SIGALRM and target.apart:
                counts["apart"] += 1
            else:
                counts["wrong"] += 1
                how = "took too long" if process.returncode == -signal.SIGALRM else f"ended the process with {process.returncode}"
                findings.append(f"{name} {at}: {how}; {keep(name, data)}")
            first = at + 1
    return counts, findings


def _progress(path: Path) -> tuple[int, int, int, int]:
    data = path.read_bytes()
    at, taken, refused, wrong = (int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(4))
    return at - 1, taken, refused, wrong


def _input(name: str, number: int) -> bytes:
    """Return the input of a number, made in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        words = [sys.executable, "-m", "torture.fuzz", "--input", name, str(number)]
        process = start(words, ROOT, environment(Path(place)), _MEMORY)
        return process.communicate(timeout=300)[0]


def made(name: str, number: int, folder: Path) -> bytes:
    """Return the input of a number."""
    target = all_targets()[name]
    return target.mutate(Random(f"{name} {number}"), target.seeds(folder))


def _attack(name: str, first: int, last: int, folder: Path) -> None:
    """Attack a target, keeping count in a file that outlives this process."""
    from torture.target import ends_well

    target = all_targets()[name]
    warnings.simplefilter("ignore")
    place = folder / "inputs"
    place.mkdir(exist_ok=True)
    seeds = target.seeds(place)
    for seed in seeds[:3]:
        ends_well(target, seed, place)
    found: Counter[str] = Counter()
    with (folder / "progress").open("r+b") as file, mmap.mmap(file.fileno(), 40) as progress:

        def count(slot: int, value: int) -> None:
            progress[8 * slot : 8 * slot + 8] = value.to_bytes(8, "little")

        taken = refused = wrong = 0
        for number in range(first, last):
            count(0, number + 1)
            signal.setitimer(signal.ITIMER_REAL, target.seconds)
            data = target.mutate(Random(f"{name} {number}"), seeds)
            try:
                if ends_well(target, data, place):
                    taken += 1
                    count(1, taken)
                else:
                    refused += 1
                    count(2, refused)
            except Exception as error:
                wrong += 1
                count(3, wrong)
                told = _told(error)
                found[told] += 1
                if found[told] == 1:
                    print(f"FOUND: {name} {number}: {told}; {keep(name, data)}", file=sys.stderr, flush=True)
            signal.setitimer(signal.ITIMER_REAL, 0)


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = [call for call in traceback.extract_tb(error.__traceback__) if "comorb" in call.filename]
    where = own[-1] if own else last
    said = str(error).splitlines()[0][:160] if str(error) else ""
    return f"{type(error).__name__} {said} at {Path(where.filename).name}:{where.lineno}"


def _again(name: str, path: Path) -> None:
    """Try one input again, with the whole traceback."""
    from torture.target import ends_well

    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        all_targets()[name].seeds(Path(place))
        print("taken" if ends_well(all_targets()[name], path.read_bytes(), Path(place)) else "refused")


def _main(words: list[str]) -> None:
    if words[0] == "--child":
        _attack(words[1], int(words[2]), int(words[3]), Path(words[4]))
    elif words[0] == "--input":
        with tempfile.TemporaryDirectory(prefix="torture-") as place:
            sys.stdout.buffer.write(made(words[1], int(words[2]), Path(place)))
    else:
        _again(words[0], Path(words[1]))


if __name__ == "__main__":
    _main(sys.argv[1:])
