import pytest

from comorb_reproduction import accuracy, timing
from comorb_reproduction.methods import METHODS
from comorb_reproduction.results import read_results


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    panels = {
        "n": ((100, 12, 2), (150, 12, 2)),
        "k": ((150, 12, 2), (150, 12, 3)),
        "d": ((150, 12, 2),),
    }
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "QUICK", accuracy.Grid(panels, range(1)))
        sections = [part.run(out, True, lambda done, total: None) for part in (accuracy, timing)]
    return out, *sections


def test_six_panels_and_their_rows(made):
    out, section, _ = made
    rows = read_results(out / "ari.csv")
    assert len(rows) == 3 * len(METHODS)
    assert all(-1 <= row["ari"] <= 1 for row in rows)
    assert (out / "reproduction" / "ari.png").stat().st_size > 10_000
    assert (out / "reproduction" / "ari.svg").exists()
    assert len(section.claims) == 4
    assert all(f"| {method} |" in section.body for method in METHODS)


def test_times_are_those_of_the_accuracy_runs(made):
    out, _, section = made
    own = [row for row in read_results(out / "ari.csv") if row["method"] == "TPM"]
    mean = sum(row["decomposing"] + row["refining"] for row in own) / 3
    assert f"| TPM | {mean:.3f} |" in section.body
    assert (out / "reproduction" / "time.png").exists()
    assert len(section.claims) == 4


def test_the_full_grid_is_the_papers():
    panels = accuracy.FULL.panels
    assert panels["n"][0] == (100, 99, 12)
    assert panels["n"][-1] == (10_000, 99, 12)
    assert [panels["k"][0], panels["k"][-1]] == [(10_000, 99, 2), (10_000, 99, 33)]
    assert [panels["d"][0], panels["d"][-1]] == [(10_000, 12, 4), (10_000, 99, 4)]
