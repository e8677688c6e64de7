/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's resolver for silos; see resolv_send.h. */
#include "broker/resolv_send.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"

/* Bytes of resolv.conf: a few hundred usually. */
#define RESOLV_MAX (64u << 10)
/* Bytes of the hosts file that are sent on (proto/ipc.options); what is behind is left out. */
#define HOSTS_SENT_MAX 16384
/* Bytes of it that are read. */
#define HOSTS_MAX (1u << 20)

void resolv_search(struct resolv_search *search, struct dns_names *names)
{
	struct buf text;
	struct resolv_conf conf;
	buf_init(&text, RESOLV_MAX);
	int r = file_read("/etc/resolv.conf", &text);
	resolv_conf_parse((const char *)text.data, r == 0 ? text.len : 0, &conf);
	buf_done(&text);
	for (size_t i = 0; i < conf.search_cnt; i++) {
		char *to = search->text[i];
		for (const char *from = conf.search[i]; *from; from++)
			*to++ = *from >= 'A' && *from <= 'Z' ? (char)(*from + ('a' - 'A')) : *from;
		*to = '\0';
		search->domains[i] = search->text[i];
	}
	names->search = search->domains;
	names->search_cnt = conf.search_cnt;
}

/* The whole lines among the first bytes; text with a zero byte is none. */
static const char *cut_hosts(struct buf *hosts)
{
	if (hosts->len > HOSTS_SENT_MAX) {
		hosts->len = HOSTS_SENT_MAX;
		while (hosts->len > 0 && hosts->data[hosts->len - 1] != '\n')
			hosts->len--;
	}
	const char *text = buf_cstr(hosts);
	return text && strlen(text) == hosts->len ? text : "";
}

int resolv_send(struct ring_chan *chan, uint32_t id, struct err *err)
{
	struct buf text, hosts;
	struct resolv_conf conf;
	buf_init(&text, RESOLV_MAX);
	buf_init(&hosts, HOSTS_MAX);
	int r = file_read("/etc/resolv.conf", &text);
	resolv_conf_parse((const char *)text.data, r == 0 ? text.len : 0, &conf);
	if (file_read("/etc/hosts", &hosts) < 0)
		buf_clear(&hosts);
	const struct ipc_record rec = {.id = id,
	        .type = IPC_ANSWER_RESOLVER,
	        .answer_resolver = {.servers = conf.servers,
	                .server_cnt = conf.server_cnt,
	                .timeout_ms = conf.timeout_ms,
	                .attempts = conf.attempts,
	                .edns = conf.edns,
	                .hosts = cut_hosts(&hosts)}};
	r = ring_chan_send(chan, &rec, -1, err);
	buf_done(&text);
	buf_done(&hosts);
	return r;
}
