# SPDX-License-Identifier: GPL-2.0-or-later
"""The control plane at its worst: silence at every step, a drip, giants, roots that are none, and death in mid-message."""
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from culvert_e2e.istiod import ADDRESS, POLICY, name_of, packed, resource, response, workload
from culvert_e2e.lab import PATIENCE, wait_for
from test_i_xds import node, reachable, served  # noqa: F401

# Says nothing from some step on, or says a response of one resource byte by byte.
SILENT = r'''
import socket, ssl, struct, sys, time
import h2.config, h2.connection, h2.events
mode, crt, key = sys.argv[1:4]
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
ctx.load_cert_chain(crt, key)
ctx.set_alpn_protocols(["h2"])
lsock = socket.socket(); lsock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
lsock.bind(("127.0.0.1", 15012)); lsock.listen(16)
print("listening", flush=True)
kept = []
while True:
    raw, _ = lsock.accept()
    print("accepted", flush=True)
    kept.append(raw)
    if mode == "tcp": continue
    s = ctx.wrap_socket(raw, server_side=True)
    kept.append(s)
    conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    conn.initiate_connection(); s.sendall(conn.data_to_send())
    if mode == "h2": continue
    stream = None
    while stream is None:
        for event in conn.receive_data(s.recv(65536)):
            if isinstance(event, h2.events.RequestReceived): stream = event.stream_id
        s.sendall(conn.data_to_send())
    conn.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
    s.sendall(conn.data_to_send())
    body = sys.stdin.buffer.read()
    framed = struct.pack(">BI", 0, len(body)) + body
    s.settimeout(0.001)
    said = b""
    for i in range(1 << 30):
        if i < len(framed):
            conn.send_data(stream, framed[i:i + 1])
            s.sendall(conn.data_to_send())
        else:
            time.sleep(0.05)
        try:
            said += b"".join(e.data for e in conn.receive_data(s.recv(65536)) if isinstance(e, h2.events.DataReceived))
        except (TimeoutError, ssl.SSLWantReadError):
            pass
        if b"drip-nonce" in said:
            print("answered", i >= len(framed) - 1, flush=True)
            said = b""
'''


def silent(made, mode, body=b""):
    proc = subprocess.Popen(["ip", "netns", "exec", made.lab.node, sys.executable, "-c", SILENT, mode, str(made.crt),
                             str(made.key)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert proc.stdout.readline() == b"listening\n"
    proc.stdin.write(body)
    proc.stdin.close()
    watchdog = threading.Timer(PATIENCE + 90, proc.kill)
    watchdog.daemon = True
    watchdog.start()  # or a test would wait for its words for ever
    return proc


def read_until(proc, word):
    for line in proc.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"no {word}")


# What is said of a server that falls silent after accept, or after a call was made.
SILENCES = {"tcp": "handshake timeout", "h2": "timed out"}


@pytest.mark.parametrize("mode", ["tcp", "h2"])
def test_v01_silence(served, mode):  # noqa: F811
    """Who says nothing is left alone after a while, with one line; traffic goes on, and a good server is found."""
    made, istiod = served, served.istiod
    istiod.stop()
    quiet = silent(made, mode)
    try:
        read_until(quiet, b"accepted")
        assert reachable(made)
        made.lab.wait_log("XDS client connection error", SILENCES[mode], timeout=PATIENCE + 50)
        assert reachable(made)
    finally:
        quiet.kill()
        quiet.wait()
        quiet.stdout.close()
    since = istiod.mark()
    istiod.start()
    assert istiod.first(ADDRESS, since, timeout=40)["version_count"] == 2


def test_v02_a_drip(served):  # noqa: F811
    """A response byte by byte is slow, not broken."""
    made, istiod = served, served.istiod
    third = made.lab.pod("third")
    istiod.stop()
    body = response(ADDRESS, [resource(workload(third), "1")], nonce="drip-nonce").SerializeToString()
    drip = silent(made, "drip", body)
    try:
        read_until(drip, b"answered True")
        assert name_of(workload(third)) in made.lab.ctl("dump").stdout
    finally:
        drip.kill()
        drip.wait()
        drip.stdout.close()


def rss_peak_kb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1])


def test_v03_giants(served):  # noqa: F811
    """A resource of 64 MiB costs only itself, and no memory; one of 4,000 workloads beside it is taken."""
    made, istiod = served, served.istiod
    before = rss_peak_kb(made.broker())
    path = made.lab.tmp / "giant"
    giant = resource(workload(made.server, uid="giant", canonical_name="x" * (64 << 20)), "1")
    path.write_bytes(response(ADDRESS, [giant, resource(workload(made.lab.pod("third")), "1")],
                              nonce="giant").SerializeToString())
    since = istiod.mark()
    istiod.command(do="file", path=str(path))
    answer = istiod.answer("giant", since, timeout=60)
    assert answer["error"].startswith("giant: ") and ";" not in answer["error"]
    assert "Pod/default/third" in made.lab.ctl("dump").stdout
    assert reachable(made)
    if "ASAN_OPTIONS" not in os.environ:
        assert rss_peak_kb(made.broker()) - before < 16 << 10


def test_v04_killed_in_mid_message(node):  # noqa: F811
    """The broker dies while its first message comes: the next one gets all of it, and no pod was let through meanwhile."""
    istiod = node.control()
    node.start()
    istiod.first(ADDRESS)
    path = node.lab.tmp / "mesh"
    many = [resource(workload(node.client, uid=f"u{i}", name=f"n{i}", addresses=[packed(f"10.77.{i // 250}.{i % 250}")]), "1")
            for i in range(20000)]
    path.write_bytes(response(ADDRESS, many + [resource(m, "1") for m in node.records()], nonce="whole").SerializeToString())
    broker, since = node.broker(), istiod.mark()
    istiod.command(do="file", path=str(path))
    os.kill(broker, signal.SIGSTOP)
    time.sleep(0.2)
    os.kill(broker, signal.SIGKILL)
    wait_for("a new broker", lambda: node.broker() not in (None, broker))
    assert not node.lab.ready()
    assert istiod.first(ADDRESS, since)["version_count"] == 0
    since = istiod.mark()
    istiod.command(do="file", path=str(path))
    assert not istiod.answer("whole", since, timeout=60)["has_error"]
    assert not node.lab.ready()
    istiod.push(POLICY)
    node.enrol()
    assert reachable(node)


def test_v05_roots_are_bad_from_the_start(node):  # noqa: F811
    """Garbage, then nothing, then good roots: no restart is needed, and attempts stay few."""
    good = node.root.read_bytes()
    node.root.write_text("garbage")
    istiod = node.control()
    node.start()
    node.lab.wait_log("XDS client", str(node.root))
    node.root.unlink()
    count = len(node.lab.log_lines("XDS client"))
    node.lab.wait_log("XDS client", str(node.root), count=count + 1)
    assert len(node.lab.log_lines("XDS client")) < 30
    node.root.write_bytes(good)
    istiod.first(ADDRESS, timeout=40)
    istiod.serve(node.records())
    node.enrol()
    assert reachable(node)


def test_v06_token_that_may_not_be_read(node):  # noqa: F811
    """The line names the file, and the mode's change is enough. The broker has no capability, so a mode binds it."""
    istiod = node.control()
    node.token.chmod(0)
    node.start()
    node.lab.wait_log("XDS client", f"cannot read token file {node.token}", "Permission denied")
    assert not [e for e in istiod.events if e["event"] == "stream"]
    node.token.chmod(0o644)
    istiod.first(ADDRESS, timeout=40)
