# SPDX-License-Identifier: GPL-2.0-or-later
"""An application of the fidelity cases: runs scripts of socket calls and says what it saw.

Reads one JSON job a line from stdin, runs each in a thread, writes one JSON result a line to stdout. A script is a
list of words "call:argument"; what each call saw is appended to the result when it is worth saying. Both ends of a
case meet at "sync" words by files in a common folder: never by the connection that is looked at.
"""
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

LIMIT_S = float(os.environ.get("CULVERT_TEST_PATIENCE", "15")) + 10
BLOCK = bytes((i * 7 + i // 251) % 256 for i in range(65521))
PATTERN = BLOCK * 18

NAMES = {errno.ECONNRESET: "reset", errno.EPIPE: "epipe", errno.ECONNREFUSED: "refused", errno.ETIMEDOUT: "timed out",
         errno.EHOSTUNREACH: "unreachable"}


def name(err):
    if isinstance(err, socket.timeout):
        return "nothing"
    return NAMES.get(err.errno, errno.errorcode.get(err.errno, str(err)))


def report(job, said):
    """One write a line: threads share the pipe."""
    line = json.dumps({"id": job["id"], "role": job["role"], "said": ", ".join(said)}) + "\n"
    os.write(1, line.encode())


class End(Exception):
    """The script cannot go on."""


class Script:
    def __init__(self, job, folder):
        self.job = job
        self.folder = folder
        self.said = []
        self.sock = None
        self.listener = None
        self.out = 0
        self.came = 0

    def say(self, text):
        self.said.append(text)

    def run(self):
        try:
            if self.job["role"] == "server" and "nolisten" not in self.job["ops"]:
                self.listen()
            self.mark("ready")
            if self.job["role"] == "client":
                self.meet("ready")
            for op in self.job["ops"]:
                call, _, arg = op.partition(":")
                getattr(self, "do_" + call)(*([int(arg)] if arg else []))
        except End:
            pass
        except OSError as err:
            self.say(f"{op}: {name(err)}")
        if self.sock:
            self.sock.close()
        if self.listener:
            self.listener.close()
        return self.said

    # --- meeting ----------------------------------------------------------

    def mark(self, what, role=None):
        open(f"{self.folder}/{self.job['id']}.{what}.{role or self.job['role']}", "w").close()

    def meet(self, what):
        other = "server" if self.job["role"] == "client" else "client"
        path = f"{self.folder}/{self.job['id']}.{what}.{other}"
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(path):
            if time.monotonic() > end:
                self.say(f"alone at {what}")
                raise End
            time.sleep(0.003)

    def do_sync(self, number):
        self.mark(f"sync{number}")
        self.meet(f"sync{number}")

    def do_sleep(self, ms):
        time.sleep(ms / 1000)

    # --- beginning --------------------------------------------------------

    def listen(self):
        six = self.job["server_family"] == 6
        self.listener = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if six:
            self.listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if "smallbuf" in self.job["ops"]:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("::" if six else "0.0.0.0", self.job["port"]))
        self.listener.listen(512)
        self.listener.settimeout(LIMIT_S)

    def do_nolisten(self):
        pass

    def do_smallbuf(self):
        if self.job["role"] == "client":
            self.small = True

    def use(self, sock):
        sock.settimeout(LIMIT_S)
        self.sock = sock

    def do_accept(self):
        sock, self.peer = self.listener.accept()
        self.use(sock)

    def socket(self):
        sock = socket.socket(socket.AF_INET6 if ":" in self.job["addr"] else socket.AF_INET)
        if getattr(self, "small", False):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return sock

    def do_connect(self):
        self.use(self.socket())
        try:
            self.sock.connect((self.job["addr"], self.job["port"]))
        except ConnectionResetError:
            # Broken before connect() had come back: the same as just after it.
            self.say("reset")
            raise End from None
        except OSError as err:
            self.say(f"connect: {name(err)}")
            raise End from None

    def do_connectnb(self):
        """Without blocking: writable, then SO_ERROR."""
        self.use(self.socket())
        self.sock.setblocking(False)
        self.sock.connect_ex((self.job["addr"], self.job["port"]))
        select.select([], [self.sock], [], LIMIT_S)
        self.say(f"so_error {self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)}")
        self.sock.settimeout(LIMIT_S)

    def do_connectbound(self):
        """From a chosen source port."""
        self.use(self.socket())
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("", 40000 + self.job["port"] % 10000))
        self.sock.connect((self.job["addr"], self.job["port"]))

    # --- bytes ------------------------------------------------------------

    def push(self, length):
        while length:
            at = self.out % len(BLOCK)
            piece = PATTERN[at:at + min(length, 1 << 20)]
            self.sock.sendall(piece)
            self.out += len(piece)
            length -= len(piece)

    def pull(self, most):
        data = self.sock.recv(min(most, 1 << 20))
        at = self.came % len(BLOCK)
        if data != PATTERN[at:at + len(data)]:
            self.say(f"wrong bytes after {self.came}")
            raise End
        self.came += len(data)
        return len(data)

    def do_send(self, length):
        try:
            self.push(length)
        except OSError as err:
            self.say(f"send: {name(err)}")
            raise End from None

    def do_bytes(self, count):
        """Byte by byte."""
        self.do_nodelay()
        for _ in range(count):
            self.push(1)

    def do_recv(self, length):
        got = 0
        end = None
        try:
            while got < length and end is None:
                n = self.pull(length - got)
                got += n
                end = "eof" if n == 0 else None
        except OSError as err:
            end = name(err)
        if end:
            self.say(f"{got} of {length} bytes, {end}")
            raise End

    def drain(self):
        got = 0
        try:
            while n := self.pull(1 << 20):
                got += n
            return got, "eof"
        except OSError as err:
            return got, name(err)

    def do_readall(self):
        got, end = self.drain()
        self.say(f"{got} bytes, {end}" if got else end)

    def do_readend(self):
        """How it ends, whatever comes before."""
        self.say(self.drain()[1])

    def do_pingpong(self, count):
        self.do_nodelay()
        for _ in range(count):
            if self.job["role"] == "client":
                self.do_send(1)
                self.do_recv(1)
            else:
                self.do_recv(1)
                self.do_send(1)

    def do_bulk(self, length):
        """Both directions at once."""
        trouble = []

        def write():
            try:
                self.push(length)
                self.sock.shutdown(socket.SHUT_WR)
            except OSError as err:
                trouble.append(name(err))

        writer = threading.Thread(target=write)
        writer.start()
        got, end = self.drain()
        writer.join()
        self.say(f"{got} bytes, {end}{''.join(trouble)}")

    def do_sendfail(self):
        """Sends now and then until that fails."""
        end = time.monotonic() + 8
        try:
            while time.monotonic() < end:
                self.push(1)
                time.sleep(0.01)
            self.say("send: no error")
        except OSError as err:
            self.say(f"send: {name(err)}")
        raise End

    def do_flood(self):
        """Sends until that fails; how is a matter of moments."""
        self.sock.settimeout(8)
        try:
            while True:
                self.push(1 << 16)
        except socket.timeout:
            self.say("send: blocked")
        except OSError as err:
            self.say("send: broken" if err.errno in (errno.EPIPE, errno.ECONNRESET) else f"send: {name(err)}")
        raise End

    def do_fill(self):
        """Sends until nothing fits any more for a while: the other side has no window."""
        self.sock.settimeout(0.3)
        try:
            while True:
                self.push(1 << 16)
        except socket.timeout:
            pass
        self.sock.settimeout(LIMIT_S)

    def do_oob(self):
        self.sock.send(b"!", socket.MSG_OOB)

    def do_oobinline(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)

    def do_readurg(self):
        """All bytes, and whether one of them was urgent."""
        urgent = ""
        data = b""
        self.sock.setblocking(False)
        end = time.monotonic() + LIMIT_S
        poll = select.poll()
        poll.register(self.sock, select.POLLIN | select.POLLPRI)
        while time.monotonic() < end:
            for _, flags in poll.poll(1000):
                if flags & select.POLLPRI and not urgent:
                    try:
                        urgent = ", urgent " + self.sock.recv(1, socket.MSG_OOB).decode()
                    except OSError:
                        urgent = ", urgent inline"
            try:
                piece = self.sock.recv(1000)
            except BlockingIOError:
                continue
            if not piece:
                break
            data += piece
        self.say(f"{data.count(b'!')} marks in {len(data)} bytes{urgent}")

    # --- ends -------------------------------------------------------------

    def do_shut(self):
        self.sock.shutdown(socket.SHUT_WR)

    def do_shutrd(self):
        self.sock.shutdown(socket.SHUT_RD)

    def do_close(self):
        self.sock.close()
        self.sock = None

    def do_rst(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.do_close()

    def do_lingerclose(self, seconds):
        """close() waits until everything has been taken."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
        began = time.monotonic()
        self.do_close()
        self.say("in time" if time.monotonic() - began < seconds else "too late")

    def do_closelisten(self):
        self.listener.close()
        self.listener = None

    def do_kill(self):
        report(self.job, self.said)
        os.kill(os.getpid(), signal.SIGKILL)

    def do_poll(self):
        """What poll() shows once the other side has done something final."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN | select.POLLRDHUP)
        flags = 0
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and not flags & (select.POLLRDHUP | select.POLLHUP | select.POLLERR):
            for _, flags in poll.poll(200):
                pass
        names = {"IN": select.POLLIN, "RDHUP": select.POLLRDHUP, "ERR": select.POLLERR, "HUP": select.POLLHUP}
        self.say("poll " + "+".join(n for n, bit in names.items() if flags & bit))

    # --- options and names ------------------------------------------------

    def do_nodelay(self):
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_keepalive(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for opt in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            self.sock.setsockopt(socket.IPPROTO_TCP, opt, 1)

    def do_usertimeout(self, ms):
        self.sock.setsockopt(socket.IPPROTO_TCP, 18, ms)

    def role_of(self, addr):
        host = addr[0][7:] if addr[0].startswith("::ffff:") else addr[0]
        return next((who for who, all_of in self.job["names"].items() if host in all_of), "stranger")

    def do_peername(self):
        family = {socket.AF_INET: "v4", socket.AF_INET6: "v6"}[self.sock.family]
        mapped = " mapped" if self.sock.getpeername()[0].startswith("::ffff:") else ""
        self.say(f"peer is {self.role_of(self.sock.getpeername())} {family}{mapped}")

    def do_peerport(self):
        self.say(f"peer's port {'kept' if self.sock.getpeername()[1] == self.job['port'] else 'changed'}")

    def do_sockname(self):
        same = self.sock.getsockname()[1] == self.job["port"]
        self.say(f"own address is {self.role_of(self.sock.getsockname())}, port {'kept' if same else 'changed'}")

    def do_sourceport(self):
        """The server's view of the port that the client bound."""
        kept = self.sock.getpeername()[1] == 40000 + self.job["port"] % 10000
        self.say(f"source port {'kept' if kept else 'changed'}")

    def do_mss(self):
        self.say("mss known" if self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) > 500 else "mss odd")

    # --- crowds -----------------------------------------------------------

    def do_quick(self, count):
        """One short connection after the other; several at a time."""
        good = []

        def some(n):
            for _ in range(n):
                with self.socket() as sock:
                    sock.settimeout(LIMIT_S)
                    sock.connect((self.job["addr"], self.job["port"]))
                    sock.sendall(b"q")
                    if sock.recv(1) == b"r" and sock.recv(1) == b"":
                        good.append(1)

        crowd = [threading.Thread(target=some, args=(count // 8,)) for _ in range(8)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        self.say(f"{len(good)} of {count}")

    def do_serve(self, count):
        for _ in range(count):
            sock, _ = self.listener.accept()
            with sock:
                sock.settimeout(LIMIT_S)
                if sock.recv(1) == b"q":
                    sock.sendall(b"r")

    def do_hold(self, count):
        """Many at once, all open until the last one is."""
        held = []
        for _ in range(count):
            sock = self.socket()
            sock.settimeout(LIMIT_S)
            sock.connect((self.job["addr"], self.job["port"]))
            sock.sendall(b"q")
            held.append(sock)
        good = sum(sock.recv(1) == b"r" for sock in held)
        for sock in held:
            sock.close()
        self.say(f"{good} of {count}")

    def do_holdserve(self, count):
        held = []
        for _ in range(count):
            sock, _ = self.listener.accept()
            sock.settimeout(LIMIT_S)
            held.append(sock)
        for sock in held:
            if sock.recv(1) == b"q":
                sock.sendall(b"r")
        ends = sum(sock.recv(1) == b"" for sock in held)
        for sock in held:
            sock.close()
        self.say(f"{ends} ended")


def apart(job, folder):
    """A job that kills its process gets one of its own."""
    res = subprocess.run([sys.executable, __file__, folder, json.dumps(job)], capture_output=True, text=True)
    os.write(1, res.stdout.encode())


def work(job, folder):
    report(job, Script(job, folder).run())


def main():
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        work(json.loads(sys.argv[2]), folder)
        return
    for line in sys.stdin:
        job = json.loads(line)
        target = apart if "kill" in job["ops"] else work
        threading.Thread(target=target, args=(job, folder), daemon=True).start()


if __name__ == "__main__":
    main()
