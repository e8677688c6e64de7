#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every setting of params.tbl.h is in culvertd(8), in the same order, and nothing else is. Arguments: table, page."""
import re
import sys

table = re.findall(r'^P\(\w+,\s*"(\w+)"', open(sys.argv[1]).read(), re.M)
page = re.findall(r'^\.It Ev (\w+) Ns = ', open(sys.argv[2]).read(), re.M)
assert len(table) > 50, "the table has changed its form"
for name in sorted(set(table) ^ set(page)):
    print(name, "is missing in", sys.argv[2] if name in table else sys.argv[1])
if set(table) == set(page) and table != page:
    print("the order differs")
sys.exit(table != page)
