/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every metric of 15020 and its labels, in the order in which they are shown.
 *
 * METRIC_SET(set): metrics with the same labels form a set; a row of it is one label set and a number for each
 * column.
 * METRIC_LABEL(set, label, role): a label, in order of emission. Roles: POD = the broker puts it in front (a silo
 * cannot say who it is); BOUNDED = few values, by what we do; OPEN = whatever the mesh has, so that there may be
 * too many (they then read "overflow"); TAIL = OPEN, and absent together with the other TAIL ones.
 * METRIC(id, set, column, name, type, unit, origin, help): histograms take METRIC_BUCKETS + 2 columns from
 * `column` on. Numbers of unit "seconds" are kept in microseconds. Origin: SILO = a silo may say it.
 *
 * Names, labels, order and help without "culvert" are upstream's (reference control.md 4.10, 10.6, 12;
 * dataplane.md 15): what carries "(unstable)" there does here. Its tokio_* describe an executor that we don't
 * have. An includer defines what it wants; all are undefined at the end.
 */
/* clang-format off */
#ifndef METRIC_SET
#define METRIC_SET(set)
#endif
#ifndef METRIC_LABEL
#define METRIC_LABEL(set, label, role)
#endif
#ifndef METRIC
#define METRIC(id, set, column, name, type, unit, origin, help)
#endif

METRIC_SET(NODE)
METRIC_SET(BUILD)
METRIC_SET(XDS_REASON)
METRIC_SET(XDS_URL)
METRIC_SET(TRAFFIC)
METRIC_SET(SOCKETS)
METRIC_SET(ON_DEMAND)
METRIC_SET(DNS)
METRIC_SET(POD)
METRIC_SET(HANDSHAKE)
METRIC_SET(WORKLOAD)

METRIC_LABEL(BUILD,      "component",                      BOUNDED)
METRIC_LABEL(BUILD,      "tag",                            BOUNDED)

METRIC_LABEL(XDS_REASON, "reason",                         BOUNDED)

METRIC_LABEL(XDS_URL,    "url",                            OPEN)

METRIC_LABEL(TRAFFIC,    "reporter",                       BOUNDED)
METRIC_LABEL(TRAFFIC,    "source_workload",                OPEN)
METRIC_LABEL(TRAFFIC,    "source_canonical_service",       OPEN)
METRIC_LABEL(TRAFFIC,    "source_canonical_revision",      OPEN)
METRIC_LABEL(TRAFFIC,    "source_workload_namespace",      OPEN)
METRIC_LABEL(TRAFFIC,    "source_principal",               OPEN)
METRIC_LABEL(TRAFFIC,    "source_app",                     OPEN)
METRIC_LABEL(TRAFFIC,    "source_version",                 OPEN)
METRIC_LABEL(TRAFFIC,    "source_cluster",                 OPEN)
METRIC_LABEL(TRAFFIC,    "destination_service",            OPEN)
METRIC_LABEL(TRAFFIC,    "destination_service_namespace",  OPEN)
METRIC_LABEL(TRAFFIC,    "destination_service_name",       OPEN)
METRIC_LABEL(TRAFFIC,    "destination_workload",           OPEN)
METRIC_LABEL(TRAFFIC,    "destination_canonical_service",  OPEN)
METRIC_LABEL(TRAFFIC,    "destination_canonical_revision", OPEN)
METRIC_LABEL(TRAFFIC,    "destination_workload_namespace", OPEN)
METRIC_LABEL(TRAFFIC,    "destination_principal",          OPEN)
METRIC_LABEL(TRAFFIC,    "destination_app",                OPEN)
METRIC_LABEL(TRAFFIC,    "destination_version",            OPEN)
METRIC_LABEL(TRAFFIC,    "destination_cluster",            OPEN)
METRIC_LABEL(TRAFFIC,    "request_protocol",               BOUNDED)
METRIC_LABEL(TRAFFIC,    "response_flags",                 BOUNDED)
METRIC_LABEL(TRAFFIC,    "connection_security_policy",     BOUNDED)
METRIC_LABEL(TRAFFIC,    "source_region",                  TAIL)
METRIC_LABEL(TRAFFIC,    "source_zone",                    TAIL)
METRIC_LABEL(TRAFFIC,    "destination_region",             TAIL)
METRIC_LABEL(TRAFFIC,    "destination_zone",               TAIL)

METRIC_LABEL(SOCKETS,    "reporter",                       BOUNDED)

METRIC_LABEL(ON_DEMAND,  "source_workload",                OPEN)
METRIC_LABEL(ON_DEMAND,  "source_canonical_service",       OPEN)
METRIC_LABEL(ON_DEMAND,  "source_canonical_revision",      OPEN)
METRIC_LABEL(ON_DEMAND,  "source_workload_namespace",      OPEN)
METRIC_LABEL(ON_DEMAND,  "source_principal",               OPEN)
METRIC_LABEL(ON_DEMAND,  "source_app",                     OPEN)
METRIC_LABEL(ON_DEMAND,  "source_version",                 OPEN)
METRIC_LABEL(ON_DEMAND,  "source_cluster",                 OPEN)
METRIC_LABEL(ON_DEMAND,  "hostname",                       OPEN)

METRIC_LABEL(DNS,        "request_query_type",             OPEN)
METRIC_LABEL(DNS,        "request_protocol",               BOUNDED)
METRIC_LABEL(DNS,        "source_canonical_service",       OPEN)
METRIC_LABEL(DNS,        "source_canonical_revision",      OPEN)

METRIC_LABEL(POD,        "pod_namespace",                  POD)
METRIC_LABEL(POD,        "pod_name",                       POD)

METRIC_LABEL(HANDSHAKE,  "pod_namespace",                  POD)
METRIC_LABEL(HANDSHAKE,  "pod_name",                       POD)
METRIC_LABEL(HANDSHAKE,  "side",                           BOUNDED)
METRIC_LABEL(HANDSHAKE,  "version",                        BOUNDED)
METRIC_LABEL(HANDSHAKE,  "group",                          BOUNDED)

METRIC_LABEL(WORKLOAD,   "pod_namespace",                  POD)
METRIC_LABEL(WORKLOAD,   "pod_name",                       POD)

/* The process that answers, the broker. */
METRIC(OPEN_FDS,       NODE,       0, "process_open_fds",                       GAUGE,     "",        BROKER, "Number of open file descriptors")
METRIC(MAX_FDS,        NODE,       1, "process_max_fds",                        GAUGE,     "",        BROKER, "Maximum number of file descriptors")
/* Upstream's order: build, xDS, traffic, DNS. */
METRIC(BUILD,          BUILD,      0, "istio_build",                            GAUGE,     "",        BROKER, "Istio component build info.")
METRIC(XDS_ENDS,       XDS_REASON, 0, "istio_xds_connection_terminations",      COUNTER,   "",        BROKER, "The total number of completed connections to xds server (unstable).")
METRIC(XDS_MESSAGES,   XDS_URL,    0, "istio_xds_message",                      COUNTER,   "",        BROKER, "Total number of messages received (unstable).")
METRIC(XDS_BYTES,      XDS_URL,    1, "istio_xds_message_bytes",                COUNTER,   "bytes",   BROKER, "Total number of bytes received (unstable).")
METRIC(OPENED,         TRAFFIC,    0, "istio_tcp_connections_opened",           COUNTER,   "",        SILO,   "The total number of TCP connections opened.")
METRIC(CLOSED,         TRAFFIC,    1, "istio_tcp_connections_closed",           COUNTER,   "",        SILO,   "The total number of TCP connections closed.")
METRIC(RECEIVED,       TRAFFIC,    2, "istio_tcp_received_bytes",               COUNTER,   "",        SILO,   "The size of total bytes received during request in case of a TCP connection.")
METRIC(SENT,           TRAFFIC,    3, "istio_tcp_sent_bytes",                   COUNTER,   "",        SILO,   "The size of total bytes sent during response in case of a TCP connection.")
METRIC(FAILED,         TRAFFIC,    4, "istio_tcp_connections_failed",           COUNTER,   "",        SILO,   "The total number of TCP connections that failed to establish (unstable).")
METRIC(SOCKETS,        SOCKETS,    0, "istio_tcp_sockets_open",                 GAUGE,     "",        SILO,   "The current number of open TCP sockets (unstable).")
METRIC(ON_DEMAND,      ON_DEMAND,  0, "istio_on_demand_dns",                    COUNTER,   "",        SILO,   "The total number of requests that used on-demand DNS (unstable).")
METRIC(CRL_REJECTED,   SOCKETS,    1, "istio_crl_policy_rejections",            COUNTER,   "",        SILO,   "The total number of connections rejected because of a revoked certificate (unstable).")
METRIC(CRL_UNTRACKED,  SOCKETS,    2, "istio_crl_untracked_connections",        COUNTER,   "",        SILO,   "The total number of connections that no later revocation can end (unstable).")
METRIC(DNS_REQUESTS,   DNS,        0, "istio_dns_requests",                     COUNTER,   "",        SILO,   "Total number of DNS requests (unstable).")
METRIC(DNS_FORWARDED,  DNS,        1, "istio_dns_upstream_requests",            COUNTER,   "",        SILO,   "Total number of DNS requests forwarded to upstream (unstable).")
METRIC(DNS_FAILURES,   DNS,        2, "istio_dns_upstream_failures",            COUNTER,   "",        SILO,   "Total number of DNS requests that failed to forward upstream (unstable).")
METRIC(DNS_DURATION,   DNS,        3, "istio_dns_upstream_request_duration_seconds", HISTOGRAM, "seconds", SILO, "Total time in seconds Istio takes to get DNS response from upstream (unstable).")
/* Shared mode only. */
METRIC(ACTIVE,         NODE,       2, "workload_manager_active_proxy_count",    GAUGE,     "",        BROKER, "The total number current workloads with active proxies (unstable).")
METRIC(PENDING,        NODE,       3, "workload_manager_pending_proxy_count",   GAUGE,     "",        BROKER, "The total number current workloads with pending proxies (unstable).")
METRIC(STARTED,        NODE,       4, "workload_manager_proxies_started",       COUNTER,   "",        BROKER, "The total number of proxies that were started (unstable).")
METRIC(STOPPED,        NODE,       5, "workload_manager_proxies_stopped",       COUNTER,   "",        BROKER, "The total number of proxies that were stopped (unstable).")
/* Ours. */
METRIC(SILO_CPU,       POD,       10, "culvert_silo_cpu_seconds",               COUNTER,   "seconds", BROKER, "CPU time that a workload's silo has used.")
METRIC(SILO_RSS,       POD,       11, "culvert_silo_resident_memory_bytes",     GAUGE,     "bytes",   BROKER, "Resident memory of a workload's silo; pages that silos share count in each.")
METRIC(SILO_FDS,       POD,       12, "culvert_silo_open_fds",                  GAUGE,     "",        BROKER, "Descriptors that a workload's silo has open; absent where the kernel does not tell (before Linux 6.2).")
METRIC(SILO_RESTARTS,  POD,       13, "culvert_silo_restarts",                  COUNTER,   "",        BROKER, "Crashes of a workload's silo.")
METRIC(SILO_CONNS,     POD,        0, "culvert_silo_connections",               GAUGE,     "",        SILO,   "Connections that a workload's silo carries, tunnels included.")
METRIC(SILO_OVERFLOW,  POD,        1, "culvert_silo_overflowed_label_sets",     COUNTER,   "",        SILO,   "Times that something was counted under the label value overflow, because the silo's table of label sets was full.")
METRIC(FETCH_WAIT,     POD,        2, "culvert_silo_fetch_wait_seconds",        HISTOGRAM, "seconds", SILO,   "Time that connections waited for the broker: records, views, policies, certificates.")
METRIC(HANDSHAKES,     HANDSHAKE,  0, "culvert_silo_tls_handshakes",            COUNTER,   "",        SILO,   "TLS handshakes completed, by the group of the key exchange.")
METRIC(SILO_OPENED,    WORKLOAD,   0, "culvert_silo_connections_opened",        COUNTER,   "",        SILO,   "Connections from and to a workload that its silo has opened.")
METRIC(SILO_RECEIVED,  WORKLOAD,   1, "culvert_silo_received_bytes",            COUNTER,   "bytes",   SILO,   "Bytes that a workload has received through its silo, whoever opened the connection.")
METRIC(SILO_SENT,      WORKLOAD,   2, "culvert_silo_sent_bytes",                COUNTER,   "bytes",   SILO,   "Bytes that a workload has sent through its silo.")
METRIC(PENDING_PODS,   NODE,       6, "culvert_pending_workloads",              GAUGE,     "",        BROKER, "Workloads whose proxy waits for another try.")
METRIC(SCRAPE_MISSING, NODE,       7, "culvert_scrape_missing",                 GAUGE,     "",        BROKER, "Silos that did not answer this scrape in time; their series are absent.")
METRIC(SCRAPE_DROPPED, NODE,       8, "culvert_scrape_dropped_rows",            COUNTER,   "",        BROKER, "Label sets left out of scrapes because the tables of the node were full.")

#undef METRIC_SET
#undef METRIC_LABEL
#undef METRIC
/* clang-format on */
