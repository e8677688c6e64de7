# SPDX-License-Identifier: GPL-2.0-or-later
"""Mixed traffic while everything around it changes, and what must hold: no request fails that its peers did not cause,
no process grows, nothing is left behind. scripts/soak runs it for long, test_t_soak.py for seconds."""
from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from culvert_e2e.lab import Lab, Pod, exact, run, wait_for

PEER = Path(__file__).with_name("soak_peer.py")
HTTP_PORT, ECHO_PORT, CLOSED_PORT = 8080, 9000, 9999
VIP = "10.96.77.1"
DNS_SERVER = "10.96.0.10"

# How long a pod's connections may fail around the death of its silo, beyond the new one's start.
AFTERMATH_S = 3.0

# Growth of a process between the first and the last quarter of the quiet half. Memory in KB: what allocators and
# tables need until they have seen everything; descriptors swing with the connections that happen to be open.
MEMORY_SLACK_KB = 1024
DESCRIPTOR_SLACK = 40
# After the traffic: what was open before it began, and tunnels' remains.
IDLE_DESCRIPTOR_SLACK = 4

# What is killed: a process of the daemon's, the victim's silo, both at once (nobody adopts it then), the node agent.
ROLES = ("warden", "broker", "silo", "warden and silo", "agent")

HTTP = "import http.server,socket\n" \
    "class H(http.server.BaseHTTPRequestHandler):\n" \
    "  protocol_version='HTTP/1.1'\n" \
    "  def do_GET(self):\n" \
    "    body=b'x'*2000\n" \
    "    self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n" \
    "  def log_message(self, *a): pass\n" \
    "class S(http.server.ThreadingHTTPServer):\n" \
    "  address_family=socket.AF_INET6; request_queue_size=256\n" \
    "S(('::', 8080), H).serve_forever()\n"


def memory_kb(pid):
    """Anonymous memory in use (proc(5), RssAnon): what a leak makes grow."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise FileNotFoundError(pid)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def slope(points):
    """Least squares: change of the second value per hour of the first."""
    if len(points) < 3:
        return 0.0
    mean_t, mean_v = (statistics.fmean(p[i] for p in points) for i in (0, 1))
    below = sum((t - mean_t) ** 2 for t, _ in points)
    return 3600 * sum((t - mean_t) * (v - mean_v) for t, v in points) / below if below else 0.0


class Series:
    """What one process used, over time."""

    def __init__(self, name, pid):
        self.name, self.pid = name, pid
        self.memory, self.fds = [], []

    def look(self, now):
        self.memory.append((now, memory_kb(self.pid)))
        self.fds.append((now, descriptors(self.pid)))

    def figures(self, since):
        """(first, last, slope an hour) of memory and descriptors from a time on; None when there is too little."""
        found = []
        for points in (self.memory, self.fds):
            points = [p for p in points if p[0] >= since]
            if len(points) < 8:
                return None
            part = len(points) // 4
            found.append((statistics.median(v for _, v in points[:part]),
                          statistics.median(v for _, v in points[-part:]), slope(points)))
        return found


class Soak:
    """One run in a lab of its own."""

    def __init__(self, lab, seconds, seed, unrest_share=0.5, kill_every=(8, 20), churn_pause=2.0, secret_ttl="60s", say=print):
        self.lab, self.seconds, self.say = lab, seconds, say
        self.random = random.Random(seed)
        self.unrest_share, self.kill_every, self.churn_pause = unrest_share, kill_every, churn_pause
        self.secret_ttl = secret_ttl
        # By label, (begin, end) of times when its connections may fail.
        self.windows = {"victim": [], "scrape": []}
        self.kills = dict.fromkeys(ROLES, 0)
        self.series = {}
        self.clients = []
        self.churns = self.policies = 0
        self.findings = []

    # --- the stage ---

    def start(self):
        lab = self.lab
        # Else the bridge takes the lowest address of its ports, which come and go.
        lab._in_node("ip", "link", "set", "br0", "address", "02:00:00:00:00:01")
        self.server, self.client = lab.pod("server"), lab.pod("client")
        self.victim, self.outside = lab.pod("victim"), lab.pod("outside", mesh=False)
        lab.service("echo", vips=[f"/{VIP}"], ports={80: ECHO_PORT}, pods=[self.server])
        self.own_ip = f"10.{lab.net}.0.1"
        lab.mesh["workloads"].append(lab.workload(
            self.server, uid="own", name="own", namespace="system", serviceAccount="own", workloadIps=[self.own_ip]))
        lab.write_mesh()
        self.start_agent()
        lab.start_daemon(ready=False, SECRET_TTL=self.secret_ttl, POOL_UNUSED_RELEASE_TIMEOUT="5s",
                         TERMINATION_GRACE_PERIOD_SECONDS=10, POD_NAME="own", POD_NAMESPACE="system", SERVICE_ACCOUNT="own")
        lab.add(self.server, self.client, self.victim)
        lab.wait_ready()
        for pod in (self.server, self.victim, self.outside):
            self.serve(pod)

    def start_agent(self):
        self.lab.start_agent("--state", self.lab.run_dir / "agent-state")

    def serve(self, pod):
        pod.popen(sys.executable, PEER, "serve", ECHO_PORT, stdout=open(os.devnull, "w"))
        pod.popen(sys.executable, "-c", HTTP)
        for port in (ECHO_PORT, HTTP_PORT):
            pod.wait_port(port)

    def tasks(self):
        """Traffic by pod."""
        server, victim, outside = self.server, self.victim, self.outside
        steady = [
            {"label": "mesh", "kind": "http", "host": server.ip, "port": HTTP_PORT, "pause": 0.2},
            {"label": "mesh6", "kind": "http", "host": server.ip6, "port": HTTP_PORT, "pause": 0.5},
            {"label": "mesh", "kind": "quick", "host": server.ip, "port": ECHO_PORT, "pause": 0.03},
            {"label": "mesh6", "kind": "quick", "host": server.ip6, "port": ECHO_PORT, "pause": 0.1},
            {"label": "service", "kind": "quick", "host": VIP, "port": 80, "pause": 0.05},
            {"label": "plain", "kind": "quick", "host": outside.ip, "port": ECHO_PORT, "pause": 0.1},
            {"label": "plain", "kind": "bulk", "host": outside.ip, "port": ECHO_PORT, "pause": 2},
            {"label": "mesh", "kind": "bulk", "host": server.ip, "port": ECHO_PORT, "pause": 1},
            {"label": "service", "kind": "bulk", "host": VIP, "port": 80, "pause": 2},
            {"label": "mesh", "kind": "slow", "host": server.ip, "port": ECHO_PORT, "pause": 1},
            {"label": "mesh", "kind": "idle", "host": server.ip, "port": ECHO_PORT, "conns": 30, "every": 3},
            {"label": "service", "kind": "idle", "host": VIP, "port": 80, "conns": 10, "every": 3},
            {"label": "mesh", "kind": "abort", "host": server.ip, "port": ECHO_PORT, "pause": 0.3},
            {"label": "dns", "kind": "dns", "host": DNS_SERVER, "port": 53, "name": "echo.default.svc.cluster.local",
             "answer": VIP, "pause": 0.1},
            {"label": "scrape", "kind": "scrape", "host": self.own_ip, "port": 15020, "pause": 0.5},
            {"label": "mesh", "kind": "refused", "host": server.ip, "port": CLOSED_PORT, "pause": 0.5},
        ]
        hit = [
            {"label": "victim", "kind": "quick", "host": victim.ip, "port": ECHO_PORT, "pause": 0.1},
            {"label": "victim", "kind": "http", "host": victim.ip, "port": HTTP_PORT, "pause": 0.3},
            {"label": "victim", "kind": "bulk", "host": victim.ip, "port": ECHO_PORT, "pause": 3, "blocks": 10},
        ]
        own = [{"label": "victim", "kind": "quick", "host": server.ip, "port": ECHO_PORT, "pause": 0.1}]
        strangers = [{"label": "stranger", "kind": "garbage", "host": server.ip, "port": port, "pause": 0.3}
                     for port in (15001, 15006, 15008)]
        foreign = [{"label": "from outside", "kind": "quick", "host": server.ip, "port": ECHO_PORT, "pause": 0.2},
                   {"label": "from outside", "kind": "idle", "host": server.ip, "port": ECHO_PORT, "conns": 5, "every": 3}]
        return [(self.client, steady + hit), (victim, own), (outside, foreign + strangers)]

    def start_traffic(self):
        for pod, tasks in self.tasks():
            path = self.lab.tmp / f"traffic-{pod.name}.log"
            with open(path, "w") as out:
                proc = pod.popen(sys.executable, PEER, "client", json.dumps(tasks), stdin=-1, stdout=out)
            self.clients.append((pod, proc, path))

    # --- unrest ---

    def kill(self, role):
        lab = self.lab
        begin = time.monotonic()
        self.kills[role] += 1
        if role == "agent":
            lab.agent.kill()
            lab.agent.wait()
            self.start_agent()
        else:
            old = {part: lab.pid_of(self.victim if part == "silo" else f"culvert-{part}") for part in role.split(" and ")}
            for pid in old.values():
                os.kill(pid, signal.SIGKILL)
            for part, pid in old.items():
                wait_for(f"a new {part}", lambda: (lab.silo_of(self.victim) if part == "silo" else lab.pid_of(
                    f"culvert-{part}")) not in (None, pid))  # noqa: B023
        lab.wait_ready()
        if "silo" in role:
            wait_for("the victim's listeners", lambda: ":15008 " in self.victim.run("ss", "-ltnH").stdout)
            self.windows["victim"].append((begin - 0.2, time.monotonic() + AFTERMATH_S))
        if role == "broker":
            # It is what serves the metrics.
            self.windows["scrape"].append((begin - 0.2, time.monotonic() + AFTERMATH_S))

    def change_policies(self):
        """Lists that let all our clients in, in ever other words; each change judges all open connections anew."""
        allow = {"name": "all", "namespace": "default", "scope": "Namespace", "action": "Allow", "dryRun": False,
                 "rules": [[[{"destinationPorts": [ECHO_PORT, HTTP_PORT, CLOSED_PORT]}]]]}
        deny = {"name": "nobody", "namespace": "default", "scope": "Namespace", "action": "Deny", "dryRun": False,
                "rules": [[[{"principals": [exact(f"cluster.local/ns/none/sa/x{self.policies}")]}]]]}
        self.lab.mesh["policies"] = [[], [deny], [allow], [allow, deny]][self.policies % 4]
        self.policies += 1
        self.lab.write_mesh()

    def come_and_go(self, slot):
        """A pod with a new name and an address that others have had: comes, is talked to both ways, goes."""
        lab = self.lab
        name = f"guest{self.churns}"
        pod = Pod(lab, name, "default", name, 100 + slot, f"{name}-uid")
        self.churns += 1
        lab.pods[name] = pod
        lab._wire(pod)
        # Whoever had the address before had another MAC: neighbours would speak to that for seconds.
        pod.run("ip", "link", "set", "eth0", "address", f"02:00:00:00:01:{slot:02x}")
        lab.mesh["workloads"].append(lab.workload(pod))
        lab.write_mesh()
        lab.add(pod)
        self.serve(pod)
        for source, target in ((pod, self.server), (self.client, pod)):
            # The mesh file is read a moment after it was written: until then the guest has no record.
            wait_for(f"{source.name} to {target.name}", lambda: source.curl(
                f"http://{target.ip}:{HTTP_PORT}/", check=False, timeout=5).returncode == 0)
        lab.delete(pod)
        lab.mesh["workloads"].remove(lab.record(pod))
        lab.write_mesh()
        lab._kill(pod.procs)
        wait_for("the end of the guest's silo", lambda: lab.silo_of(pod) is None)
        lab._in_node("ip", "link", "del", f"v{pod.index}")
        run("ip", "netns", "del", pod.netns)
        del lab.pods[name]

    # --- looking ---

    def look(self):
        lab, now = self.lab, time.monotonic()
        pods = {lab.silo_of(pod): pod.name for pod in (self.server, self.client, self.victim)}
        pods.update((int(pid), "own") for pid in run("ip", "netns", "pids", lab.node).stdout.split())
        for pid, (comm, cmdline) in {**lab.tree(), **{lab.agent.pid: ("agent", "")}}.items():
            name = comm
            if comm == "culvert-silo":
                if pid not in pods:
                    continue
                name = f"silo {pods[pid]}"
            elif cmdline.startswith("culvert-"):
                name = cmdline.split()[0]
            elif pid == lab.daemons[-1].pid:
                name = "first process"
            if comm == "ip":
                continue
            try:
                self.series.setdefault(pid, Series(name, pid)).look(now)
            except (FileNotFoundError, ProcessLookupError):
                continue

    def run(self):
        """The whole run; returns the findings, an empty list when all is well."""
        self.start()
        self.look()
        idle = {s.name: s.fds[-1][1] for s in self.series.values()}
        begin = self.begin = time.monotonic()
        self.start_traffic()
        quiet = begin + self.seconds * self.unrest_share
        end = begin + self.seconds
        next_kill, next_churn, next_policy, next_look, next_word = begin + 2, begin + 1, begin, begin, begin + 60
        roles = []
        # However slow the machine: everything is killed at least once.
        while (now := time.monotonic()) < end or not all(self.kills.values()):
            if now >= next_kill:
                roles = roles or self.random.sample(ROLES, len(ROLES))
                role = roles.pop() if now < quiet or not all(self.kills.values()) else "silo"
                self.kill(role)
                next_kill = time.monotonic() + self.random.uniform(*self.kill_every)
            if now >= next_churn:
                self.come_and_go(self.churns % 3)
                next_churn = time.monotonic() + self.churn_pause
            if now >= next_policy:
                self.change_policies()
                next_policy = now + max(1, min(7, self.seconds / 10))
            if now >= next_look:
                self.look()
                next_look = now + max(0.5, min(5, self.seconds / 100))
            if now >= next_word:
                self.say(f"{now - begin:.0f} s: kills {self.kills}, guests {self.churns}, policies {self.policies}")
                next_word = now + 60
            time.sleep(0.1)
        self.judge_growth(quiet + self.seconds / 20)
        self.judge_traffic()
        self.judge_idle(idle)
        self.judge_end()
        return self.findings

    # --- judging ---

    def find(self, text):
        self.findings.append(text)
        self.say(f"FOUND: {text}")

    def judge_growth(self, since):
        sanitized = "ASAN_OPTIONS" in os.environ
        self.say(f"{'process':<16} {'KB first':>9} {'last':>7} {'KB/h':>8}   {'fds first':>9} {'last':>5} {'fds/h':>7}")
        for series in self.series.values():
            figures = series.figures(since)
            if not figures:
                continue
            (kb, kb_end, kb_slope), (fds, fds_end, fds_slope) = figures
            self.say(f"{series.name:<16} {kb:>9.0f} {kb_end:>7.0f} {kb_slope:>8.0f}   {fds:>9.0f} {fds_end:>5.0f} {fds_slope:>7.1f}")
            if kb_end > kb + max(MEMORY_SLACK_KB, kb / 10) and not sanitized:
                self.find(f"{series.name} has grown from {kb:.0f} to {kb_end:.0f} KB")
            if fds_end > fds + DESCRIPTOR_SLACK:
                self.find(f"{series.name} has grown from {fds:.0f} to {fds_end:.0f} descriptors")

    def is_allowed(self, failure):
        return any(failure["begin"] < end and failure["end"] > begin
                   for begin, end in self.windows.get(failure["label"], ()))

    def judge_traffic(self):
        done, slowest, allowed = {}, {}, 0
        for pod, proc, path in self.clients:
            proc.stdin.close()
        for pod, proc, path in self.clients:
            proc.wait(timeout=180)
            lines = [json.loads(line) if line.startswith("{") else {"error": line, "label": pod.name, "kind": "stderr",
                                                                      "begin": 0, "end": 0}
                     for line in path.read_text().splitlines()]
            if not lines or "done" not in lines[-1]:
                self.find(f"traffic of {pod.name} ended by itself: {path.read_text()[-500:]}")
                continue
            done.update({f"{pod.name} {key}": value for key, value in lines[-1]["done"].items()})
            slowest.update({f"{pod.name} {key}": value for key, value in lines[-1]["slowest"].items()})
            for task in lines[-1]["stuck"]:
                self.find(f"{pod.name} still waits: {task}")
            failures = [line for line in lines[:-1] if not self.is_allowed(line)]
            allowed += len(lines) - 1 - len(failures)
            for failure in failures[:20]:
                self.find(f"{pod.name}: {failure['label']} {failure['kind']} after "
                          f"{failure['end'] - failure['begin']:.2f} s, at {failure['end']:.2f}: {failure['error']}")
            if len(failures) > 20:
                self.find(f"{pod.name}: {len(failures) - 20} failures more")
        self.say("exchanges: " + ", ".join(f"{key} {value}" for key, value in sorted(done.items())))
        self.say("slowest: " + ", ".join(f"{key} {took} s at {begin - self.begin:.1f}"
                                         for key, (took, begin) in sorted(slowest.items())))
        self.say(f"failures: {allowed} of the killed silo's connections, or of scrapes while the broker was dead")
        for key, value in done.items():
            if value == 0:
                self.find(f"{key}: not one exchange")

    def judge_idle(self, idle):
        """After the traffic everything goes back to what it was; unused tunnels go after five seconds."""
        lab = self.lab

        def open_now():
            self.look()
            alive = [s for s in self.series.values() if os.path.exists(f"/proc/{s.pid}")]
            return {s.name: s.fds[-1][1] for s in alive if s.fds}

        def extra():
            return {name: (idle[name], fds) for name, fds in open_now().items()
                    if name in idle and fds > idle[name] + IDLE_DESCRIPTOR_SLACK}

        try:
            wait_for("descriptors as before", lambda: not extra(), timeout=40, interval=0.5)
        except AssertionError:
            self.find(f"descriptors before and after the traffic: {extra()}")
        named = {self.server.uid, self.client.uid, self.victim.uid, "culvert-self"}
        silos = {pod["uid"] for pod in lab.pods_json()}
        if silos != named:
            self.find(f"pods of culvertctl are {silos}")
        if len(lab.silos_of(lab.daemons[-1])) != len(named):
            self.find(f"{len(lab.silos_of(lab.daemons[-1]))} silos for {len(named)} pods")
        sockets = [p.name for p in (lab.run_dir / "culvert").glob("*/*.sock") if "guest" in p.name]
        if sockets:
            self.find(f"sockets of pods that went: {sockets}")

    def judge_end(self):
        lab = self.lab
        for line in lab.log().splitlines():
            # Not LeakSanitizer: it cannot work in processes under seccomp, and says so.
            if any(word in line for word in ("AddressSanitizer", "runtime error", "Assertion")):
                self.find(f"log: {line}")
        status = lab.stop_daemon(timeout=60)
        if status != 0:
            self.find(f"the daemon ended with {status}")
        left = [pid for pid in lab.left_over() if Path(f"/proc/{pid}/comm").read_text().startswith("culvert")]
        if left:
            self.find(f"processes are left: {left}")


def main():
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", metavar="DIR", help="leave logs there")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    tmp = Path(args.keep or tempfile.mkdtemp(prefix="culvert-soak-"))
    tmp.mkdir(parents=True, exist_ok=True)
    print(f"soak: {args.minutes:g} minutes, seed {args.seed}, logs in {tmp}")
    with Lab(tmp) as lab:
        findings = Soak(lab, args.minutes * 60, args.seed).run()
    print(f"soak: {len(findings)} findings" if findings else "soak: nothing found")
    if not findings and not args.keep:
        run("rm", "-rf", tmp)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
