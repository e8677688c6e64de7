# SPDX-License-Identifier: GPL-2.0-or-later
"""ProxyConfig and the mesh config file (reference control.md 3.3), and exit codes of a bad configuration."""
import json

import pytest

from culvert_e2e.lab import run, wait_for


def in_node(lab, *args):
    return run("ip", "netns", "exec", lab.node, *args, check=False).stdout


def dump(lab, port):
    return json.loads(in_node(lab, "curl", "-s", "--max-time", "5", f"http://127.0.0.1:{port}/config_dump"))


def at(folder):
    """Wraps the daemon so that it runs in that folder."""
    return ("sh", "-c", 'cd "$0" && exec "$@"', folder)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "root/etc/istio/config").mkdir(parents=True)
    return tmp_path / "root"


def test_r01_both_sources(lab, folder):
    """The file, over it PROXY_CONFIG, over that the environment."""
    pod = lab.pod("pod")
    lab.write_mesh()
    (folder / "etc/istio/config/mesh").write_text(
        "trustDomain: td\n"
        "defaultConfig:\n"
        "  discoveryAddress: istiod.mesh:15010\n"
        "  statsPort: 15220\n"
        "  proxyAdminPort: 15099\n"
        "  concurrency: 7\n"
        "  proxyMetadata: {A: file, B: file, C: file, ISTIO_META_DNS_CAPTURE: 'true'}\n")
    lab.start_agent()
    lab.start_daemon(
        ready=False, wrap=at(folder), ISTIO_META_C="environment",
        PROXY_CONFIG=json.dumps({"proxyAdminPort": 15200, "proxyMetadata": {
            "ISTIO_META_B": "variable", "ISTIO_META_DNS_CAPTURE": "false"}}))
    lab.add(pod)
    lab.wait_ready()
    config = dump(lab, 15200)["config"]
    meta = config["proxyMetadata"]
    assert {key: meta[key] for key in "ABC"} == {"A": "file", "B": "variable", "C": "environment"}
    assert ":15220" in json.dumps(config["statsAddr"])
    assert config["numWorkerThreads"] == 7
    # The DNS proxy is off, and so is its task.
    assert ":15053" not in pod.run("ss", "-lnutH").stdout
    assert ":15008" in pod.run("ss", "-lntH").stdout
    wait_for("the statistics", lambda: "istio_build" in in_node(lab, "curl", "-s", "http://127.0.0.1:15220/stats/prometheus"))


def test_r02_the_file_alone(lab, folder):
    (folder / "etc/istio/config/mesh").write_text("defaultConfig: {proxyAdminPort: 15201, proxyMetadata: {}}\n")
    lab.start_agent()
    lab.start_daemon(wrap=at(folder))
    assert dump(lab, 15201)["config"]["adminAddr"]


@pytest.mark.parametrize("text,why", [
    ("statsPort: 1", "missing field `proxyMetadata`"),
    ("{", "PROXY_CONFIG"),
    ("{proxyMetadata: {}, statsPort: 70000}", "statsPort"),
])
def test_r03_bad_proxy_config(lab, text, why):
    proc = lab.start_daemon(ready=False, PROXY_CONFIG=text)
    assert proc.wait(timeout=30) == 1
    assert "error parsing proxy config" in lab.log(proc) and why in lab.log(proc)


def test_r04_bad_mesh_config(lab, folder):
    (folder / "etc/istio/config/mesh").write_text("defaultConfig: {}\n")
    proc = lab.start_daemon(ready=False, wrap=at(folder))
    assert proc.wait(timeout=30) == 1
    assert "missing field `proxyMetadata`" in lab.log(proc)


@pytest.mark.parametrize("env,status,text", [
    ({"CA_ADDRESS": "", "FAKE_CA": "false"}, 101, "ca_address must be set"),
    ({"STRANGE": "\udcff"}, 101, "STRANGE is not valid UTF-8"),
    ({"RUST_LOG": "info,,=x"}, 101, "RUST_LOG"),
    ({"PROXY_MODE": "both"}, 1, "PROXY_MODE"),
    ({"ENABLE_PROXY": "false", "ISTIO_META_DNS_CAPTURE": "false"}, 1, "without any servers"),
    ({"PROXY_CONFIG": "proxyMetadata: {DNS_CAPTURE: 'no'}", "ENABLE_PROXY": "false"}, 1, "without any servers"),
    ({"XDS_ON_DEMAND": "true"}, 1, "on-demand"),
])
def test_r05_exit_codes(lab, env, status, text):
    proc = lab.start_daemon(ready=False, **env)
    assert proc.wait(timeout=30) == status
    assert text in lab.log(proc)
