# SPDX-License-Identifier: GPL-2.0-or-later
"""The broker is killed while the mesh changes: silos keep what they hold, nothing goes in the clear that was
encrypted, and what has gone meanwhile is swept."""
import os
import signal

from culvert_e2e.lab import access_fields, wait_for
from test_a_basic import mesh, serve  # noqa: F401

# Fetches a URL for as long as stdin is open; prints how many times it went well, and every error.
FETCH = "import sys,threading,urllib.request\n" \
    "stop=threading.Event()\n" \
    "threading.Thread(target=lambda:(sys.stdin.read(),stop.set()),daemon=True).start()\n" \
    "n=0\n" \
    "while not stop.is_set():\n" \
    "  try:\n" \
    "    urllib.request.urlopen(sys.argv[1],timeout=20).read(); n+=1\n" \
    "  except Exception as e: print('error',e,flush=True)\n" \
    "print('fetched',n)\n"


def kill_broker(lab):
    """Returns once the broker is dead; the first process starts another one."""
    old = lab.pid_of("culvert-broker")
    os.kill(old, signal.SIGKILL)
    wait_for("its end", lambda: not os.path.exists(f"/proc/{old}"))
    return old


def outbound(lab, pod, port=8080):
    """Fields of the outbound lines for connections to a pod's application."""
    lines = [access_fields(line) for line in lab.log_lines("connection complete", 'direction="outbound"')]
    target = f"{pod.ip}:{port}"
    return [f for f in lines if target in (f.get("dst.addr"), f.get("dst.hbone_addr"))]


def test_q01_killed_during_churn(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    extra = [mesh.workload(server, uid=f"extra-{i}", name=f"extra-{i}", workloadIps=[f"10.99.0.{i}"]) for i in range(100)]
    keep = list(mesh.mesh["workloads"])
    fetch = client.popen(os.environ.get("CULVERT_PYTHON", "python3"), "-c", FETCH, f"http://{server.ip}:8080/", stdin=-1)
    for turn in range(6):
        # Each file has other workloads than the one before, and a service that comes and goes.
        mesh.mesh["workloads"] = keep + extra[turn * 10:turn * 10 + 50]
        mesh.mesh["services"] = []
        if turn % 2:
            mesh.service("churn", vips=["/10.98.0.1"], ports={80: 8080}, pods=[server])
        mesh.write_mesh()
        old = kill_broker(mesh)
        mesh.write_mesh()
        wait_for("a new broker", lambda: mesh.pid_of("culvert-broker") != old)
        mesh.wait_ready()
        mesh.record(server)["services"] = {}
    out, _ = fetch.communicate(timeout=60)
    assert "error" not in out, out
    assert int(out.split()[-1]) > 0
    lines = outbound(mesh, server)
    assert lines and all(f.get("dst.identity") == server.spiffe for f in lines), lines


def test_q02_what_went_meanwhile_is_swept(mesh):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    leaver = mesh.pod("leaver")
    mesh.write_mesh()
    mesh.add(leaver)
    serve(leaver)
    url = f"http://{leaver.ip}:8080/"
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    # Plain until the file has been read again.
    wait_for("the leaver as one of the mesh", lambda: client.curl(url, check=False).returncode == 0 and any(
        f.get("dst.identity") == leaver.spiffe for f in outbound(mesh, leaver)))
    # It leaves the mesh while no broker lives: the file is changed before the next one can have read it.
    mesh.delete(leaver)
    mesh.mesh["workloads"].remove(mesh.record(leaver))
    broken = mesh.mesh_path.read_text() + "\nnot: [valid"
    mesh.write_mesh(broken)
    kill_broker(mesh)
    mesh.write_mesh()
    mesh.wait_ready()
    wait_for("plaintext to who is out of the mesh", lambda: client.curl(url, check=False).returncode == 0 and any(
        "dst.identity" not in f and f["dst.addr"] == f"{leaver.ip}:8080" for f in outbound(mesh, leaver)))
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert all(f.get("dst.identity") == server.spiffe for f in outbound(mesh, server))


def test_q03_without_a_mesh_nothing_new_is_plain(mesh):  # noqa: F811
    """While no broker comes up, known destinations go on encrypted and unknown ones wait instead of going plain."""
    client, server, outside = mesh.pods["client"], mesh.pods["server"], mesh.pods["outside"]
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    mesh.write_mesh("workloads: [broken")
    kill_broker(mesh)
    mesh.wait_log("mesh.yaml", "Error")
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert client.curl(f"http://{outside.ip}:8080/", check=False, timeout=3).returncode != 0
    mesh.write_mesh()
    mesh.wait_ready()
    wait_for("the outside", lambda: client.curl(f"http://{outside.ip}:8080/", check=False).returncode == 0)
    assert all(f.get("dst.identity") == server.spiffe for f in outbound(mesh, server))


def test_q04_own_record_gone_meanwhile(mesh):  # noqa: F811
    """A pod that is no longer in the mesh does not go on under the name it had."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    url = f"http://{server.ip}:8080/"
    assert client.curl(url).returncode == 0
    own = mesh.record(client)
    mesh.write_mesh("workloads: [broken")
    kill_broker(mesh)
    mesh.mesh["workloads"].remove(own)
    mesh.write_mesh()
    mesh.wait_ready()
    wait_for("refusal", lambda: client.curl(url, check=False, timeout=3).returncode != 0)
    mesh.mesh["workloads"].append(own)
    mesh.write_mesh()
    wait_for("its return", lambda: client.curl(url, check=False).returncode == 0)
    assert all(f.get("dst.identity") == server.spiffe for f in outbound(mesh, server) if "error" not in f)
