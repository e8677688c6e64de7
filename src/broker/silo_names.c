/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lookups for silos; see silo_names.h. */
#include "broker/silo_names.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "broker/resolve.h"

struct lookup {
	struct list node;
	struct silo_names *names;
	struct resolve *resolve;
	uint32_t id; /* of the ask */
	char host[]; /* as asked */
};

static int answer(struct silo_names *names, uint32_t id, const char *host, const struct ip *ips, size_t cnt,
        const char *error, struct err *err)
{
	const struct ipc_record rec = {.id = id,
	        .type = IPC_ANSWER_RESOLVE,
	        .answer_resolve = {.host = host, .ips = ips, .ip_cnt = cnt, .error = error}};
	return ring_chan_send(names->chan, &rec, -1, err);
}

static void lookup_free(struct lookup *lookup)
{
	list_del(&lookup->node);
	lookup->names->lookup_cnt--;
	mem_free(lookup);
}

static void on_done(void *ctx, int code, const struct ip *ips, size_t cnt, const char *text)
{
	struct lookup *lookup = ctx;
	struct err err = {0};
	/* A channel that takes no more is closed elsewhere; the silo's own deadline does the rest. */
	(void)answer(lookup->names, lookup->id, lookup->host, ips, code < 0 ? 0 : cnt,
	        code < 0 ? (text[0] ? text : err_str(code)) : "", &err);
	lookup_free(lookup);
}

static int start(struct silo_names *names, uint32_t id, const char *host)
{
	size_t len = strlen(host);
	struct lookup *lookup = mem_zalloc(1, sizeof(*lookup) + len + 1);
	if (!lookup)
		return -ENOMEM;
	const struct resolve_opts opts = {
	        .name = lookup->host, .v4 = true, .v6 = names->has_v6, .deadline_ms = SILO_NAMES_DEADLINE_MS};
	memcpy(lookup->host, host, len);
	lookup->names = names;
	lookup->id = id;
	list_init(&lookup->node);
	list_add_tail(&names->lookups, &lookup->node);
	names->lookup_cnt++;
	int r = resolve_start(names->io, &opts, on_done, lookup, &lookup->resolve);
	if (r < 0)
		lookup_free(lookup);
	return r;
}

int silo_names_ask(struct silo_names *names, uint32_t id, const char *host, struct err *err)
{
	int r = names->lookup_cnt < SILO_NAMES_MAX ? start(names, id, host) : ERR_TOO_MANY;
	return r < 0 ? answer(names, id, host, NULL, 0, err_str(r), err) : 0;
}

void silo_names_init(struct silo_names *names, struct io *io, struct ring_chan *chan, bool has_v6)
{
	*names = (struct silo_names){.io = io, .chan = chan, .has_v6 = has_v6};
	list_init(&names->lookups);
}

void silo_names_done(struct silo_names *names)
{
	while (names->lookup_cnt) {
		struct lookup *lookup = list_entry(names->lookups.next, struct lookup, node);
		resolve_cancel(lookup->resolve);
		lookup_free(lookup);
	}
}
