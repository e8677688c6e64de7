# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs inside the pods of a soak: an echo server, and clients of many kinds that check every byte and report
every failure as a line of JSON with the time the attempt began and ended (CLOCK_MONOTONIC, the same for all)."""
from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

ANSWER_S = 60  # no attempt may take longer


def echo(conn):
    """Gives back what comes; at the end of it closes, as a server of requests does."""
    try:
        with conn:
            while data := conn.recv(262144):
                conn.sendall(data)
    except OSError:
        pass


def serve(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    print("listening", flush=True)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=echo, args=(conn,), daemon=True).start()


def read_exactly(conn, count):
    data = bytearray()
    while len(data) < count:
        part = conn.recv(min(count - len(data), 262144))
        if not part:
            raise ConnectionError(f"ended after {len(data)} of {count} bytes")
        data += part
    return bytes(data)


class Client:
    """Runs its tasks, a thread each, until stdin closes; then one line with what was done."""

    def __init__(self, tasks):
        self.stop = threading.Event()
        self.done = {task["label"] + "/" + task["kind"]: 0 for task in tasks}
        self.slowest = {}
        self.lock = threading.Lock()
        self.tasks = tasks

    def say(self, **fields):
        with self.lock:
            print(json.dumps(fields), flush=True)

    def run(self):
        threads = [threading.Thread(target=self.repeat, args=(task,), daemon=True) for task in self.tasks]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self.stop.set()
        for thread in threads:
            thread.join(ANSWER_S)
        self.say(done=self.done, slowest=self.slowest, stuck=[task for task, thread in zip(self.tasks, threads) if thread.is_alive()])

    def repeat(self, task):
        attempt = getattr(self, task["kind"])
        name = task["label"] + "/" + task["kind"]
        while not self.stop.is_set():
            begin = time.monotonic()
            try:
                self.done[name] += attempt(task) or 0
                if task["kind"] != "idle":
                    took = time.monotonic() - begin
                    self.slowest[name] = max(self.slowest.get(name, (0, 0)), (round(took, 2), begin))
            except (OSError, AssertionError) as err:
                self.say(label=task["label"], kind=task["kind"], begin=begin, end=time.monotonic(),
                         error=f"{type(err).__name__}: {err}")
                self.stop.wait(0.2)
            self.stop.wait(task.get("pause", 0.05))

    @staticmethod
    def connect(task):
        return socket.create_connection((task["host"], task["port"]), timeout=ANSWER_S)

    # --- kinds of traffic; each returns how many exchanges went well ---

    def quick(self, task):
        """Connect, one exchange, an orderly end."""
        with self.connect(task) as conn:
            word = os.urandom(64)
            conn.sendall(word)
            assert read_exactly(conn, len(word)) == word, "other bytes came back"
            conn.shutdown(socket.SHUT_WR)
            assert conn.recv(1) == b"", "bytes after the end"
        return 1

    def abort(self, task):
        """An end by reset with data on the way."""
        with self.connect(task) as conn:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            conn.sendall(os.urandom(20000))
            assert conn.recv(1), "the end came first"
        return 1

    def bulk(self, task):
        """Many bytes both ways at once."""
        block, count = os.urandom(1 << 18), task.get("blocks", 40)
        with self.connect(task) as conn:
            failed = []

            def send():
                try:
                    for _ in range(count):
                        conn.sendall(block)
                    conn.shutdown(socket.SHUT_WR)
                except OSError as err:
                    failed.append(err)

            sender = threading.Thread(target=send)
            sender.start()
            try:
                for _ in range(count):
                    assert read_exactly(conn, len(block)) == block, "other bytes came back"
                assert conn.recv(1) == b"", "bytes after the end"
            finally:
                sender.join(ANSWER_S)
            if failed:
                raise failed[0]
        return 1

    def slow(self, task):
        """A reader that lets everything fill up first."""
        data = os.urandom(3 << 20)
        with self.connect(task) as conn:
            sender = threading.Thread(target=lambda: conn.sendall(data))
            sender.start()
            self.stop.wait(1)
            got = read_exactly(conn, len(data))
            sender.join(ANSWER_S)
            assert got == data, "other bytes came back"
        return 1

    def idle(self, task):
        """Connections for the whole time, with a word now and then: none of them may break."""
        conns, count = [], 0
        try:
            for _ in range(task.get("conns", 10)):
                conns.append(self.connect(task))
            while not self.stop.wait(task.get("every", 5)):
                for conn in conns:
                    word = os.urandom(16)
                    conn.sendall(word)
                    assert read_exactly(conn, 16) == word, "other bytes came back"
                    count += 1
        finally:
            for conn in conns:
                conn.close()
        return count

    def http(self, task):
        """curl with one connection for many requests."""
        host = f"[{task['host']}]" if ":" in task["host"] else task["host"]
        res = subprocess.run(["curl", "-sS", "--max-time", str(ANSWER_S), "-o", "/dev/null", "-w",
                              "%{http_code} %{num_connects}\\n", f"http://{host}:{task['port']}/[1-50]"],
                             text=True, capture_output=True)
        lines = res.stdout.split("\n")[:-1]
        assert res.returncode == 0 and len(lines) == 50, res.stderr
        assert all(line.startswith("200") for line in lines), lines
        assert sum(int(line.split()[1]) for line in lines) == 1, "the connection was not kept"
        return 50

    def scrape(self, task):
        """The daemon's metrics, through its own silo."""
        res = subprocess.run(["curl", "-sS", "--max-time", str(ANSWER_S), f"http://{task['host']}:{task['port']}/metrics"],
                             text=True, capture_output=True)
        assert res.returncode == 0 and "istio_build" in res.stdout, res.stderr
        return 1

    def dns(self, task):
        """The address of a service, from whatever server the pod is said to have."""
        name = b"".join(bytes([len(part)]) + part for part in task["name"].encode().split(b".")) + b"\0"
        number = os.urandom(2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.connect((task["host"], task["port"]))
            sock.send(number + bytes([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + name + bytes([0, 1, 0, 1]))
            answer = sock.recv(4096)
        assert answer[:2] == number and answer[3] & 15 == 0, "an error is the answer"
        assert socket.inet_aton(task["answer"]) in answer, "another address is the answer"
        return 1

    def garbage(self, task):
        """A stranger at one of the proxy's own ports: is closed on, whatever it says."""
        try:
            with self.connect(task) as conn:
                conn.sendall(b"\x16\x03\x01\x00\xff" + os.urandom(300))
                while conn.recv(4096):
                    pass
        except (ConnectionResetError, BrokenPipeError):
            pass
        return 1

    def refused(self, task):
        """Nobody listens there: the connection ends without a byte, and soon."""
        try:
            with self.connect(task) as conn:
                conn.sendall(b"x")
                assert conn.recv(1) == b"", "bytes came from nowhere"
        except (ConnectionResetError, ConnectionRefusedError, BrokenPipeError):
            pass
        return 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        Client(json.loads(sys.argv[2])).run()
