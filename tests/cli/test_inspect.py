import json

import pytest
import typer
from typer.testing import CliRunner

from comorb.cli.inspect import inspect

app = typer.Typer()
app.command()(inspect)


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("visit_id,age,dx1,dx2\na,70,428.0,250.00\nb,71,nonsense,428.1\nc,9,,\n")
    return str(path)


def test_text(wide):
    result = CliRunner().invoke(app, [wide, "--system", "icd9cm"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for part in (
        "wide, a record is a visit",
        "dx1, dx2: icd9cm, at the level category",
        "Heart failure",
        "without a usable code",
        "row 3, column dx1: not a code of icd9cm",
    ):
        assert part in result.output


def test_json(wide):
    result = CliRunner().invoke(app, [wide, "--json", "--level", "full", "--system", "icd9cm"])
    found = json.loads(result.stdout)
    assert found["records"] == 2
    assert found["layout"]["codes"] == ["dx1", "dx2"]
    assert found["level"] == "full"
    assert found["ledger"]["problems"] == [
        {"row": 3, "column": "dx1", "reason": "not a code of icd9cm"}
    ]


def test_columns_are_one_table(tmp_path):
    path = tmp_path / "visits.csv"
    rows = "".join(f"v{i},{'NS'[i % 2]},{i % 2},I10,E11,J44\n" for i in range(40))
    path.write_text("visit_id,hospital,died,dx1,dx2,dx3\n" + rows)
    told = CliRunner().invoke(app, [str(path)], env={"COLUMNS": "120"}).output
    lines = [" ".join(line.replace("│", " ").split()) for line in told.splitlines()]
    for line in ("visit_id id", "hospital site N, S", "died died 0, 1", "dx1 … dx3 (3) codes I10"):
        assert line in lines
    found = CliRunner().invoke(app, [str(path), "--column", "ignored=died", "--json"])
    columns = {one["name"]: one for one in json.loads(found.stdout)["columns"]}
    assert columns["died"]["role"] == "ignored"
    assert columns["died"]["reason"] == "as you said"
    assert columns["hospital"]["values"] == ["N", "S"]
    assert "v1" not in str(columns)
