"""A store on this machine that speaks enough of Google's for Arrow: objects in memory, over HTTP.

It has every bucket but ``locked``, which is closed. A folder is no object of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

_OBJECT = re.compile(
    r"(?:/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?(?:/rewriteTo/b/(.+)/o/(.+))?"
)


class Google(ThreadingHTTPServer):
    """The objects of all buckets, by bucket/name, and those that are still being sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.objects: dict[str, bytes] = {}
        self.begun: dict[str, bytes] = {}

    def handle_error(self, request, client_address) -> None:
        """Say nothing of whoever hangs up."""


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    server: Google

    def log_message(self, *words) -> None:
        pass

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        where = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(where.query).items()}
        bucket, name, *other = (
            unquote(part or "") for part in _OBJECT.fullmatch(where.path).groups()
        )
        self.bucket, self.key, self.other = bucket, f"{bucket}/{name}", "/".join(other).strip("/")
        if bucket == "locked":
            self.close_connection = True
            self.answer(403, b"you may not look at this")
            self.wfile.flush()
        return bucket != "locked"

    def body(self) -> bytes:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return content

    def answer(self, status: int, content: bytes | dict, **headers: str) -> None:
        sent = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "content_length": str(len(sent))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(sent)

    def told(self, key: str) -> dict:
        """Return what is said of an object."""
        bucket, _, name = key.partition("/")
        when = "2026-01-01T00:00:00.000Z"
        size = str(len(self.server.objects[key]))
        own = {"bucket": bucket, "name": name, "size": size, "generation": "1"}
        return {"kind": "storage#object", "timeCreated": when, "updated": when, **own}

    def do_GET(self) -> None:
        if self.key.endswith("/"):
            start = self.key + self.query.get("prefix", "")
            names = sorted(name for name in self.server.objects if name.startswith(start))
            return self.answer(200, {"kind": "storage#objects", "items": [*map(self.told, names)]})
        if self.key not in self.server.objects:
            return self.answer(404, {"error": {"code": 404, "message": "no such object"}})
        if self.query.get("alt") != "media":
            return self.answer(200, self.told(self.key))
        found = self.server.objects[self.key]
        start, _, stop = self.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
        some = found[int(start) : int(stop) + 1 if stop else len(found)]
        where = f"bytes {start}-{int(start) + len(some) - 1}/{len(found)}"
        return self.answer(206 if "range" in self.headers else 200, some, content_range=where)

    def do_POST(self) -> None:
        self.body()
        if self.other:
            self.server.objects[self.other] = self.server.objects[self.key]
            size = str(len(self.server.objects[self.other]))
            done = {"done": True, "objectSize": size, "totalBytesRewritten": size}
            kind = {"kind": "storage#rewriteResponse", "resource": self.told(self.other)}
            return self.answer(200, kind | done)
        self.server.begun[self.key + self.query["name"]] = b""
        host, port = self.server.server_address
        return self.answer(200, {}, location=f"http://{host}:{port}{self.path}&upload_id=1")

    def do_PUT(self) -> None:
        key = self.key + self.query["name"]
        self.server.begun[key] += self.body()
        if self.headers.get("content-range", "").endswith("/*"):
            last = len(self.server.begun[key]) - 1
            return self.answer(308, b"", range=f"bytes=0-{last}")
        self.server.objects[key] = self.server.begun.pop(key)
        return self.answer(200, self.told(key))

    def do_DELETE(self) -> None:
        gone = self.server.objects.pop(self.key, None) is None
        self.answer(404 if gone else 204, b"")


@contextmanager
def google_store():
    """Yield the address of a store; it is a process of its own, as Arrow may hold this one up."""
    words = [sys.executable, __file__]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    with Google() as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
