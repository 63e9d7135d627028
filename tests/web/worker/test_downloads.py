"""Downloads: each is a file of its kind, without small counts."""

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.insight.runs.run import Request, run
from comorb.records.datasets import tertiary
from comorb.web.worker.downloads import AGGREGATES, write
from comorb.web.worker.messages import WriteDownload

BEGINS = {"json": b"{", "html": b"<!doctype", "pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    run(tertiary(), Request(3, repeats=0), path)
    return path


def download(folder, tmp_path, name):
    path = tmp_path / name
    write(WriteDownload(str(folder), 11, str(path), name, "My title"))
    return path


@pytest.mark.parametrize("name", [name for name in AGGREGATES if not name.endswith(".csv")])
def test_a_download_is_what_its_name_says(folder, tmp_path, name):
    assert download(folder, tmp_path, name).read_bytes().startswith(BEGINS[name.rpartition(".")[2]])


def test_the_model_is_the_one_of_the_run(folder, tmp_path):
    sent = download(folder, tmp_path, "model.comorb").read_bytes()
    assert sent == (folder / "model.comorb").read_bytes()


def test_rows_have_the_names_of_their_clusters(folder, tmp_path):
    rows = pq.read_table(download(folder, tmp_path, "assignments.parquet"))
    assert rows.column_names == ["id", "cluster", "confidence", "name"]
    assert len(rows) == len(tertiary())


def test_the_table_hides_small_counts(folder, tmp_path):
    rows = pa_csv.read_csv(download(folder, tmp_path, "profile.csv"))
    counts = [count for count in rows["records"].to_pylist() if count]
    assert counts
    assert min(counts) >= 11
