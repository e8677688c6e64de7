# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of `istioctl ztunnel-config`, drawn from a config dump by the rules of reference istiod-istioctl.md A.4, A.5.

Strict where the real one is: a value of a wrong type fails everything.
"""
from __future__ import annotations

import datetime


def _typed(value, kind, what):
    if value is None:
        return kind()
    assert isinstance(value, kind) and not (kind is int and isinstance(value, bool)), f"{what}: {value!r}"
    return value


def _text(obj, *keys):
    for key in keys:
        _typed(obj.get(key), str, key)


def _rows(dump, key):
    rows = dump.get(key) or []
    rows = list(rows.values()) if isinstance(rows, dict) else _typed(rows, list, key)
    assert all(isinstance(row, dict) for row in rows), f"{key}: an element is not an object"
    return rows


def check(dump):
    """What istioctl decodes before it prints anything."""
    for w in _rows(dump, "workloads"):
        _text(w, "uid", "protocol", "name", "namespace", "serviceAccount", "workloadName", "workloadType", "canonicalName",
              "canonicalRevision", "clusterId", "trustDomain", "node", "network", "status", "hostname")
        for ref in ("waypoint", "networkGateway"):
            _text(_typed(w.get(ref), dict, ref), "destination")
        _text(_typed(w.get("locality"), dict, "locality"), "region", "zone", "subzone")
        assert 0 <= _typed(w.get("capacity"), int, "capacity") < 2**32
        for key in ("workloadIps", "authorizationPolicies"):
            assert all(isinstance(v, str) for v in _typed(w.get(key), list, key))
    for s in _rows(dump, "services"):
        _text(s, "name", "namespace", "hostname", "ipFamilies", "visibility")
        _typed(s.get("canonical"), bool, "canonical")
        assert all(isinstance(v, str) for v in _typed(s.get("vips"), list, "vips"))
        assert all(isinstance(v, int) for v in _typed(s.get("ports"), dict, "ports").values())
        for e in _typed(s.get("endpoints"), dict, "endpoints").values():
            _text(e, "workloadUid")
            assert all(0 <= int(k) < 65536 and 0 <= v < 65536 for k, v in _typed(e.get("port"), dict, "port").items())
        for c in _typed(s.get("cidrVips"), list, "cidrVips"):
            assert isinstance(c, str) and "/" in c or set(c) == {"cidr", "network"}
    for p in _rows(dump, "policies"):
        _text(p, "name", "namespace", "scope", "action")
        for rule in _typed(p.get("rules"), list, "rules"):
            for clause in _typed(rule, list, "rule"):
                assert all(isinstance(m, dict) for m in _typed(clause, list, "clause"))
    for c in _rows(dump, "certificates"):
        _text(c, "identity", "state")
        for part in ("certChain", "rootCerts"):
            for one in _typed(c.get(part), list, part):
                _text(one, "pem", "serialNumber", "validFrom", "expirationTime")
    for state in _typed(dump.get("workloadState"), dict, "workloadState").values():
        _text(state, "state")
        _text(_typed(state.get("info"), dict, "info"), "name", "namespace", "serviceAccount")
        conns = _typed(state.get("connections"), dict, "connections")
        for side in ("inbound", "outbound"):
            for conn in _typed(conns.get(side), list, side):
                _text(conn, "src", "originalDst", "actualDst", "protocol")


def table(rows, gap=1):
    """A Go tabwriter's output: every cell but a row's last as wide as its column, plus gap."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return "".join("".join(cell.ljust(w + gap) for cell, w in zip(row, widths)) + row[-1] + "\n" for row in rows)


def _bare(vip):
    return vip.split("/", 1)[1] if "/" in vip else ""


def _waypoint(ref, services):
    if not ref:
        return "None"
    dest = ref["destination"]
    return next((s["name"] for s in services if dest in (f"{s['namespace']}/{s['hostname']}", *s["vips"])), "NA")


def workloads(dump):
    rows = [("NAMESPACE", "POD NAME", "ADDRESS", "NODE", "WAYPOINT", "PROTOCOL")]
    for w in sorted(_rows(dump, "workloads"), key=lambda w: (f"{w['namespace']}.{w['name']}", w.get("node", ""))):
        address = ",".join(w["workloadIps"]) or w.get("hostname", "")
        rows.append((w["namespace"], w["name"], address, w.get("node", ""),
                     _waypoint(w.get("waypoint"), _rows(dump, "services")), w["protocol"]))
    return table(rows)


def services(dump):
    uids = {}
    for w in _rows(dump, "workloads"):
        uids.setdefault(w["uid"], []).append(w)
    rows = [("NAMESPACE", "SERVICE NAME", "SERVICE VIP", "WAYPOINT", "ENDPOINTS")]
    for s in sorted(_rows(dump, "services"), key=lambda s: (s["namespace"], s["name"], s["hostname"])):
        known = [uids.get(e["workloadUid"], []) for e in s["endpoints"].values()]
        healthy = sum(len(w) == 1 and w[0]["status"] == "Healthy" for w in known)
        rows.append((s["namespace"], s["name"], ",".join(map(_bare, s["vips"])),
                     _waypoint(s.get("waypoint"), _rows(dump, "services")), f"{healthy}/{len(known)}"))
    return table(rows)


def policies(dump):
    rows = [("NAMESPACE", "POLICY NAME", "ACTION", "SCOPE")]
    rows += [(p["namespace"], p["name"], p["action"], p["scope"])
             for p in sorted(_rows(dump, "policies"), key=lambda p: (p["namespace"], p["name"]))]
    return table(rows)


def _when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def certificates(dump, now=None):
    now = now or datetime.datetime.now(datetime.timezone.utc)
    rows = [("CERTIFICATE NAME", "TYPE", "STATUS", "VALID CERT", "SERIAL NUMBER", "NOT AFTER", "NOT BEFORE")]
    for c in _rows(dump, "certificates"):
        status = "Unavailable" if "Unavailable" in c["state"] else c["state"]
        if not c["certChain"]:
            rows.append((c["identity"], "NA", status, "false", "NA", "NA", "NA"))
        kinds = [("Leaf" if i == 0 else "Intermediate", one) for i, one in enumerate(c["certChain"])]
        for kind, one in kinds + [("Root", one) for one in c["rootCerts"] if c["certChain"]]:
            valid = _when(one["validFrom"]) < now < _when(one["expirationTime"])
            rows.append((c["identity"], kind, status, str(valid).lower(), f"{int(one['serialNumber'], 10):x}",
                         one["expirationTime"], one["validFrom"]))
    return table(rows, gap=5)


def _namer(dump):
    names = {}
    for w in _rows(dump, "workloads"):
        for ip in w["workloadIps"][:1]:
            names.setdefault(ip, f"{w['name']}.{w['namespace']}")
    for s in _rows(dump, "services"):
        for vip in s["vips"][:1]:
            names[_bare(vip)] = s["hostname"]

    def name(addr):
        ip, colon, port = (addr or "").rpartition(":")
        return f"{names[ip.strip('[]')]}:{port}" if colon and ip.strip("[]") in names else addr or ""
    return name


def connections(dump, raw=False):
    name = (lambda addr: addr or "") if raw else _namer(dump)
    rows = [("WORKLOAD", "DIRECTION", "LOCAL", "REMOTE", "REMOTE TARGET", "PROTOCOL")]
    states = [s for s in dump.get("workloadState", {}).values()]
    for s in sorted(states, key=lambda s: (s["info"]["namespace"], s["info"]["name"])):
        who = f"{s['info']['name']}.{s['info']['namespace']}"
        conns = s.get("connections") or {}
        for c in conns.get("inbound") or []:
            rows.append((who, "Inbound", name(c["actualDst"]), name(c["src"]), c["originalDst"] or "", c["protocol"]))
        for c in conns.get("outbound") or []:
            rows.append((who, "Outbound", name(c["src"]), name(c["actualDst"]), name(c["originalDst"]), c["protocol"]))
    return table(rows)
