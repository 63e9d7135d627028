"""The map of a run: where records lie, every record in one cell, small cells suppressed."""

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.model.blocks import Rows
from comorb.model.mixture import Mixture
from comorb.records.cohort_file import CohortFile, save_cohort
from comorb.records.datasets import heart_failure
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.patient_map import draw_map, lay_out, layout_of, mark_of, records_inside
from comorb.runs.run import Request, run

SECRET = bytes([3]) * 32


@pytest.fixture(scope="module")
def cohort():
    whole = heart_failure()
    return whole.among(whole.ids[:3000], "some")


@pytest.fixture(scope="module")
def folder(cohort, tmp_path_factory) -> RunFolder:
    path = tmp_path_factory.mktemp("run") / "run"
    run(cohort, Request(4, repeats=0, secret=SECRET), path)
    return RunFolder(path)


@pytest.fixture(scope="module")
def layout(folder, cohort):
    return layout_of(folder, None, len(cohort))


def test_every_record_is_in_one_cell_of_its_cluster(cohort, folder, layout):
    told = draw_map(cohort, layout, None, SECRET, 0)
    assert sum(one[2] for one in told["squares"]) == 3000
    assert {one[3] for one in told["squares"]} == {0, 1, 2, 3}
    sizes = [one.size for one in load_profile(folder.path).clusters]
    near = layout.places(cohort.blocks(()).loaders[0]())[1]
    assert np.bincount(near).tolist() == sizes


def test_few_are_not_told_and_others_have_noise(cohort, folder, layout):
    full = {tuple(one[:2]): one for one in draw_map(cohort, layout, None, SECRET, 0)["squares"]}
    told = {tuple(one[:2]): one for one in draw_map(cohort, layout, None, SECRET, 11)["squares"]}
    assert sum(one[2] < 11 for one in full.values()) > 5
    assert told.keys() < full.keys()
    for place, one in told.items():
        assert one[2] >= 11
        assert full[place][2] >= 11
    assert any(one[2] != full[place][2] for place, one in told.items())


@pytest.mark.parametrize("by", ["401", "sex=female", "age"])
def test_cells_are_coloured_by_a_code_or_a_column(cohort, folder, layout, by):
    mark = mark_of(load_profile(folder.path), by)
    told = draw_map(cohort, layout, mark, SECRET, 0)
    marked = sum(one[2] * one[4] for one in told["squares"] if one[4] is not None)
    known, has = mark.of(cohort)
    assert marked == pytest.approx(len(has), rel=0.02)
    assert len(known) == 3000
    assert 0.1 < len(has) / 3000 < 0.9
    assert (told["edge"] is None) == (by != "age")


def test_what_is_not_there_is_refused(folder):
    with pytest.raises(InputError, match="a code or an outcome of this run, got 'shoes'"):
        mark_of(load_profile(folder.path), "shoes")


def test_a_cohort_file_has_the_same_map_and_the_same_region(cohort, layout, tmp_path):
    save_cohort(cohort, tmp_path / "cohort.parquet")
    file = CohortFile.open(tmp_path / "cohort.parquet")
    assert draw_map(file, layout, None, SECRET, 11) == draw_map(cohort, layout, None, SECRET, 11)
    region = np.array([[0, 0], [layout.width, 0], [0, layout.height]])
    inside = records_inside(cohort, layout, region)
    assert inside.equals(records_inside(file, layout, region))
    cells = set(layout.inside(region).tolist())
    squares = draw_map(cohort, layout, None, SECRET, 0)["squares"]
    assert len(inside) == sum(n for x, y, n, *_ in squares if y * layout.width + x in cells)


def mixture(k: int, seed: int = 0, d: int = 40) -> Mixture:
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.01, 0.08, (k, d))
    for j in range(k):
        means[j, j * 3 : j * 3 + 3] = 0.8
    weights = rng.uniform(1, 3, k)
    return Mixture(weights / weights.sum(), means)


def drawn(model: Mixture, n: int, seed: int) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(model.n_components, n, p=model.weights)
    ones = rng.random((n, model.n_columns)) < model.means[labels]
    indptr = np.concatenate([[0], np.cumsum(ones.sum(axis=1))])
    return Rows(indptr, np.nonzero(ones)[1].astype(np.int32), np.empty(0)), labels


@pytest.mark.parametrize("k", [2, 3, 7])
def test_sure_records_lie_nearest_to_the_centre_of_their_cluster(k):
    model = mixture(k)
    layout = lay_out(model, np.eye(k), model.means, 1.0, 5000)
    cells, labels = layout.places(drawn(model, 5000, 1)[0])
    at = np.column_stack([cells % layout.width, cells // layout.width]) + 0.5
    apart = np.square(at[:, None] - layout.centres[None]).sum(axis=2)
    assert (apart.argmin(axis=1) == labels).mean() > 0.9
    assert np.unique(cells).size > 3 * k  # and not all on one point
    assert cells.min() >= 0
    assert cells.max() < layout.width * layout.height


def test_the_place_of_a_record_does_not_depend_on_the_others():
    model = mixture(4)
    layout = lay_out(model, np.eye(4), model.means, 0.7, 900)
    rows = drawn(model, 900, 2)[0]
    whole = layout.places(rows)[0]
    part = Rows(
        rows.indptr[300:501] - rows.indptr[300],
        rows.indices[rows.indptr[300] : rows.indptr[500]],
        np.empty(0),
    )
    assert np.array_equal(layout.places(part)[0], whole[300:500])
    again = lay_out(model, np.eye(4), model.means, 0.7, 900)
    assert np.array_equal(again.centres, layout.centres)


def test_similar_clusters_lie_closer_than_others():
    means = np.array([[0.9, 0.1, 0.1], [0.85, 0.2, 0.1], [0.1, 0.1, 0.9]])
    model = Mixture(np.full(3, 1 / 3), means)
    centres = lay_out(model, np.eye(3), means, 1.0, 100).centres
    near, far = np.hypot(*(centres[0] - centres[1])), np.hypot(*(centres[0] - centres[2]))
    assert near < far / 3
    assert near == pytest.approx(
        far
        * np.linalg.norm(_angles(means[0], means[1]))
        / np.linalg.norm(_angles(means[0], means[2])),
        rel=0.01,
    )


def _angles(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.arcsin(np.sqrt(one)) - np.arcsin(np.sqrt(two))


def test_a_region_is_the_cells_whose_middle_is_inside():
    model = mixture(3)
    layout = lay_out(model, np.eye(3), model.means, 1.0, 50_000)
    square = np.array([[2.0, 1.0], [5.0, 1.0], [5.0, 3.0], [2.0, 3.0]])
    wanted = {y * layout.width + x for x in (2, 3, 4) for y in (1, 2)}
    assert set(layout.inside(square).tolist()) == wanted
    assert layout.inside(square[::-1]).size == 6
    assert layout.inside(square[:2]).size == 0


def test_a_map_of_few_records_has_large_cells():
    model = mixture(3)
    sizes = [lay_out(model, np.eye(3), model.means, 1.0, n) for n in (100, 20_000, 5_000_000)]
    assert [max(one.width, one.height) for one in sizes] == [12, 35, 64]
