"""PostgreSQL, on a real server that the tests start on a free port and stop again."""

import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.read import inspect_records, read_records
from tests.records.helpers import sets
from tests.records.layouts.test_omop import OMOP

adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")


def binaries():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = binaries()
    if folder is None:
        pytest.skip("POSTGRESQL IS NOT TESTED: install Debian's postgresql")
    home = tmp_path_factory.mktemp("postgresql")
    as_other: dict[str, Any] = {}
    prefix = home
    if os.geteuid() == 0:
        account = next((a for a in pwd.getpwall() if a.pw_name in ("postgres", "nobody")), None)
        if account is None:
            pytest.skip("POSTGRESQL IS NOT TESTED: it needs a user that isn't root")
        prefix = Path("/tmp") / f"comorb-postgresql-{os.getpid()}"
        prefix.mkdir(mode=0o700)
        os.chown(prefix, account.pw_uid, account.pw_gid)
        as_other = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data, port, log = prefix / "data", free_port(), prefix / "log"

    def run(program, *arguments):
        subprocess.run(
            [folder / program, *map(str, arguments)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=prefix,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
            **as_other,
        )

    (prefix / "password").write_text("pa55word")
    (prefix / "password").chmod(0o644)
    run(
        *("initdb", "-D", data, "-U", "reader", "--auth=scram-sha-256", "-E", "UTF8", "--no-sync"),
        f"--pwfile={prefix / 'password'}",
    )
    options = f"-p {port} -k {prefix} -c listen_addresses=127.0.0.1 -c fsync=off"
    run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
    try:
        yield f"postgresql://reader:pa55word@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(prefix, ignore_errors=True)


@pytest.fixture(scope="module")
def url(server):
    with adbc.connect(server) as connection, connection.cursor() as cursor:
        for name, table in OMOP.items():
            cursor.adbc_ingest(name, table, mode="create")
        rows = pa.table(
            {
                "hadm_id": ["000123", "000123", "0124", "0124"],
                "icd_code": ["428.0", "001.0", "428.1", "428.1"],
                "age": [70, 70, 81, 81],
            }
        )
        cursor.adbc_ingest("diagnoses", rows, mode="create")
        cursor.execute("CREATE TABLE typed AS SELECT 7::numeric AS id, 'I10'::char(8) AS icd_code")
        cursor.execute("CREATE SEQUENCE numbers")
        connection.commit()
    return server


def test_a_table(url):
    cohort = read_records(url, table="diagnoses")
    assert sets(cohort) == {"000123": {"428", "001"}, "0124": {"428"}}
    assert cohort.covariates["age"].to_pylist() == [70.0, 81.0]
    assert cohort.ledger.left("rows") == 3


def test_a_query(url):
    query = "SELECT hadm_id, icd_code FROM diagnoses WHERE age > 75;"
    assert sets(read_records(url, table=query)) == {"0124": {"428"}}


def test_types_that_arrow_does_not_have(url):
    assert sets(read_records(url, table="typed")) == {"7": {"I10"}}


def test_omop_in_postgresql(url):
    found = inspect_records(url)
    assert (found.layout.kind, found.unit) == ("omop", "patient")
    cohort = read_records(url)
    assert sets(cohort) == {"7": {"316139", "201826"}, "8": {"316139"}}
    assert cohort.names == ("Type 2 diabetes mellitus", "Heart failure")


def refusal(url, **options):
    with pytest.raises(RecordsError) as caught:
        read_records(url, **options)
    assert "pa55word" not in str(caught.value)
    return str(caught.value)


def test_what_a_server_refuses(url):
    assert "127.0.0.1/postgres has no table 'diagnosis'; the nearest are diagnoses" in refusal(
        url, table="diagnosis"
    )
    assert 'can\'t run the query: relation "nope" does not exist' in refusal(
        url, table="SELECT * FROM nope"
    )
    assert "refuses the user or the password; check the URL" in refusal(
        url.replace("pa55word", "pa55word0")
    )
    assert "doesn't exist on that server" in refusal(url.replace("/postgres", "/nope"))


def test_a_server_that_does_not_answer():
    assert "doesn't answer: check the host and the port" in refusal(
        f"postgresql://reader:pa55word@127.0.0.1:{free_port()}/postgres"
    )


def test_a_query_that_writes(url):
    writes = "WITH gone AS (DELETE FROM diagnoses RETURNING *) SELECT * FROM gone"
    assert "was asked to write; records are only read" in refusal(url, table=writes)
    sly = "SELECT nextval('numbers')::text AS id, 'I10' AS icd_code"
    assert "the query writes, and records are only read" in refusal(url, table=sly)
    assert sets(read_records(url, table="diagnoses")).keys() == {"000123", "0124"}


def test_a_value_that_the_query_can_not_cast_is_not_repeated(url):
    query = "SELECT hadm_id, icd_code, (icd_code || 'SECRET')::int AS n FROM diagnoses"
    told = refusal(url, table=query, layout=Layout("long"))
    assert "nothing of it was kept" in told
    assert "SECRET" not in told


def test_a_connection_that_breaks_off(url):
    slow = (
        "SELECT g::text AS id, CASE WHEN g % 50000 = 0 THEN pg_sleep(0.3)::text || 'I10' "
        "ELSE 'I10' END AS icd_code FROM generate_series(1, 2000000) AS g"
    )

    def cut():
        with adbc.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE '%generate_series(1, 2000000)%' AND pid <> pg_backend_pid()"
            )
            cursor.fetchall()

    timer = threading.Timer(1.0, cut)
    timer.start()
    try:
        told = refusal(url, table=slow)
    finally:
        timer.join()
    assert "nothing of it was kept" in told


def test_a_sqlite_file_whose_own_words_are_not_utf8(tmp_path):
    path = tmp_path / "visits.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (visit_id TEXT, dx1 TEXT)")
        connection.commit()
    data = path.read_bytes()
    for old, new in ((b"TABLE visits", b"TABLE\xfevisits"), (b"visits (", b"vis\xff\xfes (")):
        path.write_bytes(data.replace(old, new))
        with pytest.raises(RecordsError, match=r"visits.db can't be read: it is damaged"):
            read_records(path)
