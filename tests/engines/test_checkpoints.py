"""An interrupted fit goes on, and ends with the same bits."""

import json
import zlib

import numpy as np
import pytest

from comorb.engines import FileJournal, open_blocks
from comorb.engines.block_files import identity
from comorb.engines.checkpoints import decode_result, encode_result
from comorb.errors import StorageError
from comorb.model import start
from comorb.model.blocks import Rows
from comorb.model.em import Expected
from comorb.model.emissions.base import Feature
from comorb.model.emissions.number import Number
from comorb.model.estimators import BernoulliMixture
from tests.engines.conftest import CLUSTERS
from tests.engines.test_contract import same_bits
from tests.settings import patch_config


class Interrupted(FileJournal):
    """A journal whose fit is interrupted at a pass over the rows."""

    at = 0

    def begin(self):
        super().begin()
        if self.passes == self.at:
            raise KeyboardInterrupt


@pytest.fixture
def whole(file, monkeypatch):
    """Return the uninterrupted fit, which starts on some of the rows, and its journal."""
    patch_config(monkeypatch, start, final_rows=1)
    journal = FileJournal()
    return BernoulliMixture(CLUSTERS, tol=1e-9).fit_blocks(open_blocks(file, journal)), journal


@pytest.mark.parametrize("at", [1, 2, 3, 5, 7])
def test_an_interrupted_fit_goes_on_with_the_same_bits(file, whole, tmp_path, at):
    path = tmp_path / "journal"
    stopped = Interrupted(path, identity(file))
    stopped.at = at
    with pytest.raises(KeyboardInterrupt):
        BernoulliMixture(CLUSTERS, tol=1e-9).fit_blocks(open_blocks(file, stopped))
    path.write_bytes(path.read_bytes() + b"an entry that was cut off")
    journal = FileJournal(path, identity(file))
    again = BernoulliMixture(CLUSTERS, tol=1e-9).fit_blocks(open_blocks(file, journal))
    assert same_bits(again, whole[0])
    assert journal.recalled == at - 1
    assert journal.recalled + journal.passes == whole[1].passes


def test_a_finished_fit_does_not_read_the_rows_again(file, whole, tmp_path):
    for passes in (whole[1].passes, 0):
        journal = FileJournal(tmp_path / "journal", identity(file))
        again = BernoulliMixture(CLUSTERS, tol=1e-9).fit_blocks(open_blocks(file, journal))
        assert same_bits(again, whole[0])
        assert journal.passes == passes


def test_passes_are_reported(file):
    reported = []
    journal = FileJournal(tell=reported.append)
    BernoulliMixture(CLUSTERS, max_iter=0).fit_blocks(open_blocks(file, journal))
    assert reported == list(range(1, journal.passes + 1))


def test_a_journal_of_other_records_is_refused(file, tmp_path):
    FileJournal(tmp_path / "journal", "others")
    message = "is no journal of these records; name another file, or remove it to begin anew"
    with pytest.raises(StorageError, match=message):
        FileJournal(tmp_path / "journal", identity(file))


@pytest.mark.parametrize(
    "plan",
    [
        {"kind": ["os", "system"], "fields": [{"value": "true"}]},
        {"kind": ["comorb.engines.checkpoints", "FileJournal"], "fields": [{"value": "there"}]},
        {"kind": ["comorb.model.blocks", "map_blocks"], "fields": []},
        {"kind": ["comorb.model.nothing", "Expected"], "fields": []},
        {"kind": ["comorb.model.em", "Expected"], "fields": []},
        {"array": 0},
        {"other": 0},
    ],
)
def test_a_journal_runs_no_code(plan):
    content = zlib.compress(json.dumps({"plan": plan, "arrays": []}).encode() + b"\n")
    with pytest.raises(StorageError, match="something else than a result was noted here"):
        decode_result(content)


def test_what_passes_come_to_is_recalled_as_it_was():
    values = np.arange(6.0).reshape(2, 3)
    age = Number(Feature("age", "number"), 1.0, 50.0, 20.0, (1.0, 2.0))
    kept = [
        Expected(values, 1.5, float("-inf"), (age,)),
        Rows(np.arange(3), np.arange(2, dtype=np.int32), np.empty(0), values[:0]),
        np.array(2.5),
        (None, True, "text", np.float64(0.1), np.uint64(2**63)),
    ]
    again = decode_result(encode_result(kept))
    assert repr(again) == repr([*kept[:3], (None, True, "text", 0.1, 2**63)])
    assert again[1].indices.dtype == np.int32
    assert again[1].values.shape == (0, 3)
    again[0].sums[0, 0] = 9.0
    with pytest.raises(TypeError, match="can't be noted: set"):
        encode_result([{1}])


def test_a_journal_that_can_not_be_written_is_told(file, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    journal = FileJournal(folder / "journal", "data")
    (folder / "journal").unlink()
    (folder / "journal").mkdir()
    message = r"can't be written: .* it goes on from the last whole pass"
    with pytest.raises(StorageError, match=message):
        BernoulliMixture(CLUSTERS).fit_blocks(open_blocks(file, journal))
