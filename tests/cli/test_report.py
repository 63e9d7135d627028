"""report, as a user meets it."""

from pathlib import Path

import pytest

from tests.cli.conftest import call


@pytest.fixture(scope="module")
def other(records, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "other"
    words = ("fit", records, "--having", "585", "-k", 2, "--drop-codes", "428", "-o", path, "-q")
    assert call(*words).exit_code == 0
    return path


def test_report_is_written_again(comorb, run):
    assert comorb("report", run).stdout == "Report: report.html\n"
    assert Path("report.html").read_text() == (run / "report.html").read_text()
    assert comorb("report", run, "--min-cell", 20, "-o", "share.html", "-q").output == ""
    assert Path("share.html").read_text() != Path("report.html").read_text()
    told = comorb("report", run)
    assert told.exit_code == 1
    assert "report.html is there already; name another file, or replace it by force." in told.stderr
    assert (
        "ends with .html or .pdf; got report.doc."
        in comorb("report", run, "-o", "report.doc").stderr
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--pdf",), "report.pdf"),
        (("-o", "print.html", "--pdf"), "print.pdf"),
    ],
)
def test_report_for_print(comorb, run, words, name):
    assert comorb("report", run, *words).stdout == f"Report: {name}\n"
    assert Path(name).read_bytes().startswith(b"%PDF")
