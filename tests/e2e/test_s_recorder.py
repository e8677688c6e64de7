# SPDX-License-Identifier: GPL-2.0-or-later
"""The pod's flight recorder: phases, who closed, numbers, waiting; the rest of the pod's socket."""
import html
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

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
    # A client that waits for the server's end.
    client.run("python3", "-c", "import socket,sys\ns=socket.create_connection((sys.argv[1],8080),20)\n"
               "s.sendall(b'GET / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')\nwhile s.recv(9999): pass", server.ip)
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
    waiting = [threading.Thread(target=lambda: got.append(events(mesh, client, 1, "?after=0&wait=10000"))) for _ in range(3)]
    for one in waiting:
        one.start()
    # One that leaves meanwhile is forgotten.
    subprocess.run(["curl", "-s", "--max-time", "0.2", "--unix-socket", pod_socket(mesh, client), "http://x/events?wait=10000"], check=False)
    client.curl(f"http://{server.ip}:8080/")
    for one in waiting:
        one.join()
    assert [[e["seq"] for e in g] for g in got] == [[1], [1], [1]]
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


# --- the rest of the pod's socket ----------------------------------------------------------------------


def test_s10_metrics_of_one_pod(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    events(mesh, client, 1)
    status, text = ask_pod(mesh, client, "/metrics")
    families = {f.name: f for f in text_string_to_metric_families(text)}
    assert status == 200
    opened = families["istio_tcp_connections_opened"].samples
    assert [s.labels["reporter"] for s in opened] == ["source"] and opened[0].value == 1
    own = families["culvert_silo_connections_opened"].samples[0]
    assert own.labels == {"pod_namespace": "default", "pod_name": "client"} and own.value == 1
    sent, received = (families[f"culvert_silo_{name}_bytes"].samples[0].value for name in ("sent", "received"))
    event = told(mesh, client)["events"][0]
    assert (sent, received) == (event["sent"], event["received"])
    # The other end's view of the same bytes, and the node's.
    there = {s.name: s.value for f in text_string_to_metric_families(ask_pod(mesh, server, "/metrics")[1]) for s in f.samples}
    assert there["culvert_silo_received_bytes_total"] == sent and there["culvert_silo_sent_bytes_total"] == received


def test_s11_drain(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    silo = mesh.silo_of(server)
    talk = client.popen("python3", "-c", "import socket,sys\ns=socket.create_connection((sys.argv[1],8080),30)\nprint(1,flush=True)\n"
                        "sys.stdin.readline()\ns.sendall(b'GET / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')\n"
                        "got=b''\nwhile (d:=s.recv(9999)): got+=d\nprint(b'hello' in got,flush=True)", server.ip,
                        stdin=subprocess.PIPE)
    assert talk.stdout.readline() == "1\n"
    wait_for("the connection", lambda: json.loads(ask_pod(mesh, server, "/connections")[1])["total"] == 1)
    assert ask_pod(mesh, server, "/drain")[0] == 405
    status, text = ask_pod(mesh, server, "/drain", "POST")
    assert status == 200 and text.startswith("draining; 1 connections are open")
    # New ones are welcome, over another tunnel; what was open goes on to its end.
    def over_a_new_tunnel():
        before = told(mesh, client)["lastSeq"]
        client.curl(f"http://{server.ip}:8080/")
        return "tls" in present(events(mesh, client, 1, f"?after={before}")[-1])
    # The word takes its time to the other end.
    wait_for("another tunnel", over_a_new_tunnel)
    before = told(mesh, server)["lastSeq"]
    talk.stdin.write("\n")
    talk.stdin.flush()
    assert talk.stdout.readline() == "True\n"
    assert events(mesh, server, 1, f"?after={before}")[-1]["closeReason"] == "end"
    # Our own tunnels likewise.
    assert ask_pod(mesh, client, "/drain", "POST")[0] == 200
    assert over_a_new_tunnel()
    assert mesh.silo_of(server) == silo and not mesh.log_lines("died"), "no silo has ended"


def test_s12_cache(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    client.curl("http://198.51.100.9:8080/", "--connect-timeout", "0.3", check=False)
    cache = json.loads(ask_pod(mesh, client, "/cache")[1])
    assert cache["views"] == len(cache["entries"])
    by_address = {e["address"]: e for e in cache["entries"] if e["kind"] == "address"}
    known, unknown = by_address[server.ip], by_address["198.51.100.9"]
    assert known["state"] == "known" and known["workload"].endswith("server") and known["service"] is None and known["endpoints"] == 0
    assert unknown["state"] == "unknown" and "workload" not in unknown


def test_s13_many_connections(mesh):
    """More than one piece, read slowly while connections come and go."""
    client, outside = mesh.pods["client"], mesh.pods["outside"]
    many = "import socket,sys\nsocks=[]\n" \
        "for _ in range(600):\n s=socket.create_connection((sys.argv[1],8080),30)\n socks.append(s)\n" \
        "print(1,flush=True)\n" \
        "for line in sys.stdin:\n for s in socks[:int(line)]: s.close()\n del socks[:int(line)]\n print(2,flush=True)\n"
    sink = "import socket,sys\ns=socket.create_server(('0.0.0.0',8085),backlog=1000)\nheld=[]\nwhile True: held.append(s.accept())"
    holder = outside.popen("python3", "-c", sink)
    outside.wait_port(8085)
    held = client.popen("python3", "-c", many.replace("8080", "8085"), outside.ip, stdin=subprocess.PIPE)
    assert held.stdout.readline() == "1\n"
    whole = json.loads(ask_pod(mesh, client, "/connections")[1])
    assert whole["total"] == len(whole["connections"]) == 600
    slow = socket.socket(socket.AF_UNIX)
    slow.settimeout(30)
    slow.connect(str(pod_socket(mesh, client)))
    slow.sendall(b"GET /connections HTTP/1.0\r\n\r\n")
    got = slow.recv(1000)
    held.stdin.write("500\n")
    held.stdin.flush()
    assert held.stdout.readline() == "2\n"
    while piece := slow.recv(65536):
        got += piece
    seen = json.loads(got.partition(b"\r\n\r\n")[2])
    assert 100 <= seen["total"] == len(seen["connections"]) <= 600
    assert len({c["src"] for c in seen["connections"]}) == seen["total"], "each once"
    # One that leaves in the middle is forgotten.
    other = socket.socket(socket.AF_UNIX)
    other.connect(str(pod_socket(mesh, client)))
    other.sendall(b"GET /connections HTTP/1.1\r\n\r\n")
    other.recv(10)
    other.close()
    held.stdin.close()
    held.wait(timeout=30)
    holder.kill()
    wait_for("all gone", lambda: json.loads(ask_pod(mesh, client, "/connections")[1])["total"] == 0)


def test_s14_access_log_of_one_pod(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]

    def lines(pod):
        before = told(mesh, pod)["lastSeq"]
        client.curl(f"http://{server.ip}:8080/")
        wait_for("the end", lambda: told(mesh, pod)["lastSeq"] > before)
        return before

    def count(direction):
        return len(mesh.log_lines("\taccess\t", f'direction="{direction}"'))
    assert ask_pod(mesh, client, "/logging?access=off", "POST")[0] == 200
    lines(client)
    mesh.wait_log("\taccess\t", 'direction="inbound"')
    assert count("outbound") == 0
    # The node's levels change; what is held back here stays.
    assert ask(mesh, "/logging?level=debug", "POST")[0] == 200
    wait_for("the new level", lambda: "debug" in ask_pod(mesh, client, "/logging", "POST")[1])
    lines(client)
    mesh.wait_log("\taccess\t", 'direction="inbound"', count=2)
    assert count("outbound") == 0
    assert ask(mesh, "/logging?reset", "POST")[0] == 200
    assert ask_pod(mesh, client, "/logging?access=errors", "POST")[0] == 200
    client.curl(f"http://{server.ip}:8099/", check=False)
    assert 'error="' in mesh.wait_log("\taccess\t", 'direction="outbound"')[0]
    assert ask_pod(mesh, client, "/logging?access=all", "POST")[0] == 200
    lines(client)
    mesh.wait_log("\tinfo\taccess\t", 'direction="outbound"')
    for bad in ("loud", "", "ALL"):
        assert ask_pod(mesh, client, f"/logging?access={bad}", "POST")[0] == 400


# --- bad input -----------------------------------------------------------------------------------------

NOBODY = "import os,socket,sys\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n" \
    "try:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n print('in')\nexcept PermissionError:\n print('refused')\n"


def test_s30_without_permission(mesh):
    path = pod_socket(mesh, mesh.pods["client"])
    assert oct(path.stat().st_mode)[-4:] == "0600" and path.stat().st_uid == 0
    for one in (path, path.parent / "admin.sock"):
        # By its descriptor's path, so that the folder above is not what refuses.
        fd = os.open(one, os.O_PATH)
        try:
            res = subprocess.run(["python3", "-c", NOBODY, f"/proc/self/fd/{fd}"], pass_fds=[fd], capture_output=True, text=True, check=True)
            assert res.stdout == "refused\n"
            assert subprocess.run(["python3", "-c", NOBODY, str(one)], capture_output=True, text=True, check=True).stdout == "refused\n"
        finally:
            os.close(fd)


def talk(dial, data):
    """All that comes back for `data`."""
    with dial() as s:
        s.settimeout(30)
        try:
            s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got


def doors(lab):
    """Ways to the pod's socket and to 15020 (from within the node's namespace, by a helper process)."""
    def pod():
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(pod_socket(lab, lab.pods["client"])))
        return s

    def stats():
        ours, theirs = socket.socketpair()
        code = "import os,socket,sys,threading\na=socket.socket(fileno=int(sys.argv[1]))\nb=socket.create_connection(('127.0.0.1',15020),30)\n" \
            "def copy(x,y):\n try:\n  while (d:=x.recv(65536)): y.sendall(d)\n except OSError: pass\n" \
            " try: y.shutdown(socket.SHUT_WR)\n except OSError: pass\n" \
            "t=threading.Thread(target=copy,args=(a,b),daemon=True)\nt.start()\ncopy(b,a)\nos._exit(0)"
        subprocess.Popen(["ip", "netns", "exec", lab.node, "python3", "-c", code, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        return ours
    return {"pod": pod, "stats": stats}


@pytest.mark.parametrize("door", ["pod", "stats"])
def test_s31_bad_requests(mesh, door):
    dial = doors(mesh)[door]
    # Slow ones hold nothing up: many heads that never end, and meanwhile everything is answered.
    slow = [dial() for _ in range(10)]
    for s in slow:
        s.sendall(b"GET /met")
    assert talk(dial, b"GET /nothing HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 404")
    assert talk(dial, b"GET /metrics HTTP/1.0\r\n\r\n").endswith(b"# EOF\n")
    method = b"POST /metrics" if door == "pod" else b"BREW /metrics"
    assert talk(dial, method + b" HTTP/1.0\r\n\r\n")[:12] in (b"HTTP/1.1 405", b"HTTP/1.1 501", b"HTTP/1.1 400", b"HTTP/1.1 200")
    assert talk(dial, b"GET /metrics HTTP/1.0\r\nx: " + b"a" * (1 << 20) + b"\r\n\r\n")[:12] in (b"HTTP/1.1 431", b"")
    for garbage in (b"\0\1\2\r\n\r\n", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        assert re.match(rb"HTTP/1\.1 (400|505)", talk(dial, garbage)), garbage
    for s in slow:
        s.settimeout(30)
        try:
            assert s.recv(1) == b"", "cut after its time"
        except ConnectionResetError:
            pass
        s.close()
    mesh.pods["client"].curl(f"http://{mesh.pods['server'].ip}:8080/")


# --- log -----------------------------------------------------------------------------------------------


def test_s40_lines_of_the_life(lab):
    """What upstream's operators look for: settings, tasks, listeners that come and go."""
    pod = lab.pod("pod")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(pod)
    lab.wait_ready()
    config = json.loads(lab.wait_log("running with config: ")[0].split("running with config: ", 1)[1].replace('\\"', '"'))
    assert config["adminAddr"] and config["localNode"] is not None
    tasks = [re.search(r"Task '([^']*)' complete \(\d+\.\d{3}ms\), (.*?)\t", line).groups() for line in lab.log_lines("\treadiness\tTask ")]
    assert sorted(name for name, _ in tasks) == ["dns proxy", "proxy", "state manager", "workload proxy manager"]
    assert [rest for _, rest in tasks] == ["still awaiting 3 tasks", "still awaiting 2 tasks", "still awaiting 1 tasks", "marking server ready"]

    def listeners(event):
        return {re.search(r'component="([^"]*)"', line)[1] for line in lab.log_lines(f"\t{event}\t")}
    assert listeners("listener established") == {"readiness", "admin", "stats", "inbound", "inbound plaintext", "outbound"}
    lab.stop_daemon()
    assert listeners("listener drained") == listeners("listener established")


def test_s41_levels_reach_the_warden(mesh):
    assert not mesh.log_lines("\tdebug\t")
    assert ask(mesh, "/logging?level=debug", "POST")[0] == 200
    os.kill(mesh.pid_of("broker"), 9)
    assert mesh.wait_log("\tdebug\t", "channel to the broker", "is open")
