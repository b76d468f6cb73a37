#!/usr/bin/env python3
"""Tests worker.php with RoadRunner's side of the pipe, after its documentation. RoadRunner itself is not needed."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

APPS = pathlib.Path(__file__).resolve().parents[2] / "apps"
CONTROL, JSON, PROTO = 0x01, 0x08, 0x80


def frame(flags, payload, options=()):
    head = struct.pack("<BBI", 1 << 4 | 3 + len(options), flags, len(payload))
    return head + struct.pack("<IH", zlib.crc32(head), 0) + struct.pack(f"<{len(options)}I", *options) + payload


def read_frame(pipe):
    """Reads flags, options and payload of the next frame."""
    head = pipe.read(12)
    begin, flags, length, crc, _ = struct.unpack("<BBIIH", head)
    assert crc == zlib.crc32(head[:6])
    count = (begin & 15) - 3
    options = struct.unpack(f"<{count}I", pipe.read(4 * count))
    return flags, options, pipe.read(length)


def varint(value):
    text = b""
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])


def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def proto_head(method, headers, cookies=None):
    text = field(1, "127.0.0.1") + field(2, "HTTP/1.1") + field(3, method) + field(4, "http://127.0.0.1:8080/")
    for name, value in headers.items():
        text += field(5, field(1, name) + field(2, field(1, value)))
    for name, value in (cookies or {}).items():
        text += field(6, field(1, name) + field(2, field(1, value)))
    return text + varint(8 << 3) + varint(0)


def json_head(method, headers, cookies=None):
    return json.dumps({"remoteAddr": "127.0.0.1", "protocol": "HTTP/1.1", "method": method,
                       "uri": "http://127.0.0.1:8080/", "headers": {name: [value] for name, value in headers.items()},
                       "cookies": cookies or {}, "rawQuery": "", "parsed": False, "uploads": None,
                       "attributes": {}}).encode()


class Worker:
    """A worker's process and its end of the pipes; a context manager."""

    def __init__(self, workload):
        self.var = tempfile.TemporaryDirectory()
        environment = {**os.environ, "BENCH_VAR": self.var.name}
        setup = APPS / workload / "setup.php"
        if setup.exists():
            subprocess.run(["php8.2", str(setup)], env=environment, check=True)
        self.process = subprocess.Popen(
            ["php8.2", "-d", f"session.save_path={self.var.name}", str(APPS / workload / "roadrunner.php")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def ask(self, flags, payload, options=()):
        self.process.stdin.write(frame(flags, payload, options))
        self.process.stdin.flush()
        return read_frame(self.process.stdout)

    def request(self, codec, method="GET", headers=None, body=b"", cookies=None):
        """Returns head and body of the response."""
        write = json_head if codec == JSON else proto_head
        head = write(method, {"Host": "127.0.0.1:8080", **(headers or {})}, cookies)
        flags, options, payload = self.ask(codec, head + body, (len(head),))
        assert flags == codec, flags
        return payload[:options[0]], payload[options[0]:].decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)
        self.var.cleanup()


class WorkerTest(unittest.TestCase):
    def test_worker_sends_pid_and_stops_on_command(self):
        with Worker("hello") as worker:
            flags, _, payload = worker.ask(CONTROL, b'{"pid":true}')
            self.assertEqual((flags, json.loads(payload)), (CONTROL, {"pid": worker.process.pid}))
            worker.process.stdin.write(frame(CONTROL, b'{"stop":true}'))
            worker.process.stdin.flush()
            self.assertEqual(worker.process.wait(10), 0)

    def test_json_request_gets_json_response(self):
        with Worker("hello") as worker:
            for _ in range(3):
                head, body = worker.request(JSON)
                self.assertEqual(json.loads(head),
                                 {"status": 200, "headers": {"Content-Type": ["text/html; charset=UTF-8"]}})
                self.assertEqual(body, "Hello, World!")

    def test_protobuf_request_gets_protobuf_response(self):
        with Worker("hello") as worker:
            head, body = worker.request(PROTO)
            value = field(2, field(1, "Content-Type") + field(2, field(1, "text/html; charset=UTF-8")))
            self.assertEqual(head, varint(1 << 3) + varint(200) + value)
            self.assertEqual(body, "Hello, World!")

    def test_handler_receives_headers_and_body(self):
        sent = (APPS / "echo/body.json").read_bytes()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer x", "Accept-Language": "de,en",
                   "User-Agent": "test", "X-Request-Id": "7"}
        with Worker("echo") as worker:
            for codec in (JSON, PROTO):
                answer = json.loads(worker.request(codec, "POST", headers, sent)[1])
                self.assertEqual(answer["data"], json.loads(sent))
                self.assertEqual((answer["authorized"], answer["language"], answer["agent"], answer["request"]),
                                 (True, "de", "test", "7"))

    def test_worker_serves_the_workloads(self):
        for workload, expected in (("bootstrap", "Catalog 72"), ("symfony", "You have been here once")):
            with self.subTest(workload), Worker(workload) as worker:
                for codec in (JSON, PROTO):
                    self.assertIn(expected, worker.request(codec)[1])

    def test_session_belongs_to_one_visitor(self):
        with Worker("symfony") as worker:
            visitors = []
            for _ in range(2):
                cookie = json.loads(worker.request(JSON)[0])["headers"]["Set-Cookie"][0].split(";")[0]
                visitors.append(dict([cookie.split("=")]))
            for codec, visits in ((JSON, 2), (PROTO, 3)):
                for cookies in visitors:
                    self.assertIn(f"here {visits} times", worker.request(codec, cookies=cookies)[1])
            self.assertIn("here once", worker.request(JSON)[1])


if __name__ == "__main__":
    unittest.main()
