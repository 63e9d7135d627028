"""Relating records to clusters: the same bits in memory, from a file and on an engine."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.engines import block_files
from comorb.engines.base import Engine
from comorb.errors import InputError
from comorb.model.relations.relate import relate_outcome, relate_predictors
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, save_cohort
from comorb.runs.relate import (
    Column,
    Question,
    described_blocks,
    outcome_column,
    predictor_columns,
    relate_cohort,
)
from tests.small_cohort import MODEL, dense, make_cohort

ASKED = Question(
    outcomes=("age", "died", "region", "sex=male"),
    predictors=("age", "sex"),
    survival=("age", "died"),
    within=True,
)


@pytest.fixture(scope="module")
def weighted() -> Cohort:
    return make_cohort(weighted=True)


@pytest.fixture(scope="module")
def file(weighted, tmp_path_factory) -> CohortFile:
    path = tmp_path_factory.mktemp("related") / "cohort.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_files, "ROWS_A_GROUP", 170)
        save_cohort(weighted, path)
    return CohortFile.open(path)


def figures(found) -> dict[str, np.ndarray]:
    relations = {one.name: one.relation for one in found.outcomes}
    plain = {
        f"{name}.{part}": getattr(one, part)
        for name, one in relations.items()
        for part in ("means", "errors", "naive", "covariance")
    }
    plain |= {
        part: getattr(found.predictors, part)
        for part in ("coefficients", "errors", "marginal", "naive")
    }
    plain |= {part: getattr(found.survival, part) for part in ("times", "survival")}
    return plain | {"within": found.outcomes[0].regression.coefficients, "sizes": found.sizes}


class Elsewhere(Engine):
    """An engine that sends what it maps, and fetches what comes of it, as bytes."""

    map_items = map_partitions = head = None  # not used here

    def map_blocks(self, function, loaders):
        for load in loaders:
            assert isinstance(load, block_files.RowGroup)
            sent, block = (pickle.loads(pickle.dumps(one)) for one in (function, load))
            rows = pickle.loads(pickle.dumps(block()))
            yield pickle.loads(pickle.dumps(sent(rows)))


@pytest.mark.parametrize("engine", [None, Elsewhere()])
def test_a_file_and_an_engine_give_the_bits_of_memory(weighted, file, engine):
    one = figures(relate_cohort(weighted, MODEL, ASKED, 0.8))
    two = figures(relate_cohort(file, MODEL, ASKED, 0.8, executor=engine))
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)


def test_it_is_what_the_functions_for_arrays_return():
    cohort = make_cohort()
    posterior = dense(cohort)[1]
    found = relate_cohort(cohort, MODEL, ASKED)
    age, sex = cohort.covariates["age"].to_numpy(), cohort.covariates["sex"].to_pylist()
    np.testing.assert_allclose(
        found.outcomes[0].relation.means, relate_outcome(posterior, age).means
    )
    died = relate_outcome(posterior, np.array(cohort.covariates["died"].to_pylist()).astype(str))
    np.testing.assert_allclose(found.outcomes[1].relation.means, died.means)
    assert found.outcomes[3].relation.values == ("no", "yes")
    male = (np.array(sex) == "male").astype(float)
    base = found.predictors.names[1]
    z = np.column_stack([age, male if base == "sex=male" else 1 - male])
    expected = relate_predictors(posterior, z)
    np.testing.assert_allclose(found.predictors.coefficients, expected.coefficients, rtol=1e-6)


def table(**columns) -> Cohort:
    cohort = make_cohort(24)
    return replace(cohort, covariates=pa.table(columns))


def test_what_a_column_becomes():
    texts = [*"aabbbc", None] * 3 + ["b"] * 3
    cohort = table(
        kind=pa.array(texts),
        yes=pa.array(["no", "yes"] * 12),
        many=pa.array([str(number) for number in range(24)]),
        number=pa.array(range(24)),
        few=pa.array([1, 2, 3] * 8),
        day=pa.array(["2020-01-01"] * 24).cast(pa.date32()),
        one=pa.array(["x"] * 24),
    )
    assert outcome_column(cohort, "kind") == Column("kind", "category", ("a", "b", "c"))
    assert outcome_column(cohort, "number") == Column("number")
    assert outcome_column(cohort, "few") == Column("few", "category", ("1", "2", "3"))
    assert outcome_column(cohort, "few=number") == Column("few")
    assert outcome_column(cohort, "few=2") == Column("few", "is", ("2",))
    with pytest.raises(InputError, match="no record has '5' as its few, but 1, 2, 3; few=number"):
        outcome_column(cohort, "few=5")
    with pytest.raises(InputError, match="no record has 'd' as its kind, but a, b, c"):
        predictor_columns(cohort, "kind=d")
    assert [one.title for one in predictor_columns(cohort, "kind")] == ["kind=a", "kind=c"]
    assert [one.title for one in predictor_columns(cohort, "yes")] == ["yes=yes"]
    assert predictor_columns(cohort, "kind=c") == (Column("kind", "is", ("c",)),)
    load = described_blocks(cohort, [Column("kind", "is", ("a",)), Column("number")]).loaders[0]
    columns = load().columns
    np.testing.assert_array_equal(columns[:7, 0], [1, 1, 0, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(columns[:, 1], np.arange(24))
    with pytest.raises(InputError, match="many has more than 8 different texts, and an outcome"):
        outcome_column(cohort, "many")
    with pytest.raises(InputError, match="the predictor many has more than 8 different texts"):
        predictor_columns(cohort, "many")
    with pytest.raises(InputError, match="the predictor one has the same value in all records"):
        predictor_columns(cohort, "one")
    with pytest.raises(InputError, match="day is a date, which is neither a number nor a category"):
        outcome_column(cohort, "day")
    with pytest.raises(InputError, match=r"a covariate of the records \(kind, .*\), got weight"):
        outcome_column(cohort, "weight")
    with pytest.raises(InputError, match="expected an outcome, a predictor or a time to relate"):
        relate_cohort(cohort, MODEL, Question())
    with pytest.raises(InputError, match="expected kind to say yes or no, got 3 categories"):
        relate_cohort(cohort, MODEL, Question(survival=("number", "kind")))
    with pytest.raises(InputError, match="expected kind to be a number, got texts"):
        relate_cohort(cohort, MODEL, Question(survival=("kind", "yes")))
