"""Every route, asked by every role: no small count, no exact total and no key comes out."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Mount, Route

from comorb.profiles.noise import SECRET_FILE
from comorb.records.datasets import region
from comorb.records.export import export
from comorb.runs.folder import RunFolder, load_profile
from comorb.web.server import rights
from comorb.web.server.app import Settings, create_app
from comorb.web.worker.downloads import AGGREGATES, PATIENTS
from tests.web.conftest import BASE, mounted, new_run, wait

RARE = ("020", "029", "nothing")  # codes that few records have, or none
PLANTED = {f"{n + 19:03}": n for n in range(1, 11)}  # a code that n records have
SECRET = bytes([2]) * 32  # with it, the noise of all records isn't 0
ROLES = {"vera": "viewer", "ana": "analyst", "bea": "analyst", "eva": "exporter", "eli": "exporter"}

# Who may ask each route at least, and what it tells of records.
ROUTES = {
    "GET /api/v1/data": ("viewer", "rounded numbers of data; nothing to viewers"),
    "PUT /api/v1/data": ("analyst", "one's own data"),
    "GET /api/v1/data/{key}": ("analyst", "rounded numbers; one's own data exactly"),
    "PATCH /api/v1/data/{key}": ("analyst", "one's own data; mounted ones to exporters"),
    "DELETE /api/v1/data/{key}": ("analyst", "nothing"),
    "POST /api/v1/data/{key}/restore": ("analyst", "rounded numbers; one's own data exactly"),
    "GET /api/v1/data/{key}/codes": ("analyst", "rounded counts; none with an own map"),
    "POST /api/v1/data/{key}/codes": ("analyst", "how many codes a pattern stands for"),
    "PUT /api/v1/data/{key}/maps": ("analyst", "nothing: a map is one's own"),
    "POST /api/v1/data/{key}/size": ("analyst", "a protected count, within a budget"),
    "GET /api/v1/definitions": ("analyst", "nothing of records: rules and codes"),
    "POST /api/v1/definitions": ("analyst", "nothing of records"),
    "PATCH /api/v1/definitions/{key}": ("analyst", "nothing of records"),
    "DELETE /api/v1/definitions/{key}": ("analyst", "nothing"),
    "GET /api/v1/definitions/{key}/file": ("analyst", "nothing of records: rules or codes"),
    "GET /api/v1/runs": ("viewer", "protected numbers of records"),
    "POST /api/v1/runs": ("analyst", "nothing yet; new cohorts count as questions"),
    "GET /api/v1/runs/{key}": ("viewer", "a protected number of records"),
    "PATCH /api/v1/runs/{key}": ("analyst", "a protected number of records"),
    "DELETE /api/v1/runs/{key}": ("analyst", "nothing"),
    "POST /api/v1/runs/{key}/restore": ("analyst", "a protected number of records"),
    "POST /api/v1/runs/{key}/duplicate": ("analyst", "a protected number of records"),
    "POST /api/v1/runs/{key}/cancel": ("analyst", "a state without numbers of records"),
    "GET /api/v1/runs/{key}/events": ("viewer", "a state without numbers of records"),
    "GET /api/v1/runs/{key}/profile": ("viewer", "a protected profile; exporters may see all"),
    "GET /api/v1/runs/{key}/slices": ("viewer", "protected shares; exporters may see all"),
    "GET /api/v1/runs/{key}/slices/profile": ("viewer", "a protected profile of one slice"),
    "GET /api/v1/runs/{key}/relevance": ("viewer", "protected shares; exporters may see all"),
    "GET /api/v1/runs/{key}/map": ("viewer", "protected counts of cells; exporters may see all"),
    "GET /api/v1/runs/{key}/tree": ("viewer", "rounded shares of groups; exporters may see all"),
    "PUT /api/v1/runs/{key}/names": ("analyst", "nothing"),
    "POST /api/v1/runs/{key}/explain": ("viewer", "chances by protected counts, to 5%"),
    "POST /api/v1/runs/{key}/record": ("exporter", "one record"),
    "POST /api/v1/runs/{key}/move": ("exporter", "one record"),
    "POST /api/v1/runs/{key}/assign": ("exporter", "records"),
    "PUT /api/v1/runs/{key}/notes": ("analyst", "nothing"),
    "POST /api/v1/runs/{key}/arrivals": ("analyst", "protected counts, within a budget"),
    "GET /api/v1/runs/{key}/worklist/{data}": ("exporter", "records"),
    "GET /api/v1/compare/{one}/{two}": ("viewer", "protected flows; exporters may see all"),
    "GET /api/v1/runs/{key}/download/{name}": ("viewer", "protected; exporters may have all"),
    "POST /api/v1/logout": ("viewer", "nothing"),
    "GET /api/v1/openapi.json": ("viewer", "nothing"),
    "GET /texts.json": (None, "nothing"),
    "GET /": ("viewer", "nothing: a frame"),
    "GET /data/{key}": ("analyst", "nothing: a frame"),
    "GET /runs/{key}": ("viewer", "nothing: a frame"),
    "GET /compare/{one}/{two}": ("viewer", "nothing: a frame"),
    "GET /docs": ("viewer", "nothing"),
    "GET /open": (None, "nothing"),
    "GET /login": (None, "nothing"),
    "POST /login": (None, "nothing"),
    "MOUNT /page": (None, "nothing: files of the page"),
    "MOUNT /static": (None, "nothing: files of the page"),
}
QUERIES = {
    "GET /api/v1/runs/{key}/slices": {"by": "sex"},
    "GET /api/v1/runs/{key}/slices/profile": {"by": "sex", "label": "female"},
}
BODIES = {
    "PATCH /api/v1/data/{key}": {"title": "mine"},
    "POST /api/v1/data/{key}/size": {"rules": {"having": ["428"]}},
    "POST /api/v1/data/{key}/codes": {"texts": ["02*", "428"]},
    "PATCH /api/v1/definitions/{key}": {"name": "mine"},
    "POST /api/v1/definitions": {"name": "mine", "codes": ["428", "V*"]},
    "POST /api/v1/runs": {"data": "heart-failure"},
    "PATCH /api/v1/runs/{key}": {"title": "mine"},
    "PUT /api/v1/runs/{key}/names": {"1": "x"},
    "PUT /api/v1/runs/{key}/notes": {"1": {"note": "x"}},
    "POST /api/v1/runs/{key}/arrivals": {"data": "heart-failure"},
    "POST /api/v1/runs/{key}/explain": {"codes": ["428", "024"]},
    "POST /api/v1/runs/{key}/record": {"record": "1"},
    "POST /api/v1/runs/{key}/move": {"record": "1", "cluster": 1},
}


def plant(records: Path) -> None:
    """Give each planted code to as many records as it says, in cells that are empty."""
    with records.open(newline="") as file:
        rows = list(csv.DictReader(file))
    at = 0
    for code, number in PLANTED.items():
        for _ in range(number):
            while rows[at]["dx9"] or "428" not in rows[at].values():
                at += 1
            empty = next(name for name in rows[at] if name.startswith("dx") and not rows[at][name])
            rows[at][empty] = code
            at += 1
    with records.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "planted.csv"
    export(region(1487), path)
    plant(path)
    return path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, planted):
    workspace = tmp_path_factory.mktemp("guarded")
    (workspace / SECRET_FILE).write_text(SECRET.hex())
    app = create_app(Settings(workspace, records=(planted,)))
    with TestClient(app, base_url=BASE):
        yield app


@pytest.fixture(scope="module")
def people(guarded) -> dict[str, TestClient]:
    tokens = {name: guarded.state.access.add_user(name, role) for name, role in ROLES.items()}
    return {
        name: TestClient(guarded, base_url=BASE, headers={"authorization": f"Bearer {token}"})
        for name, token in tokens.items()
    }


@pytest.fixture(scope="module")
def runs(people) -> list[str]:
    """Two runs of Eva's on the planted records, which everyone may read."""
    eva = people["eva"]
    rules = {"having": ["428"]}
    made = [new_run(eva, rules=rules | more) for more in ({}, {"drop_codes": ["401"]})]
    for run in made:
        assert run["state"] == "done", run
        with eva.stream("GET", f"/api/v1/runs/{run['id']}/events") as events:
            assert '"measured": true' in list(events.iter_lines())[-2]
        eva.patch(f"/api/v1/runs/{run['id']}", json={"shared": True})
    return [run["id"] for run in made]


@pytest.fixture(scope="module")
def full(guarded, runs):
    return load_profile(guarded.state.store.folder("runs", runs[0]))


def routes(app) -> Iterator[str]:
    for route in app.routes:
        if isinstance(route, Mount):
            yield f"MOUNT {route.path}"
        elif isinstance(route, Route):
            yield from (f"{method} {route.path}" for method in route.methods - {"HEAD"})
        else:
            yield from routes(route.original_router)


def test_every_route_is_known_with_what_it_tells_and_to_whom(guarded):
    assert set(routes(guarded)) == ROUTES.keys()


def address(route: str, data: str, runs: list[str]) -> str:
    key = data if "/data/" in route else runs[0]
    places = {"{key}": key, "{one}": runs[0], "{two}": runs[1], "{name}": "profile.json"}
    for place, value in places.items():
        route = route.replace(place, value)
    return route.partition(" ")[2]


@pytest.mark.parametrize("name", ["vera", "ana"])
def test_a_route_is_closed_to_lesser_roles(people, runs, name):
    data = mounted(people["eva"])["id"]
    order = ["viewer", "analyst", "exporter"]
    for route, (least, _) in ROUTES.items():
        if least and order.index(least) > order.index(ROLES[name]):
            told = people[name].request(
                route.partition(" ")[0],
                address(route, data, runs),
                params={"name": "x.csv"},
                json=BODIES.get(route, {}),
            )
            assert told.status_code == 403, route
            assert f"needs the role {least}" in told.text


def answers(client: TestClient, data: str, runs: list[str]) -> dict[str, str]:
    """Return every answer that tells something of the runs and data, by who asks."""
    asked = {}
    for route, (least, _) in ROUTES.items():
        method = route.partition(" ")[0]
        if least is None or "exporter" in least or method in ("PUT", "DELETE", "PATCH", "MOUNT"):
            continue
        if route.endswith(("/duplicate", "/cancel", "/logout", "POST /api/v1/runs")):
            continue
        names = [*AGGREGATES, *PATIENTS] if "{name}" in route else [""]
        for name in names:
            path = address(route.replace("{name}", name), data, runs)
            told = client.request(method, path, params=QUERIES.get(route), json=BODIES.get(route))
            asked[f"{route} {name}".strip()] = told.text if told.status_code == 200 else ""
    codes = client.get(f"/api/v1/data/{data}/codes", params={"q": "02"})
    return asked | {"planted codes": codes.text}


def leaves(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value of a JSON document with the name of its nearest field."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, name)
    else:
        yield name, value


def values(route: str, text: str) -> object:
    """Return what an answer holds, where it can be read: JSON, a table, a report's profile."""
    if text.startswith(("{", "[")):
        return json.loads(text)
    if route.endswith(".csv"):
        rows = csv.DictReader(io.StringIO(text))
        return [{"records": float(row["records"])} for row in rows if row.get("records")]
    found = re.search(r'\{"format":"comorb-profile".*?\}(?=</script>)', text)
    return json.loads(found[0]) if found else None


COUNTS = ("records", "counts", "totals", "size", "known", "observed", "flows", "shared", "moved")


@pytest.mark.parametrize("name", ["vera", "ana"])
def test_no_answer_holds_a_small_count_an_exact_total_or_a_key(
    people, runs, full, guarded, name, planted
):
    folder = RunFolder(guarded.state.store.folder("runs", runs[0]))
    keys = re.findall(r'"([\w+/]{24,}={0,2})"', folder.keys.read_text())
    assert keys
    exact = {full.source.records, *(cluster.size for cluster in full.clusters)}
    told = answers(people[name], mounted(people["eva"])["id"], runs)
    assert sum(map(bool, told.values())) >= (22 if name == "ana" else 17)
    shown = json.loads(told["GET /api/v1/runs/{key}/profile"])
    hidden = exact - {shown["source"]["records"], *(one["size"] for one in shown["clusters"])}
    assert full.source.records in hidden
    for route, text in told.items():
        assert SECRET.hex() not in text, route
        assert not any(key in text for key in keys), route
        assert '"cells"' not in text, route
        for field, value in leaves(values(route, text)):
            if field in COUNTS and type(value) in (int, float):
                assert value >= 11 or (field, value) == ("moved", 0), (route, field)
                assert value not in hidden, (route, field)


def test_a_protected_profile_is_compared_with_the_full_one_cell_by_cell(people, runs, full):
    told = people["vera"].get(f"/api/v1/runs/{runs[0]}/profile").json()
    assert told["min_cell"] == 11
    small, listed = 0, [full.codes.index(code) for code in told["codes"]]
    for exact, shown in zip(full.counts[:, listed].tolist(), told["counts"], strict=True):
        for count, value in zip(exact, shown, strict=True):
            small += count < 11
            if count < 11:
                assert value is None
            else:
                assert value is None or value >= 11
    assert small > 50
    assert not PLANTED.keys() & set(told["codes"])
    assert told["source"]["features"] == len(told["codes"]) < len(full.codes)
    assert min(told["totals"]) >= 11


def viewed(path: str, view: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}view={view}" if view else path


def test_exporters_see_either_view_and_others_the_protected_one(people, runs):
    for path in (
        f"/api/v1/runs/{runs[0]}/profile",
        f"/api/v1/runs/{runs[0]}/relevance",
        f"/api/v1/runs/{runs[0]}/slices?by=sex",
        f"/api/v1/runs/{runs[0]}/slices/profile?by=sex&label=female",
        f"/api/v1/compare/{runs[0]}/{runs[1]}",
        f"/api/v1/runs/{runs[0]}/download/profile.json",
    ):
        own, other, asked = (
            people[name].get(viewed(path, view))
            for name, view in (("eva", ""), ("eli", ""), ("eva", "protected"))
        )
        viewer = people["vera"].get(path)
        full = people["eli"].get(viewed(path, "full"))
        assert {one.status_code for one in (own, other, asked, viewer, full)} == {200}
        if "compare" not in path:
            assert other.content == asked.content == viewer.content
        assert full.content != viewer.content
        assert own.content == (viewer if "download" in path else full).content
        for name in ("vera", "ana"):
            refused = people[name].get(viewed(path, "full"))
            assert (refused.status_code, "role exporter" in refused.text) == (403, True)


def test_why_is_answered_by_protected_counts(people, runs):
    def ask(name, *codes, **params):
        path = f"/api/v1/runs/{runs[0]}/explain"
        return people[name].post(path, json={"codes": codes}, params=params)

    told, full = (ask(name, "428", "022", "585").json() for name in ("vera", "eva"))
    assert told == ask("ana", "428", "022", "585").json()
    assert told == ask("eva", "428", "022", "585", view="protected").json()
    assert all(round(20 * chance, 9) % 1 == 0 for chance in told["posterior"])
    assert any(round(20 * chance, 9) % 1 for chance in full["posterior"])
    tenths = [*told["absent"], *(value for one in told["codes"] for value in one["speaks"])]
    assert all(value == round(value, 1) for value in tenths)
    assert ask("vera", "428", view="full").status_code == 403


def test_a_run_from_an_earlier_version_is_never_shown_in_full_instead(people, runs, guarded):
    eva = people["eva"]
    copy = eva.post(f"/api/v1/runs/{runs[0]}/duplicate").json()["id"]
    folder = guarded.state.store.folder("runs", copy)
    (folder / "keys.json").unlink()
    for view in folder.glob("page-*.json"):
        view.unlink()
    eva.patch(f"/api/v1/runs/{copy}", json={"shared": True})
    assert eva.get(f"/api/v1/runs/{copy}/profile").json()["min_cell"] == 0
    for path in ("profile", "relevance", "download/report.html"):
        told = people["vera"].get(f"/api/v1/runs/{copy}/{path}")
        assert (told.status_code, "fit them again" in told.text) == (422, True)
    eva.delete(f"/api/v1/runs/{copy}")


def test_fewer_than_eleven_is_one_answer_down_to_none(people, monkeypatch):
    monkeypatch.setattr(rights, "QUESTIONS", 1000)
    ana, eva = people["ana"], people["eva"]
    path = f"/api/v1/data/{mounted(ana)['id']}/size"

    def count(client, **rules):
        answer = client.post(path, json={"rules": {"at_least": 1, **rules}}).json()
        left = answer.pop("left")
        assert (left is None) == (client is eva)
        return answer

    few = {"records": None, "features": None, "lines": []}
    sentences = set()
    for code, number in {**PLANTED, "nothing": 0}.items():
        refused = ana.post(path, json={"rules": {"having": [code]}})
        assert refused.status_code == 422
        sentences.add(refused.json()["error"].replace(code, ""))
        assert not number or count(eva, having=[code])["records"] == number
    assert sentences == {
        "Too few records have the code '', under 11 or none; choose codes of the list."
    }
    assert count(ana, having=["428"], age=[150, None]) == few
    assert count(eva, having=["428"], age=[150, None])["records"] == 0
    told = count(ana, having=["428"])
    assert told["records"] % 10 == 0
    assert told["lines"] == []


def test_too_few_records_for_a_run_are_one_sentence(people, monkeypatch):
    monkeypatch.setattr(rights, "QUESTIONS", 1000)
    ana = people["ana"]
    told = {
        json.dumps(rules): new_run(ana, rules={"at_least": 1, **rules})["message"]
        for rules in (
            {"having": ["428"], "age": [150, None]},
            {"having": ["428"], "age": [-9, -5]},
            {"having": ["428"], "without": ["428"]},
            {"age": [150, None], "drop_codes": ["428", "401"]},
        )
    }
    assert len(set(told.values())) == 1, told
    named = {new_run(ana, rules={"having": [code]})["message"].replace(code, "") for code in RARE}
    assert named == {
        "Too few records have the code '', under 11 or none; choose codes of the list."
    }


def test_questions_on_others_data_are_counted_for_counters_and_for_runs(people, monkeypatch):
    bea = people["bea"]
    data = mounted(bea)["id"]
    monkeypatch.setattr(rights, "QUESTIONS", 12)

    def count(*codes):
        return bea.post(f"/api/v1/data/{data}/size", json={"rules": {"having": codes}})

    def run(*codes, **more):
        rules = {"having": codes, **more}
        return bea.post("/api/v1/runs", json={"data": data, "k": 2, "rules": rules})

    def left():
        return bea.get(f"/api/v1/data/{data}").json()["left"]

    assert left() == 12
    assert count("428").json()["left"] == 11
    assert run("428", drop_codes=["401"]).status_code == 201
    assert left() == 6
    assert run("428", drop_codes=["401"]).status_code == 201
    assert left() == 6
    assert run("428", drop_codes=["250"]).status_code == 201
    assert run("428").status_code == 201
    assert count("nothing").status_code == 422
    refused = run("585")
    assert (refused.status_code, left()) == (429, 4)
    assert "takes 5 questions of these data, and 4 of the 12" in refused.json()["error"]
    assert count("585", "585").json()["left"] == 3
    rare = run("428", drop_rare=5)
    assert (rare.status_code, "who brought the data" in rare.text) == (403, True)
    assert people["eva"].get(f"/api/v1/data/{data}").json()["left"] is None


def test_who_brings_data_counts_them_exactly_and_alone(people, planted, monkeypatch):
    monkeypatch.setattr(rights, "QUESTIONS", 0)
    ana = people["ana"]
    row = ana.put("/api/v1/data?name=own.csv", content=planted.read_bytes()).json()
    assert (row["exact"], row["about"]["records"]) == (True, 1487)
    path = f"/api/v1/data/{row['id']}"
    rules = {"having": ["022"], "at_least": 1}
    assert ana.post(f"{path}/size", json={"rules": rules}).json()["records"] == 3
    hits = ana.get(f"{path}/codes", params={"q": "026"}).json()
    assert [hit["records"] for hit in hits] == [7]
    assert people["eva"].get(path).status_code == 404


def test_counts_of_codes_are_rough_and_of_own_groups_none_and_rare_ones_are_not_listed(people):
    ana, eva = people["ana"], people["eva"]
    path = f"/api/v1/data/{mounted(ana)['id']}"
    found = [{one["code"] for one in who.get(f"{path}/codes?q=02").json()} for who in (ana, eva)]
    assert not found[0] & PLANTED.keys()
    assert found[1] >= PLANTED.keys()
    patterns = {"texts": [*RARE, "02*"]}
    told = [who.post(f"{path}/codes", json=patterns).json() for who in (ana, eva)]
    assert [one["codes"] for one in told[0]] == [0, 0, 0, 0]
    assert [one["codes"] for one in told[1]][:3] == [1, 1, 0]
    about = [who.get(path).json()["about"]["features"] for who in (ana, eva)]
    assert about[0] <= about[1] - len(PLANTED)
    told, exact = (one.get(f"{path}/codes", params={"q": "428"}).json()[0] for one in (ana, eva))
    assert told["records"] % 10 == 0
    assert told["records"] != exact["records"]
    own = ana.put(f"{path}/maps", content=b"code,group\n020,one\n428,two\n").json()["key"]
    groups = ana.get(f"{path}/codes", params={"q": "", "code_map": own}).json()
    assert [group["code"] for group in groups] == ["two"]
    assert all("records" not in group for group in groups)


def test_mounted_data_are_corrected_by_exporters_alone(people):
    path = f"/api/v1/data/{mounted(people['eva'])['id']}"
    told = people["ana"].patch(path, json={"layout": {"ignored": ["age"]}})
    assert told.status_code == 403
    assert people["eva"].patch(path, json={"title": "planted"}).status_code == 200


def test_a_run_builds_on_clusters_of_the_same_data_alone(people, runs, planted):
    ana = people["ana"]
    ids = [row["record_id"] for row in csv.DictReader(io.StringIO(planted.read_text()))]
    lines = [f"{one},E{i % 90 + 800},E{i // 90 + 800},428" for i, one in enumerate(ids)]
    attack = "\n".join(["record_id,dx1,dx2,dx3", *lines, ""]).encode()
    own = ana.put("/api/v1/data?name=ids.csv", content=attack).json()["id"]
    for asked in (
        {"within": {"run": runs[0], "cluster": 1}},
        {"parent": runs[0], "merge": [1, 2]},
        {"parent": runs[0]},
    ):
        told = ana.post("/api/v1/runs", json={"data": own, "k": 2, **asked})
        assert told.status_code == 422
        assert "builds on clusters of the same data" in told.json()["error"]


def test_a_run_that_others_watch_tells_no_number_of_records(people, monkeypatch):
    monkeypatch.setattr(rights, "QUESTIONS", 1000)
    ana, eva = people["ana"], people["eva"]
    made = eva.post("/api/v1/runs", json={"data": "heart-failure", "k": "auto"}).json()["id"]
    eva.patch(f"/api/v1/runs/{made}", json={"shared": True})
    wait(eva, made, "running")
    seen = []
    for client in (eva, ana):
        for _ in range(400):
            with client.stream("GET", f"/api/v1/runs/{made}/events") as events:
                line = next(line for line in events.iter_lines() if line.startswith("data: "))
            state = json.loads(line[6:])
            if state.get("stage") == "finding" and (client is ana or state["records"]):
                break
        seen.append(state)
    assert seen[0]["records"] > 20_000
    assert "records" not in seen[1]
    eva.post(f"/api/v1/runs/{made}/cancel")


def test_the_secret_is_in_the_workspace_and_in_no_run(guarded, runs):
    store = guarded.state.store
    assert (store.workspace / SECRET_FILE).read_text() == SECRET.hex()
    for path in store.workspace.rglob("*"):
        if path.is_file() and path.name != SECRET_FILE:
            content = path.read_bytes()
            assert SECRET not in content
            assert SECRET.hex().encode() not in content
