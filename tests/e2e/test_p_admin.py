# SPDX-License-Identifier: GPL-2.0-or-later
"""The admin endpoint: paths, config dump, log levels, limits. Golden: the dump and the tables of a real mesh (tests/golden/admin)."""
import datetime
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from culvert_e2e import istioctl
from culvert_e2e.lab import PATIENCE, Tagged, run, wait_for
from test_a_basic import mesh, serve  # noqa: F401

GOLDEN = Path(__file__).parents[1] / "golden" / "admin"
UPSTREAM_PATHS = ("config_dump", "logging", "quitquitquit", "debug/pprof/profile", "debug/pprof/heap", "debug/pprof/heap/profiling")


def ask(lab, path, method="GET", host="127.0.0.1", port=15000):
    """Status, content type, body."""
    res = run("ip", "netns", "exec", lab.node, "curl", "-sS", "-g", "--max-time", "60", "-X", method, "-o", "-", "-w",
              "\n%{http_code} %{content_type}", f"http://{host}:{port}{path}")
    body, _, last = res.stdout.rpartition("\n")
    status, _, kind = last.partition(" ")
    return int(status), kind, body


def dump_of(lab):
    status, kind, body = ask(lab, "/config_dump")
    assert (status, kind) == (200, "application/json")
    return json.loads(body)


# Talks to a port inside of the node's namespace: script(socket) prints a JSON value.
RAW = "import json, socket, sys, time\n" \
    "def dial(port=15000):\n" \
    "    s = socket.create_connection(('127.0.0.1', port), timeout=30)\n" \
    "    return s\n" \
    "def read_all(s):\n" \
    "    got = b''\n" \
    "    while True:\n" \
    "        try:\n" \
    "            piece = s.recv(65536)\n" \
    "        except ConnectionResetError:\n" \
    "            return got\n" \
    "        if not piece:\n" \
    "            return got\n" \
    "        got += piece\n"


def raw(lab, script):
    res = run("ip", "netns", "exec", lab.node, "python3", "-c", RAW + script, timeout=120)
    return json.loads(res.stdout)


@pytest.fixture
def node(lab):
    """A daemon without pods."""
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon()
    return lab


# --- paths -------------------------------------------------------------------------------------------


def test_p01_index(node):
    for host in ("127.0.0.1", "[::1]"):
        for method in ("GET", "POST"):
            status, kind, body = ask(node, "/", method, host)
            assert (status, kind) == (200, "text/html; charset=utf-8")
            assert "<title>Ztunnel Admin</title>" in body
            links = re.findall(r'href="([^"]*)"', body)
            assert [link for link in links if link in UPSTREAM_PATHS] == list(UPSTREAM_PATHS)
            assert all(not link.startswith("/") for link in links), "links are relative: port-forwards may have a prefix"


def test_p02_only_loopback(node):
    listening = node._in_node("ss", "-ltnH", "sport", "=", ":15000").stdout.split("\n")
    assert sorted(line.split()[3] for line in listening if line) == ["127.0.0.1:15000", "[::1]:15000"]


def test_p03_methods_and_unknown_paths(node):
    assert ask(node, "/nothing") == (404, "", "")
    assert ask(node, "/config_dump/") == (404, "", "")
    assert ask(node, "/quitquitquit") == (405, "", "")
    assert ask(node, "/quitquitquit", "PUT") == (405, "", "")
    assert ask(node, "/config_dump?x=1")[0] == 200
    assert ask(node, "/config_dump", "DELETE")[0] == 200
    status, kind, body = ask(node, "/logging")
    assert (status, kind) == (405, "text/plain") and "/logging?level=" in body
    for path in UPSTREAM_PATHS[3:]:
        status, kind, body = ask(node, f"/{path}")
        assert (status, kind) == (501, "text/plain") and len(body) > 40


def test_p04_quit(node):
    assert ask(node, "/quitquitquit", "POST") == (200, "text/plain", "shutdown now\n")
    assert node.daemons[0].wait(timeout=PATIENCE) == 0


# --- the dump ----------------------------------------------------------------------------------------


def local_workload(w, services):
    """A workload of a dump as the mesh file has it."""
    rec = {k: v for k, v in w.items() if k != "services"}
    rec["services"] = {f"{s['namespace']}/{s['hostname']}": {int(k): v for k, v in s["endpoints"][w["uid"]]["port"].items()}
                       for s in services if w["uid"] in s["endpoints"]}
    return rec


def local_match(match):
    def strings(all_of):
        return [Tagged(kind, value) for one in all_of for kind, value in one.items()]
    return {k: strings(v) if k.lower().endswith(("namespaces", "principals")) else v for k, v in match.items()}


def local_mesh(dump):
    services = [{k: ({int(p): t for p, t in v.items()} if k == "ports" else v) for k, v in s.items() if k != "endpoints"}
                for s in dump["services"]]
    policies = [{**p, "rules": [[[local_match(m) for m in clause] for clause in rule] for rule in p["rules"]]}
                for p in dump["policies"]]
    return {"workloads": [local_workload(w, dump["services"]) for w in dump["workloads"]], "services": services, "policies": policies}


def golden_dump():
    return json.loads((GOLDEN / "ztunnel-config-dump.json").read_text())


GOLDEN_ENV = {
    "NODE_NAME": "node1", "NETWORK": "network1", "CLUSTER_ID": "Kubernetes", "ISTIO_META_CLUSTER_ID": "Kubernetes",
    "POD_NAME": "ztunnel-node1", "POD_NAMESPACE": "istio-system", "SERVICE_ACCOUNT": "ztunnel",
    "ALT_CA_HOSTNAME": "istiod.istio-system.svc", "ALT_XDS_HOSTNAME": "istiod.istio-system.svc",
    "CA_ADDRESS": "https://127.0.0.1:15012", "ZTUNNEL_WORKER_THREADS": "2", "LOCAL_XDS_PATH": None,
}

# Keys of `config` whose values differ from the golden's for a reason; the reasons are in tests/README.md.
CONFIG_DIFFERS = {"caRootCert", "dnsResolverCfg", "fakeCa", "inpodUds", "xdsAddress", "xdsRootCert", "dnsResolverOpts"}


def without_order(workload):
    return {**workload, "services": sorted(workload.get("services", [])) or None}


@pytest.fixture
def golden_node(lab):
    """A daemon that knows the golden's mesh, from a mesh file."""
    lab.mesh = local_mesh(golden_dump())
    lab.write_mesh()
    lab.start_agent()
    env = {k: v for k, v in GOLDEN_ENV.items() if v is not None}
    lab.start_daemon(**env)
    return lab


def test_p10_golden_mesh(golden_node):
    golden, ours = golden_dump(), dump_of(golden_node)
    assert list(ours) == list(golden)
    assert ours["policies"] == golden["policies"]
    assert ours["services"] == golden["services"]
    assert [without_order(w) for w in ours["workloads"]] == [without_order(w) for w in golden["workloads"]]
    assert ours["stagedServices"] == golden["stagedServices"] == {}
    assert list(ours["version"]) == list(golden["version"])
    assert all(isinstance(v, str) for v in ours["version"].values())
    assert ours["workloadState"] == {} and ours["certificates"] == []


def test_p11_golden_config(golden_node):
    golden, ours = golden_dump()["config"], dump_of(golden_node)["config"]
    assert list(ours) == list(golden)
    for key in set(golden) - CONFIG_DIFFERS:
        want, got = golden[key], ours[key]
        assert (sorted(got) if key == "illegalPorts" else got) == (sorted(want) if key == "illegalPorts" else want), key
    assert list(ours["dnsResolverCfg"]) == list(golden["dnsResolverCfg"])
    assert list(ours["dnsResolverOpts"]) == list(golden["dnsResolverOpts"])
    assert ours["fakeCa"] is True and ours["xdsAddress"] is None
    assert "token" not in json.dumps(ours).lower()


def keys_sorted(value):
    if isinstance(value, dict):
        assert list(value) == sorted(value), list(value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            keys_sorted(item)


def test_p12_form(golden_node):
    """Two blanks a level, keys in order at every level, no newline at the end."""
    body = ask(golden_node, "/config_dump")[2]
    dump = json.loads(body)
    keys_sorted(dump)
    assert body == json.dumps(dump, indent=2, ensure_ascii=False)


def test_p13_static_config(golden_node):
    static = dump_of(golden_node)["staticConfig"]
    file = local_mesh(golden_dump())
    assert list(static) == ["policies", "services", "workloads"]
    assert static["policies"] == golden_dump()["policies"]
    assert [w["uid"] for w in static["workloads"]] == sorted(w["uid"] for w in file["workloads"])
    ports = {w["uid"]: w["services"] for w in file["workloads"]}
    for w in static["workloads"]:
        assert w["services"] == json.loads(json.dumps(ports[w["uid"]]))
    assert [s["endpoints"] for s in static["services"]] == [{}] * len(file["services"])


def test_p14_istioctl_tables_of_the_golden(golden_node):
    """The renderer draws what the real istioctl drew of the golden, and of ours the same."""
    golden, ours = golden_dump(), dump_of(golden_node)
    then = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.timezone.utc)
    draw = {"workload-short": istioctl.workloads, "service-short": istioctl.services, "policy-short": istioctl.policies}
    for name, table in draw.items():
        assert table(golden) == table(ours) == (GOLDEN / f"istioctl-{name}.txt").read_text()
    assert istioctl.certificates(golden, then) == (GOLDEN / "istioctl-certificate-short.txt").read_text()
    assert istioctl.connections(golden) == (GOLDEN / "istioctl-connections-short.txt").read_text()
    assert istioctl.connections(golden, raw=True) == (GOLDEN / "istioctl-connections-raw.txt").read_text()
    istioctl.check(ours)


ISTIOCTL = os.environ.get("CULVERT_ISTIOCTL")


def real_istioctl(dump, *args):
    """`istioctl ztunnel-config` reads a saved dump without a cluster."""
    return run(ISTIOCTL, "ztunnel-config", *args, "-f", dump, env={**os.environ, "KUBECONFIG": "/nonexistent"}).stdout


def test_p15_the_real_istioctl_reads_it(golden_node, tmp_path):
    if not ISTIOCTL:
        pytest.skip("CULVERT_ISTIOCTL does not name an istioctl")
    path = tmp_path / "dump.json"
    path.write_text(ask(golden_node, "/config_dump")[2])
    for name in ("workload", "service", "policy"):
        assert real_istioctl(path, name) == (GOLDEN / f"istioctl-{name}-short.txt").read_text()
        golden, ours = (json.loads(real_istioctl(p, name, "-o", "json")) for p in (GOLDEN / "ztunnel-config-dump.json", path))
        assert ours == golden
    assert "WORKLOAD INFO" in real_istioctl(path, "all", "--with-headers")
    assert json.loads(real_istioctl(path, "all", "-o", "json")) == json.loads(path.read_text())


HOLD = "import socket, sys, time\n" \
    "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n" \
    "print(s.getsockname()[1], flush=True)\n" \
    "time.sleep(600)\n"


def hold(pod, ip, port):
    """An open connection; its source port."""
    return int(pod.python(HOLD, ip, port).stdout.readline())


def state_of(lab, pod):
    return dump_of(lab)["workloadState"][pod.uid]


def test_p20_connections(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    hbone, plain, from_outside = hold(client, server.ip, 8080), hold(client, outside.ip, 8080), hold(outside, server.ip, 8080)

    def seen():
        dump = dump_of(mesh)
        conns = {uid: state["connections"] for uid, state in dump["workloadState"].items()}
        counts = [len(conns[client.uid]["outbound"]), len(conns[server.uid]["inbound"])]
        return counts == [2, 2] and dump
    dump = wait_for("the connections", seen)
    state = dump["workloadState"]
    assert list(state) == sorted(state) and set(state) == {client.uid, server.uid}
    assert state[client.uid]["info"] == {"name": "client", "namespace": "default", "serviceAccount": "client"}
    assert state[client.uid]["state"] == "Up" and "note" not in state[client.uid]
    out = sorted(state[client.uid]["connections"]["outbound"], key=lambda c: c["protocol"])
    assert out == [
        {"actualDst": f"{server.ip}:15008", "originalDst": f"{server.ip}:8080", "protocol": "HBONE", "src": f"{client.ip}:{hbone}"},
        {"actualDst": f"{outside.ip}:8080", "originalDst": f"{outside.ip}:8080", "protocol": "TCP", "src": f"{client.ip}:{plain}"},
    ]
    inb = sorted(state[server.uid]["connections"]["inbound"], key=lambda c: c["protocol"])
    assert [(c["actualDst"], c["originalDst"], c["protocol"]) for c in inb] == \
        [(f"{server.ip}:8080", None, "HBONE"), (f"{server.ip}:8080", None, "TCP")]
    assert inb[1]["src"] == f"{outside.ip}:{from_outside}"
    istioctl.check(dump)
    drawn = istioctl.connections(dump)
    if ISTIOCTL:
        path = mesh.tmp / "dump.json"
        path.write_text(json.dumps(dump))
        assert real_istioctl(path, "connections") == drawn
        assert real_istioctl(path, "certificate") == istioctl.certificates(dump)
    assert re.search(rf"^client\.default +Outbound +client\.default:{hbone} +server\.default:15008 +server\.default:8080 +HBONE$",
                     drawn, re.M), drawn
    assert re.search(rf"^server\.default +Inbound +server\.default:8080 +outside\.default:{from_outside} +TCP$", drawn, re.M), drawn


def test_p21_certificates(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")

    def all_there():
        certs = dump_of(mesh)["certificates"]
        return len(certs) == 2 and all(c["state"] == "Available" for c in certs) and certs
    certs = wait_for("both certificates", all_there)
    assert [c["identity"] for c in certs] == [client.spiffe, server.spiffe]
    for cert in certs:
        assert list(cert) == ["certChain", "identity", "rootCerts", "state"]
        for one in cert["certChain"] + cert["rootCerts"]:
            assert list(one) == ["expirationTime", "pem", "serialNumber", "validFrom"]
            pem = subprocess.run(["base64", "-d"], input=one["pem"], text=True, capture_output=True, check=True).stdout
            lines = pem.split("\n")
            assert lines[0] == "-----BEGIN CERTIFICATE-----" and {len(line) for line in lines[1:-3]} <= {60}
            told = subprocess.run(["openssl", "x509", "-noout", "-serial", "-enddate", "-dateopt", "iso_8601", "-ext", "subjectAltName"],
                                  input=pem, text=True, capture_output=True, check=True).stdout
            assert int(re.search(r"serial=([0-9A-F]+)", told)[1], 16) == int(one["serialNumber"], 10)
            assert re.search(r"notAfter=(\S+) (\S+)", told).expand(r"\1T\2") == one["expirationTime"]
    leaf = subprocess.run(["base64", "-d"], input=certs[0]["certChain"][0]["pem"], text=True, capture_output=True).stdout
    assert client.spiffe in subprocess.run(["openssl", "x509", "-noout", "-text"], input=leaf, text=True, capture_output=True).stdout
    rows = istioctl.certificates({"certificates": certs}).splitlines()[1:]
    assert all(row.split()[3] == "true" for row in rows) and {row.split()[1] for row in rows} >= {"Leaf", "Root"}


def test_p22_one_identity_in_two_pods(lab):
    """A row for each silo, ordered by uid."""
    pods = [lab.pod(name, sa="shared") for name in ("b-pod", "a-pod")]
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(*pods)
    lab.wait_ready()

    def both():
        certs = dump_of(lab)["certificates"]
        return len(certs) == 2 and all(c["state"] == "Available" for c in certs) and certs
    certs = wait_for("both certificates", both)
    assert [c["identity"] for c in certs] == [pods[0].spiffe] * 2
    first, second = (c["certChain"][0]["serialNumber"] for c in certs)
    assert first != second
    again = [c["certChain"][0]["serialNumber"] for c in dump_of(lab)["certificates"]]
    assert again == [first, second]


def test_p23_a_silo_that_hangs_costs_its_own_rows(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    wait_for("both certificates", lambda: len(dump_of(mesh)["certificates"]) == 2)
    pid = mesh.silo_of(server)
    os.kill(pid, 19)  # SIGSTOP
    try:
        dump = dump_of(mesh)
    finally:
        os.kill(pid, 18)  # SIGCONT
    assert [c["identity"] for c in dump["certificates"]] == [client.spiffe]
    assert "did not answer" in dump["workloadState"][server.uid]["note"]
    assert dump["workloadState"][server.uid]["connections"] == {"inbound": [], "outbound": []}
    assert "note" not in dump["workloadState"][client.uid]
    istioctl.check(dump)
    wait_for("the answer", lambda: len(dump_of(mesh)["certificates"]) == 2)


def test_p24_pending_pod(lab):
    """A pod whose silo never came up: Pending, without connections."""
    pod = lab.pod("late")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    blocker = pod.python("import socket, time\ns = socket.socket(socket.AF_INET6)\ns.bind(('::', 15008))\ns.listen()\ntime.sleep(600)\n")
    pod.wait_port(15008)
    lab.agent_call("add", "--uid", pod.uid, "--name", pod.name, "--namespace", pod.ns, "--service-account", pod.sa,
                   "--netns", pod.netns_path, "--ip", pod.ip, check=False)
    state = wait_for("the pod", lambda: dump_of(lab)["workloadState"].get(pod.uid))
    assert state == {"info": {"name": "late", "namespace": "default", "serviceAccount": "late"}, "state": "Pending"}
    blocker.kill()
    blocker.wait()
    wait_for("its silo", lambda: state_of(lab, pod).get("state") == "Up")
    assert state_of(lab, pod)["connections"] == {"inbound": [], "outbound": []}


def test_p25_admin_socket_has_the_same(mesh):
    dump = json.loads(mesh.ctl("dump").stdout)
    assert list(dump) == list(golden_dump())
    istioctl.check(dump)


# --- the pod's own socket ------------------------------------------------------------------------------


def pod_socket(lab, pod):
    return next(iter((lab.run_dir / "culvert").glob(f"*/admin-{pod.uid}.sock")), None)


def ask_pod(lab, pod, path, method="GET"):
    res = run("curl", "-sS", "--max-time", "20", "-X", method, "-w", "\n%{http_code}", "--unix-socket", pod_socket(lab, pod), f"http://x{path}")
    body, _, status = res.stdout.rpartition("\n")
    return int(status), body


def test_p70_pod_connections(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    mesh.mesh["policies"].append({"name": "web", "namespace": "default", "scope": "Namespace", "action": "Allow", "dryRun": False,
                                  "rules": [[[{"destinationPorts": [8080]}]]]})
    mesh.write_mesh()
    hold(client, server.ip, 8080)
    hold(client, outside.ip, 8080)

    def both(pod, cnt):
        def look():
            told = json.loads(ask_pod(mesh, pod, "/connections")[1])
            return told["total"] == cnt and all("up" in c for c in told["connections"]) and told["connections"]
        return wait_for("the connections", look)
    hbone, plain = sorted(both(client, 2), key=lambda c: c["protocol"])
    assert hbone["direction"] == "outbound" and hbone["originalDst"] == f"{server.ip}:8080" and hbone["peerIdentity"] == server.spiffe
    assert hbone["up"]["tls"]["peerIdentity"] == server.spiffe and hbone["up"]["tls"]["version"] == "TLSv1.3"
    assert hbone["up"]["tls"]["cipher"] and hbone["up"]["tls"]["group"] and hbone["up"]["tcp"]["state"] == 1
    assert "tls" not in hbone["down"] and hbone["down"]["tcp"]["rttMicroseconds"] > 0 and hbone["ageMilliseconds"] >= 0
    assert plain["protocol"] == "TCP" and plain["peerIdentity"] is None and "tls" not in plain["up"]

    def judged():
        inbound, = both(server, 1)
        return inbound["policy"] and inbound
    inbound = wait_for("the policy", judged)
    assert inbound["policy"] == "default/web" and inbound["direction"] == "inbound" and inbound["peerIdentity"] == client.spiffe
    assert inbound["down"]["tls"]["peerIdentity"] == client.spiffe and inbound["actualDst"] == f"{server.ip}:8080"


def test_p71_pod_state_and_levels(mesh):
    client = mesh.pods["client"]
    assert oct(pod_socket(mesh, client).stat().st_mode)[-3:] == "600"
    dump = json.loads(ask_pod(mesh, client, "/config_dump")[1])
    assert dump["uid"] == client.uid and dump["phase"] == "Serving" and dump["info"]["name"] == "client"

    def certificate():
        told = json.loads(ask_pod(mesh, client, "/certificate")[1])
        return told["isAvailable"] and told
    assert wait_for("the certificate", certificate)["identity"] == client.spiffe
    cache = json.loads(ask_pod(mesh, client, "/cache")[1])
    assert 0 <= cache["views"] <= cache["ceiling"]
    assert ask_pod(mesh, client, "/logging")[0] == 405
    assert ask_pod(mesh, client, "/logging?level=access=off", "POST") == \
        (200, "current log level is hickory_server::server=off,access=off,info\n")
    assert ask_pod(mesh, client, "/logging?level=loud", "POST")[0] == 400
    assert ask_pod(mesh, client, "/logging?reset", "POST")[1] == f"current log level is {START}\n"
    assert ask_pod(mesh, client, "/nothing") == (404, "")


def test_p72_pod_socket_lives_with_its_silo(mesh):
    client = mesh.pods["client"]
    os.kill(mesh.pid_of("warden"), 9)
    wait_for("the next warden", lambda: len(mesh.log_lines("adopted the silo of")) == 2)
    assert ask_pod(mesh, client, "/certificate")[0] == 200
    mesh.delete(client)
    wait_for("no socket", lambda: pod_socket(mesh, client) is None)
    os.kill(mesh.silo_of(mesh.pods["server"]), 9)
    wait_for("a socket of the next silo", lambda: pod_socket(mesh, mesh.pods["server"]) and
             run("curl", "-s", "--unix-socket", pod_socket(mesh, mesh.pods["server"]), "http://x/cache", check=False).returncode == 0)


# --- large ---------------------------------------------------------------------------------------------

LARGE = 20000


def rss_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def is_sanitized(pid):
    return "libasan" in Path(f"/proc/{pid}/maps").read_text()


def write_large(lab, cnt):
    host = "big.default.svc.cluster.local"
    lines = ["workloads:"]
    lines += [f'- {{uid: "Kubernetes//Pod/default/w{i}", name: "w{i}", namespace: default, serviceAccount: sa, trustDomain: cluster.local, '
              f'workloadIps: ["10.{200 + i // 65536}.{i // 256 % 256}.{i % 256}"], protocol: HBONE, node: other, '
              f'services: {{"default/{host}": {{80: 8080}}}}}}' for i in range(cnt)]
    lines += ["services:", f'- {{name: big, namespace: default, hostname: {host}, vips: ["/10.255.0.1"], ports: {{80: 8080}}}}', "policies: []"]
    lab.write_mesh("\n".join(lines) + "\n")


@pytest.fixture
def large(lab):
    write_large(lab, LARGE)
    lab.start_agent()
    lab.start_daemon()
    return lab


def test_p30_large_dump_in_bounded_memory(large):
    """A slow reader of a dump of many megabytes: the broker holds pieces of it only, and answers others meanwhile."""
    broker = large.pid_of("broker")
    size = len(ask(large, "/config_dump")[2])
    assert size > 15 << 20
    before = rss_kb(broker)
    slow = "s = dial()\n" \
        "s.sendall(b'GET /config_dump HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')\n" \
        "head = s.recv(1000)\n" \
        "print(json.dumps(len(head)), flush=True)\n" \
        "sys.stdin.readline()\n" \
        "print(len(read_all(s)), flush=True)\n"
    proc = subprocess.Popen(["ip", "netns", "exec", large.node, "python3", "-c", RAW + slow], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        assert int(proc.stdout.readline()) > 0
        # The reader stands still: whatever the broker would pile up, it has by the time it served this.
        for _ in range(3):
            assert ask(large, "/nothing")[0] == 404
        # A sanitizer keeps what is freed for a while.
        assert rss_kb(broker) - before < 8 << 10 or os.environ.get("ASAN_OPTIONS") or is_sanitized(broker)
        proc.stdin.write("\n")
        proc.stdin.flush()
        assert int(proc.stdout.readline()) > size
    finally:
        proc.kill()
        proc.wait()


def test_p31_large_dump_is_complete(large):
    dump = dump_of(large)
    assert len(dump["workloads"]) == LARGE and len(dump["services"][0]["endpoints"]) == LARGE
    assert list(dump["services"][0]["endpoints"]) == sorted(dump["services"][0]["endpoints"])
    istioctl.check(dump)


def test_p32_mesh_changes_during_a_dump(large):
    """Still one whole JSON value, each record once."""
    slow = "s = dial()\n" \
        "s.sendall(b'GET /config_dump HTTP/1.0\\r\\n\\r\\n')\n" \
        "got = s.recv(1000)\n" \
        "print(json.dumps(1), flush=True)\n" \
        "sys.stdin.readline()\n" \
        "got += read_all(s)\n" \
        "dump = json.loads(got.partition(b'\\r\\n\\r\\n')[2])\n" \
        "uids = [w['uid'] for w in dump['workloads']]\n" \
        "print(json.dumps([len(uids), len(set(uids)), len(dump['services'])]), flush=True)\n"
    proc = subprocess.Popen(["ip", "netns", "exec", large.node, "python3", "-c", RAW + slow], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        assert proc.stdout.readline()
        write_large(large, LARGE // 2)
        wait_for("the new mesh", lambda: len(dump_of(large)["workloads"]) == LARGE // 2, timeout=4 * PATIENCE)
        proc.stdin.write("\n")
        proc.stdin.flush()
        cnt, distinct, services = json.loads(proc.stdout.readline())
        assert LARGE // 2 <= cnt == distinct <= LARGE and services == 1
    finally:
        proc.kill()
        proc.wait()


def test_p33_client_leaves_during_a_dump(large):
    for _ in range(6):
        raw(large, "s = dial()\ns.sendall(b'GET /config_dump HTTP/1.1\\r\\n\\r\\n')\ns.recv(1000)\ns.close()\nprint(1)\n")
    assert dump_of(large)["version"]


# --- levels --------------------------------------------------------------------------------------------

START = "hickory_server::server=off,info"


def set_log(lab, query, host="127.0.0.1"):
    return ask(lab, f"/logging{query}", "POST", host)


def test_p40_logging(node):
    def now(text):
        return 200, "text/plain", f"current log level is {text}\n"
    assert set_log(node, "") == now(START)
    assert set_log(node, "?level=") == now(START)
    assert set_log(node, "?level=debug") == now("hickory_server::server=off,debug")
    assert set_log(node, "?level=access=WARN") == now("hickory_server::server=off,access=warn,debug")
    assert set_log(node, "?level=access%3Dtrace%2Cinfo") == now("hickory_server::server=off,access=trace,info")
    assert set_log(node, "?level=dns:off") == now("hickory_server::server=off,access=trace,dns=off,info")
    assert set_log(node, "?level=info&reset") == now(START)
    assert set_log(node, "?reset&level=xds=trace") == now("hickory_server::server=off,xds=trace,info")
    assert set_log(node, "?reset=whatever") == now(START)
    assert set_log(node, "?other=1") == now(START)


@pytest.mark.parametrize("bad", ["loud", "DEBUG", "info,", ",", "access=", "access=loud", "a=b=info", "info,,debug"])
def test_p41_bad_levels(node, bad):
    status, kind, body = set_log(node, f"?level={bad}")
    assert (status, kind) == (400, "text/plain")
    assert body.startswith(f"Invalid level provided: {bad}\n") and "/logging?level=" in body
    assert set_log(node, "")[2] == f"current log level is {START}\n"


def test_p42_levels_reach_silos(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]

    def lines():
        client.curl(f"http://{server.ip}:8080/")
        return len(mesh.log_lines("\taccess\t"))
    wait_for("an access line", lines)
    assert set_log(mesh, "?level=access=off")[0] == 200
    # A silo takes the new filter a little later; from then on no line comes.
    wait_for("silence", lambda: (before := lines()) and lines() == lines() == before)
    # One that is born later has it too.
    late = mesh.pod("late")
    mesh.write_mesh()
    mesh.add(late)
    before = len(mesh.log_lines("\taccess\t"))
    assert "hello" in late.curl(f"http://{server.ip}:8080/").stdout
    assert set_log(mesh, "?reset")[0] == 200
    wait_for("a line of the late pod", lambda: late.curl(f"http://{server.ip}:8080/") and
             mesh.log_lines("\taccess\t", 'src.workload="late"'))
    # The connection before the reset is the first of its port range and was not written.
    assert len(mesh.log_lines("\taccess\t", 'src.workload="late"', 'direction="outbound"')) >= 1 and before >= 1


# --- limits --------------------------------------------------------------------------------------------


def test_p50_large_head(node):
    head = "s = dial()\n" \
        "try:\n    s.sendall(b'GET / HTTP/1.1\\r\\nx: ' + b'a' * %d + b'\\r\\n\\r\\n')\nexcept (BrokenPipeError, ConnectionResetError):\n    pass\n" \
        "print(json.dumps(read_all(s).split(b'\\r\\n')[0].decode()))\n"
    assert raw(node, head % 7000) == "HTTP/1.1 200 OK"
    for size in (9000, 70000, 1 << 20):
        assert raw(node, head % size) == "HTTP/1.1 431 Request Header Fields Too Large"


def test_p51_slow_head_and_idle(node):
    slow = "s = dial()\n" \
        "start = time.monotonic()\n" \
        "s.settimeout(0.2)\n" \
        "got = None\n" \
        "while got is None and time.monotonic() - start < 30:\n" \
        "    try:\n" \
        "        s.send(b'a')\n" \
        "        got = s.recv(100)\n" \
        "    except TimeoutError:\n" \
        "        pass\n" \
        "    except (BrokenPipeError, ConnectionResetError):\n" \
        "        got = b''\n" \
        "print(json.dumps([got.decode(), time.monotonic() - start > 1.5]))\n"
    assert raw(node, slow) == ["", True]
    idle = "s = dial()\ns.sendall(b'GET /nothing HTTP/1.1\\r\\n\\r\\n')\ngot = read_all(s)\nprint(json.dumps(got.count(b'HTTP/1.1 404')))\n"
    assert raw(node, idle) == 1


def test_p52_half_close_and_pipeline(node):
    half = "s = dial()\ns.sendall(b'GET /nothing HTTP/1.1\\r\\n\\r\\n' * 3)\ns.shutdown(socket.SHUT_WR)\n" \
        "print(json.dumps(read_all(s).count(b'HTTP/1.1 404')))\n"
    assert raw(node, half) == 3
    dumps = "s = dial()\ns.sendall(b'GET /config_dump HTTP/1.1\\r\\n\\r\\n' * 2 + b'GET / HTTP/1.0\\r\\n\\r\\n')\ns.shutdown(socket.SHUT_WR)\n" \
        "print(json.dumps([(got := read_all(s)).count(b'HTTP/1.1 200'), got.count(b'\\r\\n0\\r\\n\\r\\n'), b'Ztunnel Admin' in got]))\n"
    assert raw(node, dumps) == [3, 2, True]


def test_p53_many_connections(node):
    """Beyond the ceiling connections are closed at once; when others go there is room again."""
    many = "all = [dial() for _ in range(200)]\n" \
        "closed = 0\n" \
        "for s in all:\n" \
        "    s.settimeout(0.01)\n" \
        "    try:\n        closed += s.recv(1) == b''\n    except TimeoutError:\n        pass\n    except ConnectionResetError:\n        closed += 1\n" \
        "print(json.dumps(closed))\n"
    assert raw(node, many) >= 200 - 128
    wait_for("room", lambda: run("ip", "netns", "exec", node.node, "curl", "-s", "http://127.0.0.1:15000/", check=False).returncode == 0)


def test_p54_garbage(node):
    for text in ("\\0\\1\\2\\r\\n\\r\\n", "GET\\r\\n\\r\\n", "GET / HTTP/1.1\\r\\n x: y\\r\\n\\r\\n", "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"):
        got = raw(node, f"s = dial()\ns.sendall(b'{text}')\nprint(json.dumps(read_all(s).split(b'\\r\\n')[0].decode()))\n")
        assert re.match(r"HTTP/1\.1 (400|505) ", got), (text, got)
    assert ask(node, "/")[0] == 200


# --- log ---------------------------------------------------------------------------------------------


def test_p60_start_lines(node):
    lines = [line.split("\t") for line in node.log_lines("listener established")]
    told = {(line[-1]) for line in lines if line[1] == "info"}
    assert {'address=[::]:15021 component="readiness"', 'address=127.0.0.1:15000 component="admin"',
            'address=[::1]:15000 component="admin"'} <= told


def test_p61_slow_stdout(lab, tmp_path):
    """Nobody reads stdout: the node goes on, lines are dropped, counted, and the count is told in the log's own form."""
    fifo = tmp_path / "stdout"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        lab.write_mesh()
        lab.start_agent()
        lab.start_daemon(wrap=("bash", "-c", f'exec "$0" "$@" >{fifo} 2>&1'), LOG_FORMAT="json")
        flood = "s = dial()\n" \
            "got = b''\n" \
            "for _ in range(60):\n" \
            "    s.sendall(b'POST /logging?level=info HTTP/1.1\\r\\n\\r\\n' * 200)\n" \
            "    while got.count(b'HTTP/1.1 200') < 200:\n" \
            "        got += s.recv(65536)\n" \
            "    got = b''\n" \
            "print(json.dumps('done'))\n"
        # Pipe and queue hold some 7,000 of these lines.
        assert raw(lab, flood) == "done" and raw(lab, flood) == "done"
        text = b""

        def report():
            nonlocal text
            try:
                text += os.read(reader, 1 << 20)
            except BlockingIOError:
                return None
            # Lines come out again once there is room, and the first of them brings the report.
            set_log(lab, "?level=info")
            return [line for line in text.split(b"\n")[:-1] if b"log lines were dropped" in line]
        line = json.loads(wait_for("the report", report)[0])
        assert line["level"] == "warn" and line["scope"] == "culvert::log" and line["lines"] > 100
        for one in text.split(b"\n")[:-1]:
            json.loads(one)
    finally:
        os.close(reader)
