# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes get killed; traffic of the others goes on. Nothing is left at the end."""
import os
import signal
import time
from pathlib import Path

import pytest

from culvert_e2e.lab import wait_for
from test_a_basic import mesh, serve  # noqa: F401

# Sends numbered lines and expects each back, for as long as it is told; says when the first is back, prints how many
# came back.
PING = "import socket,sys,time\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=10); f=s.makefile('rw')\n" \
    "end=time.time()+float(sys.argv[3]); n=0\n" \
    "while time.time()<end:\n" \
    "  f.write('%d\\n'%n); f.flush(); assert f.readline()=='%d\\n'%n; n+=1; time.sleep(0.01)\n" \
    "  if n==1: print('going',flush=True); end=time.time()+float(sys.argv[3])\n" \
    "print('sent',n)\n"

ECHO = "import socketserver,sys,socket\n" \
    "class H(socketserver.StreamRequestHandler):\n" \
    "  def handle(self):\n" \
    "    for line in self.rfile: self.wfile.write(line)\n" \
    "class S(socketserver.ThreadingTCPServer):\n" \
    "  address_family=socket.AF_INET6; allow_reuse_address=True; daemon_threads=True\n" \
    "S(('::',int(sys.argv[1])),H).serve_forever()\n"


def start_transfer(lab, seconds):
    client, server = lab.pods["client"], lab.pods["server"]
    server.python(ECHO, 9200)
    server.wait_port(9200)
    proc = client.python(PING, server.ip, 9200, seconds)
    assert proc.stdout.readline() == "going\n"
    return proc


def assert_went_on(proc):
    out, _ = proc.communicate(timeout=30)
    assert out.startswith("sent "), out
    assert int(out.split()[1]) > 10


@pytest.mark.parametrize("role", ["culvert-broker", "culvert-warden"])
def test_c01_daemon_process_killed(mesh, role):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    proc = start_transfer(mesh, 4)
    silos = mesh.silo_pids()
    os.kill(mesh.pid_of(role), signal.SIGKILL)
    start = time.monotonic()
    wait_for("new connections", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=2).returncode == 0)
    assert time.monotonic() - start < 3
    assert_went_on(proc)
    mesh.wait_ready()
    assert sorted(mesh.silo_pids()) == sorted(silos), "silos were adopted, not restarted"
    assert all(p["restarts"] == 0 for p in mesh.pods_json())


def test_c02_silo_killed_others_go_on(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    third = mesh.pod("third")
    mesh.write_mesh()
    mesh.add(third)
    serve(third)
    proc = start_transfer(mesh, 3)
    old = mesh.pid_of(third)
    os.kill(old, signal.SIGKILL)
    wait_for("the silo's return", lambda: mesh.pid_of(third) not in (None, old))
    wait_for("new connections", lambda: client.curl(f"http://{third.ip}:8080/", check=False, timeout=2).returncode == 0)
    assert_went_on(proc)
    wait_for("the count", lambda: {p["uid"]: p["restarts"] for p in mesh.pods_json()}[third.uid] == 1)


def test_c03_warden_restart_then_silo_crash(mesh):  # noqa: F811
    """An adopted silo is not the new warden's child; its crash is noticed and repaired all the same."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    old_warden = mesh.pid_of("culvert-warden")
    os.kill(old_warden, signal.SIGKILL)
    wait_for("a new warden", lambda: mesh.pid_of("culvert-warden") != old_warden)
    mesh.wait_ready()
    wait_for("adoption", lambda: len(mesh.pods_json()) == 2)
    old = mesh.pid_of(server)
    os.kill(old, signal.SIGKILL)
    wait_for("the silo's return", lambda: mesh.pid_of(server) not in (None, old))
    wait_for("service", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=2).returncode == 0)


def test_c04_sigterm_drains(mesh):  # noqa: F811
    """Listeners close at once, open connections finish, exit status 0, nothing is left."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    proc = start_transfer(mesh, 2.5)
    daemon = mesh.daemons[-1]
    daemon.send_signal(signal.SIGTERM)
    wait_for("closed listeners", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=2).returncode == 7)
    assert_went_on(proc)
    assert daemon.wait(timeout=20) == 0
    assert not [pid for pid in mesh.left_over() if Path(f"/proc/{pid}/comm").read_text().startswith("culvert")]


def test_c05_the_deadline_cuts(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, TERMINATION_GRACE_PERIOD_SECONDS=3)
    lab.add(client, server)
    lab.wait_ready()
    start_transfer(lab, 60)
    start = time.monotonic()
    assert lab.stop_daemon(timeout=20) == 0
    assert 1.5 < time.monotonic() - start < 8
    assert lab.log_lines("drain duration expired with pending connections")
    assert lab.log_lines("connection closed due to connection drain")


def test_c06_deleted_pod(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    mesh.delete(server)
    wait_for("the silo's end", lambda: mesh.pid_of(server) is None)
    assert {p["uid"] for p in mesh.pods_json()} == {client.uid}
    # Un-enrolled: its rules are gone too, and plaintext reaches the application directly.
    assert mesh.pods["outside"].curl(f"http://{server.ip}:8080/").returncode == 0


def test_c07_new_netns_same_uid(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    old = mesh.pid_of(server)
    mesh.rewire(server)
    mesh.add(server)
    serve(server)
    assert mesh.pid_of(server) not in (None, old)
    wait_for("service", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=3).returncode == 0)


def test_c08_agent_killed_and_back(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    silos = mesh.silo_pids()
    mesh.agent.kill()
    mesh.agent.wait()
    wait_for("unready", lambda: not mesh.ready())
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    mesh.start_agent()
    mesh.add(client, server)
    mesh.wait_ready()
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert len(silos) == 2


def test_c09_two_daemons_side_by_side(mesh):  # noqa: F811
    """A rolling upgrade: the second daemon listens beside the first, the first goes, no connection is refused."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    first = mesh.daemons[-1]
    # The readiness port is per daemon pod in a cluster; here the second one gets a namespace of its own.
    second = mesh.start_second_daemon()
    wait_for("both silos of the second", lambda: len(mesh.silos_of(second)) == 2)
    proc = start_transfer(mesh, 2)
    first.send_signal(signal.SIGTERM)
    for _ in range(20):
        assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert_went_on(proc)
    assert first.wait(timeout=20) == 0
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0


CAPS = {"culvert-silo": 1 << 13, "culvert-broker": 0}


def test_c10_capabilities_of_every_child(mesh):  # noqa: F811
    found = set()
    for pid, (comm, _) in mesh.tree().items():
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        if comm not in CAPS:
            continue
        found.add(comm)
        for field in ("CapPrm", "CapEff"):
            assert int(status[field], 16) == CAPS[comm], (comm, field, status[field])
        assert status["NoNewPrivs"] == "1", comm
        assert status["Seccomp"] == "2" or os.environ.get("ASAN_OPTIONS"), comm
    assert found == set(CAPS)
