"""Built-in and simulated data."""

from comorb.records.datasets.builtin import heart_failure, region, tertiary
from comorb.records.datasets.simulate import Simulated, paper, record_like

__all__ = ["Simulated", "heart_failure", "paper", "record_like", "region", "tertiary"]
