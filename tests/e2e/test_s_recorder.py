# SPDX-License-Identifier: GPL-2.0-or-later
"""The pod's flight recorder: phases, who closed, numbers, waiting; the rest of the pod's socket."""
import html
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from culvert_e2e.lab import run, wait_for
from test_a_basic import mesh  # noqa: F401
from test_p_admin import ask, ask_pod, hold, pod_socket

PHASES = ["lookup", "policy", "certificate", "tcp", "tls", "connect", "firstByte"]
KEYS = ["seq", "time", "direction", "protocol", "src", "originalDst", "actualDst", "peerIdentity", "attempts", "phases",
        "durationMicroseconds", "sent", "received", "closedBy", "closeReason", "flags", "error"]


def told(lab, pod, query=""):
    status, body = ask_pod(lab, pod, f"/events{query}")
    assert status == 200, body
    got = json.loads(body)
    assert list(got) == ["events", "lastSeq", "missed"]
    seqs = [e["seq"] for e in got["events"]]
    assert seqs == list(range(got["lastSeq"] - len(seqs) + 1, got["lastSeq"] + 1))
    for event in got["events"]:
        assert list(event) == KEYS and list(event["phases"]) == PHASES
        assert sum(v or 0 for v in event["phases"].values()) <= event["durationMicroseconds"] or event["direction"] == "inbound"
    return got


def events(lab, pod, cnt, query=""):
    """The first `cnt` events, once there are that many."""
    return wait_for(f"{cnt} events", lambda: (e := told(lab, pod, query)["events"]) and len(e) >= cnt and e)


def present(event):
    return [name for name, us in event["phases"].items() if us is not None]


def test_s01_outbound_phases(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    assert told(mesh, client) == {"events": [], "lastSeq": 0, "missed": 0}
    for ip in (server.ip, server.ip, outside.ip):
        client.curl(f"http://{ip}:8080/")
    new, pooled, plain = events(mesh, client, 3)
    assert present(new) == ["lookup", "certificate", "tcp", "tls", "connect", "firstByte"]
    assert present(pooled) == ["lookup", "certificate", "connect", "firstByte"]
    assert present(plain) == ["lookup", "tcp", "firstByte"]
    assert new["phases"]["tls"] > 0 and new["phases"]["connect"] > 0 and new["phases"]["firstByte"] > 0
    assert (new["direction"], new["protocol"], new["attempts"], new["flags"], new["error"]) == ("outbound", "HBONE", 1, "-", None)
    assert new["peerIdentity"] == server.spiffe and new["originalDst"] == f"{server.ip}:8080" and new["actualDst"] == f"{server.ip}:15008"
    assert new["sent"] > 0 and new["received"] > 0
    assert (new["closedBy"], new["closeReason"]) == ("client", "end"), "curl closes first"
    assert (plain["protocol"], plain["peerIdentity"], plain["actualDst"]) == ("TCP", None, f"{outside.ip}:8080")


def test_s02_inbound_phases(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    client.curl(f"http://{server.ip}:8080/")
    client.curl(f"http://{server.ip}:8080/")
    events(mesh, server, 2)
    outside.curl(f"http://{server.ip}:8080/")
    first, second, plain = events(mesh, server, 3)
    assert present(first) == ["lookup", "policy", "certificate", "tcp", "tls", "firstByte"], "the tunnel's handshake is its first request's"
    assert present(second) == present(plain) == ["lookup", "policy", "tcp", "firstByte"]
    assert (first["direction"], first["protocol"], first["peerIdentity"]) == ("inbound", "HBONE", client.spiffe)
    assert first["originalDst"] == f"{server.ip}:15008" and first["actualDst"] == f"{server.ip}:8080" and first["src"].startswith(client.ip)
    assert (plain["protocol"], plain["peerIdentity"], plain["originalDst"]) == ("TCP", None, f"{server.ip}:8080")


def test_s03_who_closed(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/", "-H", "connection: close")
    # By a reset of the client's.
    client.run("python3", "-c", "import socket,struct,sys\ns=socket.create_connection((sys.argv[1],8080),20)\n"
               "s.sendall(b'GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\ns.recv(1)\n"
               "s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,0))\ns.close()", server.ip)
    # Nobody listens there.
    client.curl(f"http://{server.ip}:8081/", check=False)
    # And nobody lets it in.
    client.curl(f"http://{server.ip}:15008/", check=False)
    by_server, reset, failed, refused = events(mesh, client, 4)
    assert (by_server["closedBy"], by_server["closeReason"]) == ("server", "end")
    assert (reset["closedBy"], reset["closeReason"]) == ("client", "reset")
    assert (failed["closedBy"], failed["closeReason"], failed["flags"]) == ("proxy", "error", "CONNECT")
    assert "503" in failed["error"] and "firstByte" not in present(failed)
    here = events(mesh, server, 3)
    assert [(e["closedBy"], e["closeReason"]) for e in here[:3]] == [("server", "end"), ("client", "reset"), ("proxy", "error")]
    assert here[2]["flags"] == "CONNECT" and here[2]["error"].startswith("connection failed: ")
    assert refused["closedBy"] == "proxy" and refused["error"]


def test_s04_policy_and_drain(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    hold(client, server.ip, 8080)
    wait_for("the connection", lambda: json.loads(ask_pod(mesh, server, "/connections")[1])["total"] == 1)
    mesh.mesh["policies"].append({"name": "no", "namespace": "default", "scope": "Namespace", "action": "Deny", "dryRun": False,
                                  "rules": [[[{"destinationPorts": [8080]}]]]})
    mesh.write_mesh()
    cut = events(mesh, server, 1)[0]
    assert (cut["closedBy"], cut["closeReason"], cut["flags"]) == ("proxy", "policy", "DENY")
    client.curl(f"http://{server.ip}:8080/", check=False)
    denied = events(mesh, server, 2)[1]
    assert (denied["closedBy"], denied["closeReason"], denied["flags"]) == ("proxy", "refused", "DENY")
    assert present(denied) == ["lookup", "policy"] and "default/no" in denied["error"]


def test_s05_numbers_and_ring(mesh):
    client, outside = mesh.pods["client"], mesh.pods["outside"]
    # Nobody listens there: the way fails, which is an event like others.
    many = "import socket,sys\nfor _ in range(300):\n" \
        " try:\n  s=socket.create_connection((sys.argv[1],8099),20)\n  s.recv(1)\n except ConnectionError: pass"
    client.run("python3", "-c", many, outside.ip, timeout=60)
    wait_for("all of them", lambda: told(mesh, client)["lastSeq"] == 300)
    got = told(mesh, client)
    assert len(got["events"]) == 256 and got["missed"] == 44 and got["events"][0]["seq"] == 45
    got = told(mesh, client, "?after=298")
    assert [e["seq"] for e in got["events"]] == [299, 300] and got["missed"] == 0
    assert told(mesh, client, "?after=300") == {"events": [], "lastSeq": 300, "missed": 0}
    assert len(told(mesh, client, "?after=5000")["events"]) == 256, "a number of an earlier silo"
    for bad in ("?after=-1", "?after=x", "?wait=", "?after=99999999999999999999999", "?after=1&wait=1s"):
        assert ask_pod(mesh, client, f"/events{bad}")[0] == 400
    assert ask_pod(mesh, client, "/events", "POST") == (405, "")


def test_s06_waiting(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    start = time.monotonic()
    assert told(mesh, client, "?wait=300")["events"] == [] and time.monotonic() - start >= 0.3
    got = []
    waiting = [threading.Thread(target=lambda: got.append(told(mesh, client, "?after=0&wait=10000"))) for _ in range(3)]
    for one in waiting:
        one.start()
    # One that leaves meanwhile is forgotten.
    subprocess.run(["curl", "-s", "--max-time", "0.2", "--unix-socket", pod_socket(mesh, client), "http://x/events?wait=10000"], check=False)
    client.curl(f"http://{server.ip}:8080/")
    for one in waiting:
        one.join()
    # Who came after the connection was over has it at once.
    assert [g["lastSeq"] for g in got] == [1, 1, 1] and all(len(g["events"]) == 1 for g in got)
    # The silo ends while somebody waits.
    held = subprocess.Popen(["curl", "-s", "--unix-socket", pod_socket(mesh, client), "http://x/events?after=1&wait=10000"])
    mesh.delete(client)
    assert held.wait(timeout=30) != 0


# --- the page ------------------------------------------------------------------------------------------


def chromium():
    """A headless browser, where there is one: it is too large to be fetched for one test."""
    found = os.environ.get("CULVERT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("no chromium (CULVERT_CHROMIUM, or in PATH)")
    return found


def browse(lab, tmp_path, size="1280,900"):
    """The page's DOM after its scripts have run for a while, and a picture of it in tmp_path."""
    base = ["ip", "netns", "exec", lab.node, chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size}", "--virtual-time-budget=9000"]
    dom = run(*base, "--dump-dom", "http://127.0.0.1:15000/culvert/", timeout=120).stdout
    run(*base, f"--screenshot={tmp_path / 'page.png'}", "http://127.0.0.1:15000/culvert/", timeout=120)
    return dom


def cells(dom, table):
    """Texts of a table body's cells, row by row."""
    body = re.search(rf'<tbody id="{table}">(.*?)</tbody>', dom, re.S)[1]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr.*?>(.*?)</tr>", body, re.S)]


def test_s20_page_files(mesh):
    def head_of(path):
        return run("ip", "netns", "exec", mesh.node, "curl", "-sS", "-D", "-", f"http://127.0.0.1:15000{path}").stdout.lower()
    page = head_of("/culvert/")
    assert "content-security-policy: default-src 'none'; script-src 'self'" in page and "x-content-type-options: nosniff" in page
    refs = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert refs and all(not re.match(r"[a-z]+:(?!,)|/", ref) for ref in refs), "offline, and behind a prefix"
    for ref in ("dashboard.css", "dashboard.js"):
        text = head_of(f"/culvert/{ref}")
        assert text.startswith("http/1.1 200") and "http" not in text.partition("\r\n\r\n")[2].replace("http://www.w3.org/2000/svg", "")
    status, _, body = ask(mesh, "/culvert/state")
    state = json.loads(body)
    assert status == 200 and list(state) == ["certificates", "health", "version", "workloadState"]
    assert state["health"] == {"isReady": True, "pending": ""} and len(state["workloadState"]) == 2
    assert "culvert_silo_connections_opened_total" in ask(mesh, "/culvert/metrics")[2]
    assert ask(mesh, "/culvert/", "POST")[0] == 405 and ask(mesh, "/culvert/x")[0] == 404
    assert 'href="culvert/"' in ask(mesh, "/")[2]


def test_s21_page_shows_the_node(mesh, tmp_path):
    client, server = mesh.pods["client"], mesh.pods["server"]
    for _ in range(3):
        hold(client, server.ip, 8080)
    wait_for("certificates", lambda: json.loads(ask_pod(mesh, client, "/certificate")[1])["isAvailable"])
    dom = browse(mesh, tmp_path)
    assert re.search(r'id="health"[^>]*>ready<', dom), dom
    assert not re.search(r'id="banner"(?![^>]*hidden)', dom)
    rows = cells(dom, "pods")
    assert [row[0] for row in rows] == ["default/client", "default/server"]
    assert [row[1] for row in rows] == ["Up", "Up"] and rows[0][2] == "3"
    assert all(row[10].startswith("in ") for row in rows), "certificates"
    assert (tmp_path / "page.png").stat().st_size > 10000
