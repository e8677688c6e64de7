/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of a large mesh in the store: fills it, as a control plane would,
 * with workloads (first argument, 100,000) of services (second, 5,000), and
 * prints what the heap grew by, and the peak on the way. Run by hand.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mesh/store.h"

static const struct gateway_ref NONE = {.addr.network = "", .ns = "", .host = ""};

static void put_workload(struct store *store, unsigned i, unsigned services)
{
	char uid[128], name[64], ns[32], app[32], host[96], node[32];
	unsigned svc = i % services;
	const struct ip ip = ip_v4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
	const struct port_map ports[] = {{80, 8080}, {9090, 9090}};

	snprintf(ns, sizeof(ns), "team-%03u", svc % 500);
	snprintf(app, sizeof(app), "backend-app-%05u", svc);
	snprintf(name, sizeof(name), "%s-7d4f9c6b8d-%05x", app, i);
	snprintf(uid, sizeof(uid), "Kubernetes//Pod/%s/%s", ns, name);
	snprintf(host, sizeof(host), "%s.%s.svc.cluster.local", app, ns);
	snprintf(node, sizeof(node), "worker-node-%04u", i % 1000);
	const struct workload_service member = {ns, host, ports, 2};
	const struct workload w = {
	        .uid = uid,
	        .name = name,
	        .ns = ns,
	        .trust_domain = "cluster.local",
	        .service_account = app,
	        .network = "",
	        .workload_name = app,
	        .workload_type = "deployment",
	        .canonical_name = app,
	        .canonical_revision = "latest",
	        .hostname = "",
	        .node = node,
	        .cluster_id = "Kubernetes",
	        .locality = {"eu-west-1", "eu-west-1a", ""},
	        .protocol = WORKLOAD_HBONE,
	        .capacity = 1,
	        .ips = &ip,
	        .ip_cnt = 1,
	        .waypoint = NONE,
	        .network_gateway = NONE,
	        .services = &member,
	        .service_cnt = 1,
	};
	if (store_insert_workload(store, &w, STORE_XDS) < 0)
		abort();
}

static void put_service(struct store *store, unsigned i)
{
	char ns[32], app[32], host[96];
	const struct net_addr vip = {"", ip_v4(10, 96 + (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i)};
	const struct port_map ports[] = {{80, 8080}, {9090, 9090}};

	snprintf(ns, sizeof(ns), "team-%03u", i % 500);
	snprintf(app, sizeof(app), "backend-app-%05u", i);
	snprintf(host, sizeof(host), "%s.%s.svc.cluster.local", app, ns);
	const struct service s = {
	        .name = app,
	        .ns = ns,
	        .hostname = host,
	        .vips = &vip,
	        .vip_cnt = 1,
	        .ports = ports,
	        .port_cnt = 2,
	        .waypoint = NONE,
	        .canonical = true,
	};
	if (store_insert_service(store, &s, NULL, 0, STORE_XDS) < 0)
		abort();
}

/* A line of /proc/self/status in KB. */
static unsigned long status_kb(const char *key)
{
	char line[256];
	unsigned long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoul(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

static void report(const char *when, const struct store *store)
{
	const struct mallinfo2 heap = mallinfo2();
	const struct store_counts counts = store_counts(store);

	printf("%-12s %6zu workloads %5zu services: RSS %6lu KB, peak %6lu KB, heap in use %6zu KB, free in heap %zu KB\n",
	        when, counts.workloads, counts.services, status_kb("VmRSS:"), status_kb("VmHWM:"),
	        (heap.uordblks + heap.hblkhd) >> 10, heap.fordblks >> 10);
}

int main(int argc, char **argv)
{
	unsigned workloads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	unsigned services = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5000;
	struct store *store = store_new("worker-node-0001");

	if (!store || services == 0)
		return 1;
	report("empty", store);
	for (unsigned i = 0; i < services; i++)
		put_service(store, i);
	for (unsigned i = 0; i < workloads; i++)
		put_workload(store, i, services);
	report("loaded", store);
	mem_trim();
	report("trimmed", store);
	/* Sent again, as after a reconnect: nothing may grow. */
	for (unsigned i = 0; i < workloads; i++)
		put_workload(store, i, services);
	report("sent again", store);
	store_free(store);
	return 0;
}
