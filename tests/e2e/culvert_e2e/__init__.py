# SPDX-License-Identifier: GPL-2.0-or-later
"""Harness of the end-to-end tests: pods in network namespaces and peers that are not ours."""
