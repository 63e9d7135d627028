"""How comorb compares: time and accuracy of five tools on the same rows, in one run.

``python -m benchmarks peers`` installs StepMix, mixle and k-modes by name into a temporary
environment of their own and prints the table of docs/compare-tools.md. Every tool is told the true
number of clusters; StepMix, k-means and k-modes get ten starts, mixle its one.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.peer_fits import TOOLS
from comorb.model.diagnostics import adjusted_rand
from comorb.records.datasets import paper, record_like

INSTALLED = ("stepmix==3.0.0", "mixle==0.8.2", "kmodes==0.12.2")
PATIENCE = 60  # seconds of processor time that a tool has
CASES = (
    ("1,000 rows, 30 items, 4 classes", lambda seed: paper(1000, d=30, k=4, seed=seed), 3),
    ("1,000 rows, 99 items, 12 classes", lambda seed: paper(1000, d=99, k=12, seed=seed), 1),
    ("3,000 records, 696 codes, 5 groups", lambda seed: record_like(3000, 5, seed=seed), 1),
)


def environment(folder: Path) -> str:
    """Return the interpreter of a new environment that has the peers."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *INSTALLED], check=True)
    return python


def fitted(tool: str, python: str, matrix, k: int, folder: Path):
    """Return the labels that a tool finds and its seconds, or None when its patience ends."""
    rows, labels = folder / "rows.npz", folder / "labels.npy"
    sparse.save_npz(rows, sparse.csr_matrix(matrix))
    limit = (PATIENCE + 10, PATIENCE + 10)  # the rest is for what isn't timed
    done = subprocess.run(
        [python, "-m", "benchmarks.peer_fits", tool, str(rows), str(k), str(labels)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    )
    if done.returncode < 0:
        return None
    if done.returncode:
        raise RuntimeError(f"{tool} failed: {done.stderr[-2000:]}")
    return np.load(labels), json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        theirs = environment(folder / "peers")
        print("\nPeers: agreement with the truth (ARI) and seconds of processor time\n")
        print("| | " + " | ".join(TOOLS) + " |\n|---|" + "---|" * len(TOOLS))
        late: set[str] = set()  # those whose patience ended are not asked for more rows
        for title, draw, seeds in CASES:
            cells = []
            for tool in TOOLS:
                python = sys.executable if tool in ("comorb", "k-means") else theirs
                scores, seconds = [], []
                for seed in range(0 if tool in late else seeds):
                    data = draw(seed)
                    found = fitted(tool, python, data.matrix, data.weights.size, folder)
                    if found is None:
                        late.add(tool)
                        break
                    scores.append(adjusted_rand(found[0], data.labels))
                    seconds.append(found[1])
                cell = f"{np.mean(scores):.3f}, {np.median(seconds):.1f} s" if seconds else None
                cells.append(cell or f"over {PATIENCE} s")
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
