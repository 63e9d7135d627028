"""The array types that everyone imports."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]
