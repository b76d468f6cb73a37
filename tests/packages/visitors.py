#!/usr/bin/env python3
"""Requests a page over kept and new connections until SIGTERM, then prints how many were lost.

usage: visitors.py PORT COUNT_FILE

COUNT_FILE contains the number of responses so far, so that a script can wait for the load.
"""

import http.client
import pathlib
import signal
import sys
import threading
import time

VISITORS = 8
TIMEOUT_SECONDS = 30
REPORT_SECONDS = 0.1
LOST_SHOWN_MAX = 5
# After an error: a server that is down would be asked thousands of times per second.
PAUSE_SECONDS = 0.01

port, count_file = int(sys.argv[1]), pathlib.Path(sys.argv[2])
ends = threading.Event()
good = [0] * VISITORS
lost = [0] * VISITORS
examples: list[str] = []


def lose(number: int, text: str) -> None:
    lost[number] += 1
    if len(examples) < LOST_SHOWN_MAX:
        examples.append(text)


def visit(number: int) -> None:
    keeps = number % 2 == 0
    connection = None
    while not ends.is_set():
        try:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
            connection.request("GET", "/")
            response = connection.getresponse()
            body = response.read()
            if response.status != 200 or b"</p>" not in body:
                lose(number, f"status {response.status}, {len(body)} bytes")
            good[number] += 1
            if not keeps or response.will_close:
                connection.close()
                connection = None
        except (OSError, http.client.HTTPException) as error:
            lose(number, repr(error))
            connection = None
            time.sleep(PAUSE_SECONDS)


signal.signal(signal.SIGTERM, lambda *_: ends.set())
threads = [threading.Thread(target=visit, args=(number,)) for number in range(VISITORS)]
for thread in threads:
    thread.start()
while not ends.is_set():
    count_file.write_text(str(sum(good)))
    time.sleep(REPORT_SECONDS)
for thread in threads:
    thread.join()
print(f"{sum(good)} requests, {sum(lost)} lost")
for text in examples:
    print(text)
sys.exit(1 if sum(lost) or not sum(good) else 0)
