"""The map of a run: every record in one cell, few never told, a region as its cells say."""

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.insight.runs.patient_map import draw_map, layout_of, mark_of, records_inside
from comorb.insight.runs.run import Request, run
from comorb.records.archive import CohortFile, save_cohort
from comorb.records.datasets import heart_failure

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
    assert full.keys() == told.keys()
    assert sum(one[2] < 11 for one in full.values()) > 5
    for place, one in told.items():
        assert one[2] is None or one[2] >= 11
        assert full[place][2] >= 11 or one[2:] == [None, None, None]
    assert any(one[2] not in (None, full[place][2]) for place, one in told.items())


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
    with pytest.raises(InputError, match="a code or an outcome of this run, got shoes"):
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
