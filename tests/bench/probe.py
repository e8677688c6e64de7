# SPDX-License-Identifier: GPL-2.0-or-later
"""Small parts of the bench that run inside a namespace; times are of CLOCK_MONOTONIC, the same for all processes.

probe.py ready SECONDS             says "go", then when 127.0.0.1:15021 first answered 200
probe.py scrape COUNT              scrapes 127.0.0.1:15020 so often, says {"seconds": median, "bytes": of one}
probe.py letter PORT LETTER ...    serves a letter on each port to whoever connects
probe.py sees HOST PORT            for each letter on stdin: when a new connection first got it
probe.py canary HOST PORT          opens a connection, says "open", then when it was cut
probe.py touch HOST PORT NETNS ... one connection with one echo from each of these namespaces
"""
import ctypes
import http.client
import json
import os
import select
import socket
import statistics
import sys
import time

CLONE_NEWNET = 0x40000000
# A wait for something to be seen ends after this, seconds.
PATIENCE = 30


def get(port, path):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        conn.request("GET", path)
        answer = conn.getresponse()
        return answer.status, answer.read()
    finally:
        conn.close()


def ready(seconds):
    print("go", flush=True)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            if get(15021, "/healthz/ready")[0] == 200:
                print(time.monotonic(), flush=True)
                return 0
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.003)
    return 1


def scrape(count):
    took = []
    for _ in range(int(count)):
        before = time.monotonic()
        status, body = get(15020, "/stats/prometheus")
        took.append(time.monotonic() - before)
        if status != 200:
            sys.exit(f"status {status}")
    print(json.dumps({"seconds": statistics.median(took), "bytes": len(body)}))
    return 0


def letter(*pairs):
    letters = {}
    for port, words in zip(pairs[::2], pairs[1::2]):
        listener = socket.create_server(("", int(port)), backlog=1024)
        letters[listener] = words.encode()
    while True:
        for listener in select.select(list(letters), [], [])[0]:
            conn, _ = listener.accept()
            with conn:
                try:
                    conn.sendall(letters[listener])
                except OSError:
                    pass


def answer_of(host, port):
    try:
        with socket.create_connection((host, port), timeout=5) as conn:
            return conn.recv(1)
    except OSError:
        return b""


def sees(host, port):
    for line in sys.stdin:
        want, end = line.strip().encode(), time.monotonic() + PATIENCE
        while answer_of(host, int(port)) != want:
            if time.monotonic() > end:
                sys.exit(f"{want.decode()} not seen within {PATIENCE} s")
        print(time.monotonic(), flush=True)
    return 0


def echoed(host, port):
    conn = socket.create_connection((host, int(port)), timeout=PATIENCE)
    conn.sendall(b"x")
    if not conn.recv(1):
        raise ConnectionError(f"{host}:{port} ended the connection")
    return conn


def canary(host, port):
    conn = echoed(host, port)
    print("open", flush=True)
    try:
        conn.recv(1)
    except TimeoutError:
        sys.exit(f"not cut within {PATIENCE} s")
    except OSError:
        pass
    print(time.monotonic(), flush=True)
    return 0


def touch(host, port, *spaces):
    libc = ctypes.CDLL(None, use_errno=True)
    for space in spaces:
        fd = os.open(space, os.O_RDONLY | os.O_CLOEXEC)
        if libc.setns(fd, CLONE_NEWNET) != 0:
            sys.exit(f"setns {space}: {os.strerror(ctypes.get_errno())}")
        os.close(fd)
        try:
            echoed(host, port).close()
        except OSError as err:
            sys.exit(f"from {space}: {err}")
    print("done", flush=True)
    return 0


COMMANDS = {f.__name__: f for f in (ready, scrape, letter, sees, canary, touch)}

if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
