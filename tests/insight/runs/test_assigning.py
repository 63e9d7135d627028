"""The records that are described have the clusters and keys that workers told of them."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.engines import blockfile
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.gathering import Gathering
from comorb.insight.profile.keys import record_keys
from comorb.insight.runs.assigning import Assigning
from comorb.insight.runs.folder import RunFolder
from comorb.insight.runs.scoring import Scorer
from comorb.model.blocks import Engine
from comorb.records.archive import CohortFile, save_cohort
from tests.insight.conftest import MODEL, SECRET, make_cohort


class Elsewhere(Engine):
    """An engine whose workers are this process."""

    def spread(self, function, loaders):
        return (function(load()) for load in loaders)


@pytest.mark.parametrize("executor", [None, Elsewhere()])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("step", [1, 7, 250])
@pytest.mark.parametrize("secret", [SECRET, None])
def test_the_described_records_have_their_own_clusters(
    tmp_path, monkeypatch, executor, weighted, step, secret
):
    monkeypatch.setattr(blockfile, "ROWS_A_GROUP", 110)
    save_cohort(make_cohort(weighted=weighted), tmp_path / "cohort.parquet")
    file = CohortFile.open(tmp_path / "cohort.parquet")
    assert file.starts.tolist() == [0, 110, 220, 330, 440, 550]
    scorer = Scorer(MODEL, 0.9, (1, 2))
    with RunFolder.write(tmp_path / "run", False) as folder:
        gathering = Gathering(2, secret)
        found = Assigning(file, scorer, folder, gathering).run(executor, step)
        assert [one.name for one in folder.assignments.parent.iterdir()] == ["assignments.csv"]
    sample = file.load(step)
    wanted, whole = (assign(MODEL, one, temperature=0.9) for one in (sample, file.load()))
    for name in ("labels", "top", "margin", "entropy", "second"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
    np.testing.assert_allclose(found.soft * step, whole.soft, rtol=1e-6)
    np.testing.assert_allclose(found.table * step, whole.table, rtol=1e-6)
    if secret is None:
        assert found.keys is None
    else:
        assert found.keys.tolist() == record_keys(sample, SECRET).tolist()
