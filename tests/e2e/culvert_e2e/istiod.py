# SPDX-License-Identifier: GPL-2.0-or-later
"""A control plane under a test's command: delta ADS by Google's gRPC, with messages that protoc compiles anew.

The server runs as a process of its own in the node's namespace, where the
daemon connects to 127.0.0.1. Commands go in as lines of JSON, what happens
comes out as lines of JSON, which the test keeps in `events`.
"""
from __future__ import annotations

import base64
import ipaddress
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROTO = Path(__file__).resolve().parent.parent / "proto"
ADDRESS = "type.googleapis.com/istio.workload.Address"
POLICY = "type.googleapis.com/istio.security.Authorization"
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"


def messages():
    """The compiled messages: (discovery, address, rbac)."""
    if "discovery_pb2" not in sys.modules:
        out = tempfile.mkdtemp(prefix="cvt-proto-")
        subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={out}", "wellknown.proto", "discovery.proto",
                        "address.proto", "rbac.proto"], check=True)
        sys.path.insert(0, out)
    import address_pb2
    import discovery_pb2
    import rbac_pb2
    return discovery_pb2, address_pb2, rbac_pb2


def packed(ip):
    return ipaddress.ip_address(ip).packed


def workload(pod, **extra):
    """Address with the Workload of a lab's pod; keywords are fields of the message."""
    _, address, _ = messages()
    fields = dict(uid=f"Kubernetes//Pod/{pod.ns}/{pod.name}", name=pod.name, namespace=pod.ns,
                  service_account=pod.sa, addresses=[packed(pod.ip), packed(pod.ip6)],
                  tunnel_protocol=address.HBONE, node="local", canonical_name=pod.name, workload_name=pod.name)
    services = extra.pop("services", {})
    fields.update(extra)
    msg = address.Address(workload=address.Workload(**fields))
    for key, ports in services.items():
        entry = msg.workload.services[key]  # made by the look
        for service_port, target_port in ports.items():
            entry.ports.add(service_port=service_port, target_port=target_port)
    return msg


def service(name, ns="default", vips=(), ports=None, **extra):
    """Address with a Service."""
    _, address, _ = messages()
    msg = address.Address(service=address.Service(
        name=name, namespace=ns, hostname=f"{name}.{ns}.svc.cluster.local", canonical=True, **extra))
    for vip in vips:
        msg.service.addresses.add(address=packed(vip))
    for service_port, target_port in (ports or {}).items():
        msg.service.ports.add(service_port=service_port, target_port=target_port)
    return msg


def name_of(msg):
    """The resource name that istiod gives an Address or Authorization."""
    if msg.DESCRIPTOR.full_name == "istio.security.Authorization":
        return f"{msg.namespace}/{msg.name}"
    if msg.WhichOneof("type") == "service":
        return f"{msg.service.namespace}/{msg.service.hostname}"
    return msg.workload.uid


def resource(msg, version="", name=None, aliases=(), kind=ADDRESS):
    """A Resource around a message, or around raw bytes of a kind, or (None) around nothing."""
    discovery, _, _ = messages()
    res = discovery.Resource(version=version, name=name_of(msg) if name is None else name, aliases=aliases)
    if isinstance(msg, bytes):
        res.resource.type_url, res.resource.value = kind, msg
    elif msg is not None:
        kind = POLICY if msg.DESCRIPTOR.full_name == "istio.security.Authorization" else ADDRESS
        res.resource.type_url, res.resource.value = kind, msg.SerializeToString()
    return res


def response(type_url, resources=(), removed=(), nonce="n"):
    discovery, _, _ = messages()
    return discovery.DeltaDiscoveryResponse(type_url=type_url, resources=resources, removed_resources=removed,
                                            nonce=nonce, system_version_info="v")


class Istiod:
    """The server, seen from the test."""

    def __init__(self, lab, crt, key, port=15012, max_receive=4 << 20, **opts):
        self.lab, self.port = lab, port
        self.events: list[dict] = []
        self.lock = threading.Condition()
        self.nonce = 0
        self.args = dict(crt=str(crt), key=str(key), port=port, max_receive=max_receive, **opts)
        self.proc = None
        self.start()

    def start(self):
        self.proc = subprocess.Popen(
            ["ip", "netns", "exec", self.lab.node, sys.executable, __file__, json.dumps(self.args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(self.proc,), daemon=True).start()
        self.wait("listening", lambda e: e["event"] == "listening")

    def _read(self, proc):
        for line in proc.stdout:
            with self.lock:
                self.events.append(json.loads(line))
                self.lock.notify_all()

    def mark(self):
        """A place in the events, for `since`."""
        with self.lock:
            return len(self.events)

    def wait(self, what, want, since=0, timeout=30):
        """The first event since a mark that `want` accepts."""
        end = time.monotonic() + timeout
        with self.lock:
            while True:
                for event in self.events[since:]:
                    if want(event):
                        return event
                left = end - time.monotonic()
                if left <= 0 or not self.lock.wait(left):
                    raise AssertionError(f"no {what}; events: {self.events[since:]!r}")

    def count(self, want, since=0):
        with self.lock:
            return sum(1 for event in self.events[since:] if want(event))

    def command(self, **command):
        self.proc.stdin.write(json.dumps(command) + "\n")
        self.proc.stdin.flush()

    def first(self, type_url, since=0, **kw):
        """The first request of a type on a stream."""
        return self.wait(f"first request of {type_url}", lambda e: e["event"] == "request" and e["type"] == type_url
                         and not e["nonce"] and e["node"], since, **kw)

    def push(self, type_url, resources=(), removed=(), nonce=None, wait=True):
        """Sends a response on the newest stream; returns the client's answer to it."""
        if nonce is None:
            self.nonce += 1
            nonce = f"nonce-{self.nonce}"
        since = self.mark()
        msg = response(type_url, resources, removed, nonce)
        self.command(do="send", bytes=base64.b64encode(msg.SerializeToString()).decode())
        return self.answer(nonce, since) if wait else nonce

    def answer(self, nonce, since=0, timeout=30):
        return self.wait(f"answer to {nonce}", lambda e: e["event"] == "request" and e["nonce"] == nonce, since,
                         timeout=timeout)

    def serve(self, addresses=(), policies=(), since=0):
        """Answers the first requests of a stream with a whole state."""
        self.first(ADDRESS, since)
        self.first(POLICY, since)
        replies = [self.push(ADDRESS, [resource(m, version=f"{i + 1:x}") for i, m in enumerate(addresses)]),
                   self.push(POLICY, [resource(m) for m in policies])]
        assert not any(r["error"] for r in replies), replies

    def end(self, code=0, message=""):
        """Ends the newest stream with a gRPC status."""
        self.command(do="end", code=code, message=message)

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
        if self.proc:
            self.proc.wait()
            self.proc.stdin.close()
            self.proc = None


# --- the process ---------------------------------------------------------------

class Server:
    """What runs in the node's namespace."""

    def __init__(self, opts):
        self.opts = opts
        self.streams: list[queue.Queue] = []
        self.lock = threading.Lock()
        self.refuse = None
        self.always = None
        self.discovery, _, _ = messages()

    def tell(self, **event):
        with self.lock:
            print(json.dumps(dict(event, time=time.monotonic())), flush=True)

    def stream(self, requests, context):
        import grpc
        discovery = self.discovery
        headers = {k: v if isinstance(v, str) else v.decode() for k, v in context.invocation_metadata()}
        mine: queue.Queue = queue.Queue()
        number = len(self.streams) + 1
        self.streams.append(mine)
        self.tell(event="stream", stream=number, headers=headers)
        if self.refuse:
            context.abort(grpc.StatusCode[self.refuse[0]], self.refuse[1])

        def read():
            try:
                for raw in requests:
                    req = discovery.DeltaDiscoveryRequest.FromString(raw)
                    versions = dict(req.initial_resource_versions) if len(raw) < 1 << 20 else {}
                    self.tell(event="request", stream=number, type=req.type_url, size=len(raw),
                              node=req.node.id, metadata=json_of(req.node.metadata),
                              subscribe=list(req.resource_names_subscribe),
                              unsubscribe=list(req.resource_names_unsubscribe), versions=versions,
                              version_count=len(req.initial_resource_versions),
                              nonce=req.response_nonce, has_error=req.HasField("error_detail"),
                              error=req.error_detail.message, code=req.error_detail.code)
            except grpc.RpcError:
                pass
            self.tell(event="closed", stream=number)
            mine.put(None)

        threading.Thread(target=read, daemon=True).start()
        if self.always:
            context.send_initial_metadata(())
            mine.put(self.always)
        while True:
            item = mine.get()
            if item is None:
                return
            if isinstance(item, bytes):
                yield item
                continue
            if item["code"]:
                context.set_code({c.value[0]: c for c in grpc.StatusCode}[item["code"]])
                context.set_details(item["message"])
            return

    def run(self):
        import grpc
        from concurrent import futures

        opts = [("grpc.max_receive_message_length", self.opts["max_receive"]), ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0)]
        server = grpc.server(futures.ThreadPoolExecutor(64), options=opts)
        same = lambda raw: raw  # noqa: E731
        handler = grpc.stream_stream_rpc_method_handler(self.stream, same, same)
        service_name, method = METHOD[1:].split("/")
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service_name, {method: handler}),))
        creds = grpc.ssl_server_credentials([(Path(self.opts["key"]).read_bytes(), Path(self.opts["crt"]).read_bytes())])
        assert server.add_secure_port(f"127.0.0.1:{self.opts['port']}", creds)
        server.start()
        self.tell(event="listening")
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] == "send":
                self.streams[-1].put(base64.b64decode(command["bytes"]))
            elif command["do"] == "file":
                self.streams[-1].put(Path(command["path"]).read_bytes())
            elif command["do"] == "end":
                self.streams[-1].put(command)
            elif command["do"] == "refuse":
                self.refuse = command["with"]
            elif command["do"] == "always":
                self.always = command


def json_of(struct):
    """What a Struct stands for."""
    return {key: value_of(value) for key, value in struct.fields.items()}


def value_of(value):
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return json_of(value.struct_value)
    if kind == "list_value":
        return [value_of(v) for v in value.list_value.values]
    return None if kind == "null_value" else getattr(value, kind)


if __name__ == "__main__":
    Server(json.loads(sys.argv[1])).run()
