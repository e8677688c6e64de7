# SPDX-License-Identifier: GPL-2.0-or-later
"""HBONE client and server on python h2 and OpenSSL: the peer that is not our code.

Runs as a program inside a pod's namespace and answers with one JSON line, so
that a test on the outside can read what the peer saw.

  client: hbone_peer.py client --connect IP:15008 --authority A --cert … [--send TEXT] …
  server: hbone_peer.py server --listen IP:15008 --cert … [--status N] [--echo]
"""
from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import ssl
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings


def host_port(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def client_context(args):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_REQUIRED
    ctx.load_verify_locations(args.root)
    if args.cert:
        ctx.load_cert_chain(args.cert, args.key)
    if args.alpn:
        ctx.set_alpn_protocols(args.alpn.split(","))
    return ctx


def server_context(args):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.minimum_version = ssl.TLSVersion.TLSv1_3
    ctx.verify_mode = ssl.CERT_REQUIRED
    ctx.load_verify_locations(args.root)
    ctx.load_cert_chain(args.cert, args.key)
    ctx.set_alpn_protocols(["h2"])
    return ctx


def peer_uris(tls):
    cert = tls.getpeercert() or {}
    return [v for k, v in cert.get("subjectAltName", ()) if k == "URI"]


class Client:
    """One connection, one or more CONNECT streams, everything recorded."""

    def __init__(self, args):
        self.args = args
        raw = socket.create_connection(host_port(args.connect), timeout=args.timeout)
        self.sock = client_context(args).wrap_socket(raw)
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=False,
            normalize_outbound_headers=False, validate_inbound_headers=True))
        self.result = {"tls": self.sock.version(), "alpn": self.sock.selected_alpn_protocol(),
                       "peer": peer_uris(self.sock), "streams": {}, "settings": {}, "goaway": None}

    def flush(self):
        data = self.conn.data_to_send()
        if data:
            self.sock.sendall(data)

    def open(self, authority, extra=()):
        sid = self.conn.get_next_available_stream_id()
        headers = [(":method", self.args.method)]
        if authority is not None:
            headers.append((":authority", authority))
        if self.args.method != "CONNECT":
            headers += [(":scheme", "https"), (":path", "/")]
        headers += [tuple(h.split("=", 1)) for h in extra]
        self.conn.send_headers(sid, headers)
        self.result["streams"][sid] = {"authority": authority, "status": None, "headers": {}, "data": b"",
                                       "ended": False, "reset": None}
        return sid

    def handle(self, event):
        streams = self.result["streams"]
        sid = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.ResponseReceived):
            headers = dict(event.headers)
            streams[sid]["status"] = int(headers.pop(":status"))
            streams[sid]["headers"] = headers
            if streams[sid]["status"] == 200 and self.args.send is not None:
                self.conn.send_data(sid, self.args.send.encode(), end_stream=not self.args.keep_open)
        elif isinstance(event, h2.events.DataReceived):
            streams[sid]["data"] += event.data
            self.conn.acknowledge_received_data(event.flow_controlled_length, sid)
        elif isinstance(event, h2.events.StreamEnded):
            streams[sid]["ended"] = True
        elif isinstance(event, h2.events.StreamReset):
            streams[sid]["reset"] = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.result["goaway"] = int(event.error_code)
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            for code, change in event.changed_settings.items():
                self.result["settings"][int(code)] = change.new_value

    def done(self):
        return all(s["ended"] or s["reset"] is not None for s in self.result["streams"].values())

    def run(self):
        args = self.args
        self.conn.initiate_connection()
        self.flush()
        for authority in args.authority or [None]:
            self.open(authority, args.header)
        self.flush()
        end = time.monotonic() + args.timeout
        self.sock.settimeout(0.2)
        while not self.done() and time.monotonic() < end:
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                continue
            except (ssl.SSLError, ConnectionError) as err:
                self.result["error"] = str(err)
                break
            if not data:
                self.result["eof"] = True
                break
            for event in self.conn.receive_data(data):
                self.handle(event)
            self.flush()
        return self.result


class Server(threading.Thread):
    """
    Answers CONNECT with a status. What then becomes of the stream is the mode: echo (in upper case, then
    half-close), forward (to --to, as a gateway does), mute (no answer at all), reset (RST_STREAM with
    --code after the answer), dumb (TLS, but no HTTP/2), deaf (not even TLS).
    """

    def __init__(self, args, raw, number):
        super().__init__(daemon=True)
        self.args, self.raw, self.number = args, raw, number
        self.lock = threading.Lock()
        self.conn, self.tls = None, None
        self.backs, self.waiting = {}, {}
        self.requests = 0

    def say(self, **fields):
        # One write a line: connections have threads of their own.
        os.write(1, (json.dumps({"conn": self.number, **fields}, default=plain) + "\n").encode())

    def run(self):
        report = {"peer": [], "requests": [], "settings": {}, "window": 0, "error": None}
        try:
            self.say(accepted=True)
            if self.args.mode == "deaf":
                while self.raw.recv(65536):
                    pass
            else:
                self.serve(report)
        except (ssl.SSLError, OSError, h2.exceptions.ProtocolError) as err:
            report["error"] = str(err)
        self.raw.close()
        if self.tls:
            self.tls.close()
        self.say(closed=True, **report)

    def flush(self):
        data = self.conn.data_to_send()
        if data:
            self.tls.sendall(data)

    def serve(self, report):
        self.tls = tls = server_context(self.args).wrap_socket(self.raw, server_side=True)
        report["peer"] = peer_uris(tls)
        report["tls"], report["alpn"] = tls.version(), tls.selected_alpn_protocol()
        while self.args.mode == "dumb" and tls.recv(65536):
            pass
        self.conn = conn = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8", validate_inbound_headers=False))
        if self.args.max_streams:
            conn.local_settings = h2.settings.Settings(client=False, initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.args.max_streams})
        conn.initiate_connection()
        self.flush()
        # Reads and writes of one TLS object must not meet: the socket is read in short waits.
        tls.settimeout(0.02 if self.args.mode == "forward" else None)
        while True:
            try:
                data = tls.recv(65536)
            except TimeoutError:
                continue
            except ssl.SSLError as err:
                if "timed out" in str(err):
                    continue
                raise
            if not data:
                return
            with self.lock:
                for event in conn.receive_data(data):
                    self.handle(conn, event, report)
                self.flush()

    def handle(self, conn, event, report):
        if isinstance(event, h2.events.RequestReceived):
            self.requests += 1
            report["requests"].append({"stream": event.stream_id, "headers": event.headers})
            self.say(request=event.headers)
            self.answer(event.stream_id)
        elif isinstance(event, h2.events.DataReceived):
            conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.stream_id in self.backs:
                self.backs[event.stream_id].sendall(event.data)
            else:
                # What the other side has no room for is lost: only tests that do not read their echo see that.
                room = conn.local_flow_control_window(event.stream_id)
                if room:
                    conn.send_data(event.stream_id, event.data.upper()[:room])
        elif isinstance(event, h2.events.StreamEnded):
            if event.stream_id in self.backs:
                self.backs[event.stream_id].shutdown(socket.SHUT_WR)
            else:
                conn.end_stream(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            back = self.backs.pop(event.stream_id, None)
            if back:
                back.close()
            self.say(reset=int(event.error_code))
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.say(goaway=int(event.error_code))
        elif isinstance(event, h2.events.WindowUpdated) and event.stream_id in (0, None):
            self.say(window=event.delta)
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            for code, change in event.changed_settings.items():
                report["settings"][int(code)] = change.new_value
            self.say(settings={int(c): v.new_value for c, v in event.changed_settings.items()})

    def answer(self, sid):
        mode, ok = self.args.mode, self.args.status == 200
        if self.requests == self.args.hangup_at:
            raise OSError("hung up")
        if mode == "mute":
            return
        if mode == "forward":
            back = socket.create_connection(host_port(self.args.to), timeout=10)
            back.settimeout(None)
            self.backs[sid] = back
            threading.Thread(target=self.back, args=(sid, back), daemon=True).start()
        headers = [(":status", str(self.args.status))]
        if self.args.baggage:
            headers.append(("baggage", self.args.baggage))
        self.conn.send_headers(sid, headers, end_stream=not ok)
        if mode == "reset":
            self.conn.reset_stream(sid, self.args.code)
        if self.args.goaway_after and self.requests >= self.args.goaway_after:
            self.flush()
            # By hand: the library would call the whole connection over.
            frame = bytes([0, 0, 8, 7, 0, 0, 0, 0, 0]) + sid.to_bytes(4, "big") + bytes(4)
            self.tls.sendall(frame)

    def back(self, sid, back):
        """Copies from the destination into the stream; windows are large enough for what tests send."""
        try:
            while data := back.recv(16384):
                with self.lock:
                    self.conn.send_data(sid, data)
                    self.flush()
            with self.lock:
                self.conn.end_stream(sid)
                self.flush()
        except (OSError, h2.exceptions.ProtocolError):
            pass


def serve(args):
    host, port = host_port(args.listen)
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        print(json.dumps({"listening": args.listen}), flush=True)
        number = 0
        while True:
            raw, _ = listener.accept()
            number += 1
            Server(args, raw, number).start()


def plain(value):
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "base64:" + base64.b64encode(value).decode()
    raise TypeError(type(value))


def main():
    ap = argparse.ArgumentParser()
    sub = ap.add_subparsers(dest="role", required=True)
    for role in ("client", "server"):
        p = sub.add_parser(role)
        p.add_argument("--cert")
        p.add_argument("--key")
        p.add_argument("--root", required=True)
        p.add_argument("--timeout", type=float, default=10)
        if role == "client":
            p.add_argument("--connect", required=True)
            p.add_argument("--authority", action="append")
            p.add_argument("--method", default="CONNECT")
            p.add_argument("--header", action="append", default=[])
            p.add_argument("--send")
            p.add_argument("--keep-open", action="store_true")
            p.add_argument("--alpn", default="h2")
        else:
            p.add_argument("--listen", required=True)
            p.add_argument("--status", type=int, default=200)
            p.add_argument("--max-streams", type=int, default=0)
            p.add_argument("--mode", choices=["echo", "forward", "mute", "reset", "dumb", "deaf"], default="echo")
            p.add_argument("--to", help="IP:PORT that every stream is forwarded to")
            p.add_argument("--code", type=int, default=8, help="of RST_STREAM")
            p.add_argument("--goaway-after", type=int, default=0, help="requests; then GOAWAY NO_ERROR")
            p.add_argument("--hangup-at", type=int, default=0, help="request that ends its connection")
            p.add_argument("--baggage", help="of the answer")
    args = ap.parse_args()
    if args.role == "server":
        serve(args)
        return
    try:
        result = Client(args).run()
    except (ssl.SSLError, OSError) as err:
        result = {"error": f"{type(err).__name__}: {err}"}
    print(json.dumps(result, default=plain))


if __name__ == "__main__":
    sys.exit(main())
