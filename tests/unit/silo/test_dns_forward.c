/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A forward while its servers change under it, against sockets of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "conn/sock.h"
#include "silo/dns_forward.h"

/* A forwarder with one server, which is our socket. */
struct fixture {
	struct io *io;
	struct dns_forwarder forwarder;
	struct dns_question question;
	int server;
	int calls;
	int code;
	unsigned rcode;
};

static int setup(void **state)
{
	static struct fixture f;
	const struct io_opts opts = {0};
	struct err err = {0};
	memset(&f, 0, sizeof(f));
	assert_int_equal(io_new(&opts, &f.io, &err), 0);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	f.server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f.server, (struct sockaddr *)&sa, sizeof(sa)), 0);
	f.forwarder.io = f.io;
	assert_int_equal(sock_local_addr(f.server, &f.forwarder.servers[0]), 0);
	f.forwarder.server_cnt = 1;
	f.forwarder.timeout_ms = 20000;
	f.forwarder.attempts = 1;
	dns_cache_init(&f.forwarder.cache);
	assert_int_equal(dns_question_set(&f.question, "www.example.test", 1), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 100 && io_in_flight(f->io) > 0; i++)
		io_turn(f->io, false);
	dns_cache_done(&f->forwarder.cache);
	io_free(f->io);
	close(f->server);
	return 0;
}

static void done(void *ctx, int code, const uint8_t *data, size_t len)
{
	struct fixture *f = ctx;
	f->calls++;
	f->code = code;
	if (code == 0) {
		assert_true(len >= 12);
		f->rcode = data[3] & 0xf;
	}
	io_stop(f->io);
}

/* Takes the question and answers it with a code and no records. */
static void answer(const struct fixture *f, uint8_t rcode)
{
	uint8_t data[512];
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t len = recvfrom(f->server, data, sizeof(data), 0, (struct sockaddr *)&from, &from_len);
	assert_true(len > 12);
	data[2] |= 0x80;
	data[3] = rcode;
	assert_int_equal(sendto(f->server, data, (size_t)len, 0, (struct sockaddr *)&from, from_len), len);
}

static void test_answer(void **state)
{
	struct fixture *f = *state;
	struct dns_forward *forward;
	assert_int_equal(dns_forward_start(&f->forwarder, &f->question, done, f, &forward), 0);
	answer(f, DNS_NXDOMAIN);
	assert_int_equal(io_run(f->io), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->code, 0);
	assert_int_equal(f->rcode, DNS_NXDOMAIN);
}

/* The daemon's resolv.conf has lost all its servers meanwhile: what is answered counts all the same. */
static void check_servers_go(struct fixture *f, uint8_t rcode)
{
	struct dns_forward *forward;
	assert_int_equal(dns_forward_start(&f->forwarder, &f->question, done, f, &forward), 0);
	f->forwarder.server_cnt = 0;
	answer(f, rcode);
	assert_int_equal(io_run(f->io), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->code, 0);
	assert_int_equal(f->rcode, rcode);
}

static void test_servers_go(void **state)
{
	check_servers_go(*state, DNS_NXDOMAIN);
}

static void test_servers_go_refusal(void **state)
{
	check_servers_go(*state, DNS_SERVFAIL);
}

static void test_no_servers(void **state)
{
	struct fixture *f = *state;
	struct dns_forward *forward;
	f->forwarder.server_cnt = 0;
	assert_int_equal(dns_forward_start(&f->forwarder, &f->question, done, f, &forward), -EHOSTUNREACH);
	assert_int_equal(f->calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_answer, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_servers_go, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_servers_go_refusal, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_servers, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
