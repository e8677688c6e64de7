# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon from its command line to its end: settings, phases of readiness, renewals, secrets, signals, what is left."""
import fcntl
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from culvert_e2e.lab import CHART, PATIENCE, dump_yaml, exe, link_programs, run, wait_for
from culvert_e2e.zds import SLACK_S, ScriptedAgent
from test_a_basic import mesh, serve  # noqa: F401
from test_c_restarts import assert_went_on, start_transfer

# --- command line --------------------------------------------------------------------------------


def culvertd(*args, env=None, timeout=20):
    """Runs culvertd to its end, in a network namespace without anything."""
    clean = {"PATH": os.environ["PATH"]}
    for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if key in os.environ:
            clean[key] = os.environ[key]
    with tempfile.TemporaryDirectory() as folder:
        clean["CULVERT_LIBEXEC_DIR"] = str(link_programs(Path(folder) / "libexec"))
        return run("unshare", "-n", exe("culvertd"), *args, check=False, env={**clean, **(env or {})}, timeout=timeout)


@pytest.mark.parametrize("word", ["version", "--version"])
def test_f01_version(word):
    res = culvertd(word, env={"ISTIO_META_ISTIO_VERSION": "1.27.9"})
    assert res.returncode == 0 and res.stderr == ""
    line, = res.stdout.splitlines()
    fields = ("Version", "GitRevision", "RustVersion", "BuildProfile", "BuildStatus", "IstioVersion", "CryptoProvider")
    assert line.startswith("version.BuildInfo{") and line.endswith("}")
    assert [part.split(":")[0] for part in line[len("version.BuildInfo{"):-1].split(", ")] == list(fields)
    assert 'IstioVersion:"1.27.9"' in line and 'CryptoProvider:"wolfssl-' in line


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_f02_help(word):
    res = culvertd(word)
    assert res.returncode == 0 and res.stderr == ""
    assert all(command in res.stdout for command in ("proxy", "version", "help"))


def test_f03_unknown_word():
    res = culvertd("prxy")
    assert res.returncode == 1
    assert res.stderr == "unknown command: prxy\n" and res.stdout == culvertd("help").stdout


# --- settings ------------------------------------------------------------------------------------

# Environment that is wrong, exit status, what stderr says.
BAD = {
    "bool_first": ({"IPV6_ENABLED": "yes"}, 1, "invalid env var IPV6_ENABLED=yes (provided string was not `true` or `false`)"),
    "bool_broker": ({"KEEPALIVE_ENABLED": "True"}, 1, "invalid env var KEEPALIVE_ENABLED=True (provided string was not `true` or `false`)"),
    "bool_empty": ({"FAKE_CA": ""}, 1, "invalid env var FAKE_CA= ("),
    "duration_first": ({"CONNECTION_TERMINATION_DEADLINE": "5x"}, 1, "invalid env var CONNECTION_TERMINATION_DEADLINE=5x ("),
    "duration_broker": ({"SECRET_TTL": "1.5s"}, 1, "invalid env var SECRET_TTL=1.5s ("),
    "duration_empty": ({"SECRET_TTL": ""}, 1, "invalid env var SECRET_TTL= (Empty input)"),
    "number_hex": ({"PACKET_MARK": "0x539"}, 1, "invalid env var PACKET_MARK=0x539 (invalid digit found in string)"),
    "number_large": ({"PACKET_MARK": "4294967296"}, 1, "invalid env var PACKET_MARK=4294967296 (number too large"),
    "rust_log": ({"RUST_LOG": "a=b=c"}, 101, "RUST_LOG: invalid filter directive: a=b=c"),
    "proxy_mode": ({"PROXY_MODE": "both"}, 1, "invalid env var PROXY_MODE=both (must be shared or dedicated)"),
    "workload_info": ({"PROXY_MODE": "dedicated", "PROXY_WORKLOAD_INFO": "a/b"}, 1, "PROXY_WORKLOAD_INFO must be namespace/name/service-account, not a/b"),
    "on_term": ({"CULVERT_ON_TERM": "stay"}, 1, "invalid env var CULVERT_ON_TERM=stay (must be drain or leave)"),
    "seccomp": ({"CULVERT_SECCOMP": "maybe"}, 1, "invalid env var CULVERT_SECCOMP=maybe (must be kill, log or off)"),
    "uri": ({"XDS_ADDRESS": "a b"}, 1, "invalid uri: XDS_ADDRESS=a b"),
    "workers": ({"ZTUNNEL_WORKER_THREADS": "many"}, 1, "invalid env var ZTUNNEL_WORKER_THREADS=many ("),
    "dns_address": ({"ISTIO_META_DNS_PROXY_ADDR": "x"}, 1, "invalid env var ISTIO_META_DNS_PROXY_ADDR=x ("),
    "header": ({"XDS_HEADER_a b": "c"}, 1, "failed to parse header key: XDS_HEADER_a b"),
    "no_servers": ({"ENABLE_PROXY": "false", "ISTIO_META_DNS_CAPTURE": "false"}, 1, "ztunnel run without any servers enabled"),
    "on_demand_dns": ({"XDS_ON_DEMAND": "true"}, 1, "DNS proxy does not currently support on-demand mode"),
    "two_meshes": ({"LOCAL_XDS": "", "LOCAL_XDS_PATH": "/x"}, 1, "only one of LOCAL_XDS_PATH and LOCAL_XDS"),
    "no_mesh_file": ({"LOCAL_XDS_PATH": "/nowhere/mesh.yaml"}, 1, "/nowhere/mesh.yaml: No such file or directory"),
    "bad_mesh": ({"LOCAL_XDS": "workloads: ["}, 1, "LOCAL_XDS:2: "),
    "no_ca": ({"CA_ADDRESS": "", "FAKE_CA": "false"}, 101, "ca_address must be set"),
    "run_dir": ({"CULVERT_RUN_DIR": "/nowhere/deep"}, 1, "/nowhere/deep: No such file or directory"),
    "programs": ({"CULVERT_LIBEXEC_DIR": "/nowhere"}, 1, "/nowhere/culvert-"),
}


@pytest.mark.parametrize("name", BAD)
def test_f10_bad_settings_end_the_start(tmp_path, name):
    bad, status, text = BAD[name]
    # The kernel gives a socket's path 107 bytes; none of these gets as far as making one.
    base = {"FAKE_CA": "true", "XDS_ADDRESS": "", "CULVERT_RUN_DIR": str(tmp_path), "INPOD_UDS": str(tmp_path / "none")}
    res = culvertd("proxy", env={**base, **bad})
    assert res.returncode == status
    errors = [line for line in res.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1 and text in errors[0], res.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_f11_silent_settings(lab):
    """Words that are unknown where upstream takes any other word for off."""
    lab.start_daemon(ready=False, TLS12_ENABLED="yes", COMPLIANCE_POLICY="fips", LOG_FORMAT="xml", INPOD_ENABLED="x",
                     AUTHZ_POLICY_INFO_LOGGING="1")
    wait_for("the readiness port", lambda: probe(lab)[0] in (200, 500))


# --- phases --------------------------------------------------------------------------------------

def probe(lab, path="/healthz/ready", *args):
    """Status and body of a request to the readiness port; status 0: nobody listens."""
    res = lab._in_node("curl", "-s", "--max-time", "3", "-w", "\n%{http_code}", *args, f"http://127.0.0.1:15021{path}") \
        if _answers(lab) else None
    if not res:
        return 0, ""
    body, _, status = res.stdout.rpartition("\n")
    return int(status), body


def _answers(lab):
    return run("ip", "netns", "exec", lab.node, "curl", "-s", "-o", "/dev/null", "--max-time", "3", "http://127.0.0.1:15021/",
               check=False).returncode == 0


WITHOUT_MESH = ["env", "-u", "LOCAL_XDS_PATH"]


def test_f20_readiness_says_what_is_missing(lab):
    one = lab.pod("one")
    lab.start_daemon(ready=False)
    wait_for("the gate's opening", lambda: probe(lab) == (500, "not ready, pending: workload proxy manager\n"))
    with ScriptedAgent(lab.zds_path) as agent:
        conn = agent.accept()
        assert conn.add(one) == ""
        assert probe(lab) == (500, "not ready, pending: workload proxy manager\n")
        assert conn.snapshot_sent() == ""
        wait_for("readiness", lambda: probe(lab) == (200, "ready\n"))
        assert probe(lab, "/healthz/ready?x=1") == (200, "ready\n"), "a query does not matter"
        assert probe(lab, "/healthz/ready", "-X", "POST") == (405, "")
        assert probe(lab, "/healthz") == (404, "")
        assert probe(lab, "/") == (404, "")
        conn.close()
        agent.close()
        wait_for("unreadiness", lambda: probe(lab) == (500, "not ready, pending: workload proxy manager\n"))


def test_f21_without_a_mesh_the_agent_is_not_dialled(lab):
    with ScriptedAgent(lab.zds_path) as agent:
        daemon = lab.start_daemon(ready=False, wrap=WITHOUT_MESH)
        wait_for("both names", lambda: probe(lab) == (500, "not ready, pending: state manager, workload proxy manager\n"))
        with pytest.raises(AssertionError, match="has not dialled"):
            agent.accept(timeout=2)
        start = time.monotonic()
        assert lab.stop_daemon(daemon) == 0, "SIGTERM before the mesh is complete"
        assert time.monotonic() - start < 2 + SLACK_S


def test_f22_inline_mesh(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.start_agent()
    lab.start_daemon(ready=False, wrap=WITHOUT_MESH, LOCAL_XDS=dump_yaml(lab.mesh))
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    assert "hello from server" in client.curl(f"http://{server.ip}:8080/").stdout
    lab.wait_log("connection complete", f'src.identity="{client.spiffe}"')


# --- who a silo is -------------------------------------------------------------------------------

def test_f30_record_of_another_address_is_refused(lab):
    """The second lock on identity: a record that is not of this namespace gives no traffic, until the mesh is corrected."""
    client, server = lab.pod("client"), lab.pod("server")
    right = lab.record(client)["workloadIps"]
    lab.record(client)["workloadIps"] = [f"10.{lab.net}.99.99"]
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    assert client.curl(f"http://{server.ip}:8080/", check=False, timeout=3).returncode != 0
    lab.wait_log("workload record of default/client", "is refused: none of its addresses is on an interface of this network namespace")
    lab.record(client)["workloadIps"] = right
    lab.write_mesh()
    wait_for("traffic", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=3).returncode == 0)
    lab.wait_log("connection complete", f'src.identity="{client.spiffe}"')


def test_f31_every_silo_is_in_its_pod(mesh):  # noqa: F811
    for pod in (mesh.pods["client"], mesh.pods["server"]):
        pid = mesh.silo_of(pod)
        assert os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(pod.netns_path).st_ino
        row, = (p for p in mesh.pods_json() if p["uid"] == pod.uid)
        assert row["netnsInode"] == os.stat(pod.netns_path).st_ino


def test_f32_secrets_do_not_reach_silos(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    secrets = {"AUTH_TOKEN": "squeamish-ossifrage", "XDS_HEADER_authorization": "squeamish-xds", "CA_HEADER_key": "squeamish-ca",
               "ISTIO_META_SECRET": "squeamish-meta", "SOMETHING_ELSE": "squeamish-else", "XDS_ROOT_CA": "squeamish-root"}
    lab.start_daemon(ready=False, **secrets)
    lab.add(client, server)
    lab.wait_ready()
    for pod in (client, server):
        environ = Path(f"/proc/{lab.silo_of(pod)}/environ").read_bytes()
        assert b"squeamish" not in environ
        assert b"RUST_LOG=" in environ, "it is the environment that was read"
    assert b"squeamish-ossifrage" in Path(f"/proc/{lab.pid_of('culvert-broker')}/environ").read_bytes()
    assert "squeamish-ossifrage" not in lab.log() and "squeamish-ossifrage" not in lab.ctl("dump").stdout


# Reads another process's environment as uid 0, without the capabilities that let anybody read it (ptrace(2); CAP_PERFMON since Linux 6.16).
PEEK = ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-perfmon", "cat"]


def test_f33_silos_cannot_be_dumped_or_traced(mesh):  # noqa: F811
    client = mesh.pods["client"]
    silo, broker = mesh.silo_of(client), mesh.pid_of("culvert-broker")
    control = subprocess.Popen(["setpriv", "--bounding-set=-all,+net_raw", "sleep", "60"])
    try:
        wait_for("the control", lambda: Path(f"/proc/{control.pid}/comm").read_text() == "sleep\n")
        assert run(*PEEK, f"/proc/{control.pid}/environ").stdout
    finally:
        control.kill()
        control.wait()
    for pid in (silo, broker):
        res = run(*PEEK, f"/proc/{pid}/environ", check=False)
        assert res.returncode != 0 and ("denied" in res.stderr or "not permitted" in res.stderr), res
    limit, = (line for line in Path(f"/proc/{silo}/limits").read_text().splitlines() if line.startswith("Max core file size"))
    assert limit.split()[4:6] == ["0", "0"], limit


# --- certificates --------------------------------------------------------------------------------

def serials(lab):
    """identity → serial numbers of the certificates that are in use."""
    dump = json.loads(lab.ctl("dump").stdout)
    return {c["identity"]: {x["serialNumber"] for x in c["certChain"]} for c in dump["certificates"]}


@pytest.fixture
def short_lived(lab):
    """Certificates of eight seconds, renewed every second or so: the embedded CA dates them back, so half of the life is over at once."""
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, SECRET_TTL="8s")
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    client.curl(f"http://{server.ip}:8080/")
    return lab


def test_f40_renewals(short_lived):
    """Connections of an old certificate go on; new ones work at any time, far beyond the first one's end."""
    lab = short_lived
    client, server = lab.pods["client"], lab.pods["server"]
    proc = start_transfer(lab, 11)
    seen = set()
    for _ in range(20):
        assert client.curl(f"http://{server.ip}:8080/").returncode == 0
        seen |= serials(lab)[client.spiffe]
        time.sleep(0.5)
    assert len(seen) >= 3, "renewed several times"
    assert_went_on(proc)


def test_f41_broker_dies_while_certificates_are_due(short_lived):
    lab = short_lived
    client, server = lab.pods["client"], lab.pods["server"]
    proc = start_transfer(lab, 12)
    for _ in range(3):
        os.kill(lab.pid_of("culvert-broker"), signal.SIGKILL)
        for _ in range(6):
            assert client.curl(f"http://{server.ip}:8080/").returncode == 0
            time.sleep(0.5)
    assert_went_on(proc)
    assert all(p["restarts"] == 0 for p in lab.pods_json())


def test_f42_broker_stands_still(short_lived):
    """The certificate in hand serves to its end; once the broker goes on a new one comes."""
    lab = short_lived
    client, server = lab.pods["client"], lab.pods["server"]
    broker = lab.pid_of("culvert-broker")
    os.kill(broker, signal.SIGSTOP)
    try:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert client.curl(f"http://{server.ip}:8080/").returncode == 0
            time.sleep(0.3)
        time.sleep(6)
    finally:
        os.kill(broker, signal.SIGCONT)
    wait_for("a valid certificate", lambda: client.curl(f"http://{server.ip}:8080/", check=False, timeout=3).returncode == 0)


# In a container the first process is PID 1 of a namespace, and the kernel ends with it whatever it left (pid_namespaces(7)).
outlives = pytest.mark.skipif(CHART, reason="silos cannot outlive the first process of their PID namespace")

# --- the end -------------------------------------------------------------------------------------

def instances(lab):
    return sorted((lab.run_dir / "culvert").iterdir())


def test_f50_idle_sigterm(mesh):  # noqa: F811
    assert len(instances(mesh)) == 1
    start = time.monotonic()
    assert mesh.stop_daemon() == 0
    assert time.monotonic() - start < 2 + SLACK_S
    assert instances(mesh) == []
    assert not [p for p in mesh.left_over() if Path(f"/proc/{p}/comm").read_text().startswith("culvert")]
    assert mesh.log_lines("received signal SIGTERM, starting shutdown") and mesh.log_lines("shutdown complete")


def test_f51_second_sigint_is_at_once(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    daemon = lab.start_daemon(ready=False, CONNECTION_TERMINATION_DEADLINE="60s")
    lab.add(client, server)
    lab.wait_ready()
    start_transfer(lab, 60)
    daemon.send_signal(signal.SIGINT)
    time.sleep(1.5)
    assert daemon.poll() is None, "the first one drains"
    start = time.monotonic()
    assert lab.stop_daemon(daemon, sig=signal.SIGINT) == 0
    assert time.monotonic() - start < 1 + SLACK_S
    wait_for("empty pods", lambda: not lab.silo_of(client) and not lab.silo_of(server))


def test_f52_second_sigterm_is_swallowed(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    daemon = lab.start_daemon(ready=False, CONNECTION_TERMINATION_DEADLINE="20s")
    lab.add(client, server)
    lab.wait_ready()
    proc = start_transfer(lab, 4)
    for sig in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
        daemon.send_signal(sig)
        time.sleep(0.3)
    assert daemon.poll() is None
    assert_went_on(proc)
    assert daemon.wait(timeout=PATIENCE) == 0


def test_f53_stale_instance_is_removed(lab):
    """A dead instance's folder goes at the next start; one that is locked is somebody's and stays."""
    base = lab.run_dir / "culvert"
    base.mkdir(mode=0o700)
    dead, alive = base / "00000000deadbeef", base / "00000000cafebabe"
    for folder in (dead, alive):
        folder.mkdir(mode=0o700)
        (folder / "lock").touch(mode=0o600)
        (folder / "broker.sock").touch()
        (folder / "silo-left.sock").touch()
    with open(alive / "lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with ScriptedAgent(lab.zds_path) as agent:
            lab.start_daemon(ready=False)
            agent.snapshot()
            lab.wait_ready()
            assert not dead.exists()
            assert sorted(p.name for p in alive.iterdir()) == ["broker.sock", "lock", "silo-left.sock"]
            assert len(instances(lab)) == 2
            assert lab.stop_daemon() == 0
    assert instances(lab) == [alive]


@outlives
def test_f54_killed_daemon_leaves_nothing_for_long(lab):
    """All three processes killed at once: the next start adopts the silos and clears the rest."""
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    daemon = lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    before = lab.silo_pids()
    proc = start_transfer(lab, 6)
    first = lab.pid_of("culvertd")
    for pid in (first, lab.pid_of("warden"), lab.pid_of("culvert-broker")):
        os.kill(pid, signal.SIGKILL)
    daemon.wait(timeout=PATIENCE)
    lab.start_daemon()
    assert lab.silo_pids() == before
    assert len(instances(lab)) == 1
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert_went_on(proc)
    assert lab.stop_daemon() == 0
    assert instances(lab) == []


@outlives
def test_f55_leave_and_take_over(lab):
    """CULVERT_ON_TERM=leave: the silos stay, their connections go on, the successor adopts them."""
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, CULVERT_ON_TERM="leave")
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    before = lab.silo_pids()
    proc = start_transfer(lab, 6)
    assert lab.stop_daemon() == 0
    assert [lab.silo_of(pod) for pod in (client, server)] == before
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0, "what is known works without a daemon"
    lab.start_daemon()
    assert lab.silo_pids() == before and all(p["restarts"] == 0 for p in lab.pods_json())
    assert client.curl(f"http://{server.ip}:8080/").returncode == 0
    assert_went_on(proc)
    assert lab.stop_daemon() == 0
    assert lab.silo_of(client) is None and instances(lab) == []
