# SPDX-License-Identifier: GPL-2.0-or-later
"""Python's http.client against http/server.c: framing, keep-alive, bodies, refusals."""
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self.path)


def ask(conn, method, target, body=None, headers=None):
    conn.request(method, target, body, headers or {})
    reply = conn.getresponse()
    return reply.status, reply.read(), reply


def run(path):
    conn = UnixConnection(path)
    for _ in range(3):
        status, body, reply = ask(conn, 'GET', '/ready')
        assert (status, body) == (200, b'ready\n'), (status, body)
        assert reply.getheader('content-type') == 'text/plain' and not reply.will_close
    status, body, reply = ask(conn, 'HEAD', '/ready')
    assert (status, body, reply.getheader('content-length')) == (200, b'', '6')
    assert ask(conn, 'PUT', '/ready')[0] == 405
    assert ask(conn, 'GET', '/nowhere?x')[:2] == (404, b'')
    status, body, reply = ask(conn, 'GET', '/stream')
    assert (status, body) == (200, b'0123456789' * 1000) and reply.chunked
    payload = os.urandom(65536)
    assert ask(conn, 'POST', '/echo', payload)[:2] == (200, payload)
    assert ask(conn, 'GET', '/query?reset&level=access%3Ddebug%2C+info')[1] == b'access=debug, info'
    first = conn.sock
    assert ask(conn, 'GET', '/ready')[0] == 200 and conn.sock is first
    status, body, reply = ask(conn, 'GET', '/ready', headers={'Connection': 'close'})
    assert status == 200 and reply.will_close
    for method, headers, body, want in (
            ('POST', {'Transfer-Encoding': 'chunked'}, b'x', 411),
            ('POST', {}, b'x' * 65537, 413),
            ('GET', {'X': 'y' * 9000}, None, 431)):
        conn = UnixConnection(path)
        assert ask(conn, method, '/echo', body, headers)[0] == want, want
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(path)
        raw.sendall(b'GET /stream HTTP/1.0\r\n\r\n')
        raw.shutdown(socket.SHUT_WR)
        data = b''.join(iter(lambda: raw.recv(65536), b''))
        assert data.endswith(b'\r\n\r\n' + b'0123456789' * 1000), data[:200]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 's')
        server = subprocess.Popen([sys.argv[1], path])
        try:
            for _ in range(100):
                if os.path.exists(path):
                    break
                time.sleep(0.05)
            run(path)
        finally:
            server.kill()
            server.wait()


main()
