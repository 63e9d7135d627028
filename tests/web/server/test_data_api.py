"""Opening data: what is understood, what is refused, and that nothing is left behind."""

import errno
import re
from pathlib import Path

import pytest

from comorb.records.datasets import region
from comorb.web.server.access import ROLES
from tests.web.conftest import LIMIT, mounted


def uploads(app) -> list[str]:
    app.state.store.remove_aside()
    kept = [row["id"] for row in app.state.store.list("data") if row["kind"] == "upload"]
    folders = {path.name for path in (app.state.store.workspace / "data").iterdir()}
    assert set(kept) <= folders
    assert len(folders) == len(app.state.store.list("data"))
    return kept


def test_an_upload_is_understood_at_once(client, records):
    told = client("ana").put("/api/v1/data?name=visits.csv", content=records.read_bytes())
    assert told.status_code == 201, told.text
    row = told.json()
    about = row["about"]
    assert (about["records"], about["system"], about["layout"]) == (1500, "icd9cm", "wide")
    assert about["sexes"]
    assert about["age"]
    assert row["title"] == "visits"
    assert "source" not in row
    assert client("bea").get(f"/api/v1/data/{row['id']}").status_code == 404
    assert client("ana").delete(f"/api/v1/data/{row['id']}").status_code == 204
    assert client("ana").get(f"/api/v1/data/{row['id']}").status_code == 404


def test_parquet_is_read_too(client, tmp_path):
    from comorb.records.export import export

    export(region(300), tmp_path / "visits.parquet")
    content = (tmp_path / "visits.parquet").read_bytes()
    told = client("ana").put("/api/v1/data?name=V.PARQUET", content=content)
    assert told.json()["about"]["records"] == 300


@pytest.mark.parametrize(
    ("name", "content", "status", "said"),
    [
        ("visits.exe", b"MZ", 415, "Expected a file that ends with one of .csv, .tsv"),
        ("visits.csv", b"", 422, "empty"),
        ("visits.csv", b"\x00\xff\x00\xfe", 422, "."),
        ("visits.parquet", b"PAR1 no more", 422, "visits.parquet"),
        ("visits.csv", b"a,b\n1,2\n", 422, "visits.csv: no column"),
        ("visits.csv", b"<!doctype html><p>Sign in</p>\n" * 3, 422, "is a web page"),
        ("visits.csv", "id,dx1\n1,4280\n".encode("utf-16-le"), 422, "UTF-16"),
        ("visits.csv", b"id,dx1,dx2,dx3\n1,4280,25000,4019\n", 422, "too few records"),
    ],
)
def test_what_cannot_be_read_is_refused_and_gone(client, app, name, content, status, said):
    before = uploads(app)
    told = client("ana").put(f"/api/v1/data?name={name}", content=content)
    assert told.status_code == status
    assert said in told.json()["error"]
    assert uploads(app) == before


def test_an_upload_is_cut_off_by_the_bytes_that_come(client, app):
    before = uploads(app)
    announced = client("ana").put("/api/v1/data?name=big.csv", content=b"x" * (LIMIT + 1))
    assert announced.status_code == 413

    def chunks():
        for _ in range(LIMIT // 100_000 + 1):
            yield b"x" * 100_000

    chunked = client("ana").put("/api/v1/data?name=big.csv", content=chunks())
    assert chunked.status_code == 413
    assert "larger than 2 MB" in chunked.json()["error"]
    assert uploads(app) == before


class FullDisk:
    """A file on a disk that has room for a kilobyte."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def write(self, chunk):
        self._file.write(chunk[:1000])
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("path", ["data", "data/{data}/maps", "runs/{run}/assign"])
def test_a_disk_that_is_full_during_an_upload_is_told_and_nothing_is_left(
    client, app, run, records, monkeypatch, path
):
    opened, workspace = Path.open, app.state.store.workspace

    def left() -> list[Path]:
        return [path for name in ("records.csv", "v.csv") for path in workspace.rglob(name)]

    def full(path, mode="r", *more, **others):
        file = opened(path, mode, *more, **others)
        return FullDisk(file) if mode == "xb" else file

    kept, before = uploads(app), left()
    method = "POST" if "assign" in path else "PUT"
    address = f"/api/v1/{path.format(data=run['data'], run=run['id'])}?name=v.csv"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        told = client("eva").request(method, address, content=records.read_bytes())
    assert told.status_code == 507
    assert "disk of this server is full" in told.json()["error"]
    assert (uploads(app), left()) == (kept, before)
    assert client("eva").put("/api/v1/data?name=v.csv", content=records.read_bytes()).is_success


def test_a_database_without_room_is_told_and_works_again_with_room(client, app, records):
    store = app.state.store
    (pages,) = store.query("PRAGMA page_count")
    store.query(f"PRAGMA max_page_count = {pages['page_count']}")
    try:
        said = [
            client("ana").put("/api/v1/data", params={"name": "x" * 190 + ".csv"}, content=b"")
            for _ in range(40)
        ]
        for _ in range(300):
            if client("ana").get(f"/api/v1/data/{mounted(client('ana'))['id']}").status_code == 507:
                break
        else:
            raise AssertionError("the database always had room")
        assert {each.status_code for each in said} <= {422, 507}
    finally:
        store.query("PRAGMA max_page_count = 1073741823")
    assert client("ana").put("/api/v1/data?name=v.csv", content=records.read_bytes()).is_success


def test_a_viewer_uploads_nothing(client):
    told = client("vera").put("/api/v1/data?name=visits.csv", content=b"id,dx1\n")
    assert told.status_code == 403
    assert "needs the role analyst" in told.json()["error"]


def test_codes_are_found_by_code_and_by_words(client):
    ana = client("ana")
    key = mounted(ana)["id"]

    def codes(q):
        return [hit["code"] for hit in ana.get(f"/api/v1/data/{key}/codes", params={"q": q}).json()]

    assert codes("428") == ["428"]
    assert "428" in codes("heart failure")
    assert "428" in codes("FAILURE heart")
    assert codes("no such words") == []


def test_small_counts_of_codes_are_hidden(client):
    ana = client("ana")
    hits = ana.get(f"/api/v1/data/{mounted(ana)['id']}/codes", params={"q": ""}).json()
    assert all(hit["records"] is None or hit["records"] >= 11 for hit in hits)


def test_the_size_of_a_cohort_is_told_while_it_is_chosen(client):
    ana = client("ana")
    path = f"/api/v1/data/{mounted(ana)['id']}/size"
    whole = ana.post(path, json={"rules": {"at_least": 1}}).json()
    assert whole["records"] == 1500
    some = ana.post(path, json={"rules": {"having": ["428"], "age": [70, None]}}).json()
    assert 11 < some["records"] < 1500
    none = ana.post(path, json={"rules": {"having": ["nothing"]}})
    assert none.status_code == 422
    assert "'nothing'" in none.json()["error"]
    assert ana.post(path, json={"rules": {"at_least": 0}}).status_code == 422


def test_what_was_understood_can_be_corrected(client, records):
    ana = client("ana")
    key = ana.put("/api/v1/data?name=v.csv", content=records.read_bytes()).json()["id"]
    told = ana.patch(f"/api/v1/data/{key}", json={"system": "opaque", "outcomes": ["age"]})
    assert told.json()["about"]["system"] == "opaque"
    assert told.json()["outcomes"] == ["age"]
    wrong = ana.patch(f"/api/v1/data/{key}", json={"layout": {"age": "no such column"}})
    assert wrong.status_code == 422
    assert ana.get(f"/api/v1/data/{key}").json()["about"]["system"] == "opaque"
    assert ana.patch(f"/api/v1/data/{key}", json={"title": "Mine"}).json()["title"] == "Mine"
    ana.delete(f"/api/v1/data/{key}")


def upload(client, content: str, name: str = "v.csv") -> dict:
    told = client.put(f"/api/v1/data?name={name}", content=content.encode())
    assert told.status_code == 201, told.text
    return told.json()


def visits(names: str = "visit_id,stay,dead,d_a,d_b,d_c,note", n: int = 60) -> str:
    codes = ("I10,E11.9,I50.9", "N18.3,I10,J44.1")
    lines = [f"v{i},{i % 5},{i % 2},{codes[i % 2]},said {i}" for i in range(n)]
    return "\n".join([names, *lines, ""])


def test_each_column_is_described_without_what_few_have(client, records):
    ana = client("ana")
    row = upload(ana, records.read_text())
    columns = {one["name"]: one for one in row["about"]["columns"]}
    assert columns["record_id"]["role"] == "id"
    assert columns["age"]["role"] == "age"
    assert columns["died"]["role"] == "died"
    assert columns["length_of_stay"]["role"] == "los"
    assert columns["record_id"]["values"] == []
    assert "los" in row["about"]["covariates"]
    ana.delete(f"/api/v1/data/{row['id']}")


def test_roles_are_corrected_and_forgotten(client):
    ana = client("ana")
    key = upload(ana, visits())["id"]
    layout = {"los": "stay", "died": "dead", "ignored": ["note"], "codes": ["d_a-d_b"]}
    told = ana.patch(f"/api/v1/data/{key}", json={"layout": layout}).json()
    assert told["reading"]["layout"] == layout
    roles = {one["name"]: one["role"] for one in told["about"]["columns"]}
    assert roles == {
        "visit_id": "id",
        "stay": "los",
        "dead": "died",
        "d_a": "codes",
        "d_b": "codes",
        "d_c": "category",
        "note": "ignored",
    }
    assert {"los", "died"} <= set(told["about"]["covariates"])
    wrong = ana.patch(f"/api/v1/data/{key}", json={"layout": {"shoe": "size"}})
    assert wrong.status_code == 422
    told = ana.patch(f"/api/v1/data/{key}", json={"layout": {}}).json()
    assert told["reading"] == {}
    assert "los" not in told["about"]["covariates"]
    ana.delete(f"/api/v1/data/{key}")


def test_which_values_count_as_deaths_is_said_where_they_are_not_understood(client):
    ana = client("ana")
    lines = [f"v{i},I10,E11.9,I50.9,{('kr', 'kr', 'mw')[i % 3]}" for i in range(60)]
    key = upload(ana, "\n".join(["visit_id,d_a,d_b,d_c,how", *lines, ""]))["id"]
    wrong = ana.patch(f"/api/v1/data/{key}", json={"layout": {"died": "how"}})
    assert wrong.status_code == 422
    assert "'kr', 'mw' can't be read as yes or no" in wrong.json()["error"]
    headers = {"accept-language": "es"}
    spanish = ana.patch(f"/api/v1/data/{key}", json={"layout": {"died": "how"}}, headers=headers)
    assert "no se pueden leer como sí o no" in spanish.json()["error"]
    layout = {"died": "how", "died_values": ["mw"]}
    told = ana.patch(f"/api/v1/data/{key}", json={"layout": layout}).json()
    roles = {one["name"]: one["role"] for one in told["about"]["columns"]}
    assert roles["how"] == "died"
    assert {"died", "how"} <= set(told["about"]["covariates"])
    assert told["reading"]["layout"] == layout
    ana.delete(f"/api/v1/data/{key}")


def test_a_table_that_is_not_understood_waits_for_its_columns_to_be_named(client):
    ana = client("ana")
    strange = visits("a,b,c,d,e,f,g")
    for code, word in (("I10", "hyp"), ("E11.9", "dia"), ("I50.9", "heart"), ("J44.1", "lung")):
        strange = strange.replace(code, word)
    row = upload(ana, strange)
    key = row["id"]
    assert "no column was recognised as holding diagnosis codes" in row["refused"]["error"]
    assert row["refused"]["error"].startswith("v.csv")
    assert [one["name"] for one in row["refused"]["columns"]] == list("abcdefg")
    assert "about" not in row
    assert ana.get(f"/api/v1/data/{key}").json()["refused"] == row["refused"]
    still = ana.patch(f"/api/v1/data/{key}", json={"layout": {"codes": ["x"]}})
    assert still.status_code == 422
    named = {"codes": ["d-f"], "record": "a"}
    told = ana.patch(f"/api/v1/data/{key}", json={"layout": named, "system": "opaque"}).json()
    assert told["about"]["records"] == 60
    assert not ana.get(f"/api/v1/data/{key}").json()["refused"]
    ana.delete(f"/api/v1/data/{key}")


def test_groups_of_an_own_map_are_the_codes(client):
    ana = client("ana")
    data = f"/api/v1/data/{mounted(ana)['id']}"
    content = b"code,group,name\n428,hf,Heart failure\n250,dm,Diabetes\n401,ht,Hypertension\n,x,\n"
    told = ana.put(f"{data}/maps?name=../my map.csv", content=content)
    assert told.status_code == 201, told.text
    found = told.json()
    assert (found["name"], found["groups"]) == ("my map.csv", 3)
    assert found["notes"] == ["1 lines of the map my map.csv have no code or no group"]
    assert ana.get(data).json()["maps"][found["key"]] == found
    codes = ana.get(f"{data}/codes", params={"q": "", "code_map": found["key"]}).json()
    assert {code["code"] for code in codes} == {"hf", "dm", "ht"}
    rules = {"code_map": found["key"], "having": ["hf"], "at_least": 1}
    some = ana.post(f"{data}/size", json={"rules": rules}).json()
    assert 11 < some["records"] < 1500
    wrong = ana.put(f"{data}/maps", content=b"no columns here\n")
    assert wrong.status_code == 422
    assert "has no two columns" in wrong.json()["error"]
    gone = ana.post(f"{data}/size", json={"rules": {"code_map": "0" * 16}})
    assert "isn't there any more; give it again" in gone.json()["error"]
    assert ana.post(f"{data}/size", json={"rules": {"code_map": "../../.."}}).status_code == 422
    assert client("vera").put(f"{data}/maps", content=content).status_code == 403


def test_chronic_conditions_alone_are_fewer(client):
    eva = client("eva")
    data = f"/api/v1/data/{mounted(eva)['id']}"
    every, chronic = (
        eva.post(f"{data}/size", json={"rules": {"at_least": 1, **more}}).json()["features"]
        for more in ({}, {"chronic": True})
    )
    assert 0 < chronic < every


def test_analysts_leave_mounted_data_as_they_are(client):
    key = mounted(client("ana"))["id"]
    for change in ({"title": "mine"}, {"system": "opaque"}, {"outcomes": []}, {"layout": {}}):
        assert client("ana").patch(f"/api/v1/data/{key}", json=change).status_code == 403
    told = client("eva").patch(f"/api/v1/data/{key}", json={"title": "Visits"})
    assert (told.status_code, told.json()["title"]) == (200, "Visits")
    client("eva").patch(f"/api/v1/data/{key}", json={"title": "visits"})


def test_mounted_and_built_in_data_stay(client):
    for key in (mounted(client("ana"))["id"], "heart-failure"):
        assert client("ana").delete(f"/api/v1/data/{key}").status_code == 403


def test_the_audit_log_says_who_did_what_to_which_and_no_more(app):
    log = app.state.store.query("SELECT * FROM audit")
    assert {"upload", "delete data"} <= {row["action"] for row in log}
    for row in log:
        assert re.fullmatch(r"[a-z .]+", row["action"])
        if row["action"] in ("fail to sign in", "remove user", *(f"add {role}" for role in ROLES)):
            assert re.fullmatch(r"[a-z]+", row["target"])
            continue
        assert re.fullmatch(r"[0-9a-f]{12}|heart-failure|tertiary|", row["target"])
