#!/usr/bin/python3
"""Cost of idle connections: memory of each, CPU while there are no requests, CPU of a request among them.

  bench/scenarios/idle.py                               20,000 of each kind, one kind after the other
  bench/scenarios/idle.py --connections 2000 --kinds h2 fewer, of one kind
  SAMOVAR_BIN=… bench/scenarios/idle.py                 another build of the server

Each kind has its own server. Bytes are the anonymous memory (RssAnon) of the server's own process,
less its memory before, per connection. They are measured twice: when all are connected (TLS: after
the handshake), and when each has sent one request and got its response. The kernel's memory for a
socket is not included. A connection needs a descriptor and an eighth (`ulimit -Hn`).
"""

import argparse
import contextlib
import pathlib
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import accounting, control, servers  # noqa: E402: the suite is next to this folder
from suite.launch import Launch, Running, free_port  # noqa: E402

KINDS = {"http": "HTTP/1.1 without TLS", "https": "HTTP/1.1 over TLS", "h2": "HTTP/2 over TLS"}
APP = pathlib.Path(__file__).resolve().parents[1] / "apps/hello"
# Server and client have further descriptors; the server reserves one of nine for files.
OTHERS = 512
QUIET_SECONDS = 5
ASKS = 2000
ANSWER_SECONDS_MAX = 60
# One address has some 28,000 ports for clients.
PER_ADDRESS = 20_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, DATA, HEADERS, END_STREAM, ACK, END_HEADERS = 4, 0, 1, 1, 1, 4
# :method GET, :scheme https, :path / of the static table, and an authority without indexing.
HEAD = b"\x82\x87\x84\x01\x09localhost"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=20_000, metavar="N",
                        help="connections of each kind: %(default)s")
    parser.add_argument("--kinds", default=",".join(KINDS), metavar="A,B", help="%(default)s")
    asked = parser.parse_args()
    unknown = set(asked.kinds.split(",")) - set(KINDS)
    if unknown or asked.connections < 1:
        parser.error(f"valid kinds: {', '.join(KINDS)}; connections: 1 or more")
    allow_descriptors(asked.connections)
    print(f"{asked.connections:,} idle connections of each kind, {servers.samovar_binary()}\n")
    print("| | bytes each, connected | after one request each | CPU while all are idle | µs CPU/request of one client, "
          "alone | next to them |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in asked.kinds.split(","):
        measure(kind, asked.connections)


def allow_descriptors(connections):
    """Raises the limit for this process and the server, which inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections * 9 // 8 + OTHERS
    try:
        # Root may raise the hard limit, unless this capability was dropped.
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        sys.exit(f"{wanted:,} descriptors needed, {hard:,} allowed\nhint: raise `ulimit -Hn`, or set "
                 f"--connections {(hard - OTHERS) * 8 // 9}")


def measure(kind, count):
    # In a folder that all users may enter.
    with tempfile.TemporaryDirectory(prefix="samovar-idle-", dir="/tmp") as folder, contextlib.ExitStack() as stack:
        var = pathlib.Path(folder)
        site = servers.Site("hello", APP / "resident.php", var, free_port(), 2, 1, {})
        secure = free_port()
        running = stack.enter_context(Running(launch(site, secure, count)))
        pid = running.processes[0].pid
        port = site.port if kind == "http" else secure
        before, alone = anonymous(pid), cost_of_a_request(running, site.port)
        clients = [stack.enter_context(contextlib.closing(connect(kind, port, n))) for n in range(count)]
        await_connections(var, count)
        connected = anonymous(pid) - before
        for client in clients:
            ask(kind, client)
        after = anonymous(pid) - before
        used = accounting.cpu_us(running.roots())
        time.sleep(QUIET_SECONDS)
        idle = (accounting.cpu_us(running.roots()) - used) / QUIET_SECONDS / 1e6
        beside = cost_of_a_request(running, site.port)
        print(f"| {KINDS[kind]} | {connected / count:,.0f} | {after / count:,.0f} | {idle:.1%} | {alone:.0f} | "
              f"{beside:.0f} |", flush=True)


def launch(site, secure, count):
    certificate = site.var / "own.pem"
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", certificate,
                    "-keyout", site.var / "own.key"], check=True, stderr=subprocess.DEVNULL)
    made = servers.samovar_launch(site)
    more = ("--listen", f"https://127.0.0.1:{secure}", "--tls-certificates", certificate, "--idle-timeout", "1h",
            "--connections-max", count + 64)
    return Launch((made.commands[0] + more,), made.port, made.var, made.environment, made.files)


def await_connections(var, count):
    """Waits for the server: the kernel accepts connections before the server does."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while control.status(var)["connections"] < count:
        if time.monotonic() > deadline:
            raise TimeoutError("the server does not accept all connections")
        time.sleep(0.05)


def anonymous(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^RssAnon:\s+(\d+) kB", text, re.M).group(1)) * 1024


def connect(kind, port, number):
    """A connection; with TLS after its handshake, which selects the protocol."""
    source = (f"127.0.0.{2 + number // PER_ADDRESS}", 0)
    client = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX, source)
    if kind == "http":
        return client
    context = CONTEXTS[kind]
    client = context.wrap_socket(client, server_hostname="localhost")
    if kind == "h2":
        client.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    return client


def context_of(protocol):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols([protocol])
    return made


CONTEXTS = {"https": context_of("http/1.1"), "h2": context_of("h2")}


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def ask(kind, client):
    """Sends one request and reads its complete response."""
    if kind == "h2":
        client.sendall(frame(SETTINGS, ACK, 0, b"") + frame(HEADERS, END_STREAM | END_HEADERS, 1, HEAD))
        while not ends(*take_frame(client)):
            pass
        return
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    while not is_whole(answer):
        more = client.recv(65536)
        if not more:
            raise ConnectionError(f"the server closed: {answer!r}")
        answer += more


def is_whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(found and length) and len(body) >= int(length.group(1))


def take_frame(client):
    head = take(client, 9)
    take(client, int.from_bytes(head[:3], "big"))
    return head[3], head[4], int.from_bytes(head[5:], "big")


def ends(kind, flags, stream):
    return stream == 1 and kind in (DATA, HEADERS) and flags & END_STREAM


def take(client, count):
    taken = b""
    while len(taken) < count:
        more = client.recv(count - len(taken))
        if not more:
            raise ConnectionError("the server closed")
        taken += more
    return taken


def cost_of_a_request(running, port):
    """CPU of the server for one client's requests, one after the other, on one connection."""
    with contextlib.closing(connect("http", port, 0)) as client:
        used = accounting.cpu_us(running.roots())
        for _ in range(ASKS):
            ask("http", client)
        return (accounting.cpu_us(running.roots()) - used) / ASKS


if __name__ == "__main__":
    main()
