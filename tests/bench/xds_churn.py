#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a large and busy mesh costs the broker: 100,000 workloads in one response, random updates, disconnects.

usage: xds_churn.py [workloads [updates [disconnects]]], with CULVERT_BUILD set;
needs root. Prints one figure a line.
"""
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from culvert_e2e.istiod import ADDRESS, POLICY, Istiod, resource, response, workload  # noqa: E402
from culvert_e2e.lab import Lab, wait_for  # noqa: E402
from culvert_e2e.pki import Ca  # noqa: E402
from meshes import pod  # noqa: E402


def status_kb(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def pss_kb(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, lab, count):
        self.lab, self.count = lab, count
        self.state = b""
        crt, key, root = Ca.foreign().issue_server(lab.tmp, ["localhost"], "istiod")
        self.istiod = Istiod(lab, crt, key)
        self.client = lab.pod("client")
        lab.start_agent()
        env = {"XDS_ADDRESS": "https://localhost:15012", "XDS_ROOT_CA": root, "AUTH_TOKEN": "token"}
        base = lab.env
        lab.env = lambda **extra: {k: v for k, v in base(**extra).items() if k != "LOCAL_XDS_PATH"}
        lab.start_daemon(ready=False, **env)
        self.broker = lab.pid_of("culvert-broker")

    def show(self, what, value, unit):
        print(f"{what:<52} {value:>12} {unit}", flush=True)

    def send(self, raw, nonce):
        """Sends a response as bytes; seconds until it is answered."""
        path = self.lab.tmp / "response"
        path.write_bytes(raw)
        since = self.istiod.mark()
        start = time.monotonic()
        self.istiod.command(do="file", path=str(path))
        answer = self.istiod.answer(nonce, since, timeout=300)
        assert not answer["has_error"], answer
        return answer["time"] - start

    def whole(self, nonce):
        """The whole state; made once, the nonce is put behind it."""
        if not self.state:
            resources = [pod(i) for i in range(self.count)] + [resource(workload(self.client), "1")]
            self.state = response(ADDRESS, resources, nonce="").SerializeToString()
        return self.state + b"\x2a" + bytes([len(nonce)]) + nonce.encode()

    def memory(self, when):
        self.show(f"broker PSS {when}", pss_kb(self.broker), "kB")
        self.show(f"broker RSS {when}", status_kb(self.broker, "VmRSS"), "kB")

    def load(self):
        self.istiod.first(ADDRESS)
        self.memory("empty")
        raw = self.whole("whole")
        self.show("one response", len(raw), "bytes")
        before = cpu_s(self.broker)
        self.show("whole state, sent to answered", round(self.send(raw, "whole"), 2), "s")
        self.istiod.push(POLICY)
        self.show("CPU of it", round(cpu_s(self.broker) - before, 2), "s")
        self.show("broker RSS peak while loading", status_kb(self.broker, "VmHWM"), "kB")
        time.sleep(3)
        self.memory("loaded")
        self.lab.add(self.client)
        self.lab.wait_ready()

    def updates(self, count):
        before, took = cpu_s(self.broker), []
        for n in range(count):
            raw = response(ADDRESS, [pod(random.randrange(self.count), n)], nonce=f"u{n}").SerializeToString()
            took.append(self.send(raw, f"u{n}"))
        took.sort()
        self.show(f"{count} updates, on the wire to answered, median", round(took[count // 2] * 1000, 2), "ms")
        self.show("the same, 99th percentile", round(took[count * 99 // 100] * 1000, 2), "ms")
        self.show("CPU for one update", round((cpu_s(self.broker) - before) / count * 1e6), "us")

    def effect(self):
        """A service's address becomes known: how long until a connection to it is refused by the proxy, not lost."""
        vip = f"10.{self.lab.net}.8.1"
        from culvert_e2e.istiod import service
        start = time.monotonic()
        self.istiod.push(ADDRESS, [resource(service("late", vips=[vip], ports={80: 80}))], wait=False)
        wait_for("the effect", lambda: self.client.curl(f"http://{vip}/", check=False, timeout=2).returncode in (52, 56),
                 interval=0.005)
        self.show("an update to its effect on a new connection, curl's start included",
                  round((time.monotonic() - start) * 1000, 1), "ms")

    def disconnects(self, count):
        before, took = cpu_s(self.broker), []
        for n in range(count):
            # A stream that lived shorter is one more failure to the client, and each costs a longer pause.
            time.sleep(5.2)
            since = self.istiod.mark()
            start = time.monotonic()
            self.istiod.end(14, "transport is closing")
            first = self.istiod.first(ADDRESS, since, timeout=120)
            took.append(first["time"] - start)
            if first["version_count"] == 0:
                self.send(self.whole(f"again{n}"), f"again{n}")
            else:
                self.istiod.push(ADDRESS)
            self.istiod.push(POLICY)
        self.show(f"{count} disconnects, to the next request, mean", round(sum(took) / count * 1000), "ms")
        self.show("CPU for one reconnect with its whole state", round((cpu_s(self.broker) - before) / count, 2), "s")
        self.show("broker RSS peak of everything", status_kb(self.broker, "VmHWM"), "kB")
        time.sleep(4)
        self.memory("at the end")


def main():
    count, updates, disconnects = [*map(int, sys.argv[1:]), *[100000, 1000, 20][len(sys.argv) - 1:]]
    random.seed(1)
    with tempfile.TemporaryDirectory(prefix="cvt-churn-") as tmp, Lab(Path(tmp)) as lab:
        bench = Bench(lab, count)
        try:
            bench.load()
            bench.updates(updates)
            bench.effect()
            bench.disconnects(disconnects)
        finally:
            bench.istiod.stop()


if __name__ == "__main__":
    main()
