"""Slices of a run, one slice alone, and starred outcomes, as users of each role get them."""

import pytest
from fastapi.testclient import TestClient

from tests.web.conftest import BASE


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
