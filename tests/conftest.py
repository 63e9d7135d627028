"""Property tests draw the same examples every time, untimed; secrets are kept out of the home."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from comorb.insight.profile.keys import HOME

settings.register_profile("comorb", deadline=None, derandomize=True)
settings.load_profile("comorb")


@pytest.fixture(scope="session", autouse=True)
def home_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get(HOME)
    os.environ[HOME] = str(tmp_path_factory.mktemp("home"))
    yield
    if before is None:
        del os.environ[HOME]
    else:
        os.environ[HOME] = before
