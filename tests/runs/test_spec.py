"""RunSpec: one declaration of each option, and what follows from it at all doors."""

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from comorb.cli.options import spec_options
from comorb.fields import Number, declare, question_of, rules_of
from comorb.records.spec import CohortSpec
from comorb.runs.run import Request
from comorb.runs.spec import RunSpec
from comorb.web.server.data_api import takes


@dataclass(frozen=True)
class Widened(RunSpec):
    """The specification with an option more."""

    draws: int = declare(1, Number(), "How many draws.", "--draws N", bounds={"ge": 1, "le": 9})


WIDENED = Widened(5, CohortSpec(having=("428",)), draws=3)


def command_of(spec, part=()):
    found, app = [], typer.Typer()

    @spec_options
    def command(run: Annotated[spec, part]) -> None:
        found.append(run)

    app.command()(command)
    return found, app


def test_an_option_appears_at_all_doors():
    found, app = command_of(Widened)
    assert CliRunner().invoke(app, ["-k", "5", "--draws", "3"]).exit_code == 0
    assert found == [Widened(5, draws=3)]
    assert WIDENED.words("visits.csv") == "comorb fit visits.csv -k 5 --having 428 --draws 3"
    plain = json.loads(json.dumps(WIDENED.to_dict()))
    assert plain == {"k": 5, "preparation": {"having": ["428"]}, "draws": 3}
    assert Widened.from_dict(plain) == WIDENED
    assert WIDENED.fingerprint() != Widened(5, CohortSpec(having=("428",))).fingerprint()

    @takes(Widened)
    class Body(BaseModel):
        """A run."""

    schema = Body.model_json_schema()["properties"]
    assert (schema["draws"]["minimum"], schema["draws"]["maximum"]) == (1, 9)
    assert {"k", "title", "parent", "merge"} <= set(schema)
    assert not {"preparation", "secret", "outcomes", "repeats"} & set(schema)
    sent = Body(k=5, draws=3, title="Hearts").model_dump(exclude_defaults=True)
    assert question_of(Widened, sent) == {"k": 5, "draws": 3}


def test_only_what_is_declared_harmless_costs_no_question():
    assert [rule.name for rule in rules_of(RunSpec) if rule.harmless] == ["title"]


EVERY = {
    "k": 7,
    "preparation": CohortSpec(age=(65, None)),
    "title": "Hearts",
    "outcomes": ("died", "long stay"),
    "repeats": 0,
    "protected": 11,
    "parent": "abc",
    "within": {"run": "abc", "cluster": 2},
    "merge": (1, 2),
    "split": (1, 3),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_field_round_trips(name):
    assert set(EVERY) == {rule.name for rule in rules_of(RunSpec)}
    spec = RunSpec(**{name: EVERY[name]})
    plain = json.loads(json.dumps(spec.to_dict()))
    assert set(plain) == {name}
    assert RunSpec.from_dict(plain) == spec
    assert spec.fingerprint() != RunSpec().fingerprint()


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ([], RunSpec()),
        (["--clusters", "4"], RunSpec(4)),
        (["--no-stability"], RunSpec(repeats=0)),
        (
            ["--title", "Hearts", "--outcome", "a", "--outcome", "b"],
            RunSpec(title="Hearts", outcomes=("a", "b")),
        ),
    ],
)
def test_options_ask_for_a_run(words, spec):
    found, app = command_of(RunSpec)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert found == [spec]


def test_a_number_of_clusters_is_whole_and_a_command_may_take_a_part():
    found, app = command_of(RunSpec)
    refused = CliRunner().invoke(app, ["-k", "many"])
    assert refused.exit_code == 2
    words = " ".join(refused.output.replace("│", "").split())
    assert "expected main, finest, auto or a whole number from 1 on, got 'many'" in words
    assert CliRunner().invoke(app, ["-k", "finest"]).exit_code == 0
    assert found == [RunSpec("finest")]
    _, app = command_of(RunSpec, ("model",))
    assert CliRunner().invoke(app, ["--title", "Hearts"]).exit_code == 2


def test_the_number_is_always_said_and_the_old_name_stays():
    assert RunSpec().words("a b.csv", {"drug": "d.csv"}) == (
        "comorb fit 'a b.csv' --with drug=d.csv -k auto"
    )
    assert Request is RunSpec
