"""Profile: what there is to know about clusters, and what goes into it."""

from __future__ import annotations
