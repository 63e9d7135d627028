"""Property tests draw the same examples every time, untimed; secrets are kept out of the home.

Where tests run in several processes, those of a file stay in one, and those of the browser too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from comorb.insight.profile.keys import HOME

settings.register_profile("comorb", deadline=None, derandomize=True)
settings.load_profile("comorb")

BROWSER = Path(__file__).parent / "browser"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        home = BROWSER if BROWSER in item.path.parents else item.path
        item.add_marker(pytest.mark.xdist_group(str(home)))


@pytest.fixture(scope="session", autouse=True)
def home_of_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get(HOME)
    os.environ[HOME] = str(tmp_path_factory.mktemp("home"))
    yield
    if before is None:
        del os.environ[HOME]
    else:
        os.environ[HOME] = before
