/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a query: our own record, the name in the mesh, else the hosts
 * file and the daemon's servers, the answer. Each stage may wait, with a
 * deadline that ends in SERVFAIL.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "silo/broker_link.h"
#include "silo/dns_int.h"
#include "silo/metrics.h"

/* TTL of localhost and of the hosts file, seconds (control.md 10.4). */
#define HOSTS_TTL 86400
/* Addresses that one name has in the hosts file. */
#define HOSTS_IPS_MAX 16
/* Addresses of one answer of the mesh: a service's own, or those of the endpoints in a view. */
#define DNS_IPS_MAX 512

static void send_answer(struct dns *dns, struct dns_udp *udp, const struct addr *client,
        struct dns_conn *conn, const struct buf *out)
{
	struct sockaddr_storage sa;
	(void)dns;
	if (conn) {
		dns_conn_answer(conn, out);
		return;
	}
	/* A client whose buffer is full asks again, as with any lost packet. */
	if (out->len > 0)
		(void)sendto(udp->watch.fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT,
		        (struct sockaddr *)&sa, addr_to_sockaddr(client, &sa));
}

void dns_request_free(struct dns_request *request)
{
	struct dns *dns = request->dns;
	dns_forward_cancel(request->forward);
	fetch_wait_cancel(&request->wait);
	io_timer_stop(dns->silo->io, &request->timer);
	own_workload_unref(request->own);
	list_del(&request->node);
	dns->request_cnt--;
	mem_free(request);
}

/* Sends the answer, NULL: none is possible, and ends the request. */
static void finish(struct dns_request *request, const struct buf *out)
{
	static const struct buf nothing = {0};
	struct dns *dns = request->dns;
	struct dns_udp *udp = request->udp;
	struct dns_conn *conn = request->conn;
	struct addr client = request->client;
	/* First: a connection that is closed by the answer ends its requests. */
	dns_request_free(request);
	send_answer(dns, udp, &client, conn, out ? out : &nothing);
}

/* The line of the access log (control.md 10.6). */
static void log_result(const struct dns_request *request, const char *result, size_t endpoint_cnt)
{
	struct silo *silo = request->dns->silo;
	const struct workload *own = request->own ? request->own->workload : NULL;
	struct log_line line;
	char name[DNS_TEXT_MAX + 1];
	char type[16];
	if (!log_begin(&line, &silo->log, LOG_DEBUG, "dns", NULL))
		return;
	size_t i = 0;
	for (const char *c = dns_type_name(request->query.question.type); *c && i + 1 < sizeof(type);
	        c++, i++)
		type[i] = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
	type[i] = '\0';
	dns_question_name(&request->query.question, name);
	if (strcmp(name, ".") != 0)
		strncat(name, ".", 2);
	if (own) {
		log_str(&line, "src.workload", own->name);
		log_str(&line, "src.namespace", own->ns);
	}
	log_str(&line, "query", type);
	log_str(&line, "domain", name);
	log_str(&line, "result", result);
	log_u64(&line, "endpoints", endpoint_cnt);
	log_end(&line);
}

static size_t limit_of(const struct dns_request *request)
{
	return dns_answer_limit(&request->query, request->conn != NULL);
}

static void fail(struct dns_request *request, enum dns_rcode rcode)
{
	struct buf out;
	buf_init(&out, DNS_MESSAGE_MAX);
	int r = dns_error_write(&request->query, rcode, &out);
	finish(request, r < 0 ? NULL : &out);
	buf_done(&out);
}

static void answer_local(struct dns_request *request, const struct dns_local *local)
{
	struct buf out;
	buf_init(&out, DNS_MESSAGE_MAX);
	int r = dns_local_write(&request->query, local, limit_of(request), &out);
	if (r < 0)
		fail(request, DNS_SERVFAIL);
	else
		finish(request, &out);
	buf_done(&out);
}

/* --- forwarding ---------------------------------------------------------- */

/* What the hosts file answers counts as well: upstream's resolver is one thing. */
static void count_forwarded(const struct dns_request *request, bool is_failure)
{
	metrics_dns_forwarded(request->dns->silo, dns_type_name(request->query.question.type),
	        request->conn != NULL, clock_us() - request->forwarded_us, is_failure);
	log_result(request, is_failure ? "forwarding failed (no records found)" : "forwarded", 0);
}

static void relay(struct dns_request *request, const uint8_t *data, size_t len, uint32_t age)
{
	bool is_failure = (data[3] & 0xf) != DNS_NOERROR || (data[6] == 0 && data[7] == 0);
	struct buf out;
	count_forwarded(request, is_failure);
	buf_init(&out, DNS_MESSAGE_MAX);
	int r = dns_relay_write(&request->query, data, len, age, limit_of(request), &out);
	if (r < 0)
		fail(request, DNS_SERVFAIL);
	else
		finish(request, &out);
	buf_done(&out);
}

static void forward_failed(struct dns_request *request, int code)
{
	char text[128];
	snprintf(text, sizeof(text), "forwarding failed (%s)", err_str(code));
	metrics_dns_forwarded(request->dns->silo, dns_type_name(request->query.question.type),
	        request->conn != NULL, clock_us() - request->forwarded_us, true);
	log_result(request, text, 0);
	fail(request, DNS_SERVFAIL);
}

static void on_forwarded(void *ctx, int code, const uint8_t *data, size_t len)
{
	struct dns_request *request = ctx;
	request->forward = NULL;
	if (code < 0)
		forward_failed(request, code);
	else
		relay(request, data, len, 0);
}

static void on_no_resolver(struct timer *timer, uint64_t now)
{
	(void)now;
	forward_failed(list_entry(timer, struct dns_request, timer), -ETIMEDOUT);
}

/* Asks for the resolver's configuration unless the answer is still young, or under way. */
static void refresh_resolver(struct dns *dns)
{
	uint64_t now = io_now_ms(dns->silo->io);
	bool is_young = dns->resolver_asked_ms != 0 && now - dns->resolver_asked_ms < DNS_RESOLVER_AGE_MS;
	if (is_young && (dns->has_resolver || dns->asks_resolver))
		return;
	if (broker_link_ask_resolver(dns->silo->broker)) {
		dns->asks_resolver = true;
		dns->resolver_asked_ms = now ? now : 1;
	}
}

/* Whether `name` is one of the words of [at, end). */
static bool line_has(const char *at, const char *end, const char *name)
{
	size_t len = strlen(name);
	while (at < end) {
		at += strspn(at, " \t\r");
		size_t word = strcspn(at, " \t\r\n#");
		if (at >= end || *at == '#' || word == 0)
			return false;
		if (word == len && strncasecmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return false;
}

/* Addresses that the hosts file has for a name; *ret_is_known: it has the name, maybe in the other family. */
static size_t find_host(
        const char *hosts, const char *name, uint8_t family, struct ip ips[HOSTS_IPS_MAX], bool *ret_is_known)
{
	size_t cnt = 0;
	*ret_is_known = false;
	for (const char *at = hosts; at && *at;) {
		const char *end = at + strcspn(at, "\n");
		at += strspn(at, " \t");
		size_t word = strcspn(at, " \t\r\n#");
		struct ip ip;
		if (word > 0 && ip_parse(at, word, &ip) == 0 && line_has(at + word, end, name)) {
			*ret_is_known = true;
			if (ip.family == family && cnt < HOSTS_IPS_MAX)
				ips[cnt++] = ip;
		}
		at = *end ? end + 1 : end;
	}
	return cnt;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);
	return len >= suffix_len && strcmp(name + len - suffix_len, suffix) == 0 &&
	       (len == suffix_len || name[len - suffix_len - 1] == '.');
}

/* Names that no server is asked for (control.md 10.4, RFC 6761). */
static bool answer_special(struct dns_request *request)
{
	uint16_t type = request->query.question.type;
	bool is_address = type == DNS_A || type == DNS_AAAA;
	struct ip ips[HOSTS_IPS_MAX];
	struct dns_local local = {.ips = ips, .ttl = HOSTS_TTL, .is_foreign = true};
	bool is_known;
	if (!request->host[0])
		return false;
	if (has_suffix(request->host, "invalid")) {
		count_forwarded(request, true);
		fail(request, DNS_NXDOMAIN);
		return true;
	}
	bool is_localhost = has_suffix(request->host, "localhost");
	if (is_address && !is_localhost) {
		local.ip_cnt =
		        find_host(request->dns->hosts, request->host, type == DNS_A ? 4 : 6, ips, &is_known);
		if (local.ip_cnt == 0)
			return false;
	} else if (is_localhost && is_address) {
		ips[0] = type == DNS_A ? ip_v4(127, 0, 0, 1) : (struct ip){.family = 6, .b = {[15] = 1}};
		local.ip_cnt = 1;
	} else if (!is_localhost) {
		return false;
	}
	count_forwarded(request, local.ip_cnt == 0);
	answer_local(request, &local);
	return true;
}

static void forward(struct dns_request *request)
{
	struct dns *dns = request->dns;
	struct dns_cached cached;
	request->needs_resolver = false;
	if (answer_special(request))
		return;
	if (dns_cache_get(&dns->forwarder.cache, &request->query.question, io_now_ms(dns->silo->io),
	            &cached) == 0) {
		relay(request, cached.data, cached.len, cached.age);
		return;
	}
	int r = dns_forward_start(
	        &dns->forwarder, &request->query.question, on_forwarded, request, &request->forward);
	if (r < 0)
		forward_failed(request, r);
}

static void want_forward(struct dns_request *request)
{
	struct dns *dns = request->dns;
	request->forwarded_us = clock_us();
	refresh_resolver(dns);
	if (dns->has_resolver) {
		forward(request);
		return;
	}
	request->needs_resolver = true;
	io_timer_start(dns->silo->io, &request->timer, DNS_WAIT_MS);
}

void dns_ask_again(struct dns *dns)
{
	if (!dns)
		return;
	dns->asks_resolver = false;
	dns->resolver_asked_ms = 0;
	list_for_each(it, &dns->requests)
	{
		if (!list_entry(it, struct dns_request, node)->needs_resolver)
			continue;
		refresh_resolver(dns);
		return;
	}
}

void dns_on_resolver(struct silo *silo, const struct ipc_answer_resolver *answer)
{
	struct dns *dns = silo->dns;
	if (!dns)
		return;
	struct dns_forwarder *forwarder = &dns->forwarder;
	forwarder->server_cnt = answer->server_cnt < DNS_SERVERS_MAX ? answer->server_cnt : DNS_SERVERS_MAX;
	for (size_t i = 0; i < forwarder->server_cnt; i++)
		forwarder->servers[i] = answer->servers[i];
	if (forwarder->first >= forwarder->server_cnt)
		forwarder->first = 0;
	forwarder->timeout_ms = answer->timeout_ms < 1 ? 1 : answer->timeout_ms;
	if (forwarder->timeout_ms > DNS_TIMEOUT_MAX_MS)
		forwarder->timeout_ms = DNS_TIMEOUT_MAX_MS;
	forwarder->attempts = answer->attempts < 1 ? 1 : answer->attempts;
	if (forwarder->attempts > DNS_ATTEMPTS_MAX)
		forwarder->attempts = DNS_ATTEMPTS_MAX;
	forwarder->has_edns = answer->edns;
	mem_free(dns->hosts);
	dns->hosts = answer->hosts[0] ? mem_strdup(answer->hosts) : NULL;
	dns->has_resolver = true;
	dns->asks_resolver = false;
	list_for_each_safe(it, &dns->requests)
	{
		struct dns_request *request = list_entry(it, struct dns_request, node);
		if (!request->needs_resolver)
			continue;
		io_timer_stop(silo->io, &request->timer);
		forward(request);
	}
}

/* --- the mesh ------------------------------------------------------------ */

static bool is_service(void *ctx, const char *host)
{
	const struct service *service = ctx;
	return strcmp(service->hostname, host) == 0;
}

/* All that follows a dot of a name, the shortest first; returns their number, at most cap. */
static size_t suffixes(const char *name, const char **ret_suffixes, size_t cap)
{
	size_t cnt = 0;
	for (const char *at = name + strlen(name); at > name && cnt < cap; at--)
		if (at[-1] == '.')
			ret_suffixes[cnt++] = at;
	return cnt;
}

static void answer_view(struct dns_request *request, const struct view *view)
{
	struct silo *silo = request->dns->silo;
	struct dns_names names = {.ns = silo->info.ns, .domain = silo->settings.cluster_domain};
	const char *search[DNS_NAMES_TEXT / 2];
	struct dns_match match = {.stripped = ""};
	struct ip ips[DNS_IPS_MAX];
	bool is_refused;
	struct dns_local local = {.ips = ips, .ttl = DNS_LOCAL_TTL};
	if (!view->service) {
		want_forward(request);
		return;
	}
	local.ip_cnt = dns_answer_ips(view, request->own->workload, request->query.question.type,
	        silo->settings.ipv6_enabled, ips, DNS_IPS_MAX, &is_refused);
	/* The broker made the same walk; what it found says how the name was meant. The machine's search list
	 * need not be known for that: it was one of the name's ends that was taken off. */
	if (silo->settings.dedicated) {
		names.search = search;
		names.search_cnt = suffixes(request->host, search, DNS_NAMES_TEXT / 2);
	}
	dns_names_walk(&names, request->host, is_service, (void *)(uintptr_t)view->service, &match);
	if (local.ip_cnt > 0 && match.stripped[0] && !match.is_wildcard)
		local.cname = match.stripped;
	log_result(request,
	        is_refused         ? "service does not support this record type"
	        : local.ip_cnt > 0 ? "success"
	                           : "no records",
	        local.cname ? 1 : 0);
	answer_local(request, &local);
}

static void on_view(struct fetch_wait *wait, int code, void *value)
{
	struct dns_request *request = list_entry(wait, struct dns_request, wait);
	if (code < 0)
		fail(request, DNS_SERVFAIL);
	else
		answer_view(request, value);
}

static void look_up(struct dns_request *request)
{
	struct silo *silo = request->dns->silo;
	uint16_t type = request->query.question.type;
	if ((type != DNS_A && type != DNS_AAAA) || !request->host[0]) {
		want_forward(request);
		return;
	}
	struct view_key key = view_key_name(request->host);
	struct view *view;
	struct fetch *fetch;
	int r = cache_view(&silo->cache, &key, &view, &fetch);
	if (r == -EAGAIN) {
		fetch_wait_start(fetch, &request->wait, DNS_WAIT_MS, on_view);
	} else if (r < 0) {
		fail(request, DNS_SERVFAIL);
	} else {
		answer_view(request, view);
		view_unref(view);
	}
}

static void on_workload(struct fetch_wait *wait, int code, void *value)
{
	struct dns_request *request = list_entry(wait, struct dns_request, wait);
	/* Counted either way: with the source's names, or unknown (control.md 10.6). */
	metrics_dns_request(
	        request->dns->silo, dns_type_name(request->query.question.type), request->conn != NULL);
	if (code < 0) {
		fail(request, DNS_SERVFAIL);
		return;
	}
	request->own = own_workload_ref(value);
	look_up(request);
}

static void start(struct dns_request *request)
{
	struct silo *silo = request->dns->silo;
	const struct own_workload *own = context_workload(silo);
	if (!own) {
		fetch_wait_start(&silo->context.workload, &request->wait, DNS_WAIT_MS, on_workload);
		return;
	}
	metrics_dns_request(silo, dns_type_name(request->query.question.type), request->conn != NULL);
	request->own = own_workload_ref(own);
	look_up(request);
}

void dns_request_take(struct dns *dns, const uint8_t *data, size_t len, struct dns_udp *udp,
        const struct addr *client, struct dns_conn *conn)
{
	struct dns_query query;
	struct buf reply;
	buf_init(&reply, DNS_MESSAGE_MAX);
	enum dns_verdict verdict = dns_query_read(data, len, &query, &reply);
	struct dns_request *request = verdict == DNS_SERVE && dns->request_cnt < DNS_REQUESTS_MAX
	                                      ? mem_zalloc(1, sizeof(*request))
	                                      : NULL;
	if (!request) {
		if (verdict == DNS_REFUSE)
			send_answer(dns, udp, client, conn, &reply);
		else if (conn)
			dns_conn_close(conn);
		buf_done(&reply);
		return;
	}
	request->dns = dns;
	request->query = query;
	request->udp = udp;
	request->conn = conn;
	if (client)
		request->client = *client;
	timer_init(&request->timer, on_no_resolver);
	if (dns_question_host(&query.question, request->host) < 0)
		request->host[0] = '\0';
	list_init(&request->wait.node);
	list_init(&request->node);
	list_add_tail(&dns->requests, &request->node);
	dns->request_cnt++;
	start(request);
}
