/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every environment variable that culvert reads:
 * P(field, variable, TYPE, default, min, max, readers, sentence).
 * base/param.h expands it and explains TYPE and readers. Names, types and
 * defaults follow reference control.md 3.2; CULVERT_* is ours. A variable
 * that no silo reads (a token, say) never reaches a silo.
 */
/* clang-format off */
/* What runs. */
P(proxy_mode,           "PROXY_MODE",                       STRING,   "shared", 0, 0, PARAM_W | PARAM_B | PARAM_S, "shared (pods of a node agent) or dedicated (one workload in this namespace)")
P(proxy_workload_info,  "PROXY_WORKLOAD_INFO",              STRING,   NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "dedicated mode: namespace/name/service-account of the workload")
P(enable_proxy,         "ENABLE_PROXY",                     BOOL,     true, 0, 0, PARAM_W | PARAM_B | PARAM_S, "run the HBONE proxy")
P(dns_capture,          "ISTIO_META_DNS_CAPTURE",           STRING,   "true", 0, 0, PARAM_W | PARAM_B | PARAM_S, "anything but true (in any case) turns the DNS proxy off")
P(dns_proxy_addr,       "ISTIO_META_DNS_PROXY_ADDR",        STRING,   "localhost:15053", 0, 0, PARAM_W | PARAM_B | PARAM_S, "where the DNS proxy listens: localhost:PORT or IP:PORT")
P(worker_threads,       "ZTUNNEL_WORKER_THREADS",           STRING,   NULL, 0, 0, PARAM_B, "number or percentage; only checked and shown, a silo has one thread")
P(cpu_limit,            "ZTUNNEL_CPU_LIMIT",                U64,      0, 0, UINT32_MAX, PARAM_B, "cores of the container as the downward API gives them")
P(resource_cpu_limit,   "ZTUNNEL_RESOURCE_CPU_LIMIT",       STRING,   NULL, 0, 0, PARAM_B, "explicit CPU limit as a Kubernetes quantity")
P(resource_cpu_request, "ZTUNNEL_RESOURCE_CPU_REQUEST",     STRING,   NULL, 0, 0, PARAM_B, "explicit CPU request as a Kubernetes quantity")
/* Where it runs. */
P(network,              "NETWORK",                          STRING,   "", 0, 0, PARAM_B | PARAM_S, "network id of this node")
P(node_name,            "NODE_NAME",                        STRING,   NULL, 0, 0, PARAM_B | PARAM_S, "this node; unset: every workload counts as local")
P(cluster_id,           "CLUSTER_ID",                       STRING,   "Kubernetes", 0, 0, PARAM_B | PARAM_S, "cluster id; ISTIO_META_CLUSTER_ID wins")
P(meta_cluster_id,      "ISTIO_META_CLUSTER_ID",            STRING,   NULL, 0, 0, PARAM_B | PARAM_S, "cluster id")
P(cluster_domain,       "CLUSTER_DOMAIN",                   STRING,   "cluster.local", 0, 0, PARAM_B | PARAM_S, "DNS domain of the cluster")
P(pod_name,             "POD_NAME",                         STRING,   NULL, 0, 0, PARAM_W | PARAM_B, "own pod; with the next two the identity of the daemon itself")
P(pod_namespace,        "POD_NAMESPACE",                    STRING,   NULL, 0, 0, PARAM_W | PARAM_B, "own namespace")
P(service_account,      "SERVICE_ACCOUNT",                  STRING,   NULL, 0, 0, PARAM_W | PARAM_B, "own service account")
P(trust_domain,         "TRUST_DOMAIN",                     STRING,   "cluster.local", 0, 0, PARAM_B, "trust domain shown for the daemon itself")
P(instance_ip,          "INSTANCE_IP",                      STRING,   "1.1.1.1", 0, 0, PARAM_B, "own address in the xDS node id")
P(istio_version,        "ISTIO_META_ISTIO_VERSION",         STRING,   "unknown", 0, 0, PARAM_B | PARAM_S, "release of the mesh, for version and istio_build")
P(kubernetes_host,      "KUBERNETES_SERVICE_HOST",          STRING,   NULL, 0, 0, PARAM_B, "presence picks the default name of istiod")
/* Control plane. */
P(xds_address,          "XDS_ADDRESS",                      URI,      NULL, 0, 0, PARAM_B, "control plane; set but empty: none")
P(ca_address,           "CA_ADDRESS",                       URI,      NULL, 0, 0, PARAM_B, "certificate authority")
P(fake_ca,              "FAKE_CA",                          BOOL,     false, 0, 0, PARAM_B, "use the embedded certificate authority")
P(xds_root_ca,          "XDS_ROOT_CA",                      STRING,   "./var/run/secrets/istio/root-cert.pem", 0, 0, PARAM_B, "roots for the control plane: file, SYSTEM or PEM text")
P(ca_root_ca,           "CA_ROOT_CA",                       STRING,   "./var/run/secrets/istio/root-cert.pem", 0, 0, PARAM_B, "roots for the certificate authority: file, SYSTEM or PEM text")
P(alt_xds_hostname,     "ALT_XDS_HOSTNAME",                 STRING,   NULL, 0, 0, PARAM_B, "further name that the control plane's certificate may have")
P(alt_ca_hostname,      "ALT_CA_HOSTNAME",                  STRING,   NULL, 0, 0, PARAM_B, "further name that the authority's certificate may have")
P(auth_token,           "AUTH_TOKEN",                       STRING,   NULL, 0, 0, PARAM_B, "token file or the token itself")
P(secret_ttl_ms,        "SECRET_TTL",                       DURATION, 86400000, 0, UINT64_MAX, PARAM_B, "requested validity of certificates")
P(xds_on_demand,        "XDS_ON_DEMAND",                    BOOL,     false, 0, 0, PARAM_B | PARAM_W | PARAM_S, "subscribe to addresses when they are needed")
P(local_xds_path,       "LOCAL_XDS_PATH",                   PATH,     NULL, 0, 0, PARAM_B, "file with local mesh state")
P(local_xds,            "LOCAL_XDS",                        STRING,   NULL, 0, 0, PARAM_B, "local mesh state itself")
P(proxy_config,         "PROXY_CONFIG",                     STRING,   NULL, 0, 0, PARAM_B, "ProxyConfig as YAML or JSON")
P(prefered_namespace,   "PREFERED_SERVICE_NAMESPACE",       STRING,   NULL, 0, 0, PARAM_B | PARAM_S, "namespace that wins a tie of names in DNS (the odd spelling is the real name)")
P(ssl_cert_file,        "SSL_CERT_FILE",                    PATH,     NULL, 0, 0, PARAM_B, "file of the system's roots")
P(ssl_cert_dir,         "SSL_CERT_DIR",                     PATH,     NULL, 0, 0, PARAM_B, "folder of the system's roots")
/* Ends. */
P(termination_deadline_ms, "CONNECTION_TERMINATION_DEADLINE", DURATION, 0, 0, UINT64_MAX, PARAM_W | PARAM_B | PARAM_S, "time that connections get to end; wins over the next one")
P(grace_period_s,       "TERMINATION_GRACE_PERIOD_SECONDS", U64,      0, 0, UINT64_MAX, PARAM_W | PARAM_B | PARAM_S, "grace period of the pod, seconds")
/* Sockets. */
P(ipv6_enabled,         "IPV6_ENABLED",                     BOOL,     true, 0, 0, PARAM_W | PARAM_B | PARAM_S, "bind dual stack and use IPv6 addresses")
P(enable_orig_src,      "ENABLE_ORIG_SRC",                  BOOL,     false, 0, 0, PARAM_W | PARAM_B | PARAM_S, "keep the client's source address: true must, false never, unset where possible")
P(packet_mark,          "PACKET_MARK",                      U32,      1337, 0, UINT32_MAX, PARAM_W | PARAM_B | PARAM_S, "SO_MARK of the proxy's sockets; 0: none; unset in dedicated mode: none")
P(inpod_uds,            "INPOD_UDS",                        PATH,     "/var/run/ztunnel/ztunnel.sock", 0, 0, PARAM_W | PARAM_B, "socket of the node agent")
P(inpod_port_reuse,     "INPOD_PORT_REUSE",                 BOOL,     true, 0, 0, PARAM_W | PARAM_B | PARAM_S, "SO_REUSEPORT on listeners in pods")
P(keepalive_enabled,    "KEEPALIVE_ENABLED",                BOOL,     true, 0, 0, PARAM_B | PARAM_S, "TCP keepalive")
P(keepalive_time_ms,    "KEEPALIVE_TIME",                   DURATION, 180000, 0, UINT64_MAX, PARAM_B | PARAM_S, "idle time before the first probe")
P(keepalive_interval_ms, "KEEPALIVE_INTERVAL",              DURATION, 180000, 0, UINT64_MAX, PARAM_B | PARAM_S, "time between probes")
P(keepalive_retries,    "KEEPALIVE_RETRIES",                U32,      9, 0, UINT32_MAX, PARAM_B | PARAM_S, "probes without answer before giving up")
P(user_timeout_enabled, "USER_TIMEOUT_ENABLED",             BOOL,     false, 0, 0, PARAM_B | PARAM_S, "TCP_USER_TIMEOUT of time + retries * interval")
/* HBONE. */
P(pool_max_streams,     "POOL_MAX_STREAMS_PER_CONNECTION",  U16,      100, 1, UINT16_MAX, PARAM_B | PARAM_S, "streams on one pooled tunnel")
P(pool_idle_ms,         "POOL_UNUSED_RELEASE_TIMEOUT",      DURATION, 300000, 0, UINT64_MAX, PARAM_B | PARAM_S, "time after which an unused tunnel is closed")
P(h2_stream_window,     "HTTP2_STREAM_WINDOW_SIZE",         U32,      4194304, 0, INT32_MAX, PARAM_B | PARAM_S, "largest HTTP/2 stream window (RFC 9113 6.9.1)")
P(h2_connection_window, "HTTP2_CONNECTION_WINDOW_SIZE",     U32,      16777216, 0, INT32_MAX, PARAM_B | PARAM_S, "largest HTTP/2 connection window (RFC 9113 6.9.1)")
P(h2_frame_size,        "HTTP2_FRAME_SIZE",                 U32,      1048576, 16384, 16777215, PARAM_B | PARAM_S, "largest HTTP/2 frame (RFC 9113 6.5.2)")
P(localhost_app_tunnel, "LOCALHOST_APP_TUNNEL",             BOOL,     true, 0, 0, PARAM_B | PARAM_S, "dial application tunnels over loopback")
P(response_baggage,     "ENABLE_RESPONSE_BAGGAGE",          BOOL,     true, 0, 0, PARAM_B | PARAM_S, "baggage on answers")
P(socks5,               "UNSTABLE_ENABLE_SOCKS5",           BOOL,     false, 0, 0, PARAM_W | PARAM_B | PARAM_S, "SOCKS5 on 127.0.0.1:15080")
P(crl_path,             "CRL_PATH",                         PATH,     NULL, 0, 0, PARAM_B | PARAM_S, "revocation list; empty: none")
P(tls12_enabled,        "TLS12_ENABLED",                    FLAG,     "true", 0, 0, PARAM_B | PARAM_S, "also TLS 1.2")
P(pqc_only,             "COMPLIANCE_POLICY",                FLAG,     "pqc", 0, 0, PARAM_B | PARAM_S, "pqc: only hybrid key exchange")
/* Logs. */
P(rust_log,             "RUST_LOG",                         STRING,   NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "log filter")
P(log_json,             "LOG_FORMAT",                       FLAG,     "json", 0, 0, PARAM_W | PARAM_B | PARAM_S, "json: one JSON object a line")
P(authz_info_logging,   "AUTHZ_POLICY_INFO_LOGGING",        FLAG,     "true", 0, 0, PARAM_B | PARAM_S, "policy decisions at info instead of debug")
/* Ours. */
P(reset_fidelity,       "CULVERT_RESET_FIDELITY",           BOOL,     true, 0, 0, PARAM_S, "pass a TCP reset on as a reset; false: as an end of data, as upstream does")
P(run_dir,              "CULVERT_RUN_DIR",                  PATH,     NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "folder of the instances; unset: /var/run/ztunnel/culvert, else /tmp/culvert")
P(instance,             "CULVERT_INSTANCE",                 STRING,   NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "name of this instance's folder; set by the first process")
P(libexec_dir,          "CULVERT_LIBEXEC_DIR",              PATH,     NULL, 0, 0, PARAM_W, "folder of the other programs; unset: that of culvertd")
P(on_term,              "CULVERT_ON_TERM",                  STRING,   "drain", 0, 0, PARAM_W, "drain: end the silos on SIGTERM; leave: keep them for a successor")
P(seccomp,              "CULVERT_SECCOMP",                  STRING,   "kill", 0, 0, PARAM_B | PARAM_S, "system call filter: kill; for debugging log (allow, and name the call in the audit log) or off")
P(broker_uid,           "CULVERT_BROKER_UID",               U32,      1337, 0, UINT32_MAX - 1, PARAM_W, "uid of the broker where CAP_SETUID, CAP_KILL and CAP_DAC_OVERRIDE are granted; 0: that of the daemon")
/* From ProxyConfig and the mesh config file (control.md 3.3), made by the first process. */
P(discovery_address,    "CULVERT_DISCOVERY_ADDRESS",        URI,      NULL, 0, 0, PARAM_B, "discoveryAddress: control plane unless XDS_ADDRESS is set")
P(admin_port,           "CULVERT_ADMIN_PORT",               U16,      15000, 0, UINT16_MAX, PARAM_B, "proxyAdminPort")
P(stats_port,           "CULVERT_STATS_PORT",               U16,      15020, 0, UINT16_MAX, PARAM_B, "statsPort")
P(concurrency,          "CULVERT_CONCURRENCY",              U16,      0, 0, UINT16_MAX, PARAM_B, "concurrency: only checked and shown")
P(config_dns_capture,   "CULVERT_META_DNS_CAPTURE",         STRING,   NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "proxyMetadata DNS_CAPTURE unless ISTIO_META_DNS_CAPTURE is set")
P(config_dns_proxy_addr, "CULVERT_META_DNS_PROXY_ADDR",     STRING,   NULL, 0, 0, PARAM_W | PARAM_B | PARAM_S, "proxyMetadata DNS_PROXY_ADDR likewise")
P(io_baseline_text,     "CULVERT_IO_BASELINE",              STRING,   NULL, 0, 0, PARAM_B | PARAM_S, "use only what that kernel release has, e.g. 6.1")
P(endpoint_retry,       "CULVERT_ENDPOINT_RETRY",           BOOL,     true, 0, 0, PARAM_B | PARAM_S, "try another endpoint when one fails before a byte moved")
P(tls_handshake_ms,     "CULVERT_TLS_HANDSHAKE_TIMEOUT",    DURATION, 10000, 100, 600000, PARAM_B | PARAM_S, "time for a TLS handshake of a tunnel")
P(connect_answer_ms,    "CULVERT_CONNECT_ANSWER_TIMEOUT",   DURATION, 20000, 100, 600000, PARAM_B | PARAM_S, "time for the answer to CONNECT")
/* clang-format on */
