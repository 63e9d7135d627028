"""The modules of the page, tested by node's own runner."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from comorb.profiles.profile import Profile
from comorb.views.findings import page_json

TESTS = Path(__file__).parents[1] / "page"
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(NODE is None, reason="NO NODE: install Node 20 to test the modules")


def _run(*files: Path, **given: str) -> None:
    assert NODE
    run = subprocess.run(
        [NODE, "--test", *map(str, files)],
        capture_output=True, text=True, timeout=120, env=os.environ | given,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@needs_node
def test_the_modules_do_what_their_tests_say() -> None:
    _run(*sorted(TESTS.glob("*.test.js")))


@needs_node
@pytest.mark.parametrize("min_cell", [0, 60])
def test_the_page_ranks_as_the_library_does(full: Profile, tmp_path: Path, min_cell: int) -> None:
    shown = full.protected(min_cell) if min_cell else full
    ranked = [
        [lam, j, shown.top(j, lam).tolist()]
        for lam in np.linspace(0, 1, 21).tolist()
        for j in range(shown.k)
    ]
    assert len({tuple(codes) for _, j, codes in ranked if j == 0}) > 1
    given = {"profile": json.loads(page_json(shown)), "ranked": ranked}
    (tmp_path / "ranked.json").write_text(json.dumps(given), "utf-8")
    _run(TESTS / "ranking.test.js", COMORB_RANKED=str(tmp_path / "ranked.json"))


def test_the_document_has_what_the_page_would_have_to_compute(full: Profile) -> None:
    page = json.loads(page_json(full))["page"]
    low, high = full.overall_intervals()
    np.testing.assert_allclose(page["overall"], [low, high], rtol=1e-8)
    assert page["common"] == full.common(40).tolist()
    assert page["universal"] == list(full.universal)
    assert page["n_codes"] == full.n_codes
    assert all(page["relevant"][j][:10] == full.top(j).tolist() for j in range(full.k))


def test_what_the_page_needs_is_a_small_part_of_its_document(full: Profile) -> None:
    assert len(page_json(full)) < 1.2 * len(full.to_json())
