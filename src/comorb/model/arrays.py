"""Array types, and 0/1 matrices in canonical CSR form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comorb.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]


def check_places(X: Any) -> None:
    """Refuse a compressed matrix whose arrays don't fit each other, before anything trusts them."""
    if sparse.issparse(X) and hasattr(X, "check_format"):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise InputError("matrix.broken", error=error) from None


def check_numbers(X: Any) -> None:
    """Refuse a frame or an array that holds text, before an error would quote the text."""
    if sparse.issparse(X):
        return
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        for name in X.columns:
            if _is_text(X[name]):
                raise InputError("matrix.text_column", column=str(name))
    elif _is_text(X):
        raise InputError("matrix.text")


def _is_text(values: Any) -> bool:
    array = np.asarray(values)
    if array.dtype.kind in "US":
        return True
    return array.dtype == object and any(isinstance(one, str | bytes) for one in array.ravel())


def binary_csr(X: Any) -> sparse.csr_array:
    """Return a 0/1 matrix in canonical CSR form; what is not 0 or 1 is an error."""
    matrix = sparse.csr_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data
    if not ((values == 1) | (values == 0)).all():
        wrong = values[(values != 1) & (values != 0)]
        found = "NaN" if np.isnan(wrong).any() else "inf" if np.isinf(wrong).any() else wrong[0]
        raise InputError("matrix.values", found=found, n=wrong.size)
    if not values.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix
