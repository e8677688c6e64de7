# SPDX-License-Identifier: GPL-2.0-or-later
"""Our server side of gRPC against python's client. GRPC_ECHO names the program of echo_server.c."""
import os
import subprocess

import grpc
import pytest

PATIENCE = 60


@pytest.fixture(scope="module")
def channel():
    proc = subprocess.Popen([os.environ["GRPC_ECHO"]], stdout=subprocess.PIPE, text=True)
    port = proc.stdout.readline().strip()
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0),
                                                             ("grpc.max_receive_message_length", 1 << 22)]) as made:
        yield made
    proc.kill()
    proc.wait()
    proc.stdout.close()


def test_unary(channel):
    assert channel.unary_unary("/t/Echo")(b"hello", timeout=PATIENCE) == b"hello"
    assert channel.unary_unary("/t/Echo")(b"", timeout=PATIENCE) == b""


def test_large_messages_both_ways(channel):
    body = bytes(range(256)) * 4096
    assert channel.unary_unary("/t/Echo")(body, timeout=PATIENCE) == body


def test_many_messages_on_one_stream(channel):
    sent = [b"x" * (i * 37 % 5000) for i in range(500)]
    assert list(channel.stream_stream("/t/Echo")(iter(sent), timeout=PATIENCE)) == sent


def test_no_message_at_all(channel):
    assert list(channel.stream_stream("/t/Echo")(iter([]), timeout=PATIENCE)) == []


def test_status_after_messages(channel):
    call = channel.unary_stream("/t/Fail")(b"", timeout=PATIENCE)
    got = []
    with pytest.raises(grpc.RpcError) as failed:
        for message in call:
            got.append(message)
    assert got == [b"half"]
    assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert failed.value.details() == "50% of \u20ac\n"


def test_unknown_method(channel):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/t/Nothing")(b"", timeout=PATIENCE)
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert failed.value.details() == "no method /t/Nothing"


def test_message_too_large(channel):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/t/Echo")(b"x" * ((1 << 20) + 1), timeout=PATIENCE)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "the limit is: 1048576" in failed.value.details()


def test_compression_is_refused(channel):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/t/Echo")(b"x" * 5000, timeout=PATIENCE, compression=grpc.Compression.Gzip)
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "gzip" in failed.value.details()


def test_timeout_is_read(channel):
    assert 50000 < int(channel.unary_unary("/t/Deadline")(b"", timeout=PATIENCE)) <= (PATIENCE + 10) * 1000


def test_many_at_once(channel):
    calls = [channel.unary_unary("/t/Echo").future(str(i).encode() * 100, timeout=PATIENCE) for i in range(100)]
    assert [c.result() for c in calls] == [str(i).encode() * 100 for i in range(100)]
