import pytest

from comorb_reproduction import timing
from comorb_reproduction.methods import K_MEANS, METHODS


def test_averages_are_ratios_to_k_means():
    rows = [
        {"method": method, "decomposing": 1.0 + (method == K_MEANS), "refining": seconds}
        for method in METHODS
        for seconds in (1.0, 3.0)
    ]
    found = timing.averages(rows)
    assert found[K_MEANS]["seconds"] == 4
    assert found["TPM"]["ratio"] == 0.75
    assert found["TPM"]["paper_ratio"] == pytest.approx(3.68 / 0.76)
    assert found["NN-CP"]["paper_seconds"] == ""
