# SPDX-License-Identifier: GPL-2.0-or-later
"""Large meshes, as a file and as a control plane sends them."""
from __future__ import annotations

import json
import random
import time

from culvert_e2e.istiod import ADDRESS, POLICY, Istiod, messages, resource, response, service, workload
from culvert_e2e.lab import dump_yaml
from culvert_e2e.pki import Ca
from loads import CANARY_PORT, LETTER_PORTS

# A service whose only endpoint is the server; its target port is what updates change.
SERVICE, SERVICE_PORT = "moving", 80
NONCE = "whole"
# A whole state may take so long to be answered, seconds.
LOADING = 120


def names_of(i):
    ns = f"namespace-{i % 100}"
    app = f"application-{i % 1000}"
    return ns, app, f"{app}-5d7f8b9c6-{i:05x}", f"node-{i % 500}"


def address_of(i):
    """Of 100.64.0.0 and above, where no pod of a lab is."""
    return bytes([100, 64 + (i >> 16), i >> 8 & 255, i & 255])


def pod(i, version=0):
    """A workload of a large mesh as istiod writes them, about 250 bytes."""
    _, address, _ = messages()
    ns, app, name, node = names_of(i)
    msg = address.Address(workload=address.Workload(
        uid=f"Kubernetes//Pod/{ns}/{name}", name=name, namespace=ns, service_account=app,
        addresses=[address_of(i)], tunnel_protocol=address.HBONE, node=node, canonical_name=app,
        canonical_revision="v1", workload_name=app, workload_type=address.POD, cluster_id="Kubernetes",
        status=version % 2))
    entry = msg.workload.services[f"{ns}/{app}.{ns}.svc.cluster.local"]
    entry.ports.add(service_port=80, target_port=8080)
    return resource(msg, version=f"{random.getrandbits(64) | 1 << 63:x}")


def file_record(i):
    """The same as a record of the mesh file."""
    ns, app, name, node = names_of(i)
    return {"uid": f"Kubernetes//Pod/{ns}/{name}", "name": name, "namespace": ns, "serviceAccount": app,
            "trustDomain": "cluster.local", "workloadIps": [".".join(map(str, address_of(i)))], "protocol": "HBONE",
            "node": node, "network": "", "clusterId": "Kubernetes", "canonicalName": app, "canonicalRevision": "v1",
            "workloadName": app, "workloadType": "pod",
            "services": {f"{ns}/{app}.{ns}.svc.cluster.local": {"80": 8080}}}


def write_file(lab, count):
    """The lab's mesh file with so many workloads more; JSON is YAML."""
    head, rest = dump_yaml(lab.mesh).split("services:", 1)
    more = "".join(f"- {as_yaml(file_record(i))}\n" for i in range(count))
    lab.write_mesh(f"{head}{more}services:{rest}")


def as_yaml(record):
    # Keys of ports are numbers, which JSON does not have.
    return json.dumps(record).replace('"80":', "80:")


class ControlPlane:
    """An istiod of the bench, which knows the lab's pods, one service and as many more workloads as wanted."""

    def __init__(self, lab):
        self.lab = lab
        self.crt, self.key, root = Ca.foreign().issue_server(lab.tmp, ["localhost"], "istiod")
        token = lab.tmp / "token"
        token.write_text("a-token")
        self.env = {"XDS_ADDRESS": "https://localhost:15012", "XDS_ROOT_CA": root, "AUTH_TOKEN": token,
                    "LOCAL_XDS_PATH": None}
        self.vip = f"10.{lab.net}.240.1"
        self.number = 0

    def __enter__(self):
        self.istiod = Istiod(self.lab, self.crt, self.key)
        return self

    def __exit__(self, *exc):
        self.istiod.stop()

    def server_record(self, port):
        """The server's workload, behind the service with this target port."""
        self.number += 1
        host = f"default/{SERVICE}.default.svc.cluster.local"
        msg = workload(self.lab.pods["server"], services={host: {SERVICE_PORT: port}})
        return resource(msg, version=f"s{self.number}")

    def prepare(self, count):
        """The whole state, made before a clock runs."""
        pods = [resource(workload(p), "1") for p in self.lab.pods.values() if p.name != "server"]
        pods += [self.server_record(next(iter(LETTER_PORTS))),
                 resource(service(SERVICE, vips=[self.vip], ports={SERVICE_PORT: SERVICE_PORT}), "1")]
        self.path = self.lab.tmp / "state"
        self.path.write_bytes(response(ADDRESS, pods + [pod(i) for i in range(count)], nonce=NONCE).SerializeToString())

    def start(self, side, **env):
        """Starts a side and gives it what was prepared; seconds until that is answered."""
        since = self.istiod.mark()
        side.launch(**self.env, **env)
        first = self.first_of(side, since)
        self.istiod.first(POLICY, since)
        self.istiod.command(do="file", path=str(self.path))
        answer = self.istiod.answer(NONCE, since, timeout=LOADING)
        self.istiod.push(POLICY)
        assert not answer["has_error"], answer["error"]
        side.wait_ready()
        return answer["time"] - first["time"]

    def first_of(self, side, since):
        """The first request of a side, whose end need not be waited for until the time is up."""
        end = time.monotonic() + LOADING
        while True:
            try:
                return self.istiod.first(ADDRESS, since, timeout=1)
            except AssertionError:
                if not side.is_running() or time.monotonic() > end:
                    side.fail("no request to istiod")

    def update(self, i):
        """An update of one of the many, answered."""
        self.number += 1
        return self.istiod.push(ADDRESS, [pod(i, self.number)])

    def move(self, port, wait=False):
        """An update of the server's workload."""
        return self.istiod.push(ADDRESS, [self.server_record(port)], wait=wait)

    def forbid(self, is_forbidden):
        """A policy that concerns all pods, which denies the canary's port or is taken back."""
        _, _, rbac = messages()
        msg = rbac.Authorization(name="no-canary", namespace="default", scope=rbac.NAMESPACE, action=rbac.DENY)
        msg.rules.add().clauses.add().matches.add(destination_ports=[CANARY_PORT])
        if is_forbidden:
            self.istiod.push(POLICY, [resource(msg, "1")], wait=False)
        else:
            self.istiod.push(POLICY, removed=["default/no-canary"])
