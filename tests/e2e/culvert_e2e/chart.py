# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command as the stock ztunnel chart starts its container.

PID 1 of its own PID namespace, uid 0 and gid 1337, exactly three capabilities
in the bounding set, read-only root with only /tmp and /var/run/ztunnel (here:
the folders given) writable, 8 MB of locked memory, no cgroup file system.

  chart.py --writable DIR... -- COMMAND...
"""
from __future__ import annotations

import argparse
import ctypes
import os
import resource
import signal
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
PR_CAPBSET_DROP = 24
# CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN: what the chart adds after dropping all.
CAPS = {12, 13, 21}


def check(ret, what):
    if ret != 0:
        err = ctypes.get_errno()
        raise OSError(err, f"{what}: {os.strerror(err)}")


def mount(source, target, fstype, flags, data=None):
    enc = [x.encode() if x else None for x in (source, target, fstype)]
    check(LIBC.mount(*enc, ctypes.c_ulong(flags), data), f"mount {target}")


class CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class CapData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def restrict_mounts(writable):
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    for path in writable:
        mount(path, path, None, MS_BIND)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if os.path.ismount("/sys/fs/cgroup"):
        LIBC.umount2(b"/sys/fs/cgroup", 2)
    mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def restrict_process():
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20))
    os.setgroups([])
    os.setresgid(1337, 1337, 1337)
    for cap in range(64):
        if cap not in CAPS:
            LIBC.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)
    mask = sum(1 << cap for cap in CAPS)
    data = (CapData * 2)(CapData(mask, mask, 0), CapData(0, 0, 0))
    check(LIBC.capset(ctypes.byref(CapHeader(0x20080522, 0)), data), "capset")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--writable", action="append", default=[])
    ap.add_argument("command", nargs="+")
    args = ap.parse_args()
    check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
    child = os.fork()
    if child == 0:
        restrict_mounts(args.writable)
        restrict_process()
        os.execv(args.command[0], args.command)
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda s, _: os.kill(child, s))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


if __name__ == "__main__":
    main()
