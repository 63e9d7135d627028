"""Property tests draw the same examples every time, and are not timed."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("comorb", deadline=None, derandomize=True)
settings.load_profile("comorb")
