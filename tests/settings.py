"""Settings of a module, changed for a test."""

from __future__ import annotations

from dataclasses import replace


def patch_config(monkeypatch, module, **values):
    """Give the ``CONFIG`` of a module other values until the test ends."""
    monkeypatch.setattr(module, "CONFIG", replace(module.CONFIG, **values))
