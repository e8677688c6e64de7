# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the behaviour table (reference dataplane.md 21) that no other file has; ids with capital letters."""
import pytest

from culvert_e2e.lab import access_fields, wait_for
from test_a_basic import mesh, serve  # noqa: F401
from test_d_hbone import OTHER, call, ca, files, stream  # noqa: F401
from test_m_outbound import Node, far_service
from test_n_inbound import ECHO, hold
from test_o_metrics import scrape

HOLE = "table inet hole {{ chain in {{ type filter hook input priority 0; tcp dport {port} drop; }}; }}\n"


@pytest.fixture
def node(lab, tmp_path):
    return Node(lab, tmp_path)


def test_I12_application_swallows_503(mesh, files):  # noqa: F811
    """The application's side is silent: 503 after the connect's ten seconds, not before."""
    server = mesh.pods["server"]
    server.run("nft", "-f", "-", input=HOLE.format(port=9100))
    assert stream(call(mesh, files, f"{server.ip}:9100", timeout=40))["status"] == 503
    line = access_fields(mesh.wait_log("connection complete", 'direction="inbound"', ":9100")[0])
    assert "deadline has elapsed" in line["error"] and int(line["duration"].removesuffix("ms")) >= 9900
    failed = scrape(mesh).one("istio_tcp_connections_failed_total", reporter="destination", destination_workload="server")
    assert failed.labels["response_flags"] == "CONNECT"


def test_D5_deleted_pod_with_an_open_connection(mesh):  # noqa: F811
    """Closed at once; what comes later meets no proxy of it."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    server.python(ECHO, 9000)
    server.wait_port(9000)
    held = hold(client, server.ip, 9000)
    mesh.delete(server)
    assert held.communicate(timeout=20)[0].strip() in ("eof", "reset")
    wait_for("the silo's end", lambda: mesh.pid_of(server) is None)
    assert ":15008" not in server.run("ss", "-ltnH").stdout
    # The client's mesh still says HBONE: there is nobody to speak it.
    assert client.curl(f"http://{server.ip}:8080/", check=False).returncode != 0
    assert mesh.log_lines("connection complete", 'direction="inbound"', "connection drain")


def test_M5_labels_of_a_waypoint(node):
    """Destination is the waypoint, service is the one that was dialled, on counters and in the line."""
    waypoint, server = node.lab.pod("waypoint"), node.lab.pod("server")
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[server],
                     waypoint={"destination": f"/{waypoint.ip}", "hboneMtlsPort": 15008})
    node.start()
    node.peer(waypoint)
    assert node.shout(node.vip(9)) == "HELLO THERE"
    line = node.line(f"{node.vip(9)}:80")
    assert line["dst.workload"] == "waypoint" and line["dst.service"] == "web.default.svc.cluster.local"
    row = wait_for("the row", lambda: scrape(node.lab).samples("istio_tcp_connections_closed_total", reporter="source"))[0]
    assert row.labels["destination_workload"] == "waypoint" and row.labels["destination_principal"] == waypoint.spiffe
    assert row.labels["destination_service"] == "web.default.svc.cluster.local"
    assert row.labels["destination_service_name"] == "web"


def test_M6_labels_of_a_double_tunnel(node):
    """Who is at the end is what the inner answer says, with the inner identity; bytes are the application's."""
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start()
    node.peer(gateway, mode="forward", to=f"{server.ip}:15008")
    node.peer(server, baggage="k8s.namespace.name=away,service.name=somewhere,k8s.deployment.name=far-one")
    assert node.shout(vip) == "HELLO THERE"
    line = node.line("web.default.svc.cluster.local:80")
    assert line["dst.identity"] == server.spiffe and line["dst.workload"] == "somewhere"
    row = wait_for("the row", lambda: scrape(node.lab).samples("istio_tcp_connections_closed_total", reporter="source"))[0]
    assert row.labels["destination_workload"] == "far-one" and row.labels["destination_workload_namespace"] == "away"
    assert row.labels["destination_principal"] == server.spiffe
    assert scrape(node.lab).one("istio_tcp_sent_bytes_total", reporter="source").value == len("hello there")


def test_M8_early_denials_count_nothing(mesh):  # noqa: F811
    """Calls to the proxy's own ports, out and in: a warning each, and no counter moves."""
    client, outside = mesh.pods["client"], mesh.pods["outside"]
    assert client.curl("http://127.0.0.1:15001/", check=False, timeout=5).returncode != 0
    assert outside.curl(f"http://{client.ip}:15006/", check=False, timeout=5).returncode != 0
    lines = mesh.wait_log("warn", "connection failed", count=2)
    assert len(lines) == 2 and all(set(access_fields(line)) <= {"src.addr", "dst.addr", "direction", "error"} for line in lines)
    assert not scrape(mesh).samples("istio_tcp_connections_opened_total")
    assert not mesh.log_lines("connection complete")
