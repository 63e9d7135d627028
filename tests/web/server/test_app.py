"""The application at work: its files, its port, and how soon the first page can come."""

import stat
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest
from fastapi.testclient import TestClient

from comorb.errors import InputError, StorageError
from comorb.web.server.access import Access
from comorb.web.server.app import Settings, check_address, explorer, listen
from comorb.web.server.store import Store


def test_what_a_server_writes_is_for_its_account_alone(client, app, run, records):
    sent = client("eva").put("/api/v1/data?name=v.csv", content=records.read_bytes()).json()["id"]
    client("eva").get(f"/api/v1/data/{sent}/codes")
    files = [path for path in app.state.store.workspace.rglob("*") if path.is_file()]
    assert len(files) > 10
    open_to_others = stat.S_IRWXG | stat.S_IRWXO
    assert [path.name for path in files if path.stat().st_mode & open_to_others] == []
    client("eva").delete(f"/api/v1/data/{sent}")


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


@pytest.mark.parametrize("lost", ["removed", "emptied", "older"])
def test_a_workspace_that_had_users_is_never_open_to_whoever_starts_it(tmp_path, lost):
    folder = tmp_path / "ward"
    with closing(Store(folder)) as store:
        store.query("VACUUM INTO ?", str(tmp_path / "older.sqlite"))
        Access(store).add_user("kim", "analyst")
        if lost == "removed":
            Access(store).remove_user("kim")
    if lost == "emptied":
        (folder / "comorb.sqlite").write_bytes(b"")
    elif lost == "older":
        (tmp_path / "older.sqlite").replace(folder / "comorb.sqlite")
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(StorageError, match=r"had users.*put back the copy.*comorb user add"):
            explorer(Settings(folder), host)
    with closing(Store(folder)) as store:
        Access(store).add_user("kim", "analyst")
    server, key = explorer(Settings(folder), "127.0.0.1")
    server.config.app.state.store.close()
    assert key is None


def test_a_port_that_is_taken_is_told():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="choose another port"):
            listen("127.0.0.1", port)


def test_the_web_process_starts_without_numpy():
    heavy = "{'numpy', 'pyarrow', 'scipy', 'matplotlib'} & sys.modules.keys()"
    script = f"import sys, comorb.web.server.app; print(list({heavy}))"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"


def test_a_smallest_count_of_none_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected 1 or more as the smallest count .* got 0"):
        Settings(tmp_path, min_cell=0)


@pytest.fixture
def behind(tmp_path):
    """Return clients at two addresses, of a server that trusts some proxies."""
    with ExitStack() as opened:

        def clients(*proxies: str) -> list[TestClient]:
            server, _ = explorer(Settings(tmp_path, proxies=proxies), "127.0.0.1")
            opened.callback(server.config.app.state.store.close)
            server.config.load()
            app, base = server.config.loaded_app, "http://127.0.0.1"
            places = ("10.0.0.1", "10.0.0.2")
            return [TestClient(app, base_url=base, client=(host, 1)) for host in places]

        yield clients


def wrong_tries(client: TestClient, said: list[str]) -> list[int]:
    headers = {"authorization": "Bearer wrong"}
    return [
        client.get("/api/v1/runs", headers=headers | {"x-forwarded-for": one}).status_code
        for one in said
    ]


def test_who_asks_is_believed_of_a_named_proxy_alone(behind):
    proxy, other = behind("10.0.0.1")
    many = [f"192.0.2.{place}" for place in range(7)]
    assert wrong_tries(proxy, many) == [401] * 7
    assert wrong_tries(proxy, ["192.0.2.99"] * 6) == [401] * 5 + [429]
    assert wrong_tries(proxy, ["1.1.1.1, 192.0.2.99"]) == [429]  # what a client adds is passed over
    assert wrong_tries(other, many) == [401] * 5 + [429] * 2


def test_no_proxy_is_believed_unless_it_is_named(behind, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    client, _ = behind()
    assert wrong_tries(client, [f"192.0.2.{place}" for place in range(7)])[5:] == [429, 429]


@pytest.mark.parametrize(("scheme", "secure"), [("https", True), ("http", False)])
def test_a_cookie_is_secure_where_the_named_proxy_says_https(tmp_path, behind, scheme, secure):
    with closing(Store(tmp_path)) as store:
        token = Access(store).add_user("ana", "viewer")
    proxy, other = behind("10.0.0.1")
    for client, told in ((proxy, secure), (other, False)):
        headers = {"x-forwarded-proto": scheme}
        page = client.post("/login", data={"token": token}, headers=headers, follow_redirects=False)
        assert ("secure" in page.headers["set-cookie"].lower()) == told


def test_a_second_server_of_a_workspace_is_refused(tmp_path):
    first, _ = explorer(Settings(tmp_path), "127.0.0.1")
    with pytest.raises(StorageError, match="another server is at work"):
        explorer(Settings(tmp_path), "127.0.0.1")
    first.config.app.state.store.close()
    again, _ = explorer(Settings(tmp_path), "127.0.0.1")
    again.config.app.state.store.close()
