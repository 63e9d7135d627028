"""One EM pass beside the same pass in plain C, compiled here: ``python -m benchmarks.plain_c``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.table import Figure, best_of, show
from comorb.model.blocks import from_csr
from comorb.model.em import expect
from comorb.model.mixture import Mixture
from comorb.records.datasets import heart_failure

SOURCE = r"""
#include <math.h>
#include <stdint.h>
double pass(int64_t n, const int64_t *ends, const int32_t *ones, int d, int k,
            const float *logits, const float *base, double *sums) {
    double total = 0;
    float row[64];
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) row[j] = base[j];
        for (int64_t p = ends[i]; p < ends[i + 1]; p++) {
            const float *column = logits + (int64_t)ones[p] * k;
            for (int j = 0; j < k; j++) row[j] += column[j];
        }
        float most = row[0], all = 0;
        for (int j = 1; j < k; j++) most = row[j] > most ? row[j] : most;
        for (int j = 0; j < k; j++) { row[j] = expf(row[j] - most); all += row[j]; }
        total += logf(all) + most;
        for (int j = 0; j < k; j++) row[j] /= all;
        for (int64_t p = ends[i]; p < ends[i + 1]; p++) {
            double *sum = sums + (int64_t)ones[p] * k;
            for (int j = 0; j < k; j++) sum[j] += row[j];
        }
        double *size = sums + (int64_t)d * k;
        for (int j = 0; j < k; j++) size[j] += row[j];
    }
    return total;
}
"""


def compiled(folder):
    """Return the pass as a function, compiled with all that the machine has."""
    source, library = Path(folder) / "pass.c", Path(folder) / "pass.so"
    source.write_text(SOURCE)
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    found = ctypes.CDLL(str(library)).__getattr__("pass")
    found.restype = ctypes.c_double
    return found


def ratio(in_c, matrix, k):
    """Return the time of our pass over that of C's, both on one core; the sums must agree."""
    n, d = matrix.shape
    rng = np.random.default_rng(k)
    model = Mixture(np.full(k, 1 / k), rng.beta(0.4, 8, (k, d)))
    blocks = from_csr(matrix.indptr, matrix.indices, d)
    base, logits = model.tables()
    ends, ones = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    tables = logits.astype(np.float32), base.astype(np.float32)
    sums = np.zeros((d + 1, k))

    def theirs():
        sums[:] = 0
        arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (ends, ones, *tables, sums)]
        return in_c(ctypes.c_int64(n), *arrays[:2], d, k, *arrays[2:])

    def ours():
        return expect(model, blocks)

    np.testing.assert_allclose(ours().log_likelihood, theirs(), rtol=1e-3)
    return best_of(ours) / best_of(theirs)


def main():
    """Print how many times as long as C our pass takes."""
    if shutil.which("cc") is None:
        print("\nThere is no C compiler here, so nothing was measured beside C.")
        return
    matrix = heart_failure().matrix
    with tempfile.TemporaryDirectory() as folder:
        in_c = compiled(folder)
        figures = [
            Figure(f"an EM pass beside plain C, k={k}", ratio(in_c, matrix, k), 1.5, at_least=False)
            for k in (8, 16, 32)
        ]
    show("Plain C", figures)


if __name__ == "__main__":
    main()
