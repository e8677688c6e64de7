# SPDX-License-Identifier: GPL-2.0-or-later
"""Many connections that are open and do nothing, for the bench.

hold.py serve PORT ...              echoes what comes on these ports
hold.py open HOST COUNT PORT ...    opens so many, spread over the ports, exchanges 100 bytes on each, says "open"; then
                                    for each line of stdin: "count" says how many are still open, "close" closes all
                                    and says "closed"

Several ports, because one address has fewer than 65,536 ports to connect from to each.
"""
import select
import socket
import sys

# At a time: more would only measure the backlog.
BATCH = 64
HELLO = b"x" * 100


def serve(ports):
    epoll = select.epoll()
    listeners, conns = {}, {}
    for port in ports:
        listener = socket.create_server(("", port), backlog=1024)
        listener.setblocking(False)
        listeners[listener.fileno()] = listener
        epoll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in epoll.poll():
            if fd in listeners:
                try:
                    conn, _ = listeners[fd].accept()
                except OSError:
                    continue
                conns[conn.fileno()] = conn
                epoll.register(conn, select.EPOLLIN)
                continue
            try:
                data = conns[fd].recv(4096)
                if data:
                    conns[fd].sendall(data)
                    continue
            except OSError:
                pass
            epoll.unregister(fd)
            conns.pop(fd).close()


def open_all(host, count, ports):
    conns = []
    while len(conns) < count:
        numbers = range(len(conns), min(len(conns) + BATCH, count))
        batch = [socket.create_connection((host, ports[i % len(ports)]), timeout=30) for i in numbers]
        for conn in batch:
            conn.sendall(HELLO)
        for conn in batch:
            if not conn.recv(len(HELLO)):
                raise ConnectionError("ended before its echo")
        conns += batch
    return conns


def is_open(conn):
    try:
        return conn.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def hold(host, count, ports):
    conns = []
    try:
        conns = open_all(host, count, ports)
    except OSError as err:
        sys.exit(f"one of {count} connections: {err}")
    for conn in conns:
        conn.settimeout(None)
    print("open", flush=True)
    for line in sys.stdin:
        if line.strip() == "count":
            print(sum(map(is_open, conns)), flush=True)
            continue
        for conn in conns:
            conn.close()
        print("closed", flush=True)
        return


def main():
    if sys.argv[1] == "serve":
        serve([int(port) for port in sys.argv[2:]])
    else:
        hold(sys.argv[2], int(sys.argv[3]), [int(port) for port in sys.argv[4:]])


main()
