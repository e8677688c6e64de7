#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""culvertctl against a daemon that is told what to answer: run directories, errors, exit codes."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CTL = sys.argv.pop(1)
PODS = (b'[\n  {"name": "shop", "namespace": "prod", "netnsInode": 4026532000, "pid": 71, "reason": "",'
        b' "restarts": 2, "serviceAccount": "clerk", "state": "Up", "uid": "u-1"},\n'
        b'  {"name": "till", "namespace": "prod", "netnsInode": 4026532001, "pid": 0, "reason": "no such netns",'
        b' "restarts": 0, "serviceAccount": "clerk", "state": "Pending", "uid": "u-2"}\n]\n')


def reply(body, status="200 OK", length=True):
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    if length:
        head += f"Content-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Daemon:
    """An instance's folder with a held lock and, if there is an answer, a server on admin.sock."""

    def __init__(self, base, name, answer=None, hold=0.0, lock=True):
        self.dir = os.path.join(base, name)
        os.makedirs(self.dir)
        self.asked = []
        self.answer, self.hold = answer, hold
        self.lock = open(os.path.join(self.dir, "lock"), "w")
        if lock:
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.server = None
        if answer is not None:
            self.server = socket.socket(socket.AF_UNIX)
            fd = os.open(self.dir, os.O_RDONLY)
            self.server.bind(f"/proc/self/fd/{fd}/admin.sock")
            os.close(fd)
            self.server.listen()
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.server.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):
                data = b""
                while b"\r\n\r\n" not in data:
                    data += conn.recv(4096)
                self.asked.append(data.split(b"\r\n")[0].decode())
                conn.sendall(self.answer)
                time.sleep(self.hold)

    def close(self):
        if self.server:
            self.server.shutdown(socket.SHUT_RDWR)
            self.server.close()
        self.lock.close()


class Ctl(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="ctl-")
        self.addCleanup(tmp.cleanup)
        self.base = tmp.name

    def daemon(self, answer=None, name="00000000000000aa", base=None, **kw):
        d = Daemon(base or self.base, name, answer, **kw)
        self.addCleanup(d.close)
        return d

    def ctl(self, *args, run_dir=True, env=None, **kw):
        cmd = [CTL] + (["--run-dir", self.base] if run_dir else []) + list(args)
        full = {k: v for k, v in os.environ.items() if k != "CULVERT_RUN_DIR"} | (env or {})
        return subprocess.run(cmd, capture_output=True, text=True, timeout=90, env=full, **kw)

    def ok(self, *args, **kw):
        res = self.ctl(*args, **kw)
        self.assertEqual((res.returncode, res.stderr), (0, ""), res)
        return res.stdout

    def fails(self, code, *needles_and_args, args, **kw):
        res = self.ctl(*args, **kw)
        self.assertEqual(res.returncode, code, res)
        self.assertEqual(res.stdout, "")
        for needle in needles_and_args:
            self.assertIn(needle, res.stderr)
        self.assertTrue(res.stderr.startswith("culvertctl: ") or code == 2, res.stderr)
        return res.stderr

    # --- answers ---

    def test_pods_short(self):
        d = self.daemon(reply(PODS))
        self.assertEqual(self.ok("pods").splitlines(), [
            "NAMESPACE  NAME  SERVICEACCOUNT  STATE    PID  RESTARTS  UID  REASON",
            "prod       shop  clerk           Up       71   2         u-1  -",
            "prod       till  clerk           Pending  -    0         u-2  no such netns"])
        self.assertEqual(d.asked, ["GET /culvert/pods HTTP/1.1"])

    def test_pods_json_is_what_came(self):
        self.daemon(reply(PODS))
        for args in (["pods", "-o", "json"], ["-o", "json", "pods"], ["pods", "--output=json"]):
            self.assertEqual(self.ok(*args).encode(), PODS)

    def test_no_pods(self):
        self.daemon(reply(b"[]"))
        self.assertEqual(self.ok("pods").count("\n"), 1)
        self.assertEqual(self.ok("pods", "-o", "json"), "[]\n")

    def test_dump(self):
        d = self.daemon(reply(b'{"workloads": []}'))
        self.assertEqual(self.ok("dump"), '{"workloads": []}\n')
        self.assertEqual(d.asked, ["GET /config_dump HTTP/1.1"])

    def test_chunked_and_without_length(self):
        d = self.daemon(reply(b"[]", length=False))
        self.assertEqual(self.ok("pods", "-o", "json"), "[]\n")
        d.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n1\r\n]\r\n0\r\n\r\n"
        self.assertEqual(self.ok("pods", "-o", "json"), "[]\n")

    def test_large_dump(self):
        body = b'{"workloads": [' + b",".join(b'{"name": "w%d"}' % i for i in range(200000)) + b"]}"
        self.daemon(reply(body))
        self.assertEqual(len(self.ok("dump")), len(body) + 1)

    # --- answers that are none ---

    def test_bad_json(self):
        d = self.daemon(b"")
        for body in (b'[{"name": "sh', b"", b"<html>", b"[] []", b'{"a": 1}}', b"[]\0[]"):
            d.answer = reply(body)
            self.fails(1, "not JSON", args=["pods", "-o", "json"])
            self.fails(1, "not JSON", args=["dump"])

    def test_json_of_another_shape(self):
        self.daemon(reply(b'{"pods": []}'))
        self.fails(1, "no list", args=["pods"])

    def test_cut_off(self):
        d = self.daemon(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]")
        self.fails(1, "closed the connection before the end", args=["pods"])
        d.answer = b""
        self.fails(1, "closed the connection", args=["pods"])
        d.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n"
        self.fails(1, "culvertd", args=["pods"])
        d.answer = b"SSH-2.0-OpenSSH_9.2\r\n"
        self.fails(1, "culvertd", args=["pods"])

    def test_status(self):
        d = self.daemon(reply(b"out of \x1b[31mmemory\nmore", "500 Internal Server Error"))
        text = self.fails(1, "culvertd answered 500 to /culvert/pods: out of ?[31mmemory\n", args=["pods"])
        self.assertNotIn("more", text)
        d.answer = reply(b"", "404 Not Found")
        self.fails(1, "culvertd answered 404: it is of a release that has no /config_dump\n", args=["dump"])

    def test_slow(self):
        self.daemon(b"HTTP/1.1 200 OK\r\n", hold=30)
        start = time.monotonic()
        self.fails(1, "does not answer in time", args=["pods"])
        self.assertGreater(time.monotonic() - start, 4)
        self.assertLess(time.monotonic() - start, 15)

    def test_output_fails(self):
        self.daemon(reply(PODS))
        with open("/dev/full", "w") as full:
            res = subprocess.run([CTL, "--run-dir", self.base, "pods"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(res.returncode, 1)
        self.assertIn("No space left", res.stderr)

    # --- which daemon ---

    def test_none(self):
        self.fails(3, f"no running culvertd found in {self.base};", args=["pods"])
        self.fails(3, f"no running culvertd found in {self.base}/nowhere;", args=["pods"], run_dir=False,
                   env={"CULVERT_RUN_DIR": self.base + "/nowhere"})

    def test_default_folders_are_named(self):
        if any(os.path.exists(d) for d in ("/var/run/ztunnel/culvert", "/tmp/culvert")):
            self.skipTest("a culvertd has been here")
        for env in ({}, {"CULVERT_RUN_DIR": ""}):
            self.fails(3, "/var/run/ztunnel/culvert, /tmp/culvert", args=["pods"], run_dir=False, env=env)

    def test_environment(self):
        self.daemon(reply(PODS))
        self.assertEqual(self.ok("pods", "-o", "json", run_dir=False, env={"CULVERT_RUN_DIR": self.base}).encode(), PODS)
        # The option wins.
        self.assertEqual(self.ok("pods", "-o", "json", env={"CULVERT_RUN_DIR": "/nowhere"}).encode(), PODS)

    def test_proxy_of_the_environment(self):
        self.daemon(reply(b"[]"))
        self.ok("pods", env={"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"})

    def test_dead_instance(self):
        self.daemon(reply(PODS), lock=False)
        self.fails(3, "no running culvertd", args=["pods"])
        self.fails(3, "nobody holds instance 00000000000000aa", args=["--instance", "00000000000000aa", "pods"])

    def test_dead_and_live(self):
        self.daemon(reply(b"[1]"), name="dead", lock=False)
        self.daemon(reply(PODS), name="live")
        self.assertEqual(self.ok("pods", "-o", "json").encode(), PODS)

    def test_two_live(self):
        old = self.daemon(reply(b"[]"), name="ff-old")
        os.utime(os.path.join(old.dir, "lock"), (1, 1))
        self.daemon(reply(PODS), name="aa-young")
        res = self.ctl("pods", "-o", "json")
        self.assertEqual((res.returncode, res.stdout.encode()), (0, PODS))
        self.assertIn(f"2 instances are live; this is {self.base}/aa-young", res.stderr)
        self.assertEqual(self.ok("--instance", "ff-old", "pods", "-o", "json"), "[]\n")
        self.fails(3, "there is no instance other", args=["--instance", "other", "pods"])

    def test_no_way_out_of_the_folder(self):
        inner = os.path.join(self.base, "inner")
        os.mkdir(inner)
        self.daemon(reply(PODS))
        os.symlink(os.path.join(self.base, "00000000000000aa"), os.path.join(inner, "link"))
        for name in ("../00000000000000aa", "..", ".", "", "/", "link"):
            self.fails(3, "instance", args=["--run-dir", inner, "--instance", name, "pods"])

    def test_without_admin_socket(self):
        self.daemon()
        self.fails(3, "admin socket does not answer", args=["pods"])

    def test_run_dir_is_a_file(self):
        path = os.path.join(self.base, "file")
        open(path, "w").close()
        self.fails(1, "Not a directory", args=["--run-dir", path, "pods"])

    def test_starting_daemon_is_waited_for(self):
        self.daemon(reply(PODS))
        fd = os.open(self.base, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        threading.Timer(0.3, os.close, [fd]).start()
        self.assertEqual(self.ok("pods", "-o", "json").encode(), PODS)

    def test_long_path(self):
        base = os.path.join(self.base, *["d" * 60] * 4)
        self.daemon(reply(PODS), base=base)
        self.assertEqual(self.ok("--run-dir", base, "pods", "-o", "json").encode(), PODS)

    def test_permission(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")
        self.daemon(reply(PODS))
        os.chmod(self.base, 0o700)
        self.fails(4, f"{self.base}: permission denied", args=["pods"], preexec_fn=lambda: os.setresuid(*[65534] * 3))

    # --- the call itself ---

    def test_usage_errors(self):
        self.fails(2, "unknown command pdos; did you mean pods?", args=["pdos"])
        self.fails(2, "unknown command certainly-not\n", args=["certainly-not"])
        self.fails(2, "unexpected argument x", args=["pods", "x"])
        self.fails(2, "-o is one of short|json|yaml, not xml", args=["pods", "-o", "xml"])
        self.fails(2, "log takes no -o", args=["log", "-o", "json"])
        self.fails(2, "policy takes no -p", args=["policy", "--pod", "x"])
        self.fails(2, "explain needs FROM TO:PORT", args=["explain", "x"])
        self.fails(2, "TO:PORT is", args=["explain", "x", "y"])
        self.fails(2, "--interval is a time", args=["top", "-i", "soon"])
        self.fails(2, "--iterations is a number", args=["top", "-n", "-1"])
        self.fails(2, "--direction is inbound or outbound", args=["connections", "--direction", "up"])
        self.fails(2, "bash or zsh", args=["completion", "fish"])
        self.fails(2, "--nonsense", args=["--nonsense"])
        self.fails(2, "there is no command nonsense", args=["help", "nonsense"])
        self.fails(2, "usage:", args=[])

    def test_help_and_version(self):
        for args in (["help"], ["--help"], ["-h"], ["help", "--help"]):
            text = self.ok(*args)
            for word in ("pods", "dump", "version", "--run-dir", "CULVERT_RUN_DIR"):
                self.assertIn(word, text)
        self.assertEqual(self.ok("help", "pods"), self.ok("pods", "--help"))
        self.assertIn("-o, --output short|json|yaml", self.ok("help", "pods"))
        res = self.ctl("version")
        self.assertEqual(res.returncode, 0)
        self.assertRegex(res.stdout, r"^culvertctl \d+\.\d+\.\d+\n$")
        self.assertIn("no version of the daemon", res.stderr)
        self.assertEqual(self.ctl("--version").stdout, res.stdout)
        self.daemon(reply(b'{"version": "9.9", "x": {}, "y": "a\\u001b"}'))
        self.assertTrue(self.ok("version").endswith('culvertd:\n  version: "9.9"\n  y: "a\\u001b"\n'))
        self.assertEqual(json.loads(self.ok("version", "--json"))["daemon"]["version"], "9.9")

    def test_saved_dump(self):
        path = os.path.join(self.base, "dump.json")
        with open(path, "w") as out:
            out.write('{"workloads": [{"name": "w", "namespace": "n", "protocol": "TCP", "workloadIps": ["1.2.3.4"]}]}')
        want = "NAMESPACE POD NAME ADDRESS NODE WAYPOINT PROTOCOL\nn         w        1.2.3.4      None     TCP\n"
        self.assertEqual(self.ok("workload", "--file", path), want)
        with open(path) as stdin:
            self.assertEqual(self.ok("w", "-f", "-", stdin=stdin), want)
        self.assertIn("- 1.2.3.4\n", self.ok("workload", "-f", path, "-o", "yaml"))
        self.fails(5, "there is no workload v", args=["workload", "-f", path, "--pod", "v"])
        self.fails(1, "No such file", args=["workload", "-f", path + "x"])
        with open(path, "w") as out:
            out.write("[]")
        self.fails(1, "no config dump", args=["workload", "-f", path])

    def test_names_of_pods(self):
        self.daemon(reply(PODS))
        self.assertEqual(len(self.ok("pods", "--pod", "shop").splitlines()), 2)
        self.assertEqual(len(json.loads(self.ok("pods", "-n", "prod", "-o", "json"))), 2)
        self.assertEqual(self.ok("pods", "-n", "none", "--json"), "[]\n")
        self.fails(5, "there is no pod on this node shpo; did you mean shop.prod", args=["pods", "--pod", "shpo"])
        self.fails(5, "did you mean shop.prod?", args=["trace", "shopp"])
        self.fails(3, "pod till.prod has no silo", args=["drain", "till"])
        # Its socket does not exist.
        self.fails(3, "admin socket does not answer", args=["log", "--pod", "u-1"])

    def test_refusals_carry_their_codes(self):
        d = self.daemon(reply(b"there is no workload x in the mesh\n", "404 Not Found"))
        self.fails(5, "culvertctl: there is no workload x in the mesh\n", args=["explain", "x", "y:1"])
        self.assertEqual(d.asked, ["GET /culvert/explain?from=x&to=y&port=1 HTTP/1.1"])
        d.answer = reply(b"a port is a number\n", "400 Bad Request")
        self.fails(2, "a port is a number", args=["explain", "a b", "[::1]:&"])
        self.assertEqual(d.asked[-1], "GET /culvert/explain?from=a%20b&to=%3A%3A1&port=%26 HTTP/1.1")

    def test_log(self):
        d = self.daemon(reply(b"current log level is info\n"))
        self.assertEqual(self.ok("log"), "current log level is info\n")
        self.ok("log", "xds:debug")
        self.ok("log", "--reset", "warning")
        self.assertEqual(d.asked, ["POST /logging?level= HTTP/1.1", "POST /logging?level=xds%3Adebug HTTP/1.1",
                                   "POST /logging?level=warn&reset HTTP/1.1"])

    def test_explain_of_another_shape(self):
        d = self.daemon(reply(b"[]"))
        self.fails(1, "no object", args=["explain", "x", "y:1"])
        for body in (b"{}", b'{"route": {"kind": 3, "peerIdentities": {"a": 1}}, "policy": [], "from": "\\u001b"}'):
            d.answer = reply(body)
            self.assertNotIn("\x1b", self.ok("explain", "x", "y:1"))

    def test_closed_pipe_is_quiet(self):
        body = b'{"workloads": [' + b",".join(b'{"name": "w%d"}' % i for i in range(50000)) + b"]}"
        self.daemon(reply(body))
        for args in (["workload"], ["dump"], ["workload", "-o", "json"], ["all", "-o", "yaml"]):
            proc = subprocess.Popen([CTL, "--run-dir", self.base, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            proc.stdout.read(10)
            proc.stdout.close()
            self.assertEqual(proc.stderr.read(), b"")
            proc.stderr.close()
            self.assertEqual(proc.wait(timeout=60), 1)

    def test_completion_knows_every_word(self):
        commands = re.findall(r"^  ([a-z]+) ", self.ok("help"), re.M)
        self.assertIn("explain", commands)
        for shell in ("bash", "zsh"):
            script = self.ok("completion", shell)
            for command in commands:
                at = re.search(rf"^ +{command}(\||\))", script, re.M).start()
                part = script[at:script.index(";;", at)]
                for option in re.findall(r"(?<![a-z])(--?[a-z-]+)", self.ok(command, "--help").split("\n\n", 2)[2]):
                    self.assertIn(option, part, (shell, command))
            path = os.path.join(self.base, shell)
            with open(path, "w") as out:
                out.write(script)
            if shutil.which(shell):
                subprocess.run([shell, "-n", path], check=True)

    def test_completion_in_bash(self):
        with open(os.path.join(self.base, "c"), "w") as out:
            out.write(self.ok("completion", "bash"))
        for words, wanted in ((["culvertctl", "ex"], "explain"), (["culvertctl", "top", "--inter"], "--interval"),
                              (["culvertctl", "service", "-o", "y"], "yaml"), (["culvertctl", "completion", "z"], "zsh")):
            quoted = " ".join(f"'{w}'" for w in words)
            res = subprocess.run(["bash", "-c", f". {self.base}/c; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1};"
                                  " _culvertctl; echo \"${COMPREPLY[@]}\""], capture_output=True, text=True, timeout=30)
            self.assertEqual((res.stdout.strip(), res.stderr), (wanted, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
