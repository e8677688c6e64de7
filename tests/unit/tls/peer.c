/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One TLS connection over a loopback TCP socket, for test_openssl.py to drive
 * against the openssl tool. As a server it echoes; as a client it sends its
 * standard input and prints what comes. Blocking, one connection, then exit:
 * 0 after a clean end, 1 after a TLS failure. Reports on standard error:
 * "port N", "established <version> <cipher> <group> <h2|none> <peer>",
 * "failed <text>", "closed".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/chain.h"
#include "base/check.h"
#include "base/err.h"
#include "base/file.h"
#include "tls/key.h"
#include "tls/session.h"
#include "tls/trust.h"

/* Most --chain and --accept options. */
#define PEER_LIST_MAX 8

struct options {
	bool is_server;
	uint16_t port; /* server: 0 = any */
	struct tls_policy policy;
	const char *key, *roots;          /* files */
	const char *chain[PEER_LIST_MAX]; /* files */
	size_t chain_cnt;
	const char *accept[PEER_LIST_MAX]; /* SPIFFE ids */
	size_t accept_cnt;
	const char *name, *alt; /* control plane names */
};

struct peer {
	int fd;
	struct tls_session *s;
	struct chunk_pool pool;
	struct chain out;
	struct err err;
};

static char *slurp(const char *path)
{
	struct buf text;
	buf_init(&text, 1u << 20);
	ASSERT(file_read(path, &text) == 0);
	char *copy = strdup(buf_cstr(&text));
	buf_done(&text);
	return copy;
}

static void parse(struct options *o, int argc, char **argv)
{
	o->is_server = strcmp(argv[1], "server") == 0;
	o->port = (uint16_t)atoi(argv[2]);
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (strcmp(argv[i], "--tls12") == 0) {
			o->policy.tls12 = true;
			continue;
		}
		if (strcmp(argv[i], "--pqc") == 0) {
			o->policy.pqc_only = true;
			continue;
		}
		if (strcmp(argv[i], "--key") == 0)
			o->key = value;
		else if (strcmp(argv[i], "--roots") == 0)
			o->roots = value;
		else if (strcmp(argv[i], "--chain") == 0 && o->chain_cnt < PEER_LIST_MAX)
			o->chain[o->chain_cnt++] = value;
		else if (strcmp(argv[i], "--accept") == 0 && o->accept_cnt < PEER_LIST_MAX)
			o->accept[o->accept_cnt++] = value;
		else if (strcmp(argv[i], "--name") == 0)
			o->name = value;
		else if (strcmp(argv[i], "--alt") == 0)
			o->alt = value;
		else
			exit(2);
		i++;
	}
}

static int connect_or_accept(const struct options *o)
{
	struct sockaddr_in addr = {
	        .sin_family = AF_INET, .sin_port = htons(o->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!o->is_server) {
		ASSERT(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
		return fd;
	}
	ASSERT(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 1) == 0);
	ASSERT(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
	fprintf(stderr, "port %u\n", ntohs(addr.sin_port));
	int conn = accept(fd, NULL, NULL);
	close(fd);
	return conn;
}

static void flush_out(struct peer *p)
{
	struct iovec iov;
	while (chain_peek(&p->out, &iov, 1, SIZE_MAX, NULL)) {
		ssize_t n = send(p->fd, iov.iov_base, iov.iov_len, MSG_NOSIGNAL);
		chain_consume(&p->out, n > 0 ? (size_t)n : p->out.len);
	}
}

static struct tls_identity *load_identity(const struct options *o)
{
	struct tls_key *key;
	struct tls_identity *identity;
	struct err err;
	char *chain[PEER_LIST_MAX];
	char *pem = slurp(o->key);
	char *roots = slurp(o->roots);
	for (size_t i = 0; i < o->chain_cnt; i++)
		chain[i] = slurp(o->chain[i]);
	if (tls_key_from_pem(pem, strlen(pem), &key, &err) != 0 ||
	        tls_identity_new(key, (const char *const *)chain, o->chain_cnt, roots, NULL, &o->policy,
	                &identity, &err) != 0) {
		fprintf(stderr, "identity: %s\n", err.text);
		exit(2);
	}
	tls_key_unref(key);
	for (size_t i = 0; i < o->chain_cnt; i++)
		free(chain[i]);
	free(pem);
	free(roots);
	return identity;
}

static void session_up(struct peer *p, const struct options *o)
{
	if (o->name) {
		struct tls_trust *trust;
		char *roots = slurp(o->roots);
		ASSERT(tls_trust_new(roots, strlen(roots), o->name, o->alt, &o->policy, &trust, &p->err) ==
		        0);
		ASSERT(tls_control_new(trust, &p->pool, &p->out, &p->s, &p->err) == 0);
		tls_trust_unref(trust);
		free(roots);
		return;
	}
	struct tls_identity *identity = load_identity(o);
	if (o->is_server)
		ASSERT(tls_server_new(identity, &p->pool, &p->out, &p->s, &p->err) == 0);
	else
		ASSERT(tls_client_new(
		               identity, o->accept, o->accept_cnt, &p->pool, &p->out, &p->s, &p->err) == 0);
	tls_identity_unref(identity);
}

/* Waits for bytes; false at the end of the stream. */
static bool more(struct peer *p, uint8_t *buf, size_t cap)
{
	ssize_t n = recv(p->fd, buf, cap, 0);
	if (n <= 0)
		return false;
	tls_feed(p->s, buf, (size_t)n);
	return true;
}

static int failed(struct peer *p)
{
	flush_out(p);
	fprintf(stderr, "failed %s\n", p->err.text);
	return 1;
}

static int handshake(struct peer *p, uint8_t *wire, size_t cap)
{
	int ret;
	while ((ret = tls_handshake(p->s, &p->err)) == -EAGAIN) {
		flush_out(p);
		if (!more(p, wire, cap)) {
			err_set(&p->err, -EPIPE, "end of stream");
			return failed(p);
		}
	}
	if (ret != 0)
		return failed(p);
	flush_out(p);
	fprintf(stderr, "established %s %s %s %s %s\n", tls_version_name(p->s), tls_cipher_name(p->s),
	        tls_group_name(p->s), tls_alpn_is_h2(p->s) ? "h2" : "none", tls_peer_identity(p->s));
	return 0;
}

/* Sends standard input. */
static int send_input(struct peer *p)
{
	static uint8_t plain[100000];
	size_t n;
	while ((n = fread(plain, 1, sizeof(plain), stdin)) > 0) {
		if (tls_write(p->s, plain, n, &p->err) != 0)
			return failed(p);
		flush_out(p);
	}
	return 0;
}

static int run(struct peer *p, const struct options *o)
{
	static uint8_t wire[65536], plain[100000];
	if (handshake(p, wire, sizeof(wire)) != 0 || (!o->is_server && send_input(p) != 0))
		return 1;
	for (;;) {
		ssize_t n = tls_read(p->s, plain, sizeof(plain), &p->err);
		if (n > 0 && o->is_server && tls_write(p->s, plain, (size_t)n, &p->err) != 0)
			return failed(p);
		if (n > 0 && !o->is_server)
			ASSERT(fwrite(plain, 1, (size_t)n, stdout) == (size_t)n && fflush(stdout) == 0);
		flush_out(p);
		if (n > 0)
			continue;
		if (n == 0)
			break;
		if (n != -EAGAIN)
			return failed(p);
		if (!more(p, wire, sizeof(wire))) {
			err_set(&p->err, -EPIPE, "end of stream without close_notify");
			return failed(p);
		}
	}
	ASSERT(tls_close_notify(p->s, &p->err) == 0);
	flush_out(p);
	fprintf(stderr, "closed\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct peer p = {.fd = -1};
	if (argc < 3)
		return 2;
	parse(&o, argc, argv);
	chunk_pool_init(&p.pool, 64u << 20);
	session_up(&p, &o);
	p.fd = connect_or_accept(&o);
	int ret = run(&p, &o);
	tls_free(p.s);
	chain_clear(&p.out);
	chunk_pool_done(&p.pool);
	close(p.fd);
	return ret;
}
