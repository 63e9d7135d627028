import numpy as np

from comorb.model.blocks import from_csr
from comorb.model.decompose import asvtd
from comorb.records.datasets.simulate import paper
from comorb_reproduction import scaling


def test_algorithm_2_as_printed_agrees_with_the_sparse_one():
    drawn = paper(3000, d=12, k=3, seed=1)
    _, means = scaling.printed_asvtd(drawn.matrix.toarray().astype(float), 3)
    ours = asvtd(from_csr(drawn.matrix.indptr, drawn.matrix.indices, 12), 3).means
    least = 0.5 / 3001
    printed = np.clip(means.T, least, 1 - least)
    np.testing.assert_allclose(np.sort(printed, axis=0), np.sort(ours, axis=0), atol=1e-7)


def test_times_along_three_axes(tmp_path, quiet, monkeypatch):
    axes = {
        "n": tuple((n, 20, 2) for n in (100, 200, 400)),
        "d": tuple((200, d, 2) for d in (10, 20, 40)),
        "k": tuple((200, 20, k) for k in (2, 3)),
    }
    monkeypatch.setattr(scaling, "QUICK", axes)
    section = scaling.run(tmp_path, True, quiet)
    assert (tmp_path / "reproduction" / "scaling.png").exists()
    assert "| time of Jain-Oh |" in section.body
    assert len(section.claims) == 2
