# SPDX-License-Identifier: GPL-2.0-or-later
"""Dedicated mode: one workload in the daemon's own namespace, no node agent; it meets pods of shared mode."""
import json
import shutil
from pathlib import Path

import pytest

from culvert_e2e.lab import access_fields, run, wait_for
from test_a_basic import serve

# What an operator of a virtual machine sets up: the proxy's own sockets carry the mark.
CAPTURE = "table inet vm { " \
    "chain out { type nat hook output priority -100; oifname lo return; meta mark 1337 return; " \
    "tcp dport 8080 redirect to :15001; }; " \
    "chain in { type nat hook prerouting priority -100; tcp dport 8080 redirect to :15006; }; }\n"


def start_dedicated(lab, pod, ready=True, **env):
    """A daemon of its own in the pod's namespace; the mesh file and the embedded CA are those of the lab."""
    pod.run("nft", "-f", "-", input=CAPTURE)
    node, lab.node = lab.node, pod.netns
    try:
        return lab.start_daemon(ready=ready, PROXY_MODE="dedicated", PACKET_MARK=1337, ENABLE_ORIG_SRC="false",
                                INPOD_UDS="/nonexistent/agent.sock", **env)
    finally:
        lab.node = node


def readiness(pod):
    res = pod.run("curl", "-s", "--max-time", "2", "-w", "%{http_code}", "http://127.0.0.1:15021/healthz/ready", check=False)
    return res.stdout


@pytest.fixture
def mesh(lab):
    """Two pods of shared mode, a machine with an address on the same bridge."""
    server, client = lab.pod("server"), lab.pod("client")
    lab.pod("vm")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(server, client)
    lab.wait_ready()
    serve(server)
    return lab


def identities(lab, proc, direction):
    line = lab.wait_log("connection complete", f'direction="{direction}"', proc=proc)[-1]
    fields = access_fields(line)
    return fields.get("src.identity"), fields.get("dst.identity")


def assert_both_ways(lab, proc):
    vm, server, client = (lab.pods[n] for n in ("vm", "server", "client"))
    wait_for("the way out", lambda: "hello from server" in vm.curl(f"http://{server.ip}:8080/", check=False).stdout)
    assert identities(lab, proc, "outbound") == (vm.spiffe, server.spiffe)
    serve(vm)
    assert "hello from vm" in client.curl(f"http://{vm.ip}:8080/").stdout
    assert identities(lab, proc, "inbound") == (client.spiffe, vm.spiffe)
    assert readiness(vm) == "ready\n200"


def test_j01_named_workload(mesh):
    proc = start_dedicated(mesh, mesh.pods["vm"], PROXY_WORKLOAD_INFO="default/vm/vm")
    assert_both_ways(mesh, proc)
    assert len(mesh.silos_of(proc)) == 1
    # No agent: nobody looks for one, and the silo is the daemon's only one.
    assert not [line for line in mesh.log_lines("nonexistent", proc=proc) if "running with config" not in line]


def test_j02_certificate_on_demand(mesh):
    proc = start_dedicated(mesh, mesh.pods["vm"], PROXY_WORKLOAD_INFO="default/vm/vm")
    pod = mesh.pods["vm"]
    dump = lambda: [c for c in json.loads(run(  # noqa: E731
        "ip", "netns", "exec", pod.netns, "curl", "-s", "http://127.0.0.1:15000/config_dump").stdout)["certificates"]
        if c.get("certChain")]
    assert dump() == []
    assert "hello" in pod.curl(f"http://{mesh.pods['server'].ip}:8080/").stdout
    assert [c["identity"] for c in dump()] == [pod.spiffe]
    assert identities(mesh, proc, "outbound")[0] == pod.spiffe


def test_j03_found_by_its_address(mesh):
    """Without PROXY_WORKLOAD_INFO the record with the machine's address is its own, also when it comes late."""
    vm = mesh.pods["vm"]
    late = mesh.record(vm)
    mesh.mesh["workloads"].remove(late)
    mesh.write_mesh()
    proc = start_dedicated(mesh, vm)
    assert readiness(vm) == "ready\n200"
    mesh.mesh["workloads"].append(late)
    mesh.write_mesh()
    mesh.wait_log("by its address", proc=proc)
    assert_both_ways(mesh, proc)


def test_j04_the_silo_comes_back(mesh):
    vm = mesh.pods["vm"]
    proc = start_dedicated(mesh, vm, PROXY_WORKLOAD_INFO="default/vm/vm")
    url = f"http://{mesh.pods['server'].ip}:8080/"
    assert "hello" in vm.curl(url).stdout
    old = mesh.silos_of(proc)
    run("kill", "-9", old[0])
    wait_for("another silo", lambda: (new := mesh.silos_of(proc)) and new != old)
    wait_for("service", lambda: vm.curl(url, check=False, timeout=3).returncode == 0)


def test_j06_adopted_then_crashed(mesh):
    """A silo that a new warden took over is started again where it was, in the daemon's own namespace."""
    vm = mesh.pods["vm"]
    proc = start_dedicated(mesh, vm, PROXY_WORKLOAD_INFO="default/vm/vm")
    url = f"http://{mesh.pods['server'].ip}:8080/"
    warden = mesh.pid_of("culvert-warden", proc)
    run("kill", "-9", warden)
    wait_for("another warden", lambda: mesh.pid_of("culvert-warden", proc) != warden)
    mesh.wait_log("adopted the silo of", proc=proc)
    old, = mesh.silos_of(proc)
    run("kill", "-9", old)
    wait_for("another silo", lambda: (new := mesh.silos_of(proc)) and new != [old])
    wait_for("service", lambda: "hello" in vm.curl(url, check=False, timeout=3).stdout)


def test_j07_search_list_of_the_machine(mesh):
    """DNS takes off the domains of resolv.conf, not those of a pod."""
    vm = mesh.pods["vm"]
    vip = f"10.{mesh.net}.9.9"
    mesh.service("echo", vips=[f"/{vip}"], ports={80: 8080})
    mesh.write_mesh()
    folder = Path("/etc/netns") / vm.netns
    folder.mkdir(parents=True)
    try:
        (folder / "resolv.conf").write_text("search Corp.Example. other.test\nnameserver 127.0.0.3\n")
        start_dedicated(mesh, vm, PROXY_WORKLOAD_INFO="default/vm/vm")

        def ask(name):
            res = vm.run("dig", "+short", "+time=2", "+tries=1", "@127.0.0.1", "-p", "15053", name, check=False)
            return [line for line in res.stdout.split("\n") if line and not line.startswith(";")]

        wait_for("the name", lambda: ask("echo.default.svc.cluster.local") == [vip])
        assert ask("echo.corp.example") == ["echo.", vip]
        assert ask("echo.default.other.test") == ["echo.default.", vip]
        assert ask("echo.svc.cluster.local") == [], "one of a pod's domains, not of this machine's"
    finally:
        shutil.rmtree(folder)
        try:
            folder.parent.rmdir()
        except OSError:
            pass


@pytest.mark.parametrize("info", ["", "default/vm", "vm"])
def test_j05_malformed_info_is_fatal(lab, info):
    vm = lab.pod("vm")
    proc = start_dedicated(lab, vm, ready=False, PROXY_WORKLOAD_INFO=info)
    assert proc.wait(timeout=30) == 1
    assert "PROXY_WORKLOAD_INFO" in lab.log(proc)
