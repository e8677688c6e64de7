# SPDX-License-Identifier: GPL-2.0-or-later
"""The soak, short: mixed traffic through kills of every process, guests, policies and renewals."""
from culvert_e2e.soak import Soak


def test_t01_nothing_fails_nothing_is_left(lab):
    soak = Soak(lab, seconds=12, seed=1, unrest_share=0.8, kill_every=(0.5, 1), churn_pause=1, secret_ttl="4s")
    findings = soak.run()
    assert not findings, "\n".join(findings)
    assert min(soak.kills.values()) > 0, "every kind of process has been killed"
    assert soak.churns > 1 and soak.policies > 4
