"""Property tests draw the same examples every time, untimed; secrets are kept out of the home."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from comorb.profiles.noise import HOME_VARIABLE

settings.register_profile("comorb", deadline=None, derandomize=True)
settings.load_profile("comorb")


@pytest.fixture(scope="session", autouse=True)
def home_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = str(tmp_path_factory.mktemp("home"))
    yield
    if before is None:
        del os.environ[HOME_VARIABLE]
    else:
        os.environ[HOME_VARIABLE] = before
