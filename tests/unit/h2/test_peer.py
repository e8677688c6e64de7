# SPDX-License-Identifier: GPL-2.0-or-later
"""Our HTTP/2 sessions against another implementation (python's h2).

H2_ADAPTER names the program of adapter.c, which holds one session of ours; all
bytes pass through this file in memory, so that frames can be looked at.
"""
import os
import struct
import subprocess

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame as hf
import pytest

CONNECT = [(":method", "CONNECT"), (":authority", "10.0.0.1:80"), ("baggage", "k8s.pod.name=c"), ("x-other", "1")]


def pattern(length):
    return bytes(i % 251 for i in range(251)) * (length // 251) + bytes(range(length % 251))


class Ours:
    """One session of ours in its process."""

    def __init__(self, side):
        self.proc = subprocess.Popen(
            [os.environ["H2_ADAPTER"], side], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.lines = []
        self.pieces = []

    def close(self):
        self.proc.stdin.close()
        assert self.proc.wait(timeout=20) == 0
        self.proc.stdout.close()

    def _read(self):
        kind, length = struct.unpack(">cI", self.proc.stdout.read(5))
        return kind, self.proc.stdout.read(length)

    def command(self, what, body=b""):
        """Run one command; returns the bytes for the peer, notes the events."""
        self.proc.stdin.write(what + struct.pack(">I", len(body)) + body)
        self.proc.stdin.flush()
        out = b""
        while True:
            kind, body = self._read()
            if kind == b".":
                return out
            if kind == b"D":
                assert len(body) <= 16384
                self.pieces.append(body)
                out += body
            else:
                self.lines.append(body.decode())

    def stream(self, what, number, arg=0):
        return self.command(what, struct.pack(">II", number, arg))

    def take(self, prefix=""):
        """Events so far that begin with prefix; all are forgotten."""
        lines = [line for line in self.lines if line.startswith(prefix)]
        self.lines = []
        return lines


class Bench:
    """Our session, theirs, and what went over the wire from us."""

    def __init__(self, side):
        self.ours = Ours(side)
        config = h2.config.H2Configuration(client_side=side == "server", header_encoding="utf-8")
        self.theirs = h2.connection.H2Connection(config)
        self.theirs.initiate_connection()
        self.wire = b""
        self.events = []
        self.auto_ack = True
        # Nothing happens yet, but our preface comes.
        self.preface = self.ours.command(b"T", bytes(4))
        self.ours.take()

    def deliver(self, data):
        """Bytes of ours to theirs, and back until silence."""
        while True:
            self.wire += data
            if data:
                for event in self.theirs.receive_data(data):
                    self.events.append(event)
                    if isinstance(event, h2.events.DataReceived) and self.auto_ack:
                        self.theirs.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            back = self.theirs.data_to_send()
            if not back:
                return
            data = self.ours.command(b"D", back)

    def do(self, what, *args):
        self.deliver(self.ours.stream(what, *args))

    def command(self, what, body=b""):
        self.deliver(self.ours.command(what, body))

    def frames(self):
        """Frames that left us since the last call (type, flags, stream, body)."""
        data, self.wire = self.wire, b""
        if data.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            data = data[24:]
        out = []
        while data:
            frame, length = hf.Frame.parse_frame_header(memoryview(data[:9]))
            frame.parse_body(memoryview(data[9 : 9 + length]))
            out.append(frame)
            data = data[9 + length :]
        return out

    def take(self, kind):
        found = [event for event in self.events if isinstance(event, kind)]
        self.events = [event for event in self.events if not isinstance(event, kind)]
        return found

    def received(self, number):
        return b"".join(e.data for e in self.take(h2.events.DataReceived) if e.stream_id == number)


@pytest.fixture
def server():
    bench = Bench("server")
    bench.deliver(bench.preface)
    yield bench
    bench.ours.close()


@pytest.fixture
def client():
    bench = Bench("client")
    bench.deliver(bench.preface)
    yield bench
    bench.ours.close()


def open_server_stream(bench, headers=CONNECT, status=200):
    number = bench.theirs.get_next_available_stream_id()
    bench.theirs.send_headers(number, headers)
    bench.deliver(b"")
    bench.do(b"S", number, status)
    return number


def open_client_stream(bench, authority=b"10.0.0.1:80", status="200"):
    bench.command(b"O", authority)
    number = int(bench.ours.take("open 0")[0].split()[2])
    bench.theirs.send_headers(number, [(":status", status), ("baggage", "k8s.pod.name=s")])
    bench.deliver(b"")
    return number


def test_server_preface_on_the_wire(server):
    frames = server.frames()
    assert isinstance(frames[0], hf.SettingsFrame) and not frames[0].flags
    assert list(frames[0].settings.items()) == [(3, 200), (4, 262144), (5, 1048576), (6, 65536)]
    assert isinstance(frames[1], hf.WindowUpdateFrame)
    assert (frames[1].stream_id, frames[1].window_increment) == (0, 1048576 - 65535)
    assert any(isinstance(f, hf.SettingsFrame) and "ACK" in f.flags for f in frames)
    # python's h2 asks for no more than 100 streams at once.
    assert server.ours.take("settings") == ["settings 100"]


def test_client_preface_on_the_wire(client):
    assert client.wire.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    frames = client.frames()
    assert list(frames[0].settings.items()) == [(2, 0), (4, 262144), (5, 1048576), (6, 16384)]
    assert (frames[1].stream_id, frames[1].window_increment) == (0, 1048576 - 65535)


def test_server_serves_connect(server):
    number = open_server_stream(server)
    assert server.ours.take("request") == [f"request {number} CONNECT 10.0.0.1:80 k8s.pod.name=c"]
    (response,) = server.take(h2.events.ResponseReceived)
    assert (":status", "200") in [tuple(h) for h in response.headers]
    server.theirs.send_data(number, b"hello")
    server.deliver(b"")
    assert server.ours.take("data") == [f"data {number} 5"]
    server.do(b"W", number, 100000)
    assert server.received(number) == pattern(100000)
    server.theirs.end_stream(number)
    server.deliver(b"")
    assert server.ours.take("end") == [f"end {number}"]
    server.do(b"W", number, 10)
    server.do(b"E", number)
    assert server.received(number) == pattern(10)
    assert len(server.take(h2.events.StreamEnded)) == 1
    assert not server.take(h2.events.StreamReset)


def test_client_request_on_the_wire(client):
    number = open_client_stream(client)
    (request,) = client.take(h2.events.RequestReceived)
    assert [tuple(h) for h in request.headers] == [
        (":method", "CONNECT"),
        (":authority", "10.0.0.1:80"),
        ("baggage", "k8s.pod.name=a"),
        ("forwarded", 'for="10.0.0.1:999"'),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"),
    ]
    assert request.stream_ended is None
    assert client.ours.take("response") == [f"response {number} 200 k8s.pod.name=s"]
    client.do(b"W", number, 50000)
    assert client.received(number) == pattern(50000)


def test_client_half_closes(client):
    number = open_client_stream(client)
    client.do(b"E", number)
    assert [e.stream_id for e in client.take(h2.events.StreamEnded)] == [number]
    client.theirs.send_data(number, b"x" * 16000)
    client.theirs.end_stream(number)
    client.deliver(b"")
    assert client.ours.take("data") != []
    frames = client.frames()
    ends = [f for f in frames if isinstance(f, hf.DataFrame) and "END_STREAM" in f.flags]
    assert len(ends) == 1 and ends[0].data == b""
    assert not any(isinstance(f, hf.RstStreamFrame) for f in frames)


def test_full_frames_fill_records(client):
    client.theirs.increment_flow_control_window(1 << 20)
    number = open_client_stream(client)
    client.theirs.increment_flow_control_window(1 << 20, number)
    client.deliver(b"")
    client.ours.pieces.clear()
    client.do(b"W", number, 20 * 16375)
    full = [p for p in client.ours.pieces if len(p) == 16384]
    assert len(full) == 20
    assert all(p[:3] == (16375).to_bytes(3, "big") for p in full)
    assert client.received(number) == pattern(15 * 16375) + pattern(20 * 16375)[15 * 16375 :]


def test_writer_waits_for_window(client):
    client.auto_ack = False
    number = open_client_stream(client)
    client.do(b"W", number, 300000)
    assert client.ours.take("write") == ["write 1"]
    assert len(client.received(number)) == 65535
    # Credit for the stream alone, then for the connection: the smaller counts.
    client.theirs.increment_flow_control_window(100000, number)
    client.deliver(b"")
    assert len(client.received(number)) == 0
    client.theirs.increment_flow_control_window(300000)
    client.deliver(b"")
    assert len(client.received(number)) == 100000
    client.theirs.increment_flow_control_window(300000, number)
    client.deliver(b"")
    assert len(client.received(number)) == 300000 - 165535
    # Told at the next opportunity.
    client.command(b"T", struct.pack(">I", 1))
    assert client.ours.take("writable") == [f"writable {number}"]


def send_all(bench, number, length):
    """Their side sends as far as windows allow; returns what is left."""
    while length:
        n = min(length, bench.theirs.local_flow_control_window(number), bench.theirs.max_outbound_frame_size)
        if n <= 0:
            return length
        bench.theirs.send_data(number, b"z" * n)
        length -= n
        bench.deliver(b"")
    return 0


def test_window_updates_are_batched(server):
    number = open_server_stream(server)
    server.frames()
    assert send_all(server, number, 262144) == 0
    updates = [f for f in server.frames() if isinstance(f, hf.WindowUpdateFrame)]
    stream = [f.window_increment for f in updates if f.stream_id == number]
    # Half a window at a time.
    assert len(stream) <= 3 and all(i >= 131072 for i in stream)


def test_windows_grow_with_use(server):
    number = open_server_stream(server)
    assert send_all(server, number, 64 << 20) == 0
    server.deliver(b"")
    assert server.theirs.local_flow_control_window(number) >= 2 << 20
    total = sum(int(line.split()[2]) for line in server.ours.take("data"))
    assert total == 64 << 20


def test_stalled_reader_bounds_sender(server):
    stalled = open_server_stream(server, [(":method", "CONNECT"), (":authority", "stall:1")])
    left = send_all(server, stalled, 10 << 20)
    assert left == (10 << 20) - 262144
    other = open_server_stream(server)
    assert send_all(server, other, 1 << 20) == 0
    server.do(b"C", stalled, 0)
    assert server.theirs.local_flow_control_window(stalled) >= 131072


def test_refusal_is_answer_then_reset(server):
    number = server.theirs.get_next_available_stream_id()
    server.theirs.send_headers(number, CONNECT)
    server.deliver(b"")
    server.frames()
    server.ours.stream(b"S", number, 401 | 1 << 16)
    data = server.ours.pieces[-1]
    server.deliver(data + server.ours.stream(b"R", number))
    kinds = [type(f) for f in server.frames()]
    assert kinds[0] is hf.HeadersFrame
    (reset,) = server.take(h2.events.StreamReset)
    assert reset.error_code == h2.errors.ErrorCodes.NO_ERROR
    (response,) = server.take(h2.events.ResponseReceived)
    assert (":status", "401") in [tuple(h) for h in response.headers]


@pytest.mark.parametrize("code", ["CANCEL", "NO_ERROR", "STREAM_CLOSED", "INTERNAL_ERROR"])
def test_resets_of_the_peer(server, code):
    number = open_server_stream(server)
    server.theirs.reset_stream(number, h2.errors.ErrorCodes[code])
    server.deliver(b"")
    assert server.ours.take("reset") == [f"reset {number} {code} remote"]


def test_abandoned_stream_is_cancelled(client):
    number = open_client_stream(client)
    client.do(b"R", number)
    (reset,) = client.take(h2.events.StreamReset)
    assert (reset.stream_id, reset.error_code) == (number, h2.errors.ErrorCodes.CANCEL)


@pytest.mark.parametrize(
    "headers",
    [
        [(":authority", "a:1")],
        [(":method", "CONNECT"), (":authority", "a:1"), (":scheme", "https"), (":path", "/")],
        [(":method", "CONNECT"), (":scheme", "https"), (":path", "/"), (":authority", "a:1"), (":protocol", "websocket")],
        [(":method", "GET"), (":authority", "a:1")],
        [(":method", "CONNECT"), (":authority", "a:1:2")],
        [(":method", "CONNECT"), (":authority", "a:1"), ("Upper", "x")],
        [(":method", "CONNECT"), (":authority", "a:1"), ("connection", "close")],
        [(":method", "CONNECT"), ("x", "y"), (":authority", "a:1")],
    ],
)
def test_malformed_requests_are_reset(headers):
    bench = Bench("server")
    bench.theirs.config.validate_outbound_headers = False
    bench.theirs.config.normalize_outbound_headers = False
    bench.deliver(bench.preface)
    bench.theirs.send_headers(1, headers)
    bench.deliver(b"")
    (reset,) = bench.take(h2.events.StreamReset)
    assert reset.error_code == h2.errors.ErrorCodes.PROTOCOL_ERROR
    assert not bench.ours.take("request")
    # The connection lives.
    assert open_server_stream(bench) == 3
    bench.ours.close()


def test_connect_without_authority_arrives(server):
    server.theirs.config.validate_outbound_headers = False
    server.theirs.send_headers(1, [(":method", "CONNECT")])
    server.deliver(b"")
    assert server.ours.take("request") == ["request 1 CONNECT - -"]
    server.do(b"S", 1, 400 | 1 << 16)
    (response,) = server.take(h2.events.ResponseReceived)
    assert (":status", "400") in [tuple(h) for h in response.headers]


def test_header_list_too_long_gets_431(server):
    server.theirs.send_headers(1, CONNECT + [(f"x-{i}", "v" * 4000) for i in range(17)])
    server.deliver(b"")
    (response,) = server.take(h2.events.ResponseReceived)
    assert (":status", "431") in [tuple(h) for h in response.headers]
    assert not server.ours.take("request")


def test_pings(client):
    client.command(b"T", struct.pack(">I", 9999))
    assert not any(isinstance(f, hf.PingFrame) for f in client.frames())
    client.command(b"T", struct.pack(">I", 1))
    assert sum(isinstance(f, hf.PingFrame) for f in client.frames()) == 1
    client.command(b"T", struct.pack(">I", 9999))
    assert not any(isinstance(f, hf.PingFrame) for f in client.frames())
    client.command(b"T", struct.pack(">I", 1))
    assert client.ours.take("tick") == ["tick 0"] * 4
    # Theirs are answered.
    client.theirs.ping(b"abcdefgh")
    client.deliver(b"")
    (ack,) = client.take(h2.events.PingAckReceived)
    assert ack.ping_data == b"abcdefgh"


def test_graceful_drain(server):
    number = open_server_stream(server)
    server.frames()
    # python's h2 takes any GOAWAY for the end of everything, so the PONG is made by hand.
    server.wire = server.ours.command(b"G")
    goaway, ping = server.frames()
    assert (goaway.last_stream_id, goaway.error_code) == (2**31 - 1, 0)
    assert isinstance(ping, hf.PingFrame) and not ping.flags
    pong = hf.PingFrame(0, ping.opaque_data, flags=["ACK"])
    server.wire = server.ours.command(b"D", pong.serialize())
    (goaway,) = server.frames()
    assert (goaway.last_stream_id, goaway.error_code) == (number, 0)


def test_goaway_of_the_peer(client):
    first = open_client_stream(client)
    client.command(b"O", b"b:1")
    client.theirs.close_connection(last_stream_id=first)
    client.deliver(b"")
    lines = client.ours.lines
    assert f"goaway {first} NO_ERROR" in lines
    assert f"reset {first + 2} REFUSED_STREAM remote" in lines
    client.ours.take()
    client.ours.command(b"O", b"c:1")
    assert client.ours.take("open") == ["open -11 0"]


def test_idle_client_says_goodbye(client):
    client.command(b"I")
    (bye,) = client.take(h2.events.ConnectionTerminated)
    assert bye.error_code == h2.errors.ErrorCodes.NO_ERROR
    assert client.ours.take("over") != []


def test_peers_stream_limit(client):
    client.theirs.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 2})
    client.deliver(b"")
    client.ours.take()
    for authority in (b"a:1", b"b:1", b"c:1"):
        client.command(b"O", authority)
    assert client.ours.take("open") == ["open 0 1", "open 0 3", "open -11 0"]


def test_many_streams(server):
    numbers = [open_server_stream(server) for _ in range(150)]
    for number in numbers:
        server.theirs.send_data(number, b"q" * 500, end_stream=True)
    server.deliver(b"")
    assert len(server.ours.take("end ")) == 150
    for number in numbers:
        server.do(b"W", number, 700)
        server.do(b"E", number)
        assert server.received(number) == pattern(700)
        server.do(b"R", number)
    assert len(server.take(h2.events.StreamEnded)) == 150
    assert not server.take(h2.events.StreamReset)
