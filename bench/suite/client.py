"""samovar-load and its targets: the client's input and its results; visitors, bodies, the first check."""

import http.client
import json
import os
import pathlib
import subprocess

from .servers import TARGET

TIMEOUT_SECONDS = 10
GRACE_SECONDS = 2
OVERTIME_SECONDS_MAX = 60  # Additional time of the client before it counts as broken.
SEED = 4
CHECK_TIMEOUT_SECONDS = 30
SAMPLE_CHARS = 160


class ClientError(Exception):
    """The client did not measure, or a response is not the expected one."""


def binary():
    return pathlib.Path(os.environ.get("SAMOVAR_LOAD", TARGET / "samovar-load"))


def multipart(boundary, size):
    """A form with one file of that many bytes."""
    head = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"upload.bin\"\r\n"
            "Content-Type: application/octet-stream\r\n\r\n").encode()
    # Not zeros, so that no component on the way can optimize them.
    pattern = bytes(range(256)) * 4096
    content = (pattern * (size // len(pattern) + 1))[:size]
    return head + content + f"\r\n--{boundary}--\r\n".encode()


def boundary_of(headers):
    """The boundary in a multipart Content-Type, or None."""
    for name, value in headers.items():
        if name.lower() == "content-type" and value.lower().startswith("multipart/") and "boundary=" in value:
            return value.split("boundary=", 1)[1].split(";")[0].strip().strip('"')
    return None


def body_of(target, folder, var):
    """The body in the client's line: {}, {"body": …} or {"body_file": …}; creates the file if necessary."""
    if target.body is not None:
        return {"body": target.body}
    if target.body_file is not None:
        return {"body_file": str((folder / target.body_file.replace("{var}", str(var))).resolve())}
    if target.body_bytes is None:
        return {}
    path = var / f"body-{target.group}-{target.body_bytes}"
    if not path.exists():
        boundary = boundary_of(target.headers)
        path.write_bytes(multipart(boundary, target.body_bytes) if boundary else b"x" * target.body_bytes)
    return {"body_file": str(path)}


def target_lines(workload, var, cookies=()):
    """The lines of --targets. Each visitor has its own line and a part of its class's weight."""
    lines = []
    for target in workload.targets:
        line = {"class": target.group, "weight": target.weight, "method": target.method, "path": target.path,
                "headers": target.headers, **body_of(target, workload.folder, var)}
        if not cookies:
            lines.append(line)
            continue
        for cookie in cookies:
            lines.append({**line, "weight": target.weight / len(cookies),
                          "headers": {**target.headers, "Cookie": cookie}})
    return lines


def write_targets(workload, address, var):
    """The file for --targets, with the workload's number of visitors."""
    cookies = visitors(workload, address, var) if workload.visitors else ()
    file = var / "targets.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in target_lines(workload, var, cookies)))
    return file


def ask(workload, address, var):
    """The response to the workload's first target: status, headers, body."""
    target = workload.targets[0]
    body = body_of(target, workload.folder, var)
    payload = pathlib.Path(body["body_file"]).read_bytes() if "body_file" in body else body.get("body", "").encode()
    connection = http.client.HTTPConnection(address, timeout=CHECK_TIMEOUT_SECONDS)
    try:
        connection.request(target.method, target.path.replace("{n}", "1"), payload or None, target.headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ClientError(f"no response to the first request: {error!r}") from error
    finally:
        connection.close()


def check(workload, address, var):
    """Raises ClientError unless the server's response is the one that the workload expects."""
    status, _, body = ask(workload, address, var)
    text = body.decode(errors="replace")
    if status != workload.status:
        raise ClientError(f"returned status {status}, not {workload.status}: {text.strip()[:SAMPLE_CHARS]}")
    if workload.contains is not None and workload.contains not in text:
        raise ClientError(f"the response lacks {workload.contains!r}: {text.strip()[:SAMPLE_CHARS]}")


def cookies_of(headers):
    """The Cookie header of a visitor after a response with these headers."""
    return "; ".join(value.split(";")[0] for value in headers.get_all("Set-Cookie") or [])


def visitors(workload, address, var):
    cookies = [cookies_of(ask(workload, address, var)[1]) for _ in range(workload.visitors)]
    if not all(cookies):
        raise ClientError("the workload needs visitors, but the response sets no cookie")
    return cookies


def command(address, targets, seconds, connections, rate=None, new_connections=False):
    """The client's command line."""
    parts = [str(binary()), "--connections", str(connections), "--seconds", str(seconds),
             "--timeout-seconds", str(TIMEOUT_SECONDS), "--grace-seconds", str(GRACE_SECONDS),
             "--targets", str(targets), "--seed", str(SEED)]
    if rate:
        parts += ["--rate", f"{rate:g}" if rate < 1000 else str(round(rate))]
    if new_connections:
        parts.append("--new-connections")
    return [*parts, f"http://{address}/"]


def run(parts, seconds):
    """The client's results."""
    limit = seconds + TIMEOUT_SECONDS + GRACE_SECONDS + OVERTIME_SECONDS_MAX
    try:
        out = subprocess.run(parts, capture_output=True, text=True, timeout=limit)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientError(f"cannot run the client: {error}") from error
    try:
        return json.loads(out.stdout)
    except json.JSONDecodeError as error:
        raise ClientError(f"the client failed: {(out.stderr or out.stdout).strip()[-SAMPLE_CHARS:]}") from error
