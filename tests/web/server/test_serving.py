"""The port: who may be listened to, and how soon the first page can come."""

import subprocess
import sys

import pytest

from comorb.errors import InputError
from comorb.web.server.app import Settings
from comorb.web.server.serving import check_address, explorer, listen
from comorb.web.server.store import Store


def test_only_this_machine_is_listened_to_without_users():
    check_address("127.0.0.1", False)
    check_address("0.0.0.0", True)
    with pytest.raises(InputError, match=r"expected users before listening on 0\.0\.0\.0"):
        check_address("0.0.0.0", False)


def test_a_refused_address_leaves_the_store_closed(tmp_path, monkeypatch):
    closed = []
    close = Store.close
    monkeypatch.setattr(Store, "close", lambda store: (closed.append(store), close(store)))
    with pytest.raises(InputError, match="expected users"):
        explorer(Settings(tmp_path), "0.0.0.0")
    assert len(closed) == 1


def test_a_port_that_is_taken_is_told():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="choose another port"):
            listen("127.0.0.1", port)


def test_the_web_process_starts_without_numpy():
    heavy = "{'numpy', 'pyarrow', 'scipy', 'matplotlib'} & sys.modules.keys()"
    script = f"import sys, comorb.web.server.serving; print(list({heavy}))"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"


def test_a_smallest_count_of_none_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected 1 or more as the smallest count .* got 0"):
        Settings(tmp_path, min_cell=0)
