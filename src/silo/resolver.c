/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and what the broker said of them; see resolver.h. */
#include "silo/resolver.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "silo/broker_link.h"
#include "silo/silo.h"

/* Value of a name's fetch. */
struct resolved {
	unsigned ref_cnt;
	uint64_t until_ms; /* when it is too old */
	int code;          /* 0, or -EHOSTUNREACH */
	size_t cnt;
	struct ip ips[];
};

struct name {
	struct list recent; /* in resolver.recent */
	struct fetch fetch; /* of struct resolved */
	size_t len;
	char text[];
};

static struct map_key name_key(const void *item)
{
	const struct name *name = item;
	return (struct map_key){.p = name->text, .len = name->len};
}

static void resolved_ref(void *value)
{
	struct resolved *resolved = value;
	resolved->ref_cnt++;
}

static void resolved_unref(void *value)
{
	struct resolved *resolved = value;
	if (--resolved->ref_cnt == 0)
		mem_free(resolved);
}

static const struct fetch_kind RESOLVED_KIND = {.ref = resolved_ref, .unref = resolved_unref};

static void name_free(struct name *name)
{
	list_del(&name->recent);
	fetch_done(&name->fetch);
	mem_free(name);
}

/* The name that was used longest ago goes, but none that somebody waits for. */
static bool make_room(struct resolver *resolver)
{
	if (map_cnt(&resolver->names) < RESOLVER_NAMES_MAX)
		return true;
	for (struct list *it = resolver->recent.prev; it != &resolver->recent; it = it->prev) {
		struct name *name = list_entry(it, struct name, recent);
		if (fetch_is_busy(&name->fetch))
			continue;
		map_del(&resolver->names, name->text, name->len);
		name_free(name);
		return true;
	}
	return false;
}

static int name_new(struct resolver *resolver, const char *host, struct name **ret_name)
{
	size_t len = strlen(host);
	if (!make_room(resolver))
		return -ENOSPC;
	struct name *name = mem_zalloc(1, sizeof(*name) + len + 1);
	if (!name)
		return -ENOMEM;
	memcpy(name->text, host, len);
	name->len = len;
	fetch_init(&name->fetch, resolver->silo->io, &RESOLVED_KIND);
	name->fetch.observer = &resolver->silo->context.observer;
	list_init(&name->recent);
	int r = map_put(&resolver->names, name, NULL);
	if (r < 0) {
		name_free(name);
		return r;
	}
	list_add(&resolver->recent, &name->recent);
	*ret_name = name;
	return 0;
}

int resolver_get(struct resolver *resolver, const char *host, struct ip *ret_ips, size_t max, size_t *ret_cnt,
        struct fetch **ret_fetch)
{
	struct name *name = map_get(&resolver->names, host, strlen(host));
	int r = name ? 0 : name_new(resolver, host, &name);
	if (r < 0)
		return r;
	list_del(&name->recent);
	list_add(&resolver->recent, &name->recent);
	const struct resolved *resolved = fetch_peek(&name->fetch);
	if (resolved && io_now_ms(resolver->silo->io) < resolved->until_ms) {
		*ret_cnt = resolved->cnt < max ? resolved->cnt : max;
		memcpy(ret_ips, resolved->ips, *ret_cnt * sizeof(*ret_ips));
		return resolved->code;
	}
	/* One ask serves all who wait. */
	if (!fetch_is_awaited(&name->fetch))
		broker_link_ask_resolve(resolver->silo->broker, name->text);
	fetch_forget(&name->fetch);
	*ret_fetch = &name->fetch;
	return -EAGAIN;
}

void resolver_answer(struct resolver *resolver, const struct ipc_answer_resolve *answer)
{
	struct name *name = map_get(&resolver->names, answer->host, strlen(answer->host));
	bool is_failure = answer->error[0];
	size_t cnt = is_failure ? 0 : answer->ip_cnt;
	if (!name)
		return;
	struct resolved *resolved = mem_zalloc(1, sizeof(*resolved) + cnt * sizeof(resolved->ips[0]));
	if (!resolved) {
		fetch_fail(&name->fetch, -ENOMEM, NULL);
		return;
	}
	resolved->ref_cnt = 1;
	resolved->code = is_failure ? -EHOSTUNREACH : 0;
	resolved->until_ms = io_now_ms(resolver->silo->io) +
	                     (is_failure || cnt == 0 ? RESOLVER_FAILURE_TTL_MS : RESOLVER_TTL_MS);
	resolved->cnt = cnt;
	for (size_t i = 0; i < cnt; i++)
		resolved->ips[i] = answer->ips[i];
	fetch_set(&name->fetch, resolved);
}

void resolver_ask_again(struct resolver *resolver)
{
	list_for_each(it, &resolver->recent)
	{
		struct name *name = list_entry(it, struct name, recent);
		if (fetch_is_awaited(&name->fetch))
			broker_link_ask_resolve(resolver->silo->broker, name->text);
	}
}

void resolver_init(struct resolver *resolver, struct silo *silo)
{
	*resolver = (struct resolver){.silo = silo};
	map_init(&resolver->names, RESOLVER_NAMES_MAX, name_key);
	list_init(&resolver->recent);
}

void resolver_done(struct resolver *resolver)
{
	while (!list_empty(&resolver->recent))
		name_free(list_entry(resolver->recent.next, struct name, recent));
	map_done(&resolver->names);
}
