/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workloads and services: from their wire form to records, with upstream's
 * defaults, narrowing and reasons for refusal (reference control.md 4.5, 5.1;
 * dataplane.md 3.1). Knows no stream.
 */
#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "pb/xds_table.h"

void *xds_room(struct xds_reader *r, size_t cnt, size_t size)
{
	void *p = arena_zalloc(r->arena, cnt, size);
	if (!p)
		err_set(r->err, -ENOMEM, "no memory left for it");
	return p;
}

int xds_read_enum(struct xds_reader *r, uint64_t v, int32_t max)
{
	int32_t value = wire_enum(v);
	if (value < 0 || value > max)
		return err_set(r->err, ERR_UNSUPPORTED, "decode error: unknown enumeration value %d", value);
	return 0;
}

static const char *or_else(const char *s, const char *fallback)
{
	return s[0] ? s : fallback;
}

static int read_ip(struct xds_reader *r, const struct codec_raw *raw, struct ip *ret_ip)
{
	if (ip_from_bytes(raw->p, raw->len, ret_ip) < 0)
		return err_set(r->err, ERR_UNSUPPORTED, "failed to parse address, had %zu bytes", raw->len);
	return 0;
}

static int read_gateway(struct xds_reader *r, const struct wire_gateway *wire, struct gateway_ref *ret_ref)
{
	struct gateway_ref ref = {
	        .addr.network = "", .ns = "", .host = "", .hbone_port = (uint16_t)wire->port};
	if (wire->hostname) {
		ref.is_host = true;
		ref.ns = wire->hostname->ns;
		ref.host = wire->hostname->hostname;
	} else if (wire->address) {
		int rc = read_ip(r, &wire->address->address, &ref.addr.ip);
		if (rc < 0)
			return rc;
		ref.addr.network = wire->address->network;
	} else {
		return err_set(r->err, ERR_UNSUPPORTED, "nonempty gateway address is missing address");
	}
	*ret_ref = ref;
	return 0;
}

static int read_opt_gateway(
        struct xds_reader *r, const struct wire_gateway *wire, bool *ret_has, struct gateway_ref *ret_ref)
{
	*ret_ref = (struct gateway_ref){.addr.network = "", .ns = "", .host = ""};
	*ret_has = wire != NULL;
	return wire ? read_gateway(r, wire, ret_ref) : 0;
}

/* Ports are cut to 16 bits; of two with the same service port the last one counts. */
static int read_ports(struct xds_reader *r, const struct wire_ports *wire, const struct port_map **ret_ports,
        size_t *ret_cnt)
{
	struct port_map *ports = xds_room(r, wire->cnt, sizeof(*ports));
	size_t cnt = 0;
	if (!ports)
		return -ENOMEM;
	for (size_t i = 0; i < wire->cnt; i++) {
		uint16_t service_port = (uint16_t)wire->ports[i].service_port;
		size_t at = 0;
		while (at < cnt && ports[at].service_port != service_port)
			at++;
		cnt += at == cnt;
		ports[at] = (struct port_map){service_port, (uint16_t)wire->ports[i].target_port};
	}
	*ret_ports = ports;
	*ret_cnt = cnt;
	return 0;
}

/* --- workloads ------------------------------------------------------------ */

static int read_membership(
        struct xds_reader *r, const struct wire_membership *wire, struct workload_service *ret_service)
{
	const char *slash = strchr(wire->key, '/');
	if (!slash)
		return err_set(r->err, ERR_UNSUPPORTED, "failed to parse namespaced hostname: %s", wire->key);
	ret_service->ns = arena_strndup(r->arena, wire->key, (size_t)(slash - wire->key));
	ret_service->hostname = slash + 1;
	if (!ret_service->ns)
		return err_set(r->err, -ENOMEM, "no memory left for it");
	return read_ports(r, &wire->value, &ret_service->ports, &ret_service->port_cnt);
}

static int read_memberships(struct xds_reader *r, const struct wire_workload *wire, struct workload *w)
{
	struct workload_service *services = xds_room(r, wire->service_cnt, sizeof(*services));
	int rc = services ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->service_cnt; i++)
		rc = read_membership(r, &wire->services[i], &services[i]);
	w->services = services;
	w->service_cnt = wire->service_cnt;
	return rc;
}

static int read_ips(struct xds_reader *r, const struct wire_workload *wire, struct workload *w)
{
	struct ip *ips = xds_room(r, wire->address_cnt, sizeof(*ips));
	int rc = ips ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->address_cnt; i++)
		rc = read_ip(r, &wire->addresses[i], &ips[i]);
	w->ips = ips;
	w->ip_cnt = wire->address_cnt;
	return rc;
}

static int read_protocol(struct xds_reader *r, uint64_t v, enum workload_protocol *ret_protocol)
{
	static const int32_t LEGACY_MTLS = 2;
	if (wire_enum(v) == LEGACY_MTLS)
		return err_set(r->err, ERR_UNSUPPORTED,
		        "unknown enum: unsupported tunnel protocol: legacy istio mtls");
	*ret_protocol = (enum workload_protocol)v;
	return xds_read_enum(r, v, WORKLOAD_HBONE);
}

/* An unknown type is a deployment. */
static const char *workload_type(uint64_t v)
{
	static const char *const NAMES[] = {"deployment", "cronjob", "pod", "job"};
	int32_t type = wire_enum(v);
	return type >= 0 && type < 4 ? NAMES[type] : NAMES[0];
}

static int read_tunnel(struct xds_reader *r, const struct wire_tunnel *wire, struct workload *w)
{
	if (!wire)
		return 0;
	w->has_app_tunnel = true;
	w->app_tunnel_protocol = (enum app_tunnel_protocol)wire->protocol;
	w->app_tunnel_port = (uint16_t)wire->port;
	return xds_read_enum(r, wire->protocol, APP_TUNNEL_PROXY);
}

/* What needs no judgement. */
static struct workload plain_workload(const struct wire_workload *wire)
{
	return (struct workload){
	        .uid = wire->uid,
	        .name = wire->name,
	        .ns = wire->ns,
	        .trust_domain = or_else(wire->trust_domain, "cluster.local"),
	        .service_account = or_else(wire->service_account, "default"),
	        .network = wire->network,
	        .workload_name = wire->workload_name,
	        .workload_type = workload_type(wire->workload_type),
	        .canonical_name = wire->canonical_name,
	        .canonical_revision = wire->canonical_revision,
	        .hostname = wire->hostname,
	        .node = wire->node,
	        .cluster_id = or_else(wire->cluster_id, "Kubernetes"),
	        .locality = {wire->locality.region, wire->locality.zone, wire->locality.subzone},
	        .network_mode = (enum workload_network_mode)wire->network_mode,
	        .status = (enum workload_status)wire->status,
	        .native_tunnel = wire->native_tunnel,
	        .capacity = wire->capacity ? (uint32_t)wire->capacity->value : 1,
	        .policies = wire->policies,
	        .policy_cnt = wire->policy_cnt,
	};
}

int xds_read_workload(
        struct xds_reader *r, const struct wire_workload *wire, const struct workload **ret_workload)
{
	struct workload *w = xds_room(r, 1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = plain_workload(wire);
	int rc = read_ips(r, wire, w);
	if (rc == 0)
		rc = read_protocol(r, wire->tunnel_protocol, &w->protocol);
	if (rc == 0)
		rc = xds_read_enum(r, wire->network_mode, NETWORK_MODE_HOST);
	if (rc == 0)
		rc = xds_read_enum(r, wire->status, WORKLOAD_UNHEALTHY);
	if (rc == 0)
		rc = read_opt_gateway(r, wire->waypoint, &w->has_waypoint, &w->waypoint);
	if (rc == 0)
		rc = read_opt_gateway(r, wire->network_gateway, &w->has_network_gateway, &w->network_gateway);
	if (rc == 0)
		rc = read_tunnel(r, wire->application_tunnel, w);
	if (rc == 0)
		rc = read_memberships(r, wire, w);
	if (rc == 0)
		*ret_workload = w;
	return rc;
}

/* --- services ------------------------------------------------------------- */

/* A full prefix is an ordinary address, a shorter one a range; lengths are cut to 8 bits first. */
static int read_vip(struct xds_reader *r, const struct wire_net_addr *wire, struct service *s,
        struct net_addr *vips, struct net_cidr *cidrs)
{
	struct ip ip;
	int rc = read_ip(r, &wire->address, &ip);
	if (rc < 0)
		return rc;
	size_t full = ip_len(&ip) * 8;
	uint8_t len = wire->length.cnt ? (uint8_t)wire->length.v[wire->length.cnt - 1] : (uint8_t)full;
	if (len > full)
		return err_set(r->err, ERR_UNSUPPORTED, "invalid cidr: invalid IP prefix length");
	if (len == full)
		vips[s->vip_cnt++] = (struct net_addr){wire->network, ip};
	else
		cidrs[s->cidr_cnt++] = (struct net_cidr){wire->network, {.ip = ip, .len = len}};
	return 0;
}

static int read_vips(struct xds_reader *r, const struct wire_service *wire, struct service *s)
{
	struct net_addr *vips = xds_room(r, wire->address_cnt, sizeof(*vips));
	struct net_cidr *cidrs = xds_room(r, wire->address_cnt, sizeof(*cidrs));
	int rc = vips && cidrs ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->address_cnt; i++)
		rc = read_vip(r, &wire->addresses[i], s, vips, cidrs);
	s->vips = vips;
	s->cidrs = cidrs;
	return rc;
}

static int read_weighted(struct xds_reader *r, const struct wire_service *wire, struct service *s)
{
	static const struct wire_gateway NOWHERE = {0};
	struct weighted_waypoint *weighted = xds_room(r, wire->weighted_cnt, sizeof(*weighted));
	int rc = weighted ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->weighted_cnt; i++) {
		const struct wire_weighted *w = &wire->weighted[i];
		weighted[i].weight = (uint32_t)w->weight;
		rc = read_gateway(r, w->destination ? w->destination : &NOWHERE, &weighted[i].ref);
	}
	s->weighted = weighted;
	s->weighted_cnt = wire->weighted_cnt;
	return rc;
}

static int read_scopes(struct xds_reader *r, const struct wire_lb *wire, struct service *s)
{
	enum lb_scope *scopes = xds_room(r, wire->scope_cnt, sizeof(*scopes));
	int rc = scopes ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->scope_cnt; i++) {
		scopes[i] = (enum lb_scope)wire->scopes[i];
		rc = xds_read_enum(r, wire->scopes[i], LB_SCOPE_NETWORK);
		if (rc == 0 && scopes[i] < LB_SCOPE_REGION)
			rc = err_set(r->err, ERR_UNSUPPORTED, "unknown enum: invalid target");
	}
	s->scopes = scopes;
	s->scope_cnt = wire->scope_cnt;
	return rc;
}

static int read_lb(struct xds_reader *r, const struct wire_lb *wire, struct service *s)
{
	if (!wire)
		return 0;
	s->has_lb = true;
	s->lb_mode = (enum lb_mode)wire->mode;
	s->lb_health = (enum lb_health)wire->health_policy;
	int rc = read_scopes(r, wire, s);
	if (rc == 0)
		rc = xds_read_enum(r, wire->mode, LB_MODE_PASSTHROUGH);
	if (rc == 0)
		rc = xds_read_enum(r, wire->health_policy, LB_ALLOW_ALL);
	return rc;
}

int xds_read_service(
        struct xds_reader *r, const struct wire_service *wire, const struct service **ret_service)
{
	struct service *s = xds_room(r, 1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct service){
	        .name = wire->name,
	        .ns = wire->ns,
	        .hostname = wire->hostname,
	        .sans = wire->sans,
	        .san_cnt = wire->san_cnt,
	        .families = (enum ip_families)wire->ip_families,
	        /* An unknown visibility is public, as upstream has it. */
	        .visibility = wire_enum(wire->visibility) == VISIBILITY_NAMESPACE ? VISIBILITY_NAMESPACE
	                                                                          : VISIBILITY_PUBLIC,
	        .canonical = wire->canonical,
	};
	int rc = read_vips(r, wire, s);
	if (rc == 0)
		rc = read_ports(r, &wire->ports, &s->ports, &s->port_cnt);
	if (rc == 0)
		rc = read_opt_gateway(r, wire->waypoint, &s->has_waypoint, &s->waypoint);
	if (rc == 0)
		rc = read_lb(r, wire->lb, s);
	if (rc == 0)
		rc = xds_read_enum(r, wire->ip_families, IP_FAMILIES_DUAL);
	if (rc == 0)
		rc = read_weighted(r, wire, s);
	if (rc == 0)
		*ret_service = s;
	return rc;
}
