# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics on 15020: numbers against the traffic that was sent, read by python's strict parser and by Prometheus."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from culvert_e2e.istiod import ADDRESS, POLICY, packed, resource
from culvert_e2e.istiod import workload as xds_workload
from culvert_e2e.lab import exact, run, wait_for
from test_b_policy import policy
from test_i_xds import node, served  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]

# Sends argv[3] bytes, reads to the end; the server answers with twice of what it got.
CLIENT = "import socket,sys\n" \
    "s=socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)\n" \
    "s.sendall(b'x' * int(sys.argv[3])); s.shutdown(socket.SHUT_WR)\n" \
    "n=0\n" \
    "while True:\n" \
    "  d=s.recv(65536)\n" \
    "  if not d: break\n" \
    "  n+=len(d)\n" \
    "print(n)\n"

SERVER = "import socketserver,sys,socket\n" \
    "class H(socketserver.BaseRequestHandler):\n" \
    "  def handle(self):\n" \
    "    while True:\n" \
    "      d=self.request.recv(65536)\n" \
    "      if not d: break\n" \
    "      self.request.sendall(d+d)\n" \
    "class S(socketserver.ThreadingTCPServer):\n" \
    "  address_family=socket.AF_INET6; allow_reuse_address=True; daemon_threads=True\n" \
    "S(('::', int(sys.argv[1])), H).serve_forever()\n"


def curl(lab, path="/metrics", *args):
    return run("ip", "netns", "exec", lab.node, "curl", "-sS", "--max-time", "20", *args,
               f"http://127.0.0.1:15020{path}").stdout


class Scrape:
    """One scrape, parsed strictly: the samples of every family."""

    def __init__(self, text):
        self.text = text
        self.families = {f.name: f for f in text_string_to_metric_families(text)}

    def samples(self, sample, **labels):
        return [s for f in self.families.values() for s in f.samples
                if s.name == sample and all(s.labels.get(k) == v for k, v in labels.items())]

    def value(self, sample, **labels):
        return sum(s.value for s in self.samples(sample, **labels))

    def one(self, sample, **labels):
        found = self.samples(sample, **labels)
        assert len(found) == 1, f"{sample} {labels}: {found}"
        return found[0]


def scrape(lab):
    return Scrape(curl(lab))


def exchange(client, address, port, size):
    out = client.python(CLIENT, address, port, size)
    text, _ = out.communicate(timeout=40)
    return text.strip()


@pytest.fixture
def mesh(lab):
    client, server = lab.pod("client"), lab.pod("server", canonicalRevision="v7", clusterId="c1")
    lab.pod("outside", mesh=False)
    vip = f"10.{lab.net}.200.1"
    lab.service("web", vips=[f"/{vip}"], ports={80: 8080}, pods=[server])
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, ISTIO_META_ISTIO_VERSION="1.99.0")
    lab.add(client, server)
    lab.wait_ready()
    server.python(SERVER, 8080)
    server.wait_port(8080)
    lab.vip = vip
    return lab


def test_o01_bytes_and_connections_are_exact(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert exchange(client, server.ip, 8080, 100_001) == "200002"
    assert exchange(client, server.ip, 8080, 11) == "22"
    for reporter in ("source", "destination"):
        want = {"reporter": reporter, "response_flags": "-"}
        wait_for("both to be closed", lambda: scrape(mesh).value("istio_tcp_connections_closed_total", **want) == 2)
        got = scrape(mesh)
        assert got.one("istio_tcp_connections_opened_total", **want).value == 2
        assert got.one("istio_tcp_received_bytes_total", **want).value == 100_012
        assert got.one("istio_tcp_sent_bytes_total", **want).value == 200_024
        assert not got.samples("istio_tcp_connections_failed_total")


LABELS = [
    "reporter", "source_workload", "source_canonical_service", "source_canonical_revision", "source_workload_namespace",
    "source_principal", "source_app", "source_version", "source_cluster", "destination_service",
    "destination_service_namespace", "destination_service_name", "destination_workload",
    "destination_canonical_service", "destination_canonical_revision", "destination_workload_namespace",
    "destination_principal", "destination_app", "destination_version", "destination_cluster", "request_protocol",
    "response_flags", "connection_security_policy", "source_region", "source_zone", "destination_region",
    "destination_zone"]


def test_o02_labels_of_a_service(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert exchange(client, mesh.vip, 80, 5) == "10"
    wait_for("it to be closed", lambda: scrape(mesh).value("istio_tcp_connections_closed_total") == 2)
    got = scrape(mesh)
    out = got.one("istio_tcp_connections_opened_total", reporter="source")
    assert list(out.labels) == LABELS, "upstream's order of emission"
    assert out.labels == {
        "reporter": "source", "source_workload": "client", "source_canonical_service": "client",
        "source_canonical_revision": "unknown", "source_workload_namespace": "default",
        "source_principal": client.spiffe, "source_app": "client", "source_version": "unknown",
        "source_cluster": "Kubernetes", "destination_service": "web.default.svc.cluster.local",
        "destination_service_namespace": "default", "destination_service_name": "web",
        "destination_workload": "server", "destination_canonical_service": "server",
        "destination_canonical_revision": "v7", "destination_workload_namespace": "default",
        "destination_principal": server.spiffe, "destination_app": "server", "destination_version": "v7",
        "destination_cluster": "c1", "request_protocol": "tcp", "response_flags": "-",
        "connection_security_policy": "mutual_tls", "source_region": "unknown", "source_zone": "unknown",
        "destination_region": "unknown", "destination_zone": "unknown"}
    inb = got.one("istio_tcp_connections_opened_total", reporter="destination")
    assert dict(inb.labels, reporter="source") == out.labels


def test_o03_plaintext_and_unknown_destinations(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    outside.python(SERVER, 8080)
    outside.wait_port(8080)
    assert exchange(outside, server.ip, 8080, 7) == "14"
    assert exchange(client, outside.ip, 8080, 9) == "18"
    # An address that nobody has in the mesh: the node's bridge, where nothing listens.
    client.python(CLIENT, f"10.{mesh.net}.0.1", 9, 1).wait(timeout=30)
    failed = wait_for("the failure", lambda: scrape(mesh).samples("istio_tcp_connections_failed_total"))
    assert len(failed) == 1 and failed[0].labels["response_flags"] == "CONNECT"
    assert failed[0].labels["destination_workload"] == "unknown"
    assert failed[0].labels["destination_principal"] == "unknown"
    got = scrape(mesh)
    inb = got.one("istio_tcp_received_bytes_total", reporter="destination")
    assert inb.value == 7 and inb.labels["source_workload"] == "outside"
    assert inb.labels["source_principal"] == "unknown"
    assert inb.labels["connection_security_policy"] == "unknown"
    assert inb.labels["destination_principal"] == server.spiffe, "named even over plaintext"
    out = got.one("istio_tcp_sent_bytes_total", reporter="source", destination_workload="outside")
    assert out.value == 18 and out.labels["source_principal"] == "unknown"


def test_o04_bytes_of_live_connections(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    hold = client.python(
        "import socket,sys,time\n"
        "s=socket.create_connection((sys.argv[1], 8080)); s.sendall(b'abcde')\n"
        "got=b''\n"
        "while len(got) < 10: got+=s.recv(100)\n"
        "print('held', flush=True); sys.stdin.readline()\n", server.ip, stdin=subprocess.PIPE)
    assert hold.stdout.readline() == "held\n"
    got = scrape(mesh)
    for reporter in ("source", "destination"):
        assert got.one("istio_tcp_connections_opened_total", reporter=reporter).value == 1
        assert got.one("istio_tcp_received_bytes_total", reporter=reporter).value == 5
        assert got.one("istio_tcp_sent_bytes_total", reporter=reporter).value == 10
        assert not got.samples("istio_tcp_connections_closed_total", reporter=reporter)
        assert got.one("istio_tcp_sockets_open", reporter=reporter).value == 1
    assert got.one("culvert_silo_connections", pod_name="client", pod_namespace="default").value == 1
    again = scrape(mesh)
    assert again.value("istio_tcp_sent_bytes_total") == 20, "a second look counts nothing twice"
    hold.stdin.write("\n")
    hold.stdin.flush()
    hold.wait(timeout=20)
    wait_for("the end", lambda: scrape(mesh).value("istio_tcp_connections_closed_total") == 2)
    assert scrape(mesh).value("istio_tcp_sent_bytes_total") == 20
    wait_for("sockets to be closed", lambda: scrape(mesh).value("istio_tcp_sockets_open", reporter="source") == 0)


def test_o05_a_denied_connection(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.mesh["policies"].append(policy("deny", "Deny", {
        "principals": [exact(client.spiffe.removeprefix("spiffe://"))]}))
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    server.python(SERVER, 8080)
    server.wait_port(8080)
    client.python(CLIENT, server.ip, 8080, 5).wait(timeout=30)
    wait_for("both to be closed", lambda: scrape(lab).value("istio_tcp_connections_closed_total") == 2)
    got = scrape(lab)
    inb = {"reporter": "destination"}
    assert got.one("istio_tcp_connections_opened_total", **inb).labels["response_flags"] == "-"
    assert got.one("istio_tcp_connections_closed_total", **inb).labels["response_flags"] == "DENY"
    assert got.one("istio_tcp_connections_failed_total", **inb).labels["response_flags"] == "DENY"
    assert got.one("istio_tcp_connections_failed_total", reporter="source").labels["response_flags"] == "CONNECT"


def test_o06_the_node_and_the_silos(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    exchange(client, server.ip, 8080, 5)
    got = scrape(mesh)
    assert got.one("istio_build", component="ztunnel", tag="1.99.0").value == 1
    assert got.one("workload_manager_active_proxy_count").value == 2
    assert got.one("workload_manager_pending_proxy_count").value == 0
    assert got.one("workload_manager_proxies_started_total").value == 2
    assert got.one("workload_manager_proxies_stopped_total").value == 0
    assert got.one("culvert_scrape_missing").value == 0
    assert got.one("culvert_scrape_dropped_rows_total").value == 0
    broker = mesh.pid_of("broker")
    fds = len(os.listdir(f"/proc/{broker}/fd"))
    assert abs(got.one("process_open_fds").value - fds) <= 3, "a connection of a scrape more or less"
    assert got.one("process_max_fds").value >= 1024
    for pod in (client, server):
        who = {"pod_namespace": pod.ns, "pod_name": pod.name}
        assert got.one("culvert_silo_restarts_total", **who).value == 0
        rss = got.one("culvert_silo_resident_memory_bytes", **who).value
        pages = int(Path(f"/proc/{mesh.silo_of(pod)}/statm").read_text().split()[1])
        assert rss / 2 < pages * os.sysconf("SC_PAGESIZE") < rss * 2
        assert got.one("culvert_silo_cpu_seconds_total", **who).value < 60
    wait = got.one("culvert_silo_fetch_wait_seconds_count", pod_name="client").value
    assert 1 <= wait < 20, "the first connection waited for the broker"
    hand = got.one("culvert_silo_tls_handshakes_total", pod_name="client", side="client")
    assert hand.value == 1 and hand.labels["version"] == "TLSv1.3" and hand.labels["group"] != "unknown"
    assert got.one("culvert_silo_tls_handshakes_total", pod_name="server", side="server").value == 1
    for name, family in got.families.items():
        assert family.documentation, name


def test_o07_content_types_and_paths(mesh):
    def head(path, *args):
        return run("ip", "netns", "exec", mesh.node, "curl", "-sS", "--max-time", "20", "-D", "-", "-o", "/dev/null", *args,
                   f"http://127.0.0.1:15020{path}").stdout.lower()
    om = "content-type: application/openmetrics-text;charset=utf-8;version=1.0.0"
    plain = "content-type: text/plain; charset=utf-8"
    assert plain in head("/metrics")
    assert om in head("/stats/prometheus", "-H", "Accept: application/openmetrics-text;version=1.0.0,text/plain")
    assert om in head("/metrics", "-H", "Accept: text/plain", "-H", "Accept: Application/OpenMetrics-Text")
    # Upstream cuts at commas and does not trim.
    assert plain in head("/metrics", "-H", "Accept: text/plain, application/openmetrics-text")
    assert "200 ok" in head("/metrics?x=y", "-X", "POST") and "vary: accept-encoding" in head("/metrics")
    assert "404 not found" in head("/") and "404 not found" in head("/metrics/")
    for path in ("/metrics", "/stats/prometheus"):
        text = curl(mesh, path)
        assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1


def test_o08_a_stopped_silo_costs_its_own_series_only(mesh):
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    exchange(client, server.ip, 8080, 5)
    exchange(outside, server.ip, 8080, 7)
    wait_for("the connections", lambda: scrape(mesh).value("istio_tcp_received_bytes_total") == 17)
    pid = mesh.silo_of(client)
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            got = scrape(mesh)
            assert got.one("culvert_scrape_missing").value == 1
            assert not got.samples("istio_tcp_received_bytes_total", reporter="source")
            assert got.value("istio_tcp_received_bytes_total", reporter="destination") == 12
            assert got.one("culvert_silo_resident_memory_bytes", pod_name="client").value > 0
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for("its answer", lambda: scrape(mesh).one("culvert_scrape_missing").value == 0)
    assert scrape(mesh).value("istio_tcp_received_bytes_total") == 17


def test_o09_a_finished_pod_is_scraped_once_more(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    exchange(client, server.ip, 8080, 5)
    wait_for("the connection", lambda: scrape(mesh).value("istio_tcp_connections_closed_total") == 2)
    pid = mesh.silo_of(client)
    mesh.delete(client)
    wait_for("the silo's end", lambda: not Path(f"/proc/{pid}").exists())
    last = scrape(mesh)
    assert last.one("istio_tcp_received_bytes_total", reporter="source").value == 5
    assert last.one("workload_manager_proxies_stopped_total").value == 1
    gone = scrape(mesh)
    assert not gone.samples("istio_tcp_received_bytes_total", reporter="source")
    assert gone.one("istio_tcp_received_bytes_total", reporter="destination").value == 5
    assert not [s for f in gone.families.values() for s in f.samples if s.labels.get("pod_name") == "client"]


def test_o10_pods_of_one_deployment_are_one_series(lab):
    """Two replicas have the same labels: one sum, which does not fall when one of them ends."""
    server = lab.pod("server")
    twins = [lab.pod(f"twin-{i}", sa="twin", workloadName="twin", canonicalName="twin") for i in (1, 2)]
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(server, *twins)
    lab.wait_ready()
    server.python(SERVER, 8080)
    server.wait_port(8080)
    for twin in twins:
        exchange(twin, server.ip, 8080, 5)
    wait_for("the connections", lambda: scrape(lab).value("istio_tcp_connections_closed_total") == 4)
    opened = {"reporter": "source", "source_workload": "twin"}
    assert scrape(lab).one("istio_tcp_received_bytes_total", **opened).value == 10
    pid = lab.silo_of(twins[0])
    lab.delete(twins[0])
    wait_for("the silo's end", lambda: not Path(f"/proc/{pid}").exists())
    for _ in range(3):
        assert scrape(lab).one("istio_tcp_received_bytes_total", **opened).value == 10


NASTY = ['a"b', "back\\slash", "new\nline", "tab\tand é", "{x=\"y\"}", "unknown", "# EOF"]


def test_o11_nasty_names(lab):
    client = lab.pod("client", workloadName=NASTY[0])
    servers = [lab.pod(f"server-{i}", workloadName=name, mesh=False) for i, name in enumerate(NASTY)]
    lab.write_mesh(json.dumps(lab.mesh))
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client)
    lab.wait_ready()
    for server in servers:
        server.python(SERVER, 8080)
        server.wait_port(8080)
        exchange(client, server.ip, 8080, 5)
    wait_for("the connections", lambda: scrape(lab).value("istio_tcp_connections_closed_total") == len(NASTY))
    got = scrape(lab)
    opened = got.samples("istio_tcp_connections_opened_total")
    assert sorted(s.labels["destination_workload"] for s in opened) == sorted(NASTY)
    assert {s.labels["source_workload"] for s in opened} == {NASTY[0]}


def test_o12_many_scrapes_at_once(mesh):
    clients = [subprocess.Popen(["ip", "netns", "exec", mesh.node, "curl", "-sS", "--max-time", "20",
                                 "http://127.0.0.1:15020/metrics"], stdout=subprocess.PIPE, text=True) for _ in range(20)]
    for client in clients:
        text, _ = client.communicate(timeout=40)
        assert "istio_build" in Scrape(text).text


def test_o13_five_hundred_peers_are_bounded(lab):
    """500 workloads behind one address range: 500 label sets, a silo of bounded size, no row left out."""
    client, server = lab.pod("client"), lab.pod("server", mesh=False)
    ips = [f"10.{lab.net}.{100 + i // 250}.{1 + i % 250}" for i in range(500)]
    for i, ip in enumerate(ips):
        lab.mesh["workloads"].append(lab.workload(server, hbone=False, uid=f"u{i}", name=f"peer-{i}",
                                                  workloadName=f"peer-{i}", workloadIps=[ip]))
    script = "".join(f"addr add {ip}/32 dev eth0\n" for ip in ips)
    run("ip", "-n", server.netns, "-batch", "-", input=script)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client)
    lab.wait_ready()
    server.python(SERVER, 8080)
    server.wait_port(8080)
    scrape(lab)
    pid = lab.silo_of(client)
    before = pss(pid)
    client.python("import socket,sys\n"
                  "for ip in sys.argv[1:]:\n"
                  "  s=socket.create_connection((ip, 8080), timeout=20); s.sendall(b'x')\n"
                  "  assert s.recv(2); s.close()\n", *ips).wait(timeout=120)
    wait_for("500 ends", lambda: scrape(lab).value("istio_tcp_connections_closed_total", reporter="source") == 500)
    got = scrape(lab)
    assert len(got.samples("istio_tcp_connections_opened_total", reporter="source")) == 500
    assert got.one("culvert_scrape_dropped_rows_total").value == 0
    assert got.one("culvert_silo_overflowed_label_sets_total", pod_name="client").value == 0
    # 500 rows of some 500 bytes, 500 views, and what an answer takes for a moment.
    assert pss(pid) - before < 4 << 20 or os.environ.get("ASAN_OPTIONS"), "a sanitizer keeps what is freed"


def pss(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)) * 1024


def prometheus():
    return shutil.which("prometheus")


@pytest.mark.skipif(not prometheus(), reason="prometheus is not there")
def test_o14_prometheus_takes_it(mesh, tmp_path):
    """Debian's Prometheus scrapes the node: up, no sample refused, the same numbers."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    exchange(client, server.ip, 8080, 5)
    config = tmp_path / "prometheus.yml"
    config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: culvert\n"
                      "  static_configs: [{targets: ['127.0.0.1:15020']}]\n")
    log = open(tmp_path / "prometheus.log", "w")
    proc = subprocess.Popen(
        ["ip", "netns", "exec", mesh.node, prometheus(), f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
         "--web.listen-address=127.0.0.1:9090", "--log.level=debug"], stdout=log, stderr=subprocess.STDOUT)
    try:
        def query(expr):
            res = run("ip", "netns", "exec", mesh.node, "curl", "-sS", "--max-time", "5", "-G",
                      "--data-urlencode", f"query={expr}", "http://127.0.0.1:9090/api/v1/query", check=False)
            return json.loads(res.stdout)["data"]["result"] if res.returncode == 0 and res.stdout[:1] == "{" else []
        wait_for("up", lambda: [r["value"][1] for r in query("up")] == ["1"], timeout=60)
        wait_for("the bytes", lambda: sorted(r["value"][1] for r in query("istio_tcp_sent_bytes_total")) == ["10", "10"],
                 timeout=60)
        assert query('istio_build{component="ztunnel"}')[0]["value"][1] == "1"
    finally:
        proc.terminate()
        proc.wait(timeout=20)
        log.close()
    text = (tmp_path / "prometheus.log").read_text()
    bad = [line for line in text.splitlines()
           if "scrape" in line and re.search(r"level=(warn|error)|Append failed|Error on ingesting", line)]
    assert not bad, bad


# --- the dashboard -----------------------------------------------------------

def table_names():
    """Names of all samples that culvert/metrics.tbl.h can bring forth."""
    names = set()
    text = (ROOT / "include/culvert/metrics.tbl.h").read_text()
    for name, kind in re.findall(r'^METRIC\([^"]*"(\w+)",\s*(\w+)', text, re.M):
        names |= {"COUNTER": {name + "_total"}, "GAUGE": {name},
                  "HISTOGRAM": {name + s for s in ("_bucket", "_sum", "_count")}}[kind]
    return names


def test_o15_the_dashboard_names_what_there_is():
    names = table_names()
    assert len(names) > 30
    used = set()
    for path in (ROOT / "deploy/dashboards").glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                used |= set(re.findall(r"\b((?:istio|culvert|workload_manager|process)_\w+)", target["expr"]))
            assert all("${" not in t["expr"] for t in panel.get("targets", []))
    assert len(used) > 15
    assert used <= names, used - names
    unused = {re.sub("_(total|bucket|sum|count)$", "", n) for n in names} - {
        re.sub("_(total|bucket|sum|count)$", "", n) for n in used}
    assert unused <= {"process_open_fds", "process_max_fds", "culvert_pending_workloads"}, unused


def test_o16_every_sample_is_in_the_table(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    exchange(client, server.ip, 8080, 5)
    names = table_names()
    for family in scrape(mesh).families.values():
        for sample in family.samples:
            assert sample.name in names


# --- the control plane -------------------------------------------------------

def test_o17_messages_of_the_control_plane(served):  # noqa: F811
    """Responses by type, the bytes of their resources' values, and how streams ended."""
    lab, istiod = served.lab, served.istiod

    def ends():
        return {s.labels["reason"]: s.value for s in scrape(lab).samples("istio_xds_connection_terminations_total")}
    before = scrape(lab)
    assert before.value("istio_xds_message_total", url=ADDRESS) >= 1
    assert before.value("istio_xds_message_total", url=POLICY) >= 1
    extra = xds_workload(served.client, uid="extra", name="extra", addresses=[packed(f"10.{lab.net}.0.99")])
    since = istiod.mark()
    istiod.push(ADDRESS, [resource(extra)], removed=["nobody"])
    after = scrape(lab)
    assert after.value("istio_xds_message_total", url=ADDRESS) == before.value("istio_xds_message_total", url=ADDRESS) + 1
    grown = after.value("istio_xds_message_bytes_total", url=ADDRESS) - before.value("istio_xds_message_bytes_total", url=ADDRESS)
    assert grown == len(resource(extra).resource.value)
    assert after.families["istio_xds_message_bytes"].unit == "bytes"
    was = ends()
    istiod.end()
    istiod.first(ADDRESS, since)
    wait_for("the end", lambda: ends().get("Complete", 0) == was.get("Complete", 0) + 1)


# --- the access log ----------------------------------------------------------

@pytest.mark.parametrize("mode,kinds", [("all", {"complete", "error"}), ("errors", {"error"}), ("off", set())])
def test_o18_access_lines_are_held_back(lab, mode, kinds):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, CULVERT_ACCESS_LOG=mode, RUST_LOG="info,access=info")
    lab.add(client, server)
    lab.wait_ready()
    server.python(SERVER, 8080)
    server.wait_port(8080)
    exchange(client, server.ip, 8080, 5)
    client.python(CLIENT, server.ip, 9, 1).wait(timeout=30)
    # What is counted has been logged, if it is to be logged; the pipes are read in order.
    wait_for("all ends", lambda: scrape(lab).value("istio_tcp_connections_closed_total") == 4)
    if kinds:
        lab.wait_log("connection complete", "error=")
    lines = lab.log_lines("connection complete")
    assert {"error" if "error=" in line else "complete" for line in lines} == kinds


def test_o19_processes_that_end_badly(mesh):
    """A silo that is killed takes its counters along, a broker that is killed asks the silos again."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    exchange(client, server.ip, 8080, 5)
    wait_for("the ends", lambda: scrape(mesh).value("istio_tcp_connections_closed_total") == 2)
    os.kill(mesh.pid_of("broker"), signal.SIGKILL)

    def answered():
        text = curl_if_up(mesh)
        return Scrape(text) if text else None

    def is_back():
        got = answered()
        return got and got.value("istio_tcp_received_bytes_total") == 10
    wait_for("the new broker", is_back, timeout=30)
    old = mesh.silo_of(client)
    os.kill(old, signal.SIGKILL)
    wait_for("the new silo", lambda: mesh.silo_of(client) not in (None, old))
    wait_for("the crash to be counted",
             lambda: scrape(mesh).value("culvert_silo_restarts_total", pod_name="client") == 1)
    got = scrape(mesh)
    assert not got.samples("istio_tcp_received_bytes_total", reporter="source")
    assert got.value("istio_tcp_received_bytes_total", reporter="destination") == 5


def curl_if_up(lab):
    res = run("ip", "netns", "exec", lab.node, "curl", "-sS", "--max-time", "20", "http://127.0.0.1:15020/metrics",
              check=False)
    return res.stdout if res.returncode == 0 else None
