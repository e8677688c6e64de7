# SPDX-License-Identifier: GPL-2.0-or-later
"""A scripted node agent: a SEQPACKET server that sends what it is told, byte for byte, and looks at each answer.

Messages are encoded by hand (reference node-agent.md 1.2), so that broken
ones are as easy to make as good ones.
"""
from __future__ import annotations

import array
import os
import socket
import time
from pathlib import Path

HELLO = b"\x08\x01"
OK = b"\x0a\x00"
SNAPSHOT_SENT = b"\x1a\x00"

# Above the two seconds that an answer may take: slow machines, sanitizer builds.
SLACK_S = float(os.environ.get("CULVERT_TEST_SLACK", "2"))
ANSWER_S = 2 + SLACK_S


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """One protobuf field: bytes and text length-delimited, integers as varints."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def info(name="n", ns="default", sa="s"):
    return field(1, name) + field(2, ns) + field(3, sa)


def add(uid, workload_info=None):
    """An Add; workload_info None leaves it out, b"" makes it empty."""
    body = field(1, uid) + (field(2, workload_info) if workload_info is not None else b"")
    return field(1, body)


def keep(uid):
    return field(5, field(1, uid))


def delete(uid):
    return field(2, field(2, uid))


def ack_error(packet):
    """Text of an Ack, "" when it is good; anything else than an Ack is an assertion."""
    assert packet[:1] == b"\x0a", packet
    body = packet[2:] if packet[1] < 0x80 else packet[3:]
    if not body:
        return ""
    assert body[:1] == b"\x0a", packet
    text = body[2:] if body[1] < 0x80 else body[3:]
    assert text, "an error field that is there is not empty"
    return text.decode()


class Connection:
    """One connection of culvertd, after its hello."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(5)
        self.hello = sock.recv(2000)
        assert self.hello == HELLO, f"hello is {self.hello!r}"

    def close(self):
        self.sock.close()

    def send(self, packet, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([packet], rights)

    def answer(self, timeout=ANSWER_S):
        """The next packet, b"" at the end of the connection. Fails when it takes too long."""
        self.sock.settimeout(timeout)
        start = time.monotonic()
        try:
            return self.sock.recv(2000)
        except ConnectionResetError:
            return b""
        except TimeoutError:
            raise AssertionError(f"no answer within {time.monotonic() - start:.1f} s") from None

    def ask(self, packet, fds=(), timeout=ANSWER_S):
        """Sends and returns the answer's error text ("" = acknowledged)."""
        self.send(packet, fds)
        got = self.answer(timeout)
        assert got, "the connection ended instead of an answer"
        return ack_error(got)

    def add(self, pod, path=None, timeout=ANSWER_S):
        """Add of a lab's pod, with its own namespace or that at path."""
        fd = os.open(path or pod.netns_path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.ask(add(pod.uid, info(pod.name, pod.ns, pod.sa)), [fd], timeout)
        finally:
            os.close(fd)

    def keep(self, pod):
        return self.ask(keep(pod.uid))

    def delete(self, pod):
        return self.ask(delete(pod.uid))

    def snapshot_sent(self):
        return self.ask(SNAPSHOT_SENT)

    def is_ended(self, timeout=ANSWER_S):
        """Whether the other end hangs up within the time, without another word."""
        got = self.answer(timeout)
        assert got == b"", f"instead of the end: {got!r}"
        return True

    def is_quiet(self, seconds):
        """Whether nothing at all arrives for so long."""
        self.sock.settimeout(seconds)
        try:
            self.sock.recv(2000)
            return False
        except TimeoutError:
            return True


class ScriptedAgent:
    """Listens where culvertd dials; every connection is taken by hand."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self.listener = None
        self.conns = []
        self.open()

    def open(self):
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        self.listener.listen(8)

    def close(self):
        """What an agent's end looks like: no listener, no connection, no path."""
        for conn in self.conns:
            conn.close()
        self.conns = []
        if self.listener:
            self.listener.close()
            self.listener = None
        self.path.unlink(missing_ok=True)

    def accept(self, timeout=15):
        self.listener.settimeout(timeout)
        try:
            sock, _ = self.listener.accept()
        except TimeoutError:
            raise AssertionError(f"culvertd has not dialled within {timeout} s") from None
        conn = Connection(sock)
        self.conns = [c for c in self.conns if c.sock.fileno() >= 0] + [conn]
        return conn

    def snapshot(self, *pods, timeout=15):
        """Accepts a connection and sends a whole snapshot; everything must be acknowledged."""
        conn = self.accept(timeout)
        for pod in pods:
            error = conn.add(pod)
            assert error == "", error
        assert conn.snapshot_sent() == ""
        return conn

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
