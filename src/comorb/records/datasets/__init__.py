"""Built-in and simulated data."""

from comorb.records.datasets.simulate import (
    Simulated,
    heart_failure,
    paper,
    record_like,
    region,
    tertiary,
)

__all__ = ["Simulated", "heart_failure", "paper", "record_like", "region", "tertiary"]
