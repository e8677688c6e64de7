# SPDX-License-Identifier: GPL-2.0-or-later
"""HBONE for the daemon's own pod (reference dataplane.md 2.9): the mesh scrapes 15020 through it."""
import json
import os
import signal
import sys

import pytest

from culvert_e2e import pki
from culvert_e2e.lab import access_fields, exact, run, wait_for
from culvert_e2e.zds import ScriptedAgent, add, info
from test_b_policy import apply, policy
from test_d_hbone import OTHER, PEER, stream


OWN = {"POD_NAME": "culvert-x", "POD_NAMESPACE": "istio-system", "SERVICE_ACCOUNT": "culvert"}
SELF = "culvert-self"
SPIFFE = "spiffe://cluster.local/ns/istio-system/sa/culvert"
SCRAPE = "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n"


def own_ip(lab):
    return f"10.{lab.net}.0.1"


def start(lab, **env):
    """A client in the mesh and a pod outside; the daemon is a workload of the mesh itself."""
    client, outside = lab.pod("client"), lab.pod("outside", mesh=False)
    own = lab.workload(client, uid="Kubernetes//Pod/istio-system/culvert-x", name="culvert-x", namespace="istio-system",
                       serviceAccount="culvert", workloadIps=[own_ip(lab)])
    lab.mesh["workloads"].append(own)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, **{**OWN, **env})
    lab.add(client)
    lab.wait_ready()
    return client, outside


def self_pid(lab):
    """Our own silo, in the daemon's namespace; None while nothing listens there."""
    for pid in run("ip", "netns", "pids", lab.node).stdout.split():
        try:
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() == "culvert-silo" and ":15008 " in listeners(lab):
                    return int(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def listeners(lab):
    return run("ip", "netns", "exec", lab.node, "ss", "-ltnH").stdout


def up(lab):
    return wait_for("our own silo", lambda: self_pid(lab))


def ask(lab, files, authority, send=SCRAPE):
    crt, key, root = files
    return json.loads(lab.pods["outside"].run(
        sys.executable, PEER, "client", "--connect", f"{own_ip(lab)}:15008", "--root", root, "--cert", crt, "--key", key,
        "--timeout", 15, "--authority", authority, "--send", send).stdout)


@pytest.fixture
def ca(lab):
    return lambda: pki.Ca.from_dir(wait_for(
        "the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.key")), None)).parent)


def test_s01_i23_the_mesh_scrapes_over_hbone(lab, ca, tmp_path):
    client, outside = start(lab)
    up(lab)
    result = ask(lab, ca().issue(tmp_path, [OTHER]), f"{own_ip(lab)}:15020")
    got = stream(result)
    assert result["peer"] == [SPIFFE] and got["status"] == 200
    assert "HTTP/1.1 200" in got["data"] and "istio_build" in got["data"]
    line = access_fields(lab.wait_log("connection complete", f'src.identity="{OTHER}"')[0])
    assert line["dst.hbone_addr"] == f"{own_ip(lab)}:15020" and line["dst.workload"] == "culvert-x"
    # A scraper in the mesh comes by its own silo.
    assert "istio_build" in client.curl(f"http://{own_ip(lab)}:15020/metrics").stdout
    out = access_fields(lab.wait_log("connection complete", 'direction="outbound"')[-1])
    assert out["dst.identity"] == SPIFFE and out["dst.hbone_addr"] == f"{own_ip(lab)}:15020"


def test_s02_policy_applies(lab, ca, tmp_path):
    start(lab)
    up(lab)
    files, authority = ca().issue(tmp_path, [OTHER]), f"{own_ip(lab)}:15020"
    assert stream(ask(lab, files, authority))["status"] == 200
    apply(lab, policy("no-other", "Deny", {"principals": [exact(OTHER.removeprefix("spiffe://"))]}, ns="istio-system"))
    wait_for("the refusal", lambda: stream(ask(lab, files, authority))["status"] == 401)
    apply(lab)
    wait_for("the way in", lambda: stream(ask(lab, files, authority))["status"] == 200)


def test_s03_other_ports_and_addresses_are_refused(lab, ca, tmp_path):
    client, _ = start(lab)
    up(lab)
    files = ca().issue(tmp_path, [OTHER])
    assert stream(ask(lab, files, f"{client.ip}:15020"))["status"] == 400
    assert stream(ask(lab, files, f"{own_ip(lab)}:15008"))["status"] == 503


def test_s04_nothing_but_hbone_is_opened(lab):
    """One listener, without mark; the admin port stays on loopback. The node agent and upstream's dump don't hear of it."""
    client, _ = start(lab)
    up(lab)
    ports = {row.split()[3].rsplit(":", 1)[1] for row in listeners(lab).splitlines()}
    assert "15008" in ports and not ports & {"15001", "15006", "15080"}
    by_uid = {pod["uid"]: pod for pod in lab.pods_json()}
    assert set(by_uid) == {client.uid, SELF}
    dump = json.loads(run("ip", "netns", "exec", lab.node, "curl", "-s", "http://127.0.0.1:15000/config_dump").stdout)
    assert set(dump["workloadState"]) == {client.uid}
    assert SPIFFE in {c["identity"] for c in dump["certificates"]}
    text = run("ip", "netns", "exec", lab.node, "curl", "-s", "http://127.0.0.1:15020/metrics").stdout
    active, = [row for row in text.splitlines() if row.startswith("workload_manager_active_proxy_count")]
    assert active.split()[-1] == "1"


def test_s05_comes_back_and_is_adopted(lab, ca, tmp_path):
    start(lab)
    old = up(lab)
    os.kill(old, signal.SIGKILL)
    # Not the first attempt, which may meet the port of the one that is still going away.
    lab.wait_log(f"({SELF}) is up, pid", count=2)
    second = self_pid(lab)
    warden = lab.pid_of("culvert-warden")
    os.kill(warden, signal.SIGKILL)
    wait_for("another warden", lambda: lab.pid_of("culvert-warden") != warden)
    lab.wait_log(f"adopted the silo of istio-system/culvert-x ({SELF}), pid ")
    assert self_pid(lab) == second
    os.kill(second, signal.SIGKILL)
    wait_for("the silo after that", lambda: (pid := self_pid(lab)) != second and pid)
    got = wait_for("an answer", lambda: (r := ask(lab, ca().issue(tmp_path, [OTHER]), f"{own_ip(lab)}:15020")).get("streams") and r)
    assert stream(got)["status"] == 200


@pytest.mark.parametrize("missing", OWN)
def test_s06_only_with_all_three_names(lab, missing):
    start(lab, **{missing: ""})
    assert ":15008 " not in listeners(lab)
    assert SELF not in {pod["uid"] for pod in lab.pods_json()}


def test_s07_the_node_agent_cannot_have_its_name(lab):
    """Neither an Add nor a Del nor a snapshot without it touches the daemon's own silo."""
    pod = lab.pod("client")
    lab.write_mesh()
    with ScriptedAgent(lab.zds_path) as agent:
        lab.start_daemon(ready=False, **OWN)
        conn = agent.snapshot()
        pid = up(lab)
        with open(pod.netns_path) as netns:
            assert conn.ask(add(SELF, info()), [netns.fileno()])
        pod.uid = SELF
        conn.delete(pod)
        assert self_pid(lab) == pid


def test_s08_the_end(lab):
    """SIGTERM ends it like any silo, and nothing is left."""
    start(lab)
    up(lab)
    assert lab.stop_daemon() == 0
    assert self_pid(lab) is None
