"""A small cohort of three clear clusters with codes, age, sex, visits and a laboratory value."""

import numpy as np
import pyarrow as pa

from comorb.records.features import parse_features
from comorb.records.spec import CohortSpec

CODES = ("428", "250", "585", "401", "272", "496")
SHARES = np.array(
    [
        [0.8, 0.1, 0.1, 0.6, 0.2, 0.5],
        [0.1, 0.8, 0.1, 0.2, 0.6, 0.5],
        [0.1, 0.1, 0.8, 0.4, 0.4, 0.5],
    ]
)
ASKED = parse_features(["age", "sex", "visits=count", "hba1c"])
PREPARATION = CohortSpec(at_least=1, features=ASKED)
SECRET = bytes(range(32))


def mixed_table(n=360, seed=5):
    """Return records as a table, a tenth of the values missing, and their clusters."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    ones = rng.random((n, len(CODES))) < SHARES[truth]
    texts = [";".join(code for code, one in zip(CODES, row, strict=True) if one) for row in ones]

    def with_gaps(values):
        gaps = rng.random(n) < 0.1
        return pa.array(values.tolist(), mask=gaps)

    table = pa.table(
        {
            "id": [f"r{row:04}" for row in range(n)],
            "dx": [text or "401" for text in texts],
            "age": with_gaps(rng.normal(np.array([55, 70, 82])[truth], 7).round()),
            "sex": with_gaps(np.where(rng.random(n) < np.array([0.2, 0.5, 0.8])[truth], "F", "M")),
            "visits": with_gaps(rng.poisson(np.array([1, 3, 6])[truth])),
            "hba1c": with_gaps(rng.normal(np.array([5.5, 8, 6])[truth], 0.6).round(1)),
            "died": (rng.random(n) < 0.1).astype(int),
        }
    )
    return table, truth
