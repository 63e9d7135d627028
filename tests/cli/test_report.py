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


def test_a_pack_is_written_whole_and_the_same_again(comorb, run):
    words = ("--language", "es", "--site", "Hospital", "--date", "2026-01-31", "--star", "died")
    told = comorb("report", run, "--pack", "pack", *words)
    names = ("board.pdf", "board.pptx", "board.xlsx")
    assert told.stdout == f"Board pack: {', '.join(f'pack/{name}' for name in names)}\n"
    assert sorted(path.name for path in Path("pack").iterdir()) == list(names)
    assert "is there already and not empty" in comorb("report", run, "--pack", "pack").stderr
    assert comorb("report", run, "--pack", "again", *words, "-q").output == ""
    for name in names:
        assert Path("pack", name).read_bytes() == Path("again", name).read_bytes()


def test_a_pack_without_its_extra_writes_nothing(comorb, run, monkeypatch):
    monkeypatch.setattr("comorb.views.slides.slides_installed", lambda: False)
    told = comorb("report", run, "--pack", "pack")
    assert told.exit_code == 1
    assert "pip install 'comorb[slides]'" in told.stderr
    assert not Path("pack").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--language", "xx"), "expected one of the languages en, ca, es, got 'xx'"),
        (("--date", "yesterday"), "expected a day such as 2026-01-31, or today, got 'yesterday'"),
        (("--split-by", "moon"), "holds no slices by moon"),
        (("--pack", "pack", "--pdf"), "a pack has names of its own; leave -o and --pdf out"),
    ],
)
def test_what_a_report_can_t_be_is_refused(comorb, run, words, said):
    told = comorb("report", run, *words)
    assert told.exit_code
    assert said in " ".join(told.stderr.replace("│", " ").split())


def test_a_report_is_split_as_slices_are(comorb, run, records):
    words = ("--split-by", "age:q3", "--records", records, "--language", "ca")
    assert comorb("report", run, "-o", "split.html", *words).exit_code == 0
    page = Path("split.html").read_text(encoding="utf-8")
    assert '<html lang="ca">' in page
    assert '"by":"age:q3"' in page
    assert comorb("report", run, "-o", "sex.html", "--split-by", "sex").exit_code == 0
    assert Path("sex.html").read_text(encoding="utf-8").count('"by":') == 1
