"""Records, cohorts, journals and results in a store have the bits of those on the disk."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb import read_records, remote
from comorb.cli.group import app
from comorb.engines import FileJournal, open_blocks
from comorb.engines.block_files import identity
from comorb.errors import RecordsError, StorageError
from comorb.model.estimators import BernoulliMixture
from comorb.records.cohort_file import CohortFile
from comorb.records.datasets import region
from comorb.records.distributed import read as spreading
from comorb.records.distributed.read import distribute_cohort
from comorb.records.spec import CohortSpec
from comorb.remote import Remote, is_remote, place_of
from comorb.runs.assign import assign_records
from comorb.runs.cohorts import file_signatures
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model
from tests.records.distributed.test_read_omop import cdm, save
from tests.records.sources.test_delta import Lake
from tests.stores import SECRET, settings, store


@pytest.fixture(scope="module", autouse=True)
def health():
    """Yield a store whose bucket 'health' has what is written to it."""
    with store() as address, pytest.MonkeyPatch.context() as patch:
        for name, value in settings(address).items():
            patch.setenv(name, value)
        yield Remote("s3://health")


def sent(file, place):
    with file.open("rb") as content:
        place.send(content)


@pytest.fixture(scope="module")
def claims(health, tmp_path_factory):
    """Return a folder of files, which lie in the store too, by year and side by side."""
    folder = tmp_path_factory.mktemp("claims") / "claims"
    table = pa.Table.from_batches(region(1500, "wide"))
    for number in range(4):
        name = f"year={2015 + number}/part-{number}.parquet"
        (folder / name).parent.mkdir(parents=True)
        rows = table.slice(number * 375, 375)
        pq.write_table(rows, folder / name, write_page_checksum=True)
        sent(folder / name, health / "claims" / name)
        sent(folder / name, health / "flat" / f"part-{number}.parquet")
    return folder


def test_what_is_an_address():
    assert all(map(is_remote, ("s3://a/b", Path("s3://a/b"), Remote("gs://a"))))
    assert not any(map(is_remote, ("a/s3", "postgresql://a/b", "s3", 5, None, ["s3://a"])))
    assert str(place_of(Path("s3://a/b/"))) == "s3://a/b"
    one = Remote("s3://a/b/c.tar.csv")
    assert (one.name, one.suffix, str(one.parent), str(one.with_name("d"))) == (
        *("c.tar.csv", ".csv", "s3://a/b", "s3://a/b/d"),
    )


@pytest.mark.parametrize(
    "address", ["s3://health/claims", "s3://health/flat/*.parquet", "s3://health/claims/**/part*"]
)
def test_records_in_a_store_are_those_on_the_disk(claims, address, tmp_path):
    here, there = read_records(claims), read_records(address)
    assert there.digest() == here.digest()
    assert sorted(there.ids.to_pylist()) == sorted(here.ids.to_pylist())
    distribute_cohort(address, tmp_path / "cohort")
    assert CohortFile.open(tmp_path / "cohort").digest() == here.digest()
    if "flat" not in address:
        named = CohortFile.open(tmp_path / "cohort").load()
        assert set(named.covariates["year"].to_pylist()) == {2015, 2016, 2017, 2018}


@pytest.mark.parametrize("address", ["s3://health/cdm", "s3://health/cdm/**/*.parquet"])
@pytest.mark.parametrize("asked", [CohortSpec(), CohortSpec(table="condition_occurrence")])
def test_tables_of_omop_in_a_store_are_read_by_the_workers(
    health, address, asked, tmp_path, monkeypatch
):
    tables = cdm(600)
    folder = save(tables | {"location": tables["person"]}, tmp_path / "cdm")
    for file in folder.rglob("*.parquet"):
        sent(file, health / "cdm" / file.relative_to(folder).as_posix())
    monkeypatch.setattr(spreading, "_write_locally", lambda *_: pytest.fail("read here"))
    distribute_cohort(address, tmp_path / "cohort", asked)
    here, there = asked.cohort(folder), CohortFile.open(tmp_path / "cohort")
    assert (there.digest(), there.names) == (here.digest(), here.names)
    assert there.ledger.notes == here.ledger.notes
    ages = dict(zip(here.ids.to_pylist(), here.covariates["age"].to_pylist(), strict=True))
    read = there.load()
    assert ages == dict(zip(read.ids.to_pylist(), read.covariates["age"].to_pylist(), strict=True))


def test_a_table_of_omop_in_two_places_of_a_store_is_refused(health, tmp_path):
    save(cdm(60), tmp_path / "cdm", 1)
    file = tmp_path / "cdm" / "person" / "part-00000.parquet"
    for name in ("person.parquet", "old/person.parquet"):
        sent(file, health / "twice" / name)
    with pytest.raises(RecordsError, match="the table 'person' more than once"):
        distribute_cohort("s3://health/twice", tmp_path / "cohort")


def test_nested_patterns_and_lists_of_files(claims):
    digest = read_records(claims).digest()
    assert read_records(claims / "**" / "*.parquet").digest() == digest
    assert read_records(sorted(claims.rglob("*.parquet"))).digest() == digest
    assert read_records(f"{claims}/year=*/part-?.parquet").digest() == digest


def test_lists_of_files_in_a_store(claims, tmp_path):
    digest = read_records(claims).digest()
    names = [f"s3://health/flat/part-{number}.parquet" for number in range(4)]
    both = [*names[:2], *sorted(claims.rglob("*-[23].parquet"))]
    assert read_records(both).digest() == digest
    distribute_cohort([Remote(names[0]), *names[1:]], tmp_path / "cohort")
    assert CohortFile.open(tmp_path / "cohort").digest() == digest
    distribute_cohort(both, tmp_path / "file")
    assert CohortFile.open(tmp_path / "file").digest() == digest
    assert file_signatures([Remote(names[0])]) == file_signatures(names[:1])
    with pytest.raises(RecordsError, match="There are no records at s3://health/flat/none"):
        read_records([*names, "s3://health/flat/none"])


def test_a_list_of_texts_asks_for_an_engine(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,dx1\n1,428.0\n")
    with pytest.raises(RecordsError, match="Several text files are read as one table on an engine"):
        read_records([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_a_store_that_cannot_rename_copies_and_deletes(health, monkeypatch):
    class Flat:
        """A file system of Azure without folders of its own."""

        def __init__(self, other):
            self.copy_file, self.delete_file = other.copy_file, other.delete_file

        def move(self, *_):
            raise pa.ArrowNotImplementedError("not without a hierarchical namespace")

    (health / "flat-a").send(BytesIO(b"rows"))
    own, _ = remote._find_system("s3://health/flat-a")
    with monkeypatch.context() as patch:
        patch.setattr(remote, "_find_system", lambda uri: (Flat(own), f"health/{uri[-6:]}"))
        (health / "flat-a").move(health / "flat-b")
    assert (health / "flat-b").read_bytes() == b"rows"
    assert not (health / "flat-a").exists()


def bits(run):
    mixture = load_model(place_of(run) / "model.comorb").mixture
    return mixture.weights.tobytes() + mixture.means.tobytes()


def test_a_run_in_a_store_has_the_bits_of_one_on_the_disk(claims, health, tmp_path, capfd):
    request = Request(3, repeats=0)
    fit_records(claims, tmp_path / "run", request)
    fit_records("s3://health/claims", "s3://health/run", request, engine="threads")
    assert bits("s3://health/run") == bits(tmp_path / "run")
    assert not [one for one in health.below() if "unfinished" in one.uri]
    with pytest.raises(StorageError, match="s3://health/run holds files already"):
        fit_records("s3://health/claims", "s3://health/run", request)
    assign_records(tmp_path / "run", claims, tmp_path / "here.csv")
    assign_records("s3://health/run", "s3://health/claims", Path("s3://health/there.csv"))
    assert Remote("s3://health/there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assign_records("s3://health/run", "s3://health/flat", "s3://health/parts", engine="threads")
    parts = [pq.read_table(one.source()) for one in Remote("s3://health/parts").below()]
    assert sum(map(len, parts)) == 1500
    files = [one for one in (*tmp_path.rglob("*"), *health.below()) if one.is_file()]
    assert not any(SECRET.encode() in one.read_bytes() for one in files)
    assert SECRET not in "".join(capfd.readouterr())


def test_a_cohort_and_its_journal_lie_in_a_store(claims):
    where = Remote("s3://health/kept/cohort")
    distribute_cohort(claims, where)
    whole = BernoulliMixture(3).fit(read_records(claims).matrix)
    first = FileJournal(where.with_name("journal"), identity(where))
    model = BernoulliMixture(3).fit_blocks(open_blocks(where, first))
    assert model.means_.tobytes() == whole.means_.tobytes()
    again = FileJournal("s3://health/kept/journal", identity(where))
    BernoulliMixture(3).fit_blocks(open_blocks(where, again))
    assert again.recalled >= first.passes - 1 > 0
    with pytest.raises(StorageError, match="is no journal of these records"):
        FileJournal("s3://health/kept/journal", "another")
    first, *_ = [one for one in where.below() if one.suffix == ".parquet"]
    first.unlink()
    with pytest.raises(StorageError, match=r"row group 0 is damaged or gone|There is no s3"):
        open_blocks(where).loaders[0]()


def test_an_overwritten_delta_table_in_a_store_has_its_current_rows(health, tmp_path):
    lake = Lake(tmp_path / "table")
    first = lake.write("a.parquet", [("1", "4280"), ("2", "25000")])
    lake.commit(first)
    second = lake.write("b.parquet", [("3", "5859"), ("4", "4280"), ("5", "4019")])
    lake.commit({"remove": {"path": first["add"]["path"], "dataChange": True}}, second)
    for file in (tmp_path / "table").rglob("*"):
        if file.is_file():
            name = file.relative_to(tmp_path).as_posix()
            sent(file, health / "lake" / name)
    assert read_records("s3://health/lake/table").ids.to_pylist() == ["3", "4", "5"]
    distribute_cohort("s3://health/lake/table", tmp_path / "cohort", CohortSpec(at_least=1))
    assert len(CohortFile.open(tmp_path / "cohort")) == 3


@pytest.mark.parametrize("address", ["s3://who:word@health/x", "s3://health/x?secret_key=word"])
def test_credentials_in_an_address_are_refused_and_not_told(address):
    with pytest.raises(StorageError, match=r"don't belong in an address \(s3://…\)") as error:
        read_records(address)
    assert "word" not in str(error.value)


def test_what_is_not_there_is_told():
    with pytest.raises(RecordsError, match="There are no records at s3://health/none; check the"):
        read_records("s3://health/none")
    with pytest.raises(StorageError, match="There is no cohort file s3://health/none"):
        CohortFile.open("s3://health/none")
    with pytest.raises(StorageError, match="There is no s3://health/none; check the address"):
        Remote("s3://health/none").read_bytes()


def refusals(place):
    """Return what is told when a place in a store is read, written and looked at."""
    told = []
    for action in (read_records, lambda one: fit_records(one, one / "run", Request(2))):
        with pytest.raises((RecordsError, StorageError)) as error:
            action(place)
        told.append(str(error.value))
    with pytest.raises(StorageError) as error:
        place.send(BytesIO(b"rows"))
    assert SECRET not in "".join([*told, str(error.value)])
    return [*told, str(error.value)]


def test_a_store_that_lets_nobody_in_is_told(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    for text in refusals(Remote("s3://locked/claims")):
        assert re.match(r"s3://locked/claims\S* can't be read or written: .*ACCESS_DENIED", text)
        assert "stranger" not in text


def test_a_bucket_that_is_not_there_is_told():
    read, fitted, sent = refusals(Remote("s3://nowhere/claims"))
    assert read == fitted == "There are no records at s3://nowhere/claims; check the address."
    assert "NO_SUCH_BUCKET" in sent


def test_the_command_line_tells_whole_addresses(claims, capsys):
    words = ["fit", "s3://health/flat", "-k", "2", "--no-stability", "-o", "s3://health/told"]
    with pytest.raises(SystemExit, match="0"):
        app(words)
    assert "Report: s3://health/told/report.html" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        app(["assign", "s3://health/told", "s3://health/flat", "-o", "s3://health/a.csv", "--json"])
    assert json.loads(capsys.readouterr().out)["file"] == "s3://health/a.csv"
