# SPDX-License-Identifier: GPL-2.0-or-later
"""Readiness on 15021 (reference control.md 11.2): codes and bodies, and whom a workload that cannot start concerns."""
import os
import signal

import pytest

from culvert_e2e.lab import run, wait_for

# Holds the port of a pod's listener without port reuse until it is ended.
SQUAT = "import socket,time\n" \
    "s=socket.socket(socket.AF_INET6); s.bind(('::',15008)); s.listen()\n" \
    "time.sleep(600)\n"

AGENT_PENDING = ("not ready, pending: workload proxy manager\n", "500")


def get(lab, *args, path="/healthz/ready"):
    """Body and code; ("", "000") while nobody listens."""
    res = run("ip", "netns", "exec", lab.node, "curl", "-s", "--max-time", "2", "-w", "\n%{http_code}", *args,
              f"http://127.0.0.1:15021{path}", check=False)
    body, _, code = res.stdout.rpartition("\n")
    return body, code


def squat(pod):
    """The pod's silo cannot bind from here on; returns the process to be ended."""
    proc = pod.python(SQUAT)
    pod.wait_port(15008)
    return proc


def add_fails(lab, pod):
    res = lab.agent_call("add", "--uid", pod.uid, "--name", pod.name, "--namespace", pod.ns, "--service-account", pod.sa,
                         "--netns", pod.netns_path, "--ip", pod.ip, check=False)
    assert res.returncode != 0


@pytest.fixture
def node(lab):
    """A ready node with one pod, and another pod whose silo cannot start."""
    good, bad = lab.pod("good"), lab.pod("bad")
    lab.write_mesh()
    lab.start_agent()

    def start(**env):
        lab.start_daemon(ready=False, **env)
        lab.add(good)
        lab.wait_ready()
        squat(bad)
        return lab
    return start


def test_k01_codes_and_bodies(lab):
    lab.start_daemon(ready=False)
    # Without a node agent one task stays open.
    wait_for("the last task", lambda: get(lab) == AGENT_PENDING)
    assert get(lab, "-X", "POST") == ("", "405")
    assert get(lab, path="/") == ("", "404")
    assert get(lab, path="/healthz/ready?verbose") == AGENT_PENDING
    lab.start_agent()
    wait_for("readiness", lambda: get(lab) == ("ready\n", "200"))


def test_k02_a_late_failure_leaves_the_node_ready(node):
    lab = node()
    add_fails(lab, lab.pods["bad"])
    wait_for("the pending pod", lambda: any(p["state"] == "Pending" for p in lab.pods_json()))
    assert get(lab) == ("ready\n", "200")
    # A new broker and a new warden hear of it and do not change their minds.
    old = lab.pid_of("culvert-broker")
    os.kill(old, signal.SIGKILL)
    wait_for("a new broker", lambda: lab.pid_of("culvert-broker") != old)
    wait_for("readiness", lambda: get(lab) == ("ready\n", "200"))


def test_k03_strict(node):
    lab = node(CULVERT_STRICT_READINESS="true")
    bad = lab.pods["bad"]
    add_fails(lab, bad)
    wait_for("unreadiness", lambda: get(lab) == AGENT_PENDING)
    bad.procs[-1].kill()
    wait_for("the retry", lambda: get(lab) == ("ready\n", "200"))


def test_k04_a_failure_at_start_counts(node):
    lab = node()
    bad = lab.pods["bad"]
    bad.procs[-1].kill()
    bad.procs[-1].wait()
    lab.add(bad)
    assert lab.stop_daemon(timeout=30) == 0
    squatter = squat(bad)
    lab.start_daemon(ready=False)
    lab.wait_log("AddrInUse")
    wait_for("the last task", lambda: get(lab) == AGENT_PENDING)
    squatter.kill()
    wait_for("the retry", lambda: get(lab) == ("ready\n", "200"))


def test_k05_the_agent_goes(node):
    lab = node()
    lab.agent.kill()
    lab.agent.wait()
    wait_for("unreadiness", lambda: get(lab) == AGENT_PENDING)
    lab.start_agent()
    lab.add(lab.pods["good"])
    wait_for("readiness", lambda: get(lab) == ("ready\n", "200"))
