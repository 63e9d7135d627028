"""Downloads: each is a file of its kind, in full or protected, and without keys."""

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.profiles.profile import Profile
from comorb.records.datasets import tertiary
from comorb.runs.folder import load_profile
from comorb.runs.run import Request, run
from comorb.web.worker import downloads
from comorb.web.worker.downloads import AGGREGATES, write

BEGINS = {"json": b"{", "html": b"<!doctype", "pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
BEGINS |= dict.fromkeys(("zip", "pptx", "xlsx"), b"PK")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    run(tertiary(), Request(3, repeats=0), path)
    return path


def download(folder, tmp_path, name, least=11):
    path = tmp_path / f"{least}-{name}"
    write(str(folder), least, str(path), name, "My title")
    return path


@pytest.mark.parametrize("name", [name for name in AGGREGATES if not name.endswith(".csv")])
def test_a_download_is_what_its_name_says(folder, tmp_path, name):
    assert download(folder, tmp_path, name).read_bytes().startswith(BEGINS[name.rpartition(".")[2]])


@pytest.mark.parametrize("name", ["board.xlsx", "report.html"])
def test_a_download_is_in_the_language_that_is_asked_for(folder, tmp_path, name):
    path = tmp_path / name
    printed = {"site": "Hospital", "date": "2026-01-31"}
    write(str(folder), 11, str(path), name, "My title", "ca", **printed)
    if name == "report.html":
        assert '<html lang="ca">' in path.read_text(encoding="utf-8")
    else:
        sheet = pytest.importorskip("openpyxl").load_workbook(path).worksheets[1]
        assert "Hospital · 31 de gener de 2026" in sheet.oddHeader.left.text
        assert "Confiança" in [cell.value for cell in sheet[1]]


def test_without_their_extra_slides_are_not_offered(monkeypatch):
    assert "board.pptx" in downloads.offered()
    monkeypatch.setattr(downloads, "find_spec", lambda name: None)
    assert "board.pptx" not in downloads.offered()
    assert "board.zip" in downloads.offered()


def test_the_model_is_the_one_of_the_run(folder, tmp_path):
    sent = download(folder, tmp_path, "model.comorb").read_bytes()
    assert sent == (folder / "model.comorb").read_bytes()


def test_rows_have_the_names_of_their_clusters(folder, tmp_path):
    rows = pq.read_table(download(folder, tmp_path, "assignments.parquet"))
    assert rows.column_names == ["id", "cluster", "confidence", "name"]
    assert len(rows) == len(tertiary())


def test_the_table_is_in_full_or_protected(folder, tmp_path):
    def counts(least):
        rows = pa_csv.read_csv(download(folder, tmp_path, "profile.csv", least))
        cells = zip(rows["cluster"].to_pylist(), rows["code"].to_pylist(), strict=True)
        return dict(zip(cells, rows["records"].to_pylist(), strict=True))

    full, told = counts(0), counts(11)
    assert list(full.values()) == load_profile(folder).counts.ravel().tolist()
    assert any(0 < count < 11 for count in full.values())
    assert told.keys() < full.keys()
    pairs = [(full[cell], shown) for cell, shown in told.items()]
    assert all(shown is None for count, shown in pairs if count < 11)
    assert all(abs(shown - count) <= 15 for count, shown in pairs if shown is not None)
    assert any(shown != count for count, shown in pairs if shown is not None)


@pytest.mark.parametrize("least", [0, 11])
def test_a_document_holds_no_keys(folder, tmp_path, least):
    sent = Profile.from_json(download(folder, tmp_path, "profile.json", least).read_text())
    assert sent.min_cell == least
    assert sent.cells is None
    assert all(outcome.cells is None for outcome in sent.outcomes)
    assert sent.source.title == "My title"
