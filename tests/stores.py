"""Stores on this machine that speak enough of Amazon's or Google's for Arrow.

Objects are in memory, over HTTP. Amazon's has every bucket but ``nowhere``, lets in everyone but
``stranger``, and can be told to break down after a number of requests. Google's has every bucket
but ``locked``, which is closed; a folder is no object of its own there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

WHEN = "2026-01-01T00:00:00.000Z"
SECRET = "not-to-be-told-5Kq"
_OBJECT = re.compile(
    r"(?:/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?(?:/rewriteTo/b/(.+)/o/(.+))?"
)


def settings(address: str, user: str = "someone") -> dict[str, str]:
    """Return the environment by which a store is found."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": user,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


class Store(ThreadingHTTPServer):
    """The objects of all buckets, by bucket/key, and parts of those that are still being sent."""

    daemon_threads = True

    def __init__(self, kind: str, requests: int) -> None:
        super().__init__(("127.0.0.1", 0), {"amazon": _Amazon, "google": _Google}[kind])
        self.left = requests
        self.objects: dict[str, bytes] = {}
        self.parts: dict[tuple[str, int], bytes] = {}

    def handle_error(self, request, client_address) -> None:
        """Say nothing of whoever hangs up."""


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    server: Store

    def log_message(self, *words) -> None:
        pass

    @property
    def query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}

    def body(self) -> bytes:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return content

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        headers.setdefault("content_length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def answer_range(self, found: bytes) -> None:
        """Send an object, or the part of it that is asked for."""
        span = self.headers.get("range")
        if span is None:
            return self.answer(200, found)
        start, _, stop = span.removeprefix("bytes=").partition("-")
        some = found[int(start) : int(stop) + 1 if stop else len(found)]
        where = f"bytes {start}-{int(start) + len(some) - 1}/{len(found)}"
        return self.answer(206, some, content_range=where)


class _Amazon(_Answer):
    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        self.server.left -= 1
        if not self.server.left:
            os._exit(1)
        refused = 0
        if "Credential=stranger/" in self.headers.get("authorization", ""):
            refused, code = 403, "AccessDenied"
        elif self.key.partition("/")[0] == "nowhere":
            refused, code = 404, "NoSuchBucket"
        if refused:
            self.close_connection = True
            self.answer(refused, f"<Error><Code>{code}</Code></Error>".encode())
            self.wfile.flush()
        return not refused

    def handle_expect_100(self) -> bool:
        going = super().handle_expect_100()
        self.wfile.flush()
        return going

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).strip("/")

    def body(self) -> bytes:
        content = super().body()
        if not self.headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
            return content
        whole = b""
        while True:  # pieces, each after a line with its length
            line, _, content = content.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if not size:
                return whole
            whole, content = whole + content[:size], content[size + 2 :]

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        super().answer(
            status, content, **{"etag": '"0"', "content_type": "application/xml", **headers}
        )

    def do_HEAD(self) -> None:
        found = self.server.objects.get(self.key)
        if found is None:
            return self.answer(404 if "/" in self.key else 200)
        return self.answer(
            200,
            content_length=str(len(found)),
            last_modified="Thu, 01 Jan 2026 00:00:00 GMT",
            content_type="application/octet-stream",
        )

    def do_GET(self) -> None:
        if "list-type" in self.query:
            return self.answer(200, self.listing())
        found = self.server.objects.get(self.key)
        if found is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self.answer_range(found)

    def listing(self) -> bytes:
        prefix, mark = self.query.get("prefix", ""), self.query.get("delimiter", "")
        start, files, folders = len(self.key) + 1, [], {}
        for name, content in sorted(self.server.objects.items()):
            own = name[start:]
            if not name.startswith(f"{self.key}/{prefix}"):
                continue
            inside = own[len(prefix) :]
            if mark and mark in inside:
                folders[prefix + inside.partition(mark)[0] + mark] = True
            else:
                files.append((own, len(content)))
        text = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{WHEN}</LastModified>"
            f"<Size>{size}</Size></Contents>"
            for name, size in files
        ) + "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders
        )
        count = len(files) + len(folders)
        head = f"<KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{text}</ListBucketResult>".encode()

    def do_PUT(self) -> None:
        content = self.body()
        if "uploadId" in self.query:
            self.server.parts[self.key, int(self.query["partNumber"])] = content
            return self.answer(200)
        if source := self.headers.get("x-amz-copy-source"):
            content = self.server.objects[unquote(source).strip("/")]
            self.server.objects[self.key] = content
            return self.answer(200, b"<CopyObjectResult><ETag>0</ETag></CopyObjectResult>")
        folder = urlsplit(self.path).path.endswith("/") and "/" in self.key
        self.server.objects[self.key + "/" * folder] = content
        return self.answer(200)

    def do_POST(self) -> None:
        content = self.body()
        if "uploads" in self.query:
            said = "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
            return self.answer(200, f"{said}</InitiateMultipartUploadResult>".encode())
        if "delete" in self.query:
            for one in content.decode().split("<Key>")[1:]:
                self.server.objects.pop(f"{self.key}/{one.partition('</Key>')[0]}", None)
            return self.answer(200, b"<DeleteResult></DeleteResult>")
        mine = sorted(number for name, number in self.server.parts if name == self.key)
        whole = b"".join(self.server.parts.pop((self.key, number)) for number in mine)
        self.server.objects[self.key] = whole
        return self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def do_DELETE(self) -> None:
        folder = "/" if urlsplit(self.path).path.endswith("/") else ""
        self.server.objects.pop(self.key + folder, None)
        self.answer(204)


class _Google(_Answer):
    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        parts = _OBJECT.fullmatch(urlsplit(self.path).path).groups("")
        bucket, name, *other = map(unquote, parts)
        self.key, self.other = f"{bucket}/{name}", "/".join(other).strip("/")
        if bucket == "locked":
            self.close_connection = True
            self.answer(403, b"you may not look at this")
            self.wfile.flush()
        return bucket != "locked"

    def tell(self, content: dict) -> None:
        self.answer(200, json.dumps(content).encode())

    def told(self, key: str) -> dict:
        """Return what is said of an object."""
        bucket, _, name = key.partition("/")
        size = str(len(self.server.objects[key]))
        own = {"bucket": bucket, "name": name, "size": size, "generation": "1"}
        return {"kind": "storage#object", "timeCreated": WHEN, "updated": WHEN, **own}

    def do_GET(self) -> None:
        if self.key.endswith("/"):
            start = self.key + self.query.get("prefix", "")
            names = sorted(name for name in self.server.objects if name.startswith(start))
            return self.tell({"kind": "storage#objects", "items": [*map(self.told, names)]})
        if self.key not in self.server.objects:
            return self.answer(404, b"no such object")
        if self.query.get("alt") == "media":
            return self.answer_range(self.server.objects[self.key])
        return self.tell(self.told(self.key))

    def do_POST(self) -> None:
        self.body()
        if self.other:
            self.server.objects[self.other] = self.server.objects[self.key]
            made = self.told(self.other)
            done = {"done": True, "objectSize": made["size"], "totalBytesRewritten": made["size"]}
            return self.tell({"kind": "storage#rewriteResponse", "resource": made, **done})
        self.server.parts[self.key + self.query["name"], 0] = b""
        host, port = self.server.server_address
        return self.answer(200, b"{}", location=f"http://{host}:{port}{self.path}&upload_id=1")

    def do_PUT(self) -> None:
        key = self.key + self.query["name"]
        self.server.parts[key, 0] += self.body()
        if self.headers.get("content-range", "").endswith("/*"):
            return self.answer(308, range=f"bytes=0-{len(self.server.parts[key, 0]) - 1}")
        self.server.objects[key] = self.server.parts.pop((key, 0))
        return self.tell(self.told(key))

    def do_DELETE(self) -> None:
        gone = self.server.objects.pop(self.key, None) is None
        self.answer(404 if gone else 204)


@contextmanager
def store(requests: int = 0, kind: str = "amazon"):
    """Yield the address of a store; it is a process of its own, as Arrow may hold this one up.

    With ``requests`` it breaks down when it is asked for that many times.
    """
    words = [sys.executable, __file__, kind, str(requests)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    with Store(sys.argv[1], int(sys.argv[2])) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
