"""Notes, questions in words, new data and slices of a run, as users of each role get them."""

import csv
import io

import pytest
from fastapi.testclient import TestClient

from comorb.records.datasets import region
from comorb.records.export import export
from comorb.runs.folder import load_profile
from comorb.web.server import rights
from tests.web.conftest import BASE, mounted, new_run


def test_a_note_is_kept_with_the_run_and_shown_in_its_report(client, run, app):
    eva = client("eva")
    path, number = f"/api/v1/runs/{run['id']}", 1
    note = {"pathway": "Heart clinic", "owner": "Dr. Rivera", "note": "Call within a week."}
    assert eva.put(f"{path}/notes", json={number: note}).status_code == 200
    (shown, *_) = eva.get(f"{path}/profile").json()["clusters"]
    assert {key: shown[key] for key in note} == note
    assert "Dr. Rivera" in eva.get(f"{path}/download/report.html").text
    assert load_profile(app.state.store.folder("runs", run["id"])).clusters[0].owner == "Dr. Rivera"
    again = new_run(eva, parent=run["id"], rules=run["rules"])["id"]
    clusters = eva.get(f"/api/v1/runs/{again}/profile").json()["clusters"]
    assert {one["number"]: one["owner"] for one in clusters}[number] == "Dr. Rivera"
    eva.put(f"{path}/notes", json={number: {}})
    assert not eva.get(f"{path}/profile").json()["clusters"][0]["owner"]
    wrong = eva.put(f"{path}/notes", json={99: note})
    assert (wrong.status_code, "expected one of the clusters" in wrong.text) == (422, True)
    assert client("ana").put(f"{path}/notes", json={1: note}).status_code in (403, 404)


def test_why_is_asked_in_words(client, run):
    eva = client("eva")
    path = f"/api/v1/runs/{run['id']}/explain"
    told = eva.post(path, json={"codes": ["heart failure, CKD", "diabetes"]}).json()
    assert [one["code"] for one in told["codes"]] == ["428", "585", "250"]
    assert told["choices"] == []
    several = eva.post(path, json={"codes": ["25*, 4*"]}).json()
    assert several["posterior"] is None or several["choices"]
    assert any(len(one["codes"]) > 1 for one in several["choices"])
    refused = eva.post(path, json={"codes": ["nothing of the kind"]})
    assert (refused.status_code, "give codes or names" in refused.text) == (422, True)


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("other") / "new.csv"
    export(region(900), path)
    return path.read_bytes()


def test_exporters_assign_new_data_and_take_the_worklist(client, run, other, app):
    eva = client("eva")
    data = eva.put("/api/v1/data?name=new.csv", content=other).json()["id"]
    worklist = f"/api/v1/runs/{run['id']}/worklist/{data}"
    assert eva.get(worklist).status_code == 404
    told = eva.post(f"/api/v1/runs/{run['id']}/arrivals", json={"data": data}).json()
    assert told["records"] == sum(one["records"] for one in told["groups"])
    rows = list(csv.DictReader(io.StringIO(eva.get(worklist).text)))
    assert len(rows) == told["records"]
    assert set(rows[0]) == {"id", "cluster", "name", "probability", "doubtful"}
    marked = sum(row["doubtful"] == "yes" for row in rows)
    assert marked == sum(one["doubtful"] for one in told["groups"])
    acts = [(act["action"], act["user"]) for act in app.state.store.acts()]
    assert ("assign data", "eva") in acts
    assert ("export worklist", "eva") in acts
    assert client("ana").get(worklist).status_code == 403
    folder = app.state.store.folder("data", data)
    assert not list(folder.glob("*assign-*"))
    eva.delete(f"/api/v1/data/{data}")
    app.state.store.remove_aside()
    assert not folder.exists()


def test_others_are_told_protected_counts_within_a_budget(client, run, other, monkeypatch):
    eva, ana = client("eva"), client("ana")
    eva.patch(f"/api/v1/runs/{run['id']}", json={"shared": True})
    path = f"/api/v1/runs/{run['id']}/arrivals"
    data = ana.put("/api/v1/data?name=new.csv", content=other).json()["id"]
    told = ana.post(path, json={"data": data}).json()
    for one in told["groups"]:
        assert one["records"] is None or one["records"] >= 11
        assert one["doubtful"] in (None, 0) or one["doubtful"] >= 11
    assert ana.post(path, json={"data": data}).json() == told
    assert ana.post(f"{path}?view=full", json={"data": data}).status_code == 403
    monkeypatch.setattr(rights, "QUESTIONS", 0)
    refused = ana.post(path, json={"data": mounted(ana)["id"]})
    assert (refused.status_code, "This takes 1 question of these data" in refused.text) == (
        429,
        True,
    )
    eva.patch(f"/api/v1/runs/{run['id']}", json={"shared": False})


def test_a_file_whose_codes_do_not_fit_gets_a_line(client, run):
    eva = client("eva")
    lines = "\n".join(f"{i},I50.9,E11.9,N18.3" for i in range(40))
    data = eva.put(
        "/api/v1/data?name=ten.csv", content=f"id,dx1,dx2,dx3\n{lines}\n".encode()
    ).json()
    told = eva.post(f"/api/v1/runs/{run['id']}/arrivals", json={"data": data["id"]})
    assert told.status_code == 422
    assert "\n" not in told.json()["error"]


@pytest.fixture(scope="module")
def split(app, tokens, run) -> dict:
    """A copy of Eva's run that everyone may read."""
    eva = TestClient(app, base_url=BASE, headers={"authorization": f"Bearer {tokens['eva']}"})
    copy = eva.post(f"/api/v1/runs/{run['id']}/duplicate").json()
    return eva.patch(f"/api/v1/runs/{copy['id']}", json={"shared": True}).json()


def test_a_run_says_what_it_can_be_split_by(split):
    assert split["splits"][:2] == ["age", "sex"]


def test_slices_are_protected_but_to_exporters(client, split):
    path = f"/api/v1/runs/{split['id']}/slices"
    full, told = (client(name).get(path, params={"by": "sex"}).json() for name in ("eva", "vera"))
    assert full["labels"] == told["labels"] == ["female", "male"]
    assert full["counts"] != told["counts"]
    assert sum(row[-1] for row in full["counts"]) == split["records"]
    assert len(full["half"]) == 2
    assert client("ana").get(path, params={"by": "sex", "view": "full"}).status_code == 403


def test_one_slice_is_a_profile_in_the_clusters_of_the_run(client, split):
    path = f"/api/v1/runs/{split['id']}/slices/profile"
    eva, asked = client("eva"), {"by": "sex", "label": "female"}
    whole = eva.get(f"/api/v1/runs/{split['id']}/profile").json()
    part = eva.get(path, params=asked).json()
    assert [one["name"] for one in part["clusters"]] == [one["name"] for one in whole["clusters"]]
    assert part["source"]["records"] < whole["source"]["records"]
    assert part["source"]["lines"][-1]["rule"] == "sex: female"
    assert eva.get(path, params=asked).json() == part
    assert client("vera").get(path, params=asked).json()["min_cell"] == 11
    spanish = eva.get(path, params=asked, headers={"accept-language": "es"}).json()
    assert (spanish["labels"] != part["labels"], spanish["counts"]) == (True, part["counts"])
    assert spanish["findings"][0]["text"] != part["findings"][0]["text"]
    eva.put(f"/api/v1/runs/{split['id']}/names", json={"1": "Mine"})
    assert eva.get(path, params=asked).json()["clusters"][0]["name"] == "Mine"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"by": "dx1"}, "choose one of its columns"),
        ({"by": "record_id"}, "choose one of its columns"),
        ({"by": "sex", "label": "other"}, "choose another"),
    ],
)
def test_other_questions_are_refused_in_one_line(client, split, query, said):
    end = "/profile" if "label" in query else ""
    told = client("vera").get(f"/api/v1/runs/{split['id']}/slices{end}", params=query)
    assert (told.status_code, said in told.json()["error"]) == (422, True)


def test_outcomes_are_starred_by_the_owner_for_all(app, client, split):
    path = f"/api/v1/runs/{split['id']}"
    assert client("eva").patch(path, json={"starred": ["died", "age"]}).status_code == 200
    assert client("vera").get(path).json()["starred"] == ["died", "age"]
    assert client("ana").patch(path, json={"starred": []}).status_code == 403
    asked = {"by": "sex", "label": "female"}
    assert client("vera").get(f"{path}/slices/profile", params=asked).status_code == 200
    acts = [(act["user"], act["action"]) for act in app.state.store.acts()]
    assert ("eva", "star outcomes") in acts
    assert ("vera", "open slice") in acts
