import numpy as np

from comorb.records.datasets.simulate import paper
from comorb_reproduction import bias


def test_limit_and_true_moments_are_those_of_the_model():
    data = paper(1, d=6, k=2)
    w, m = data.weights, data.means
    exact = np.einsum("j,ja,jb,jc->abc", w, m, m, m)
    true = bias.true_moments(data)
    np.testing.assert_allclose(true.mixed[1, 4], exact[1, 1, 4])
    np.testing.assert_allclose(true.third, np.einsum("iii->i", exact))
    found = bias.biases(bias.limit_moments(data), data)
    np.testing.assert_allclose(found["second"][0], w @ (m * (1 - m)))


def test_bias_is_within_its_bound(tmp_path, quiet):
    section = bias.run(tmp_path, True, quiet)
    assert section.claims[0].verdict == "confirmed"
    assert (tmp_path / "reproduction" / "bias.png").exists()
