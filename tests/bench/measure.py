# SPDX-License-Identifier: GPL-2.0-or-later
"""What processes and the machine say of themselves: CPU, memory, settings. Knows no side and no load."""
from __future__ import annotations

import os
import platform
import time
from contextlib import contextmanager
from pathlib import Path

MB = 1_000_000


class BenchError(Exception):
    """A measurement that failed: its row shows that, the bench goes on and ends with status 1."""


def cpu_seconds(pids):
    """On-CPU time of all threads of these processes (proc(5), schedstat: nanoseconds)."""
    total = 0
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(stat.read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return total / 1e9


def kb_of(path, key):
    """A line of a file like /proc/PID/status, in bytes."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"no {key} in {path}")


def pss_bytes(pid):
    return kb_of(f"/proc/{pid}/smaps_rollup", "Pss")


def peak_bytes(pid):
    """PSS as it was when most was resident: what is shared now is taken for shared then."""
    status = f"/proc/{pid}/status"
    return pss_bytes(pid) + kb_of(status, "VmHWM") - kb_of(status, "VmRSS")


# --- the machine -----------------------------------------------------------


def sysctl(name):
    return Path("/proc/sys", *name.split(".")).read_text().split()


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def is_virtual():
    return any(" hypervisor" in line for line in Path("/proc/cpuinfo").read_text().splitlines()
               if line.startswith("flags"))


def machine():
    memory = kb_of("/proc/meminfo", "MemTotal") / 1e9
    return f"{os.cpu_count()} CPUs, {cpu_model()}, {memory:.0f} GB" + (", virtual" if is_virtual() else "")


# --- a cgroup of the bench's own -------------------------------------------


def own_group(controller):
    """Path of this process's group in a hierarchy (cgroups(7), /proc/PID/cgroup)."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    raise BenchError("no cgroup of our own")


class Cgroup:
    """A memory cgroup for the processes of one side; version 1 beside our own group, version 2 at the top."""

    def __init__(self, name):
        """Throws BenchError with the reason where there can be none."""
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        first = next((m[1] for m in mounts if m[2] == "cgroup" and "memory" in m[3].split(",")), None)
        second = next((m[1] for m in mounts if m[2] == "cgroup2"), None)
        if first:
            self.home = Path(first + own_group("memory"))
            self.path = self.home / name
            self.is_first = True
        elif second and "memory" in Path(second, "cgroup.subtree_control").read_text().split():
            self.home = Path(second + own_group(""))
            self.path = Path(second, name)
            self.is_first = False
        else:
            raise BenchError("no cgroup hierarchy with the memory controller")
        try:
            self.path.mkdir()
        except OSError as err:
            raise BenchError(f"no cgroup: {err}") from None

    @contextmanager
    def entered(self):
        """Processes that are started meanwhile are inside; `ip netns exec` hides the hierarchy from them."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (self.home / "cgroup.procs").write_text(str(os.getpid()))

    def stat(self, key):
        return next(int(line.split()[1]) for line in (self.path / "memory.stat").read_text().splitlines()
                    if line.split()[0] == key)

    def bytes(self):
        """All that is charged but the page cache: anonymous and shared memory, and the kernel's."""
        if self.is_first:
            usage = int((self.path / "memory.usage_in_bytes").read_text())
            return usage - self.stat("total_cache") + self.stat("total_shmem")
        usage = int((self.path / "memory.current").read_text())
        return usage - self.stat("file") + self.stat("shmem")

    def remove(self):
        """Once everybody in it is dead, which may be a moment after the first process."""
        end = time.monotonic() + 5
        while True:
            try:
                self.path.rmdir()
                return
            except OSError as err:
                if time.monotonic() > end:
                    raise BenchError(f"processes are left in {self.path.name}: {err}") from None
            time.sleep(0.02)
