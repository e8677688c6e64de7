/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See meshes.h. */
#include "meshes.h"

#include <stdio.h>

#include "base/check.h"

static const struct gateway_ref NONE = {.addr.network = "", .ns = "", .host = ""};

struct ip meshes_vip(unsigned i)
{
	return ip_v4(240, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
}

void meshes_host(unsigned i, char dst[MESHES_TEXT_MAX])
{
	snprintf(dst, MESHES_TEXT_MAX, "service-%u.team.svc.cluster.local", i);
}

void meshes_put_services(struct store *store, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		char host[MESHES_TEXT_MAX];
		meshes_host(i, host);
		const struct net_addr vip = {"", meshes_vip(i)};
		const struct port_map port = {80, 8080};
		const struct service service = {.name = "service",
		        .ns = "team",
		        .hostname = host,
		        .vips = &vip,
		        .vip_cnt = 1,
		        .ports = &port,
		        .port_cnt = 1,
		        .waypoint = NONE};
		int r = store_insert_service(store, &service, NULL, 0, STORE_XDS);
		ASSERT(r == 0);
	}
}

void meshes_workload(unsigned i, unsigned services, uint16_t port, struct meshes_workload *ret_workload)
{
	struct meshes_workload *w = ret_workload;
	snprintf(w->uid, sizeof(w->uid), "Kubernetes//Pod/team/application-%u", i);
	snprintf(w->name, sizeof(w->name), "application-%u", i);
	meshes_host(i % services, w->host);
	w->ip = ip_v4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
	w->port = (struct port_map){80, port};
	w->member = (struct workload_service){"team", w->host, &w->port, 1};
	w->record = (struct workload){
	        .uid = w->uid,
	        .name = w->name,
	        .ns = "team",
	        .trust_domain = "cluster.local",
	        .service_account = "application",
	        .network = "",
	        .workload_name = "application",
	        .workload_type = "deployment",
	        .canonical_name = "application",
	        .canonical_revision = "v1",
	        .hostname = "",
	        .node = "node",
	        .cluster_id = "Kubernetes",
	        .locality = {"", "", ""},
	        .protocol = WORKLOAD_HBONE,
	        .capacity = 1,
	        .ips = &w->ip,
	        .ip_cnt = 1,
	        .waypoint = NONE,
	        .network_gateway = NONE,
	        .services = &w->member,
	        .service_cnt = 1,
	};
}
