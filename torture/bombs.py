"""Bombs: small files that unpack to very much, uploaded and read; refused in a sentence, in time.

Everything runs under a limit of memory. While the explorer reads a bomb, another user must get
answers.
"""

from __future__ import annotations

import gzip
import io
import json
import resource
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx2 as httpx
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.records.sources.test_workbooks import open_book
from torture.commands import write_visits
from torture.processes import GIGABYTE, comorb, environment, limited
from torture.server import Server, add_users
from torture.verdict import Verdict

EXPANDED = 2_000_000_000
_BLOCK = 1 << 24
_SECONDS = 120  # of the processor, to read one; by the clock it may take longer, as others work
_LIMITS = (
    *("--read-expanded", "0.2", "--read-rows", "2000000", "--read-columns", "5000"),
    *("--read-minutes", "1", "--read-memory", "4", "--fit-memory", "4"),
)
_SHEET = (
    b'<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b"<sheetData>"
)
_ROW = b'<row r="1"><c r="A1" t="inlineStr"><is><t>428.0</t></is></c></row>'


def _packed(path: Path, start: bytes, block: bytes, expanded: int) -> None:
    """Write a gzip file of members that are all the same."""
    member = gzip.compress(block, 9, mtime=0)
    path.write_bytes(gzip.compress(start, mtime=0) + member * max(expanded // len(block), 1))


def _zipped(path: Path, name: str, start: bytes, block: bytes, expanded: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        if name.startswith("xl/"):
            for part, text in _book().items():
                if part != name:
                    out.writestr(part, text)
        with out.open(name, "w", force_zip64=True) as file:
            file.write(start)
            for _ in range(max(expanded // len(block), 1)):
                file.write(block)
            file.write(_ENDS.get(name, b""))


def _book() -> dict[str, bytes]:
    """Return the parts of a whole spreadsheet."""
    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    with zipfile.ZipFile(made) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


_ENDS = {"xl/worksheets/sheet1.xml": b"</sheetData></worksheet>", "content.xml": b"</a>"}


def _far(path: Path, _: int) -> None:
    """Write a sheet of two cells, as far from each other as a sheet is wide and long."""
    cells = _ROW + _ROW.replace(b'r="1"', b'r="1048576"').replace(b"A1", b"XFD1048576")
    _zipped(path, "xl/worksheets/sheet1.xml", _SHEET, cells, 1)


def _repeated(path: Path, size: int) -> None:
    """Write a sheet of one row that says it stands there very often."""
    open_book(path, [["visit_id", "dx1"], ["1", "428.0"]])
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    often = b'<table:table-row table:number-rows-repeated="%d">' % size
    parts["content.xml"] = parts["content.xml"].replace(b"<table:table-row>", often)
    with zipfile.ZipFile(path, "w") as out:
        for name, text in parts.items():
            out.writestr(name, text)


def _parquet(path: Path, expanded: int) -> None:
    rows = 4_000_000
    table = pa.table(
        {"visit_id": pa.array(range(rows)), "dx1": pa.repeat(pa.scalar("428.0"), rows)}
    )
    table = table.set_column(0, "visit_id", pa.repeat(pa.scalar(7), rows))
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(max(expanded // (rows * 13), 1)):
            writer.write_table(table, row_group_size=rows)


_HEADER, _LINE = b"visit_id,dx1,dx2\n", b"1,428.0,250.00\n"
_LINES = _LINE * (_BLOCK // len(_LINE))
_RESOURCE = json.dumps({"resourceType": "Condition", "id": "a"}).encode() + b"\n"
_RESOURCES = _RESOURCE * (_BLOCK // len(_RESOURCE))

BOMBS: dict[str, Callable[[Path, int], object]] = {
    "zeros.csv.gz": lambda path, size: _packed(path, b"", bytes(_BLOCK), size),
    "rows.csv.gz": lambda path, size: _packed(path, _HEADER, _LINES, size),
    "rows.csv.zst": lambda path, size: path.write_bytes(
        pa.compress(_HEADER, "zstd", asbytes=True)
        + pa.compress(_LINES, "zstd", asbytes=True) * max(size // _BLOCK, 1)
    ),
    "rows.zip": lambda path, size: _zipped(path, "rows.csv", _HEADER, _LINES, size),
    "many.zip": lambda path, size: _many(path, size),
    "sheet.xlsx": lambda path, size: _zipped(
        path, "xl/worksheets/sheet1.xml", _SHEET, _ROW * (_BLOCK // len(_ROW)), size
    ),
    "sheet.ods": lambda path, size: _zipped(
        path, "content.xml", b"<a>", b"<b/>" * (_BLOCK // 4), size
    ),
    "far.xlsx": _far,
    "repeated.ods": _repeated,
    "rows.parquet": _parquet,
    "deep.json": lambda path, size: path.write_bytes(b"[" * min(size // 200, 5_000_000)),
    "deeper.json": lambda path, size: path.write_bytes(
        b'{"resourceType":"Condition","a":' * min(size // 2000, 300_000)
    ),
    "lines.ndjson.gz": lambda path, size: _packed(path, b"", _RESOURCES, size),
    "columns.csv": lambda path, size: path.write_text(
        ",".join(f"dx{i}" for i in range(min(size // 10_000, 100_000)))
        + "\n"
        + ",".join(["428.0"] * min(size // 10_000, 100_000))
        + "\n"
    ),
    "columns.ndjson": lambda path, size: path.write_text(
        json.dumps({f"dx{i}": "428.0" for i in range(min(size // 10_000, 100_000))}) + "\n"
    ),
    "line.csv": lambda path, size: path.write_bytes(
        b"visit_id,dx1\n" + b"4" * min(size // 10, 200_000_000)
    ),
}


def _many(path: Path, size: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for number in range(min(size // 100_000, 20_000)):
            out.writestr(f"{number}.csv", _HEADER + _LINE)


def run(share: float) -> Verdict:
    """Read each bomb by the command line, and upload each; both within limits."""
    expanded = max(int(EXPANDED * share), 1 << 20)
    names = list(BOMBS) if share >= 0.05 else ["rows.csv.gz", "deep.json", "columns.csv"]
    findings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        for name in names:
            BOMBS[name](folder / name, expanded)
        write_visits(folder / "visits.csv", 60)
        slowest = 0.0
        for name in names:
            before = _processor()
            words = comorb("inspect", folder / name)
            ended = limited(words, folder, environment(folder), 10 * _SECONDS, 5 * GIGABYTE)
            slowest = max(slowest, _processor() - before)
            if not ended.plainly or _processor() - before > _SECONDS:
                findings.append(f"inspect {name} {ended.told()}")
        waited, found = _uploaded(folder, names)
    read = f"read within {slowest:.0f} s of the processor each"
    figures = (
        f"{len(names)} bombs of {expanded / 1e9:.2g} GB, {read}; uploaded, others waited "
        f"{waited:.1f} s at most"
    )
    return Verdict(figures, findings + found)


def _processor() -> float:
    """Return the seconds of the processor that processes took which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _uploaded(folder: Path, names: list[str]) -> tuple[float, list[str]]:
    """Upload each bomb while another user asks; return how long they waited, and findings."""
    findings: list[str] = []
    waits: list[float] = [0.0]
    tokens = add_users(folder / "workspace")
    done = threading.Event()
    with Server(folder / "workspace", environment(folder), _LIMITS) as server:

        def ask() -> None:
            small = (folder / "visits.csv").read_bytes()
            with server.client(tokens["other"]) as client:
                while not done.wait(0.3):
                    started = time.monotonic()
                    told = [client.get("/api/v1/runs")]
                    if len(waits) % 10 == 1:
                        told.append(client.put("/api/v1/data?name=small.csv", content=small))
                    waits.append(time.monotonic() - started)
                    if any(one.status_code >= 400 for one in told):
                        findings.append(
                            f"another user was answered {[one.status_code for one in told]}"
                        )

        asking = threading.Thread(target=ask)
        asking.start()
        for name in names:
            findings += _upload(server, tokens["analyst"], folder / name)
        done.set()
        asking.join(150)
        if server.dead:
            findings.append("the server ended")
    return max(waits), findings


def _upload(server: Server, token: str, path: Path) -> list[str]:
    with server.client(token, 10 * _SECONDS) as client:
        try:
            told = client.put(f"/api/v1/data?name={path.name}", content=path.read_bytes())
        except httpx.HTTPError as error:
            return [f"the upload of {path.name} ended in {type(error).__name__}"]
        if told.status_code == 201 and told.json().get("refused"):
            return []
        if told.status_code not in (201, 413, 422):
            return [f"the upload of {path.name} answered {told.status_code}: {told.text[:150]}"]
        if told.status_code != 201 and "unexpected" in told.text:
            return [f"the upload of {path.name}: {told.text[:150]}"]
    return []
