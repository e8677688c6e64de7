/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps find by the one part of a key that tells most (address, host name,
 * pod name); the rest is compared in the short chain behind it, which is also
 * where silos with equal keys meet.
 */
#include "broker/interest.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

/* The silos of one namespace. */
struct space {
	struct list owners; /* struct interest_owner by in_space; never empty */
	char ns[];
};

static struct map_key address_key(const void *item)
{
	const struct interest_view *view = item;
	return (struct map_key){.p = &view->key->ip, .len = sizeof(view->key->ip)};
}

static struct map_key host_key(const void *item)
{
	return map_key_str(((const struct interest_view *)item)->key->hostname);
}

/* All that a queried name may mean begins with its first label, or is a wildcard (store_change_hits). */
static struct map_key name_key(const void *item)
{
	const char *name = ((const struct interest_view *)item)->key->hostname;
	return (struct map_key){.p = name, .len = strcspn(name, ".")};
}

static struct map_key owner_key(const void *item)
{
	return map_key_str(((const struct interest_owner *)item)->info->name);
}

static struct map_key space_key(const void *item)
{
	return map_key_str(((const struct space *)item)->ns);
}

void interest_init(struct interest *interest)
{
	map_init(&interest->addresses, SIZE_MAX, address_key);
	map_init(&interest->hosts, SIZE_MAX, host_key);
	map_init(&interest->names, SIZE_MAX, name_key);
	map_init(&interest->owners, SIZE_MAX, owner_key);
	map_init(&interest->spaces, SIZE_MAX, space_key);
	list_init(&interest->all);
}

void interest_done(struct interest *interest)
{
	map_done(&interest->addresses);
	map_done(&interest->hosts);
	map_done(&interest->names);
	map_done(&interest->owners);
	map_done(&interest->spaces);
}

static struct map *views_of(struct interest *interest, const struct view_key *key)
{
	if (key->kind == VIEW_NAME)
		return &interest->names;
	return key->kind == VIEW_HOST ? &interest->hosts : &interest->addresses;
}

int interest_view_enter(struct interest *interest, struct interest_view *view, const struct view_key *key)
{
	view->key = key;
	int rc = multi_link(views_of(interest, key), &view->multi);
	if (rc < 0)
		view->key = NULL;
	return rc;
}

void interest_view_leave(struct interest *interest, struct interest_view *view)
{
	if (!view->key)
		return;
	multi_unlink(views_of(interest, view->key), &view->multi);
	view->key = NULL;
}

static struct space *space_get(struct interest *interest, const char *ns)
{
	struct space *space = map_get_str(&interest->spaces, ns);
	size_t len = strlen(ns) + 1;

	if (space)
		return space;
	space = mem_zalloc(1, sizeof(*space) + len);
	if (!space)
		return NULL;
	memcpy(space->ns, ns, len);
	list_init(&space->owners);
	if (map_put(&interest->spaces, space, NULL) < 0) {
		mem_free(space);
		return NULL;
	}
	return space;
}

static void space_settle(struct interest *interest, struct space *space)
{
	if (!list_empty(&space->owners))
		return;
	map_del_str(&interest->spaces, space->ns);
	mem_free(space);
}

int interest_owner_enter(
        struct interest *interest, struct interest_owner *owner, const struct workload_info *info)
{
	struct space *space = space_get(interest, info->ns);

	if (!space)
		return -ENOMEM;
	owner->info = info;
	int rc = multi_link(&interest->owners, &owner->own);
	if (rc < 0) {
		owner->info = NULL;
		space_settle(interest, space);
		return rc;
	}
	list_init(&owner->in_space);
	list_init(&owner->in_all);
	list_add_tail(&space->owners, &owner->in_space);
	list_add_tail(&interest->all, &owner->in_all);
	return 0;
}

void interest_owner_leave(struct interest *interest, struct interest_owner *owner)
{
	if (!owner->info)
		return;
	multi_unlink(&interest->owners, &owner->own);
	list_del(&owner->in_all);
	list_del(&owner->in_space);
	space_settle(interest, map_get_str(&interest->spaces, owner->info->ns));
	owner->info = NULL;
}

/* Those of a chain whose key the change hits. */
static void tell_chain(struct multi *chain, const struct store_change *change,
        const struct interest_events *events, void *ctx)
{
	for (struct multi *m = chain; m; m = m->next) {
		struct interest_view *view = list_entry(m, struct interest_view, multi);
		if (store_change_hits(change, view->key))
			events->view(ctx, view);
	}
}

static void tell_all(const struct map *map, const struct store_change *change,
        const struct interest_events *events, void *ctx)
{
	size_t cursor = 0;
	struct multi *chain;

	while ((chain = map_next(map, &cursor)))
		tell_chain(chain, change, events, ctx);
}

static void tell_own(const struct interest *interest, const struct store_change *change,
        const struct interest_events *events, void *ctx)
{
	for (struct multi *m = multi_get(&interest->owners, change->name, strlen(change->name)); m;
	        m = m->next) {
		struct interest_owner *owner = list_entry(m, struct interest_owner, own);
		if (strcmp(owner->info->ns, change->ns) == 0 &&
		        strcmp(owner->info->service_account, change->service_account) == 0)
			events->own(ctx, owner);
	}
}

static void tell_policy(const struct interest *interest, const struct store_change *change,
        const struct interest_events *events, void *ctx)
{
	/* A policy that workloads list may be listed by any of them. */
	if (change->is_selector || change->ns[0] == 0) {
		list_for_each(it, &interest->all)
		        events->policies(ctx, list_entry(it, struct interest_owner, in_all));
		return;
	}
	const struct space *space = map_get_str(&interest->spaces, change->ns);
	for (struct list *it = space ? space->owners.next : NULL; it && it != &space->owners; it = it->next)
		events->policies(ctx, list_entry(it, struct interest_owner, in_space));
}

void interest_tell(const struct interest *interest, const struct store_change *change,
        const struct interest_events *events, void *ctx)
{
	switch (change->subject) {
	case STORE_ADDRESS:
		tell_chain(multi_get(&interest->addresses, &change->ip, sizeof(change->ip)), change, events,
		        ctx);
		break;
	case STORE_CIDR:
		tell_all(&interest->addresses, change, events, ctx);
		break;
	case STORE_HOST:
		tell_chain(multi_get(&interest->hosts, change->hostname, strlen(change->hostname)), change,
		        events, ctx);
		if (change->hostname[0] == '*')
			tell_all(&interest->names, change, events, ctx);
		else
			tell_chain(
			        multi_get(&interest->names, change->hostname, strcspn(change->hostname, ".")),
			        change, events, ctx);
		break;
	case STORE_OWN:
		tell_own(interest, change, events, ctx);
		break;
	case STORE_POLICY:
		tell_policy(interest, change, events, ctx);
		break;
	}
}
