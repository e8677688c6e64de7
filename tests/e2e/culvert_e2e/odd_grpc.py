# SPDX-License-Identifier: GPL-2.0-or-later
"""A TLS and HTTP/2 server that gets gRPC wrong, by python's h2: odd_grpc.py folder host; mode in folder/mode.

Its certificate's root is written to server-root.pem, its port to port, a line for each connection and request
to seen.
"""
import socket
import ssl
import struct
import sys
import threading
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from culvert_e2e.ca_server import Root, pem  # noqa: E402

GRPC = [(":status", "200"), ("content-type", "application/grpc")]


def answer(conn, sid, mode):
    """True: go on, False: close the connection."""
    def end(*lines):
        conn.send_headers(sid, list(lines), end_stream=True)

    if mode == "http503":
        end((":status", "503"), ("content-type", "text/plain"))
    elif mode == "html":
        end((":status", "200"), ("content-type", "text/html"))
    elif mode == "trailers_only":
        end(*GRPC, ("grpc-status", "7"), ("grpc-message", "go%20away"))
    elif mode == "refused":
        conn.reset_stream(sid, h2.errors.ErrorCodes.REFUSED_STREAM)
    elif mode == "calm":
        conn.reset_stream(sid, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
    elif mode == "goaway":
        conn.close_connection(h2.errors.ErrorCodes.NO_ERROR)
        return False
    elif mode == "cut":
        return False
    elif mode == "gzip":
        conn.send_headers(sid, [*GRPC, ("grpc-encoding", "gzip")])
    else:
        conn.send_headers(sid, GRPC)
        body = {"compressed": b"\1\0\0\0\1x", "huge": b"\0\xff\xff\xff\xff", "half": b"\0\0\0\0\5he",
                "rubbish": b"\0\0\0\0\3\xff\xff\xff", "nothing": b"", "no_status": b"", "two": b"\0\0\0\0\0" * 2,
                "bad_utf8": b"\0\0\0\0\4\x0a\2\xff\xfe"}[mode]
        conn.send_data(sid, body, end_stream=mode == "no_status")
        if mode != "no_status":
            end(("grpc-status", "0"))
    return True


def serve(sock, folder, log):
    conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    conn.initiate_connection()
    print("connection", file=log, flush=True)
    try:
        sock.sendall(conn.data_to_send())
        while data := sock.recv(65536):
            goes_on = True
            for event in conn.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    mode = (folder / "mode").read_text()
                    print("request", mode, file=log, flush=True)
                    goes_on = answer(conn, event.stream_id, mode)
            sock.sendall(conn.data_to_send())
            if not goes_on:
                break
        sock.close()
    except OSError:
        pass


def main(folder, host):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    folder = Path(folder)
    root, key = Root("odd"), ec.generate_private_key(ec.SECP256R1())
    (folder / "server-root.pem").write_text(pem(root.cert))
    (folder / "own.pem").write_text(pem(root.issue(key.public_key(), ips=[host])) + pem(root.mid) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "own.pem")
    tls.set_alpn_protocols(["h2"])
    log = open(folder / "seen", "a")
    with socket.create_server((host, 0)) as server:
        (folder / "port.new").write_text(str(server.getsockname()[1]))
        (folder / "port.new").rename(folder / "port")
        while True:
            raw, _ = server.accept()
            # A cut connection ends with RST, as a crash does.
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                sock = tls.wrap_socket(raw, server_side=True)
            except (ssl.SSLError, OSError):
                continue
            threading.Thread(target=serve, args=(sock, folder, log), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
