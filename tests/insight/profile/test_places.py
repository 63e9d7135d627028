"""Where records lie on the map: by the model alone, near their centre when they are sure."""

import numpy as np
import pytest

from comorb.insight.profile.places import lay_out
from comorb.model.blocks import Rows
from comorb.model.mixture import Mixture


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
