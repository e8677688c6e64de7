/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State for dumps; see dump.h. */
#include "silo/dump.h"

#include <string.h>

#include "base/buf.h"
#include "silo/delivery.h"
#include "silo/outbound.h"
#include "silo/silo.h"

/* Columns of a PEM in the dump (control.md 11.5). */
#define PEM_COLUMNS 60
/* Room for one certificate as PEM. */
#define PEM_MAX (2u * TLS_CERT_DER_MAX)

static size_t inbound_dump(struct silo *silo, struct arena *arena, struct ipc_connection **ret_all)
{
	size_t cnt = 0;
	list_for_each(it, &silo->deliveries) cnt++;
	struct ipc_connection *all = arena_zalloc(arena, cnt ? cnt : 1, sizeof(*all));
	*ret_all = all;
	if (!all)
		return 0;
	cnt = 0;
	list_for_each(it, &silo->deliveries)
	{
		const struct delivery *d = list_entry(it, struct delivery, node);
		all[cnt++] = (struct ipc_connection){
		        .inbound = true,
		        .src = d->access.src,
		        .original_dst = d->original_dst ? arena_strdup(arena, d->original_dst) : "",
		        .actual_dst = d->upstream,
		        .protocol = d->track.conn.has_identity ? "HBONE" : "TCP",
		        .sent = d->pump ? pump_sent(d->pump) : 0,
		        .received = d->pump ? pump_received(d->pump) : 0,
		};
	}
	return cnt;
}

static void dump_connections(struct silo *silo, struct arena *arena, struct ipc_answer_state *state)
{
	struct ipc_connection *in;
	struct ipc_connection *out;
	size_t in_cnt = inbound_dump(silo, arena, &in);
	size_t out_cnt = outbound_dump(silo, arena, &out);
	struct ipc_connection *all = arena_zalloc(arena, in_cnt + out_cnt + 1, sizeof(*all));
	if (!all)
		return;
	if (in_cnt)
		memcpy(all, in, in_cnt * sizeof(*all));
	if (out_cnt)
		memcpy(all + in_cnt, out, out_cnt * sizeof(*all));
	state->connections = all;
	state->connection_cnt = in_cnt + out_cnt;
}

static bool dump_cert(const struct tls_cert *cert, struct arena *arena, struct ipc_cert *ret_cert)
{
	char serial[TLS_CERT_SERIAL_TEXT_MAX];
	struct buf pem;
	buf_init(&pem, PEM_MAX);
	tls_cert_serial_text(cert, serial);
	tls_cert_pem(cert, PEM_COLUMNS, &pem);
	*ret_cert = (struct ipc_cert){
	        .pem = pem.err ? NULL : arena_strndup(arena, (const char *)pem.data, pem.len),
	        .serial = arena_strdup(arena, serial),
	        .valid_from = cert->not_before > 0 ? (uint64_t)cert->not_before : 0,
	        .expires = cert->not_after > 0 ? (uint64_t)cert->not_after : 0,
	};
	buf_done(&pem);
	return ret_cert->pem && ret_cert->serial;
}

static const struct ipc_cert *dump_certs(const struct tls_certs *certs, struct arena *arena, size_t *ret_cnt)
{
	struct ipc_cert *all = arena_zalloc(arena, certs->cnt ? certs->cnt : 1, sizeof(*all));
	*ret_cnt = 0;
	for (size_t i = 0; all && i < certs->cnt; i++)
		if (dump_cert(&certs->all[i], arena, &all[*ret_cnt]))
			(*ret_cnt)++;
	return all;
}

static void dump_certificate(struct silo *silo, struct arena *arena, struct ipc_answer_state *state)
{
	const struct own_workload *own = fetch_peek(&silo->context.workload);
	const struct tls_identity *identity = fetch_peek(&silo->context.certificate);
	/* What nobody has asked for is no row, as upstream: who is not of the mesh has no certificate. */
	bool is_wanted = identity || silo->context.is_asking || silo->context.certificate.code != 0;
	struct ipc_certificate *entry = arena_zalloc(arena, 1, sizeof(*entry));
	if (!entry || !own || !is_wanted)
		return;
	entry->identity = own->spiffe;
	if (identity) {
		entry->state = "Available";
		entry->chain = dump_certs(tls_identity_chain(identity), arena, &entry->chain_cnt);
		entry->roots = dump_certs(tls_identity_roots(identity), arena, &entry->root_cnt);
	} else if (silo->context.certificate.code != 0) {
		entry->state = arena_printf(arena, "Unavailable: %s", silo->context.certificate.text);
	} else {
		entry->state = "Initializing";
	}
	state->certificates = entry;
	state->certificate_cnt = 1;
}

void dump_state(struct silo *silo, uint32_t what, struct arena *arena, struct ipc_answer_state *ret_state)
{
	*ret_state = (struct ipc_answer_state){0};
	if (what & IPC_STATE_CONNECTIONS)
		dump_connections(silo, arena, ret_state);
	if (what & IPC_STATE_CERTIFICATES)
		dump_certificate(silo, arena, ret_state);
}
