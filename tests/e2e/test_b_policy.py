# SPDX-License-Identifier: GPL-2.0-or-later
"""Policies: denied, allowed, changed while connections are open; the mesh file and its mistakes."""
import time

import pytest

from culvert_e2e.lab import REFUSED, access_fields, exact, presence, wait_for
from test_a_basic import mesh, serve  # noqa: F401


def policy(name, action, match, ns="default", scope="Namespace"):
    return {"name": name, "namespace": ns, "scope": scope, "action": action, "dryRun": False,
            "rules": [[[match]]] if match is not None else []}


def apply(lab, *policies):
    lab.mesh["policies"] = list(policies)
    before = len(lab.log_lines("local config initialized"))
    lab.write_mesh()
    lab.wait_log("local config initialized", count=before + 1)
    time.sleep(0.2)


def test_b01_deny_by_identity(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    url = f"http://{server.ip}:8080/"
    assert client.curl(url).returncode == 0
    apply(mesh, policy("no-client", "Deny", {"principals": [exact(client.spiffe.removeprefix("spiffe://"))]}))
    assert client.curl(url, check=False).returncode in REFUSED
    assert mesh.wait_log("explicitly denied by: default/no-client", 'direction="inbound"')
    assert mesh.wait_log("http status: 401 Unauthorized", 'direction="outbound"')
    apply(mesh)
    assert client.curl(url).returncode == 0


def test_b08_a_policy_larger_than_a_record(mesh):  # noqa: F811
    """3,000 ranges are no reason to forget a policy, nor the one beside it; the last range counts as the first."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    url = f"http://{server.ip}:8080/"
    ranges = [f"2001:{i:x}::/32" for i in range(3000)]
    small = policy("small", "Deny", {"principals": [exact("nobody")]})
    apply(mesh, policy("large", "Deny", {"sourceIps": ranges}), small)
    assert client.curl(url).returncode == 0
    apply(mesh, policy("large", "Deny", {"sourceIps": [*ranges, f"{client.ip}/32"]}), small)
    assert client.curl(url, check=False).returncode in REFUSED
    assert mesh.wait_log("explicitly denied by: default/large", 'direction="inbound"')
    apply(mesh)
    assert client.curl(url).returncode == 0


def test_b02_allow_others_only(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    apply(mesh, policy("only-x", "Allow", {"principals": [exact("cluster.local/ns/default/sa/x")]}))
    assert client.curl(f"http://{server.ip}:8080/", check=False).returncode != 0
    assert mesh.wait_log("allow policies exist, but none allowed")


def test_b03_strict_refuses_plaintext(mesh):  # noqa: F811
    """What istiod makes of STRICT peer authentication: deny whoever has no identity."""
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    apply(mesh, policy("istio_converted_static_strict", "Deny", {"notPrincipals": [presence()]}, scope="Namespace"))
    assert outside.curl(f"http://{server.ip}:8080/", check=False).returncode != 0
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0


HOLD = "import socket,sys,time\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=30)\n" \
    "s.sendall(b'x'); print('up',flush=True)\n" \
    "d=s.recv(10); print('end',len(d),flush=True)\n"

KEEP = "import socket,sys,time\n" \
    "l=socket.create_server(('::',int(sys.argv[1])),family=socket.AF_INET6,dualstack_ipv6=True)\n" \
    "keep=[]\n" \
    "while True: keep.append(l.accept()[0])\n"


def test_b04_open_connections_are_judged_again(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    server.python(KEEP, 9100)
    server.wait_port(9100)
    held = client.python(HOLD, server.ip, 9100)
    assert held.stdout.readline() == "up\n"
    time.sleep(0.3)
    apply(mesh, policy("no-9100", "Deny", {"destinationPorts": [9100]}))
    assert held.stdout.readline() == "end 0\n"
    assert mesh.wait_log("connection closed due to policy change", 'direction="inbound"')
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0


BAD_FILES = [
    ("unknown top key", "workloads: []\nbogus: 1\n", "bogus"),
    ("wrong type", "workloads: 7\n", "workloads"),
    ("not yaml", "workloads: [\n", "mesh.yaml"),
    ("duplicate key", "services: []\nservices: []\n", "services"),
    ("missing required", "workloads:\n- name: a\n  namespace: b\n  services: {}\n", "workloadIps"),
    ("bad address", "workloads:\n- name: a\n  namespace: b\n  services: {}\n  workloadIps: [nonsense]\n", "workloadIps"),
    ("unknown workload key", "workloads:\n- name: a\n  namespace: b\n  services: {}\n  workloadIps: []\n  colour: red\n", "colour"),
    ("policy without dryRun", "policies:\n- {name: a, namespace: b, scope: Global, action: Deny}\n", "dryRun"),
]


def test_b05_a_bad_mesh_file_leaves_the_running_state(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    for what, text, key in BAD_FILES:
        before = len(mesh.log_lines("mesh file is not used"))
        mesh.write_mesh(text)
        lines = mesh.wait_log("mesh file is not used", count=before + 1)
        assert key in lines[-1], f"{what}: {lines[-1]}"
        assert client.curl(f"http://{server.ip}:8080/").returncode == 0, what
    apply(mesh)
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0


@pytest.mark.parametrize("what,text,key", BAD_FILES[:3], ids=[b[0] for b in BAD_FILES[:3]])
def test_b06_a_bad_mesh_file_at_start_is_fatal(lab, what, text, key):
    lab.write_mesh(text)
    proc = lab.start_daemon(ready=False)
    assert proc.wait(timeout=20) == 1
    assert key in lab.log()


def test_b07_a_new_endpoint_is_used(mesh):  # noqa: F811
    """A silo is told of what it has asked about: an endpoint that appears and one that leaves."""
    client, server, outside = (mesh.pods[n] for n in ("client", "server", "outside"))
    vip = f"10.{mesh.net}.201.1"
    mesh.service("web", vips=[f"/{vip}"], ports={80: 8080}, pods=[server])
    apply(mesh)
    assert "from server" in client.curl(f"http://{vip}/").stdout
    mesh.record(server)["services"] = {}
    mesh.record(outside)["services"] = {"default/web.default.svc.cluster.local": {80: 8080}}
    apply(mesh)
    wait_for("the new endpoint", lambda: "from outside" in client.curl(f"http://{vip}/", check=False).stdout)
    out = access_fields(mesh.wait_log("connection complete", 'direction="outbound"', f"{outside.ip}:8080")[-1])
    assert out["dst.service"] == "web.default.svc.cluster.local"
