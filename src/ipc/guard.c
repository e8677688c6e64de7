/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of permits. A row says everything that can be judged without
 * decoding: who may send the record to whom, when, how large, with what id and
 * descriptor. Knows no handler and no socket.
 */
#include "ipc/guard.h"

#include <stddef.h>

#define BIT(x) (1u << (x))
#define W BIT(IPC_ROLE_WARDEN)
#define B BIT(IPC_ROLE_BROKER)
#define S BIT(IPC_ROLE_SILO)
#define C BIT(IPC_ROLE_CTL)

#define GREETING BIT(GUARD_GREETING)
#define SETUP BIT(GUARD_SETUP)
#define OPEN BIT(GUARD_OPEN)
#define CLOSING BIT(GUARD_CLOSING)

/* Sizes: a record that names a workload, a bare one, one with a key. All leave room for fields of later
 * releases. */
#define SIZE_BARE 256
#define SIZE_KEY 2048
#define SIZE_NAMES 4096
#define SIZE_TEXT 8192

enum fd_rule { FD_NONE, FD_MUST, FD_MAY };
enum id_rule { ID_ZERO, ID_MUST, ID_ANY };

struct permit {
	uint8_t from;   /* roles that may send it */
	uint8_t to;     /* roles that may receive it */
	uint8_t phases; /* of the receiver */
	enum fd_rule fd;
	enum id_rule id; /* asks and their answers have one, pushes don't */
	uint32_t size_max;
	bool once; /* at most one per channel */
};

/* clang-format off */
static const struct permit permits[IPC_TYPE_END] = {
	/*                        from     to       phases          fd       id       size            once */
	[IPC_HELLO] =             {W|B|S|C, W|B|S|C, GREETING,       FD_MAY,  ID_ZERO, SIZE_NAMES,     true},
	[IPC_UNSUPPORTED] =       {W|B|S,   W|B|S,   OPEN|CLOSING,   FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_HERITAGE] =          {W,       S,       SETUP,          FD_NONE, ID_ZERO, SIZE_NAMES,     true},
	[IPC_ATTACH_BROKER] =     {W,       S,       OPEN|CLOSING,   FD_MUST, ID_ZERO, SIZE_BARE,      false},
	[IPC_DRAIN] =             {W,       S|B,     OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      false},
	[IPC_READY] =             {S,       W,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      true},
	[IPC_START_FAILED] =      {S,       W,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_NAMES,     true},
	[IPC_DRAINED] =           {S,       W,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      true},
	[IPC_SILO_ATTACH] =       {W,       B,       OPEN,           FD_MUST, ID_ZERO, SIZE_NAMES,     false},
	[IPC_SILO_STATE] =        {W,       B,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_NAMES,     false},
	[IPC_NODE_STATE] =        {W,       B,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      false},
	[IPC_MESH_STATE] =        {B,       W,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      false},
	[IPC_STOP_REQUEST] =      {B,       W,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      false},
	[IPC_LOG_PIPE] =          {S,       B,       SETUP|OPEN,     FD_MUST, ID_ZERO, SIZE_BARE,      true},
	[IPC_ASK_WORKLOAD] =      {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_ANSWER_WORKLOAD] =   {B,       S,       OPEN|CLOSING,   FD_NONE, ID_ANY,  IPC_RECORD_MAX, false},
	[IPC_ASK_CERTIFICATE] =   {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_TEXT,      false},
	[IPC_ANSWER_CERTIFICATE] ={B,       S,       OPEN|CLOSING,   FD_NONE, ID_MUST, IPC_RECORD_MAX, false},
	[IPC_ASK_ADDRESS] =       {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_KEY,       false},
	[IPC_ASK_HOST] =          {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_KEY,       false},
	[IPC_ANSWER_VIEW] =       {B,       S,       OPEN|CLOSING,   FD_NONE, ID_ANY,  IPC_RECORD_MAX, false},
	[IPC_ASK_POLICIES] =      {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_ANSWER_POLICIES] =   {B,       S,       OPEN|CLOSING,   FD_MAY,  ID_ANY,  IPC_RECORD_MAX, false},
	[IPC_EVICT] =             {S,       B,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_KEY,       false},
	[IPC_FORGET_ALL] =        {B,       S,       OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_BARE,      false},
	[IPC_SET_LOG] =           {B,       W | S,   OPEN|CLOSING,   FD_NONE, ID_ZERO, SIZE_TEXT,      false},
	[IPC_ASK_STATE] =         {B,       S,       OPEN,           FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_ANSWER_STATE] =      {S,       B,       OPEN|CLOSING,   FD_NONE, ID_MUST, IPC_RECORD_MAX, false},
	[IPC_ASK_METRICS] =       {B,       S,       OPEN,           FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_ANSWER_METRICS] =    {S,       B,       OPEN|CLOSING,   FD_NONE, ID_ANY,  IPC_RECORD_MAX, false},
	[IPC_ASK_RESOLVER] =      {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_BARE,      false},
	[IPC_ANSWER_RESOLVER] =   {B,       S,       OPEN|CLOSING,   FD_NONE, ID_MUST, IPC_RECORD_MAX, false},
	[IPC_ASK_RESOLVE] =       {S,       B,       OPEN,           FD_NONE, ID_MUST, SIZE_KEY,       false},
	[IPC_ANSWER_RESOLVE] =    {B,       S,       OPEN|CLOSING,   FD_NONE, ID_MUST, SIZE_NAMES,     false},
	[IPC_CRL] =               {B,       S,       OPEN|CLOSING,   FD_MUST, ID_ZERO, SIZE_BARE,      false},
};
/* clang-format on */

static const struct permit *find(uint32_t type)
{
	return type < IPC_TYPE_END && permits[type].from ? &permits[type] : NULL;
}

static const char *type_str(const struct ipc_peek *peek)
{
	return ipc_type_str((enum ipc_type)peek->type);
}

void guard_init(struct guard *guard, enum ipc_role self, enum ipc_role peer, bool expects_setup)
{
	*guard = (struct guard){
	        .self = self, .peer = peer, .phase = GUARD_GREETING, .expects_setup = expects_setup};
}

/* The rules that hold for sender and receiver alike. A Hello may bring a descriptor only from a silo to a
 * warden; policies come in one when no record can hold them. */
static int check_row(const struct permit *row, const struct ipc_peek *peek, bool has_fd, enum ipc_role from,
        enum ipc_role to, struct err *err)
{
	const char *name = type_str(peek);
	bool any_peer = peek->type == IPC_HELLO && (from == IPC_ROLE_NONE || to == IPC_ROLE_NONE);
	if (!any_peer && (!(row->from & BIT(from)) || !(row->to & BIT(to))))
		return err_set(err, ERR_BAD_SENDER, "%s: not permitted from %s to %s", name,
		        ipc_role_str(from), ipc_role_str(to));
	if (peek->len > row->size_max)
		return err_set(err, ERR_TOO_LARGE, "%s: %zu bytes, at most %u are allowed", name, peek->len,
		        row->size_max);
	if (row->id != ID_ANY && (peek->id != 0) != (row->id == ID_MUST))
		return err_set(err, ERR_PROTOCOL, "%s: id %u is not permitted", name, peek->id);
	bool is_hello = peek->type == IPC_HELLO;
	bool may = row->fd == FD_MAY && (!is_hello || (from == IPC_ROLE_SILO && to == IPC_ROLE_WARDEN));
	if (has_fd && row->fd != FD_MUST && !may)
		return err_set(err, ERR_BAD_FD, "%s: unexpected descriptor", name);
	if (!has_fd && row->fd == FD_MUST)
		return err_set(err, ERR_BAD_FD, "%s: descriptor is missing", name);
	return 0;
}

static void advance(struct guard *guard, uint32_t type)
{
	guard->seen |= UINT64_C(1) << type;
	if (type == IPC_HELLO)
		guard->phase = guard->expects_setup ? GUARD_SETUP : GUARD_OPEN;
	else if (guard->phase == GUARD_SETUP)
		guard->phase = GUARD_OPEN;
	else if (type == IPC_DRAIN)
		guard->phase = GUARD_CLOSING;
}

int guard_check(struct guard *guard, const struct ipc_peek *peek, bool has_fd, struct err *err)
{
	const struct permit *row = find(peek->type);
	bool is_open = guard->phase == GUARD_OPEN || guard->phase == GUARD_CLOSING;
	if (peek->type == 0)
		return err_set(err, ERR_PROTOCOL, "Record: has no body");
	if (!row && is_open)
		return err_set(err, ERR_UNSUPPORTED, "Record: type %u is not known", peek->type);
	if (!row || !(row->phases & BIT(guard->phase)))
		return err_set(err, ERR_BAD_PHASE, "%s: not permitted in this phase", type_str(peek));
	int rc = check_row(row, peek, has_fd, guard->peer, guard->self, err);
	if (rc < 0)
		return rc;
	if (row->once && (guard->seen >> peek->type & 1))
		return err_set(err, ERR_BAD_PHASE, "%s: came twice", type_str(peek));
	advance(guard, peek->type);
	return 0;
}

int guard_check_send(const struct guard *guard, const struct ipc_peek *peek, bool has_fd, struct err *err)
{
	const struct permit *row = find(peek->type);
	if (!row)
		return err_set(err, ERR_PROTOCOL, "Record: type %u is not known", peek->type);
	return check_row(row, peek, has_fd, guard->self, guard->peer, err);
}

/* Which programs talk to each other at all. */
static bool may_talk(enum ipc_role a, enum ipc_role b)
{
	static const uint8_t peers[] = {
	        [IPC_ROLE_NONE] = 0,
	        [IPC_ROLE_WARDEN] = B | S,
	        [IPC_ROLE_BROKER] = W | S,
	        [IPC_ROLE_SILO] = W | B | C,
	        [IPC_ROLE_CTL] = S,
	};
	return peers[a] & BIT(b);
}

int guard_greeted(struct guard *guard, const struct ipc_hello *hello, uint32_t *ret_proto, struct err *err)
{
	bool expected = guard->peer == IPC_ROLE_NONE ? may_talk(guard->self, hello->role)
	                                             : guard->peer == hello->role;
	if (!expected)
		return err_set(
		        err, ERR_BAD_SENDER, "Hello: a %s is not expected here", ipc_role_str(hello->role));
	if (hello->proto_max < IPC_PROTO_MIN || hello->proto_min > IPC_PROTO_MAX)
		return err_set(err, ERR_BAD_VERSION,
		        "Hello: release %s speaks protocol %u to %u, this one %u to %u", hello->release,
		        hello->proto_min, hello->proto_max, (unsigned)IPC_PROTO_MIN, (unsigned)IPC_PROTO_MAX);
	guard->peer = hello->role;
	*ret_proto = hello->proto_max < IPC_PROTO_MAX ? hello->proto_max : IPC_PROTO_MAX;
	return 0;
}

uint32_t guard_size_max(enum ipc_type type)
{
	const struct permit *row = find(type);
	return row ? row->size_max : 0;
}
