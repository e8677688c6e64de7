#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes files as C arrays: embed.py OUT FILE... makes `static const unsigned char dashboard_<name>[]` of each."""
import sys
from pathlib import Path


def array(path):
    data = path.read_bytes()
    name = "dashboard_" + path.name.replace(".", "_")
    lines = [", ".join(str(byte) for byte in data[i:i + 24]) + "," for i in range(0, len(data), 24)]
    return "static const unsigned char %s[%d] = {\n%s\n};\n" % (name, len(data), "\n".join(lines))


def main():
    out, *files = sys.argv[1:]
    Path(out).write_text("".join(array(Path(f)) for f in files))


main()
