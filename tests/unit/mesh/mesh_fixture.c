/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See the header. Knows the broker's file loader, because YAML is how people write meshes. */
#include "mesh_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/local_file.h"

static _Noreturn void die(const char *what, const char *detail)
{
	fprintf(stderr, "fixture: %s: %s\n", what, detail);
	abort();
}

struct ip fixture_ip(const char *text)
{
	struct ip ip;
	if (ip_parse(text, strlen(text), &ip) < 0)
		die("not an address", text);
	return ip;
}

struct addr fixture_addr(const char *text)
{
	struct addr addr;
	if (addr_parse(text, strlen(text), &addr) < 0)
		die("not an address with port", text);
	return addr;
}

void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.store = store_new(""), .arena = arena_new(1 << 20)};
	f->env = (struct route_env){.network = "", .local_app_tunnel = true, .random = 1};
	if (!f->store || !f->arena)
		die("out of memory", "");
}

void fixture_load(struct fixture *f, const char *name, const char *yaml)
{
	struct local_file *file;
	struct err err = {0};

	if (local_file_parse(name, yaml, strlen(yaml), &file, &err) < 0 ||
	        local_file_apply(file, f->store, &err) < 0)
		die("mesh refused", err.text);
	local_file_free(file);
	fixture_forget(f);
}

void fixture_self(struct fixture *f, const char *uid)
{
	if (store_workload(f->store, uid, f->arena, &f->self) < 0)
		die("no such workload", uid);
	f->env.source_ip = f->self->ip_cnt ? f->self->ips[0] : (struct ip){0};
	fixture_forget(f);
}

void fixture_forget(struct fixture *f)
{
	while (f->view_cnt)
		view_unref(f->views[--f->view_cnt]);
	for (size_t i = 0; i < f->name_cnt; i++)
		f->names[i].was_asked = false;
}

void fixture_done(struct fixture *f)
{
	fixture_forget(f);
	arena_unref(f->arena);
	store_free(f->store);
}

static int view(void *ctx, const struct view_key *key, struct view **ret_view)
{
	struct fixture *f = ctx;
	struct store_asker asker = {.workload = f->self, .seed = 7};

	for (size_t i = 0; i < f->view_cnt; i++) {
		if (view_key_eq(&f->views[i]->key, key)) {
			*ret_view = view_ref(f->views[i]);
			return 0;
		}
	}
	if (f->view_cnt == FIXTURE_VIEWS_MAX)
		die("too many views", "");
	if (store_view(f->store, &asker, key, &f->views[f->view_cnt]) < 0)
		die("no view", key->hostname);
	f->view_cnt++;
	f->asked++;
	return -EAGAIN;
}

static int resolve(void *ctx, const char *hostname, struct ip *ret_ips, size_t max, size_t *ret_cnt)
{
	struct fixture *f = ctx;

	for (size_t i = 0; i < f->name_cnt; i++) {
		if (strcmp(f->names[i].name, hostname) != 0)
			continue;
		if (!f->names[i].was_asked) {
			f->names[i].was_asked = true;
			return -EAGAIN;
		}
		if (f->names[i].rc < 0)
			return f->names[i].rc;
		memcpy(ret_ips, f->names[i].ips, f->names[i].cnt * sizeof(*ret_ips));
		*ret_cnt = f->names[i].cnt;
		return 0;
	}
	return -EHOSTUNREACH;
}

static struct mesh_source source_of(struct fixture *f)
{
	return (struct mesh_source){.ctx = f, .view = view, .resolve = resolve};
}

int fixture_outbound(struct fixture *f, const char *dst, struct route *ret, struct err *err)
{
	struct mesh_source source = source_of(f);
	struct addr addr = fixture_addr(dst);
	int rc;
	do {
		rc = route_outbound(&f->env, &source, f->self, &addr, ret, err);
	} while (rc == -EAGAIN);
	return rc;
}

int fixture_inbound(struct fixture *f, const char *local, const char *authority, const char *host,
        struct route_inbound *ret, int *status, struct err *err)
{
	struct mesh_source source = source_of(f);
	struct route_request request = {
	        .local = fixture_addr(local),
	        .authority = authority,
	        .authority_len = strlen(authority),
	        .forwarded_host = host,
	};
	int rc;
	do {
		rc = route_inbound(&f->env, &source, f->self, &request, ret, status, err);
	} while (rc == -EAGAIN);
	return rc;
}

int fixture_plaintext(struct fixture *f, const char *dst, struct route_inbound *ret, struct err *err)
{
	struct mesh_source source = source_of(f);
	struct addr addr = fixture_addr(dst);
	int rc;
	do {
		rc = route_plaintext(&f->env, &source, f->self, &addr, ret, err);
	} while (rc == -EAGAIN);
	return rc;
}
