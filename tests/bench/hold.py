# SPDX-License-Identifier: GPL-2.0-or-later
"""Many connections that are open and do nothing, for the memory rows of the bench.

hold.py serve PORT            echoes what comes
hold.py open HOST PORT COUNT  opens them, exchanges 100 bytes on each, says "open", closes them at the next line of
                              stdin, says "closed"
"""
import resource
import select
import socket
import sys

# At a time: more would only measure the backlog.
BATCH = 64
HELLO = b"x" * 100


def serve(port):
    listener = socket.create_server(("", port), backlog=1024)
    listener.setblocking(False)
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    conns = {}
    while True:
        for fd, _ in epoll.poll():
            if fd == listener.fileno():
                conn, _ = listener.accept()
                conns[conn.fileno()] = conn
                epoll.register(conn, select.EPOLLIN)
                continue
            try:
                data = conns[fd].recv(4096)
            except OSError:
                data = b""
            if data:
                conns[fd].sendall(data)
            else:
                epoll.unregister(fd)
                conns.pop(fd).close()


def hold(host, port, count):
    conns = []
    while len(conns) < count:
        batch = [socket.create_connection((host, port), timeout=60) for _ in range(min(BATCH, count - len(conns)))]
        for conn in batch:
            conn.sendall(HELLO)
        for conn in batch:
            if not conn.recv(len(HELLO)):
                sys.exit("a connection ended early")
        conns += batch
    print("open", flush=True)
    sys.stdin.readline()
    for conn in conns:
        conn.close()
    print("closed", flush=True)


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        hold(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))


main()
