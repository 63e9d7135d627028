"""Runs, by runs_api and results_api: made, watched, read, tuned, compared, kept from others."""

import csv
import io
import json
import shlex
import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from comorb.cli import group
from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile
from comorb.storage import load_model
from comorb.web.server import runs_api
from tests.web.conftest import BASE, mounted, new_run, wait


def test_a_run_is_told_in_full_or_protected(client, run):
    eva = client("eva")
    path = f"/api/v1/runs/{run['id']}/profile"
    full, told = eva.get(path).json(), eva.get(path, params={"view": "protected"}).json()
    assert run["clusters"] == len(full["clusters"]) == len(told["clusters"]) == 3
    assert (full["min_cell"], told["min_cell"]) == (0, 11)
    assert eva.get(path, params={"view": "full"}).json() == full
    assert any(0 < n < 11 for row in full["counts"] for n in row)
    assert all(n is None or n == 0 or n >= 11 for row in told["counts"] for n in row)
    assert eva.get(path, params={"view": "half"}).status_code == 422


def test_a_run_says_which_command_does_the_same(client):
    rules = {"having": ["428"], "age": [50, None], "sex": ["female"], "drop_codes": ["401"]}
    row = new_run(client("eva"), rules=rules)
    source = client("eva").get(f"/api/v1/runs/{row['id']}/profile").json()["source"]
    assert source["command"] == (
        "comorb fit visits.csv -k 3 --having 428 --where age=50: --where sex=female "
        "--drop-codes 401"
    )


def test_the_command_of_a_run_does_the_same_again(client, records, app, tmp_path, monkeypatch):
    eva = client("eva")
    body = eva.put("/api/v1/data", params={"name": "my visits.csv"}, content=records.read_bytes())
    said = {"age": "age", "category": ["died"], "ignored": ["sex"], "codes": ["dx1-dx9"]}
    corrected = {"layout": said, "unit": "visit", "system": "icd9cm", "outcomes": ["age"]}
    data = eva.patch(f"/api/v1/data/{body.json()['id']}", json=corrected).json()
    groups = b"code,group\n428,hf\n250,dm\n401,ht\n585,ckd\n427,rhythm\n496,copd\n"
    own = eva.put(f"/api/v1/data/{data['id']}/maps", params={"name": "m.csv"}, content=groups)
    rules = {"having": ["hf"], "age": [50, None], "drop_codes": ["ht"], "drop_rare": 5}
    rules |= {"code_map": own.json()["key"], "chronic": True, "scores": ["charlson"]}
    rules |= {"at_least": 1}
    row = new_run(eva, data=data["id"], rules=rules)
    command = eva.get(f"/api/v1/runs/{row['id']}/profile").json()["source"]["command"]
    monkeypatch.chdir(tmp_path)
    Path("my visits.csv").write_bytes(records.read_bytes())
    Path("m.csv").write_bytes(groups)
    assert "--map m.csv --score charlson" in command
    told = CliRunner().invoke(group.app, [*shlex.split(command)[1:], "--no-stability", "-q"])
    assert told.exit_code == 0, told.output
    mine = app.state.store.folder("runs", row["id"])
    name = "assignments.csv"
    assert Path("comorb-run", name).read_bytes() == (mine / name).read_bytes()
    one, two = (load_model(folder / "model.comorb") for folder in (Path("comorb-run"), mine))
    assert one.mixture.key == two.mixture.key
    assert one.data_hash == two.data_hash
    outcomes = [[each.name for each in load_profile(run).outcomes] for run in ("comorb-run", mine)]
    assert outcomes[0] == outcomes[1] == ["age", "charlson"]


def test_a_run_can_be_watched_until_it_is_done(client, run):
    with client("eva").stream("GET", f"/api/v1/runs/{run['id']}/events") as events:
        told = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
    assert told[-1] == {"state": "done", "measured": True}
    clusters = client("eva").get(f"/api/v1/runs/{run['id']}/profile").json()["clusters"]
    assert all(0 <= cluster["stability"] <= 1 for cluster in clusters)


def test_others_see_a_run_once_it_is_shared_and_only_its_owner_changes_it(client, run):
    path = f"/api/v1/runs/{run['id']}"
    vera, bea, eva = client("vera"), client("bea"), client("eva")
    assert vera.get(path).status_code == 404
    assert run["id"] not in [row["id"] for row in vera.get("/api/v1/runs").json()]
    eva.patch(path, json={"shared": True})
    assert vera.get(path).status_code == 200
    assert run["id"] in [row["id"] for row in vera.get("/api/v1/runs").json()]
    assert bea.patch(path, json={"title": "mine"}).status_code == 403
    assert bea.delete(path).status_code == 403
    assert bea.put(f"{path}/names", json={"0": "x"}).status_code == 403
    assert vera.patch(path, json={"title": "mine"}).status_code == 403
    assert eva.patch(path, json={"shared": False}).json()["shared"] is False
    assert vera.get(path).status_code == 404


def test_a_shared_run_does_not_name_a_private_one_that_it_is_inside_of(client, run):
    eva, vera = client("eva"), client("vera")
    inside = new_run(eva, within={"run": run["id"], "cluster": 1}, k=2, title="Inside")
    eva.patch(f"/api/v1/runs/{inside['id']}", json={"shared": True})
    told = vera.get(f"/api/v1/runs/{inside['id']}")
    assert told.json()["path"] == []
    assert run["title"] not in told.text
    eva.delete(f"/api/v1/runs/{inside['id']}")


def test_a_deleted_run_is_brought_back_by_its_owner(client, run):
    eva, bea = client("eva"), client("bea")
    copy = eva.post(f"/api/v1/runs/{run['id']}/duplicate").json()["id"]
    path = f"/api/v1/runs/{copy}"
    assert eva.delete(path).status_code == 204
    assert eva.get(path).status_code == 404
    assert copy not in [row["id"] for row in eva.get("/api/v1/runs").json()]
    assert bea.post(f"{path}/restore").status_code == 404
    assert eva.post(f"{path}/restore").json()["id"] == copy
    assert eva.get(f"{path}/profile").status_code == 200
    eva.delete(path)


def test_the_map_and_a_region_of_it_are_of_the_same_records(client, run):
    eva = client("eva")
    path = f"/api/v1/runs/{run['id']}/map"
    drawn = eva.get(path).json()
    assert sum(one[2] for one in drawn["squares"]) == run["records"]
    assert len(drawn["centres"]) == 3
    half = drawn["width"] / 2
    region = [[0, 0], [half, 0], [half, drawn["height"]], [0, drawn["height"]]]
    inside = [one for one in drawn["squares"] if one[0] + 0.5 < half]
    made = new_run(eva, within={"run": run["id"], "region": region}, k=2)
    assert made["state"] == "done", made
    assert made["records"] == sum(one[2] for one in inside)
    assert made["path"] == [{"run": run["id"], "title": run["title"], "cluster": None}]
    women = eva.get(path, params={"by": "sex=female"}).json()
    assert [one[:3] for one in women["squares"]] == [one[:3] for one in drawn["squares"]]
    assert eva.get(path, params={"by": "shoes"}).status_code == 422
    told = eva.get(path, params={"view": "protected"}).json()
    small = {tuple(one[:2]) for one in drawn["squares"] if one[2] < 11}
    assert small
    assert all(one[2] is None for one in told["squares"] if tuple(one[:2]) in small)
    for bad in ({}, {"cluster": 1, "region": region}, {"region": region[:2]}):
        body = {"data": run["data"], "within": {"run": run["id"], **bad}}
        assert eva.post("/api/v1/runs", json=body).status_code == 422
    eva.delete(f"/api/v1/runs/{made['id']}")


def test_one_cluster_is_split_and_the_tree_of_a_choice_is_told(client, run):
    eva, vera = client("eva"), client("vera")
    assert eva.get(f"/api/v1/runs/{run['id']}/tree").json() is None
    made = new_run(eva, parent=run["id"], split=[2, 2], rules=run["rules"])
    assert made["state"] == "done", made
    clusters = eva.get(f"/api/v1/runs/{made['id']}/profile").json()["clusters"]
    assert [one["number"] for one in clusters] == [1, 2, 3, 4]
    body = {"data": run["data"], "split": [1, 2]}
    assert "say which run" in eva.post("/api/v1/runs", json=body).json()["error"]
    chosen = new_run(eva, k="auto", rules={"having": ["428"]})
    tree = eva.get(f"/api/v1/runs/{chosen['id']}/tree").json()
    assert [len(level) for level in tree["levels"]] == list(range(1, len(tree["levels"]) + 1))
    assert len(tree["splits"]) == len(tree["levels"]) - 1
    eva.patch(f"/api/v1/runs/{chosen['id']}", json={"shared": True})
    told = vera.get(f"/api/v1/runs/{chosen['id']}/tree").json()
    groups = [group for level in told["levels"] for group in level]
    assert all(one["share"] is None or one["share"] == round(one["share"], 2) for one in groups)
    for one in (made, chosen):
        eva.delete(f"/api/v1/runs/{one['id']}")


def test_a_run_of_another_is_copied_by_exporters_alone(client, run):
    path = f"/api/v1/runs/{run['id']}"
    client("eva").patch(path, json={"shared": True})
    told = client("bea").post(f"{path}/duplicate")
    assert told.status_code == 403
    assert "would outlast the sharing" in told.json()["error"]
    client("eva").patch(path, json={"shared": False})


def test_a_record_of_data_that_one_may_not_see_is_not_moved(client, app, records):
    ana, eva = client("ana"), client("eva")
    sent = ana.put("/api/v1/data", params={"name": "own.csv"}, content=records.read_bytes())
    row = new_run(ana, data=sent.json()["id"])
    path = f"/api/v1/runs/{row['id']}"
    ana.patch(path, json={"shared": True})
    before = len(app.state.store.list("runs"))
    for route, body in (("record", {}), ("move", {"cluster": 1})):
        assert eva.post(f"{path}/{route}", json={"record": "1"} | body).status_code == 404
    assert len(app.state.store.list("runs")) == before
    ana.delete(path)


def test_a_removed_user_s_events_and_fit_end(app, client):
    access, store = app.state.access, app.state.store
    token = access.add_user("zoe", "analyst")
    zoe = TestClient(app, base_url=BASE, headers={"authorization": f"Bearer {token}"})
    made = zoe.post("/api/v1/runs", json={"data": "tertiary", "k": "auto"}).json()["id"]
    wait(zoe, made, "running")
    removing = threading.Timer(0.5, access.remove_user, ["zoe"])
    removing.start()
    with zoe.stream("GET", f"/api/v1/runs/{made}/events") as events:
        told = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
    removing.join()
    assert {each["state"] for each in told} == {"running"}
    after = new_run(client("eva"))
    assert after["state"] == "done"
    assert store.get("runs", made)["state"] == "cancelled"


def test_relevance_follows_lambda(client, run):
    path = f"/api/v1/runs/{run['id']}/relevance"
    specific, frequent = (
        client("eva").get(path, params={"lambda": lam, "n": 5}).json() for lam in (0, 1)
    )
    assert specific != frequent
    assert len(specific) == 3
    shares = [each["share"] for each in frequent[0]["diagnoses"]]
    assert shares == sorted(shares, reverse=True)
    assert client("eva").get(path, params={"lambda": 2}).status_code == 422


def test_codes_that_no_cluster_knows_are_refused(client, run):
    path = f"/api/v1/runs/{run['id']}/explain"
    told = client("eva").post(path, json={"codes": ["heart", "xyz"]})
    assert told.status_code == 422
    assert "None of these is a diagnosis" in told.json()["error"]


def test_names_last_and_go_on_to_the_next_run(client, run):
    eva = client("eva")
    assert eva.put(f"/api/v1/runs/{run['id']}/names", json={"1": " Kidneys "}).status_code == 200
    told = eva.get(f"/api/v1/runs/{run['id']}/profile").json()
    assert told["clusters"][0]["name"] == "Kidneys"
    rules = {"having": ["428"], "drop_codes": ["401"]}
    after = new_run(eva, parent=run["id"], rules=rules)
    clusters = eva.get(f"/api/v1/runs/{after['id']}/profile").json()["clusters"]
    assert clusters[0]["name"] == "Kidneys"
    assert [cluster["number"] for cluster in clusters] == [1, 3, 4]  # the second is no more
    assert eva.put(f"/api/v1/runs/{run['id']}/names", json={"9": "x"}).status_code == 422
    assert eva.put(f"/api/v1/runs/{run['id']}/names", json={"1": " "}).status_code == 422


def test_two_clusters_are_merged_in_a_new_run(client, run):
    eva = client("eva")
    merged = new_run(eva, parent=run["id"], merge=[1, 3])
    sizes = [
        [c["size"] for c in eva.get(f"/api/v1/runs/{key}/profile").json()["clusters"]]
        for key in (run["id"], merged["id"])
    ]
    assert sizes[1][0] == pytest.approx(sizes[0][0] + sizes[0][2], rel=0.05)
    assert merged["clusters"] == 2
    assert merged["groups"] == [1, 2, 1]
    again = new_run(eva, parent=merged["id"], merge=[1, 2])
    assert again["clusters"] == 1
    assert again["groups"] == [1, 1, 1]
    alone = {"data": mounted(eva)["id"], "merge": [1, 2]}
    assert eva.post("/api/v1/runs", json=alone).status_code == 422


def test_a_cluster_is_looked_into_and_says_where_it_is(client, run):
    eva = client("eva")
    within = {"run": run["id"], "cluster": 1}
    inside = new_run(eva, parent=run["id"], within=within, k=2)
    assert inside["state"] == "done", inside
    size = eva.get(f"/api/v1/runs/{run['id']}/profile").json()["clusters"][0]["size"]
    assert inside["records"] == size
    assert inside["path"] == [{"run": run["id"], "title": "Heart failure", "cluster": 1}]


def test_compare_follows_the_records_that_both_have(client, run):
    eva = client("eva")
    other = new_run(eva, parent=run["id"], rules={"having": ["428"], "drop_codes": ["401"]})
    told = eva.get(f"/api/v1/compare/{run['id']}/{other['id']}").json()
    assert told["shared"] == run["records"]
    assert 0 < told["ari"] <= 1
    assert sum(map(sum, told["flows"])) == run["records"]
    assert len(told["pairs"]) == 3
    path = f"/api/v1/compare/{run['id']}/{other['id']}"
    less = eva.get(path, params={"view": "protected"}).json()
    assert (told["view"], less["view"]) == ("full", "protected")
    assert all(n is None or n == 0 or n >= 11 for row in less["flows"] for n in row)
    assert less["shared"] != run["records"]
    apart = new_run(eva, data="heart-failure", rules={})
    told = eva.get(f"/api/v1/compare/{run['id']}/{apart['id']}").json()
    assert told["flows"] is told["ari"] is None
    assert told["codes"]


def test_a_file_that_was_uploaded_again_holds_the_same_records(client, run, records):
    eva = client("eva")
    sent = eva.put("/api/v1/data", params={"name": "again.csv"}, content=records.read_bytes())
    other = new_run(eva, data=sent.json()["id"])
    told = eva.get(f"/api/v1/compare/{run['id']}/{other['id']}").json()
    assert told["shared"] == run["records"]
    assert told["ari"] == 1


def test_a_record_is_explained_from_its_codes(client, run):
    told = client("eva").post(
        f"/api/v1/runs/{run['id']}/explain", json={"codes": ["428.0", "585.6", "zzz"]}
    )
    answer = told.json()
    assert sum(answer["posterior"]) == pytest.approx(1)
    assert [one["code"] for one in answer["codes"]] == ["428", "585"]
    assert answer["unknown"] == ["zzz"]
    assert (
        client("eva").post(f"/api/v1/runs/{run['id']}/explain", json={"codes": []}).status_code
        == 422
    )


def test_a_record_is_moved_by_hand_in_a_new_run_that_says_so(client, run):
    eva = client("eva")
    path = f"/api/v1/runs/{run['id']}"

    def rows(key):
        text = eva.get(f"/api/v1/runs/{key}/download/assignments.csv").text
        return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}

    before = rows(run["id"])
    record, told = next(iter(before.items()))
    target = int(told["cluster"]) % 3 + 1
    assert sum(eva.post(f"{path}/record", json={"record": record}).json()["posterior"]) > 0.99
    made = eva.post(f"{path}/move", json={"record": record, "cluster": target}).json()
    moved = wait(eva, made["id"])
    assert (moved["state"], moved["moved"], moved["clusters"]) == ("done", 1, 3), moved
    after = rows(made["id"])
    assert (after[record]["cluster"], after[record]["manual"]) == (str(target), "true")
    assert sum(before[key]["cluster"] != after[key]["cluster"] for key in before) == 1
    assert sum(row["manual"] == "true" for row in after.values()) == 1
    assert "record" not in moved
    assert eva.post(f"{path}/record", json={"record": "nobody"}).status_code == 422
    assert client("ana").post(f"{path}/record", json={"record": record}).status_code == 403


def test_new_records_are_assigned_for_exporters(client, run, records):
    path = f"/api/v1/runs/{run['id']}/assign?name=new.csv"
    told = client("eva").post(path, content=records.read_bytes())
    rows = list(csv.DictReader(io.StringIO(told.text)))
    assert len(rows) == run["records"]
    assert {row["cluster"] for row in rows} == {"1", "2", "3"}
    assert client("ana").post(path, content=b"x").status_code == 403


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("assignments.csv", b'"id","cluster","confidence","name"'),
        ("assignments.parquet", b"PAR1"),
        ("profile.csv", b'"cluster","name","code"'),
        ("profile.json", b'{"format":"comorb-profile"'),
        ("outcomes.csv", b'"cluster","outcome","value","estimate","low","high","naive"'),
        ("report.html", b"<!doctype html>"),
        ("report.pdf", b"%PDF"),
        ("frequency.svg", b"<?xml"),
        ("heatmap.png", b"\x89PNG"),
        ("sizes.svg", b"<?xml"),
        ("model.comorb", b""),
    ],
)
def test_a_run_is_downloaded(client, run, app, name, start):
    folder = app.state.store.folder("runs", run["id"])
    before = {path.name for path in folder.iterdir()}
    told = client("eva").get(f"/api/v1/runs/{run['id']}/download/{name}")
    assert told.status_code == 200
    assert told.headers["cache-control"] == "no-store"
    assert told.content.startswith(start)
    assert {path.name for path in folder.iterdir()} == before
    log = app.state.store.query("SELECT action, target FROM audit")
    assert {"action": f"export {name}", "target": run["id"]} in log


def test_what_is_downloaded_is_protected_unless_an_exporter_asks_for_all(client, run, app):
    path = f"/api/v1/runs/{run['id']}/download"
    told = client("eva").get(f"{path}/profile.csv")
    counts = [row["records"] for row in csv.DictReader(io.StringIO(told.text))]
    assert all(n == "" or float(n) == 0 or float(n) >= 11 for n in counts)
    document = client("eva").get(f"{path}/profile.json").text
    assert Profile.from_json(document).min_cell == 11
    full = client("eva").get(f"{path}/profile.json", params={"view": "full"}).text
    assert Profile.from_json(full).min_cell == 0
    assert Profile.from_json(full).cells is None
    log = app.state.store.query("SELECT action, target FROM audit")
    assert {"action": "export full profile.json", "target": run["id"]} in log


def test_a_model_that_is_downloaded_can_be_used(client, run, tmp_path):
    told = client("eva").get(f"/api/v1/runs/{run['id']}/download/model.comorb")
    (tmp_path / "model.comorb").write_bytes(told.content)
    assert load_model(tmp_path / "model.comorb").mixture.n_components == 3


def test_patients_leave_only_with_the_role_for_it(client, run):
    client("eva").patch(f"/api/v1/runs/{run['id']}", json={"shared": True})
    for name in ("assignments.csv", "assignments.parquet", "model.comorb"):
        told = client("bea").get(f"/api/v1/runs/{run['id']}/download/{name}")
        assert (told.status_code, "needs the role exporter" in told.text) == (403, True)
    assert client("bea").get(f"/api/v1/runs/{run['id']}/download/report.html").status_code == 200
    assert client("bea").get(f"/api/v1/runs/{run['id']}/download/secrets.txt").status_code == 404
    client("eva").patch(f"/api/v1/runs/{run['id']}", json={"shared": False})


def test_a_copy_is_no_run_before_its_files_are_there(client, run, app, monkeypatch):
    def killed(_, copy, **__):
        (copy / "assignments.csv").write_text("half")
        raise OSError("killed")

    eva, before = client("eva"), app.state.store.list("runs")
    folders = set((app.state.store.workspace / "runs").iterdir())
    monkeypatch.setattr(runs_api.shutil, "copytree", killed)
    with pytest.raises(OSError, match="killed"):
        eva.post(f"/api/v1/runs/{run['id']}/duplicate")
    assert app.state.store.list("runs") == before
    app.state.store.remove_aside()
    assert set((app.state.store.workspace / "runs").iterdir()) <= folders


def test_a_run_is_duplicated_renamed_and_deleted(client, run, app):
    eva = client("eva")
    copy = eva.post(f"/api/v1/runs/{run['id']}/duplicate").json()
    assert copy["id"] != run["id"]
    assert eva.get(f"/api/v1/runs/{copy['id']}/profile").status_code == 200
    renamed = eva.patch(f"/api/v1/runs/{copy['id']}", json={"title": "Copy"}).json()
    assert renamed["title"] == "Copy"
    assert eva.delete(f"/api/v1/runs/{copy['id']}").status_code == 204
    app.state.store.remove_aside()
    assert not app.state.store.folder("runs", copy["id"]).exists()
    assert eva.get(f"/api/v1/runs/{run['id']}/profile").status_code == 200


def test_a_run_that_cannot_be_says_why(client):
    ana = client("ana")
    row = new_run(ana, rules={"having": ["nothing"]})
    assert row["state"] == "failed"
    assert "'nothing'" in row["message"]
    assert ana.get(f"/api/v1/runs/{row['id']}/profile").status_code == 409
    none, few = (new_run(ana, rules={"age": age}) for age in ([150, 151], [102, None]))
    assert none["state"] == few["state"] == "failed"
    assert "too few records; the least that can be shown is 11" in none["message"]
    assert none["message"] == few["message"]


def test_what_was_asked_wrongly_is_refused_at_once(client):
    ana = client("ana")
    key = mounted(ana)["id"]
    assert ana.post("/api/v1/runs", json={"data": key, "k": 0}).status_code == 422
    assert ana.post("/api/v1/runs", json={"data": key, "k": 51}).status_code == 422
    assert ana.post("/api/v1/runs", json={"data": "none"}).status_code == 404
    assert ana.post("/api/v1/runs", json={"data": key, "parent": "none"}).status_code == 404
    assert client("vera").post("/api/v1/runs", json={"data": key}).status_code == 403


def test_a_run_is_cancelled_and_the_next_one_goes_on(client):
    ana = client("ana")
    body = {"data": "heart-failure", "k": "auto"}
    long = ana.post("/api/v1/runs", json=body).json()["id"]
    waiting = ana.post("/api/v1/runs", json=body).json()["id"]
    wait(ana, long, "running")
    assert ana.post(f"/api/v1/runs/{waiting}/cancel").json()["state"] == "cancelled"
    ana.post(f"/api/v1/runs/{long}/cancel")
    assert wait(ana, long)["state"] == "cancelled"
    assert new_run(ana)["state"] == "done"
