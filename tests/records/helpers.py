"""Cohorts and files for the tests of the records."""

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger


def make(dense, codes=None, level="category", system="icd9cm", **columns):
    dense = np.asarray(dense, dtype=np.uint8)
    codes = codes or tuple(str(250 + j) for j in range(dense.shape[1]))
    return Cohort(
        csr_array(dense),
        pa.array([f"r{i}" for i in range(len(dense))]),
        tuple(codes),
        tuple(f"name of {code}" for code in codes),
        system,
        level,
        pa.table(columns),
        Ledger.start(*dense.shape),
        np.arange(1.0, len(dense) + 1),
    )


def sets(cohort):
    """The codes of each record, by id: what a cohort is, whatever the order of its rows."""
    matrix = cohort.matrix
    return {
        id_: {cohort.codes[j] for j in matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]}
        for i, id_ in enumerate(cohort.ids.to_pylist())
    }
