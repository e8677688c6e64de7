# SPDX-License-Identifier: GPL-2.0-or-later
"""Envoy as istio uses it beside ztunnel: waypoint, east-west gateway, ingress gateway, and a sidecar behind an application
tunnel. Static configurations, one process a pod."""
from __future__ import annotations

import json
from pathlib import Path

from culvert_e2e.lab import wait_for

API = "type.googleapis.com/envoy.extensions"
ADMIN = 15000


def binary():
    """The program inside of the package of the virtual environment; None when that is not there."""
    try:
        import envoy
    except ImportError:
        return None
    path = Path(envoy.__path__[0]) / "_bin" / "envoy"
    return path if path.is_file() else None


def _address(ip, port):
    return {"socket_address": {"address": ip, "port_value": port}}


def _endpoint(name, address, **more):
    return {"name": name, "type": "STATIC", "connect_timeout": "5s",
            "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]},
            **more}


def _files(cert, key, root, **validation):
    return {"alpn_protocols": ["h2"], "tls_params": {"tls_minimum_protocol_version": "TLSv1_3",
                                                     "tls_maximum_protocol_version": "TLSv1_3"},
            "tls_certificates": [{"certificate_chain": {"filename": str(cert)}, "private_key": {"filename": str(key)}}],
            "validation_context": {"trusted_ca": {"filename": str(root)}, **validation}}


def _router():
    return {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{API}.filters.http.router.v3.Router"}}


def _terminate(ip, port, files, cluster):
    """A listener that takes HBONE and gives the bytes of every CONNECT to a cluster."""
    hcm = {"@type": f"{API}.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "hbone",
           "codec_type": "HTTP2", "http2_protocol_options": {"allow_connect": True},
           "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
               {"match": {"connect_matcher": {}},
                "route": {"cluster": cluster, "timeout": "0s",
                          "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}]}}]}]},
           "http_filters": [_router()]}
    tls = {"@type": f"{API}.transport_sockets.tls.v3.DownstreamTlsContext", "require_client_certificate": True,
           "common_tls_context": _files(*files)}
    return {"name": "hbone", "address": _address(ip, port), "filter_chains": [
        {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
         "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": hcm}]}]}


def gateway(ip, files, to, port=15008):
    """East-west gateway: the inner tunnel's bytes go on to `to`, (ip, port), as they are."""
    return {"static_resources": {"listeners": [_terminate(ip, port, files, "remote")],
                                 "clusters": [_endpoint("remote", _address(*to))]}}


def _tunnels_to(to, files, identity):
    """A cluster whose connections are HBONE tunnels to `to`, (ip, port), pooled as Envoy pools."""
    tls = {"@type": f"{API}.transport_sockets.tls.v3.UpstreamTlsContext", "common_tls_context": _files(
        *files, match_typed_subject_alt_names=[{"san_type": "URI", "matcher": {"exact": identity}}])}
    h2 = {"@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
          "explicit_http_config": {"http2_protocol_options": {"allow_connect": True}}}
    return _endpoint("pod", _address(*to),
                     transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": tls},
                     typed_extension_protocol_options={"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": h2})


def _into_tunnel(authority):
    """A filter chain that sends each connection as a CONNECT for the authority."""
    proxy = {"@type": f"{API}.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "out", "cluster": "pod",
             "tunneling_config": {"hostname": authority}}
    return [{"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]}]


def waypoint(ip, files, to, authority, identity, port=15008):
    """Waypoint: ends our tunnel and opens its own to `to`, (ip, port), which must be `identity`, for `authority`."""
    inner = {"name": "inner", "internal_listener": {}, "filter_chains": _into_tunnel(authority)}
    clusters = [_endpoint("inner", {"envoy_internal_address": {"server_listener_name": "inner"}}),
                _tunnels_to(to, files, identity)]
    return {"bootstrap_extensions": [{"name": "envoy.bootstrap.internal_listener", "typed_config": {
                "@type": f"{API}.bootstrap.internal_listener.v3.InternalListener"}}],
            "static_resources": {"listeners": [_terminate(ip, port, files, "inner"), inner], "clusters": clusters}}


def ingress(ip, files, to, authority, identity, port=8080):
    """Ingress gateway: TCP from outside, each connection a stream of pooled tunnels to `to`, (ip, port)."""
    listener = {"name": "in", "address": _address(ip, port), "filter_chains": _into_tunnel(authority)}
    return {"static_resources": {"listeners": [listener], "clusters": [_tunnels_to(to, files, identity)]}}


def behind_proxy_header(port, to, log):
    """Application tunnel: takes PROXY headers on loopback, writes who the client was to `log`, passes on to `to`."""
    words = {"@type": f"{API}.access_loggers.file.v3.FileAccessLog", "path": str(log), "log_format": {"text_format_source": {
        "inline_string": "%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DYNAMIC_METADATA(client:identity)%\n"}}}
    proxy = {"@type": f"{API}.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "app", "cluster": "app",
             "access_log": [{"name": "envoy.access_loggers.file", "typed_config": words}]}
    header = {"@type": f"{API}.filters.listener.proxy_protocol.v3.ProxyProtocol",
              "rules": [{"tlv_type": 0xD0, "on_tlv_present": {"metadata_namespace": "client", "key": "identity"}}]}
    listeners = [{"name": ip, "address": _address(ip, port),
                  "listener_filters": [{"name": "envoy.filters.listener.proxy_protocol", "typed_config": header}],
                  "filter_chains": [{"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]}]}
                 for ip in ("127.0.0.1", "::1")]
    return {"static_resources": {"listeners": listeners, "clusters": [_endpoint("app", _address(*to))]}}


def start(pod, config, tmp):
    """Starts Envoy in the pod and waits until it says that it is ready; the pod ends it."""
    path = Path(tmp) / f"{pod.name}-envoy.json"
    path.write_text(json.dumps({"admin": {"address": _address("127.0.0.1", ADMIN)}, **config}))
    log = open(Path(tmp) / f"{pod.name}-envoy.log", "w")
    proc = pod.popen(binary(), "-c", path, "--concurrency", 1, "--disable-hot-restart", "--log-level", "warning",
                     "--use-dynamic-base-id", stdout=log)
    log.close()

    def ready():
        if proc.poll() is not None:
            raise AssertionError(f"envoy has ended:\n{Path(log.name).read_text()[-4000:]}")
        return pod.curl(f"http://127.0.0.1:{ADMIN}/ready", check=False, timeout=5).stdout.startswith("LIVE")

    wait_for("envoy", ready, timeout=60, interval=0.3)
    return proc
