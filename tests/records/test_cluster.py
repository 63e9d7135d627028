"""Frames of a cluster need one; what they give is in tests/engines/test_reading.py."""

import pytest

from comorb import read_dask
from comorb.errors import EngineError


def test_a_dask_frame_needs_a_client(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def none():
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(EngineError, match="no Dask cluster is connected; start a"):
        read_dask(None, tmp_path / "c")
