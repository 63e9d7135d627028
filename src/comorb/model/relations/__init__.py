"""Relating: what follows from a cluster and what leads to it, corrected for uncertain labels."""

from __future__ import annotations
