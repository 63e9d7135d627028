"""Built-in and simulated data."""

from __future__ import annotations

from comorb.records.simulate import Simulated, paper, record_like

__all__ = ["Simulated", "paper", "record_like"]
