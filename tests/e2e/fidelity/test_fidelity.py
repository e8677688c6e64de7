# SPDX-License-Identifier: GPL-2.0-or-later
"""What two applications see of each other, with culvert between them and without anything.

Every case of fidelity_cases.py runs without a proxy and on three ways through culvert; the outcomes must be the same
but for the differences that docs/fidelity.md lists and explains. With CULVERT_GOLDEN_UPDATE=1 its table is written.
"""
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from culvert_e2e.lab import PATIENCE, Lab
from fidelity_cases import CASES, LONG

ACTOR = Path(__file__).with_name("actor.py")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "fidelity.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
# Pairs of applications at a time; more would measure the machine.
AT_ONCE = 12
# Way: client, server.
WAYS = {
    "none": ("plainc", "plains"),
    "tunnel": ("meshc", "meshs"),
    "plaintext in": ("plainc", "meshs"),
    "plaintext out": ("meshc", "plains"),
}


class Actor:
    """An application in a pod, see actor.py."""

    def __init__(self, pod, folder):
        self.proc = pod.popen(sys.executable, ACTOR, folder, stdin=-1, stderr=None)
        self.lock = threading.Lock()
        self.waiting = {}
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.proc.stdout:
            answer = json.loads(line)
            waiter = self.waiting[answer["id"], answer["role"]]
            waiter.said = answer["said"]
            waiter.set()

    def start(self, job):
        waiter = threading.Event()
        waiter.said = "no answer"
        self.waiting[job["id"], job["role"]] = waiter
        with self.lock:
            self.proc.stdin.write(json.dumps(job) + "\n")
            self.proc.stdin.flush()
        return waiter


class Stage:
    """The pods with an application in each."""

    def __init__(self, lab, folder):
        self.lab = lab
        self.pods = {name: lab.pod(name, mesh=name.startswith("mesh"))
                     for name in ("meshc", "meshs", "plainc", "plains")}
        lab.write_mesh()
        lab.start_agent()
        lab.start_daemon(ready=False)
        lab.add(self.pods["meshc"], self.pods["meshs"])
        lab.wait_ready()
        self.actors = {name: Actor(pod, str(folder)) for name, pod in self.pods.items()}
        self.count = 0
        self.lock = threading.Lock()

    def address(self, case, server):
        if case.target == "nobody":
            return f"10.{self.lab.net}.0.250"
        addr = server.ip6 if case.family == 6 else server.ip
        return "::ffff:" + addr if case.family == 46 else addr

    def play(self, case, way):
        """What the two sides saw."""
        with self.lock:
            self.count += 1
            number = self.count
        names = WAYS[way]
        client, server = (self.pods[name] for name in names)
        job = {"id": f"{number}", "port": 20000 + number, "addr": self.address(case, server),
               "server_family": case.server_family,
               "names": {"client": [client.ip, client.ip6], "server": [server.ip, server.ip6]}}
        waits = [self.actors[name].start({**job, "role": role, "ops": script.split()})
                 for name, role, script in zip(names, ("client", "server"), (case.client, case.server))]
        for wait in waits:
            wait.wait(PATIENCE * 2 + (70 if LONG else 5))
        return tuple(wait.said for wait in waits)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """{case name: {way: (client saw, server saw)}}; a case that is not as recorded is played again by itself."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    folder = tmp_path_factory.mktemp("meet")
    with Lab(tmp_path_factory.mktemp("fidelity")) as lab:
        stage = Stage(lab, folder)
        seen = {case.name: {} for case in CASES}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            plays = {(case.name, way): pool.submit(stage.play, case, way) for case in CASES for way in WAYS}
        for (name, way), play in plays.items():
            seen[name][way] = play.result()
        recorded = read_table()
        for case in CASES:
            if differences(seen[case.name]) != recorded.get(case.name, {}):
                seen[case.name] = {way: stage.play(case, way) for way in WAYS}
        yield seen
        assert "panic" not in lab.log() and "restart" not in lab.log()


def differences(ways):
    """{way: what both saw} of the ways that are not like no proxy at all; with "none" if there are any."""
    other = {way: seen for way, seen in ways.items() if seen != ways["none"]}
    return {"none": ways["none"], **other} if other else {}


def read_table():
    """The differences that the page lists."""
    table = {}
    rows = PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()[2:]
    for row in rows:
        name, ways, client, server = (cell.strip() for cell in row.strip("|").split("|"))
        for way in ways.split("; "):
            table.setdefault(name.strip("`"), {})[way] = (client, server)
    return table


def write_table(outcomes):
    lines = ["| case | way | client sees | server sees |", "|---|---|---|---|"]
    for name, ways in outcomes.items():
        alike = {}
        for way, saw in differences(ways).items():
            alike.setdefault(saw, []).append(way)
        lines += [f"| `{name}` | {'; '.join(all_of)} | {saw[0]} | {saw[1]} |" for saw, all_of in alike.items()]
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def test_fidelity_table(outcomes):
    """The page lists what differs, no more and no less."""
    if os.environ.get("CULVERT_GOLDEN_UPDATE") == "1":
        write_table(outcomes)
    assert read_table() == {name: d for name, ways in outcomes.items() if (d := differences(ways))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fidelity(outcomes, case):
    ways = outcomes[case.name]
    assert not any("alone" in said or "no answer" in said for saw in ways.values() for said in saw), ways
    assert differences(ways) == read_table().get(case.name, {}), ways
