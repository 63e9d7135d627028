import numpy as np
import pytest

from comorb.errors import ComorbWarning
from comorb.records.datasets import heart_failure
from comorb.records.datasets.simulate import paper
from comorb_reproduction import studies
from comorb_reproduction.methods import ASVTD, COMORB
from comorb_reproduction.survey import PaperStudy


@pytest.fixture(scope="module")
def small():
    return PaperStudy("heart failure", 5, heart_failure().where(age=(85, 87)), "a small cohort")


def test_a_study_shows_clusters_charts_and_patterns(small, tmp_path, quiet, monkeypatch):
    monkeypatch.setattr(studies, "paper_studies", lambda data: [small])
    with pytest.warns(ComorbWarning, match=r"missing.csv is not there, .* https://www.cdc.gov"):
        section = studies.run(tmp_path / "missing.csv", tmp_path, True, quiet)
    assert "`missing.csv` was not there. The National Hospital Discharge Survey" in section.body
    assert "| purely metabolic | 7,290 |" in section.body
    assert (tmp_path / "reproduction" / "heart_failure_frequency.png").exists()
    assert (tmp_path / "reproduction" / "heart_failure_heatmap.svg").exists()
    claims = {claim.text: claim.verdict for claim in section.claims}
    assert len(claims) == 6
    assert claims["heart failure: the same data give the same clusters"] == "confirmed"


@pytest.mark.parametrize("method", [ASVTD, COMORB])
def test_easy_clusters_are_stable(method):
    matrix = paper(4000, d=60, k=2, seed=0).matrix
    assert min(studies.overlap_agreement(matrix, 2, method, range(2))) > 0.9


def test_easy_clusters_do_not_depend_on_the_split():
    matrix = paper(4000, d=60, k=2, seed=0).matrix
    assert studies.split_dependence(matrix, 2, 2) > 0.9


def test_the_papers_fit_is_plain_em_until_the_weights_stand_still():
    matrix = paper(2000, d=30, k=3, seed=0).matrix
    model = studies.fitted(matrix, 3, ASVTD)
    assert (model.stop, model.init, model.tol) == ("weights", "asvtd", 0.01)
    assert np.all(np.diff(model.history_) >= -1e-12)
