/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of proto/ipc.proto as plain structs, and their encoders and
 * decoders. One record is one SOCK_SEQPACKET packet of at most 32 KB; what may
 * be longer (views, policies, dumps) is cut into pages. Knows bytes only: who
 * may send what, and when, is ipc/guard.h.
 *
 * All strings are terminated, valid UTF-8, without zero bytes and never NULL
 * after decoding; before encoding NULL counts as "". Everything decoded lives
 * in the arena given. Ceilings of every field: proto/ipc.options.
 */
#ifndef CULVERT_PB_IPC_H
#define CULVERT_PB_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "culvert/limits.h"
#include "culvert/records.h"

/* Largest record in bytes; encoders never exceed it, decoders refuse more. */
#define IPC_RECORD_MAX LIMIT_IPC_RECORD

/* Ceiling of an arena for decoding one record: the structs are wider than the bytes they come from. */
#define IPC_ARENA_MAX (2u << 20)

/* Protocol versions that this release speaks. */
#define IPC_PROTO_MIN 1
#define IPC_PROTO_MAX 1

/* Most endpoints in a view (design section 2). */
#define IPC_VIEW_ENDPOINT_MAX LIMIT_VIEW_ENDPOINTS

/* The program at an end of a channel. */
enum ipc_role {
	IPC_ROLE_NONE = 0,
	IPC_ROLE_WARDEN = 1,
	IPC_ROLE_BROKER = 2,
	IPC_ROLE_SILO = 3,
	IPC_ROLE_CTL = 4
};

/* Kind of a record: its field number in Record.body. IPC_NONE = a body that this release does not know. */
enum ipc_type {
	IPC_NONE = 0,
	IPC_HELLO = 2,
	IPC_UNSUPPORTED = 3,
	IPC_HERITAGE = 10,
	IPC_ATTACH_BROKER = 11,
	IPC_DRAIN = 12,
	IPC_READY = 13,
	IPC_START_FAILED = 14,
	IPC_DRAINED = 15,
	IPC_SILO_ATTACH = 20,
	IPC_SILO_STATE = 21,
	IPC_NODE_STATE = 22,
	IPC_MESH_STATE = 23,
	IPC_STOP_REQUEST = 24,
	IPC_LOG_PIPE = 30,
	IPC_ASK_WORKLOAD = 31,
	IPC_ANSWER_WORKLOAD = 32,
	IPC_ASK_CERTIFICATE = 33,
	IPC_ANSWER_CERTIFICATE = 34,
	IPC_ASK_ADDRESS = 35,
	IPC_ASK_HOST = 36,
	IPC_ANSWER_VIEW = 37,
	IPC_ASK_POLICIES = 38,
	IPC_ANSWER_POLICIES = 39,
	IPC_EVICT = 40,
	IPC_FORGET_ALL = 41,
	IPC_SET_LOG = 42,
	IPC_ASK_STATE = 43,
	IPC_ANSWER_STATE = 44,
	IPC_ASK_METRICS = 45,
	IPC_ANSWER_METRICS = 46,
	IPC_ASK_RESOLVER = 47,
	IPC_ANSWER_RESOLVER = 48,
	IPC_ASK_RESOLVE = 49,
	IPC_ANSWER_RESOLVE = 50,
	IPC_CRL = 51,
	IPC_TYPE_END = 64, /* above every number in use */
};

/* First record of a channel, both ways. */
struct ipc_hello {
	const char *release;       /* culvert's version, e.g. "0.1.0" */
	uint32_t proto_min;        /* lowest protocol version spoken, >= 1 */
	uint32_t proto_max;        /* highest, >= proto_min */
	uint64_t features;         /* bit mask of optional abilities, 0 so far */
	enum ipc_role role;        /* who is speaking */
	const char *uid;           /* silo: the workload's ZDS uid; "" otherwise */
	struct workload_info info; /* silo: as the node agent said it; "" otherwise */
	uint64_t netns_dev;        /* silo: st_dev of its network namespace; 0 otherwise */
	uint64_t netns_ino;        /* silo: st_ino of the same */
	int32_t pid;               /* of the sender, in its own PID namespace */
	uint64_t start_time;       /* field 22 of /proc/<pid>/stat, clock ticks since boot */
	bool broker_attached;      /* silo: has a live broker channel (AttachBroker is not needed) */
	bool is_ready;             /* silo: its listeners serve (Ready has been reported before) */
};

/* Answer to an ask of unknown type. */
struct ipc_unsupported {
	uint32_t type; /* field number of the body that was not known */
};

/* uid of the daemon's own silo (IPC_SILO_SELF); a node agent's workload may not have it. */
#define IPC_SELF_UID "culvert-self"

/* What an inherited descriptor is for. */
enum ipc_fd_kind {
	IPC_FD_OUTBOUND = 1,          /* TCP 15001 */
	IPC_FD_INBOUND_PLAINTEXT = 2, /* TCP 15006 */
	IPC_FD_INBOUND_HBONE = 3,     /* TCP 15008 */
	IPC_FD_SOCKS5 = 4,            /* TCP 15080 */
	IPC_FD_DNS_UDP = 5,           /* UDP 15053, may occur more than once */
	IPC_FD_DNS_TCP = 6,           /* TCP 15053, may occur more than once */
	IPC_FD_CONTROL = 7,           /* the silo's listening control socket */
	IPC_FD_NETNS = 8,             /* the network namespace */
	IPC_FD_BROKER = 9,            /* channel to the broker */
	IPC_FD_ADMIN = 10,            /* the pod's admin socket */
	IPC_FD_METRICS = 11,          /* the pod's metrics listener */
};

struct ipc_inherited {
	enum ipc_fd_kind kind;
	int32_t fd; /* its number in the silo, >= 3 */
};

/* Why this silo exists. */
enum ipc_silo_mode {
	IPC_SILO_POD = 0,       /* a workload of the node */
	IPC_SILO_SELF = 1,      /* the daemon's own netns, HBONE to the daemon */
	IPC_SILO_DEDICATED = 2, /* the one workload of dedicated mode */
};

/* W->S, first record after Hello on the channel a silo is born with. */
struct ipc_heritage {
	const char *uid;
	struct workload_info info;
	const struct ipc_inherited *fds; /* array of fd_cnt */
	size_t fd_cnt;
	const char *run_name; /* name part of its files in the run directory */
	bool first;           /* false: restarted after a crash */
	enum ipc_silo_mode mode;
};

/* W->S and W->B: stop. */
struct ipc_drain {
	bool graceful;        /* false: cut at once */
	uint64_t deadline_ms; /* graceful: time from now until what is left is cut */
};

/* S->W: the silo could not start. */
struct ipc_start_failed {
	const char *text; /* becomes the Ack text after "failure to start proxy : " */
};

/* S->W: drain has ended; the silo exits. */
struct ipc_drained {
	bool forced; /* connections were cut at the deadline */
};

/* W->B with the broker's end of the channel to a silo. */
struct ipc_silo_attach {
	const char *uid;
	struct workload_info info;
	int32_t pid;
};

/* Life of a workload as the warden sees it. */
enum ipc_silo_phase { IPC_SILO_PENDING = 0, IPC_SILO_UP = 1, IPC_SILO_GONE = 2 };

/* W->B, on every change. */
struct ipc_silo_state {
	const char *uid;
	struct workload_info info;
	enum ipc_silo_phase state;
	const char *reason; /* pending: why; "" otherwise */
	uint32_t restarts;  /* crashes so far */
	uint64_t netns_ino;
	int32_t pid; /* 0 = none */
};

/* W->B: the node agent's connection, for readiness. */
struct ipc_node_state {
	bool connected; /* to the node agent */
	bool snapshot;  /* SnapshotSent has been received */
	uint32_t pending_cnt;
	bool settled; /* once in this warden's life a snapshot was there and nothing pending */
};

/* B->W: gate for ZDS. */
struct ipc_mesh_state {
	bool complete; /* the first complete state of the mesh is in */
};

/* S->B, answers ask_workload; later versions are pushed with id 0. */
struct ipc_answer_workload {
	bool found;
	uint64_t generation;
	const struct workload *workload; /* NULL unless found */
};

/* S->B. */
struct ipc_ask_certificate {
	const char *identity; /* spiffe:// URI */
	const uint8_t *csr;   /* PKCS #10, as tls/key.h makes it */
	size_t csr_len;
	bool waiting; /* a connection waits for it: goes first */
};

struct ipc_answer_certificate {
	const char *const *chain; /* PEM, leaf first, array of chain_cnt; empty when error is set */
	size_t chain_cnt;
	const char *roots; /* PEM bundle */
	const char *error; /* "" = success */
	uint64_t retry_ms; /* with error: when to ask again */
};

/* What a view is about. */
struct ipc_key {
	bool is_host;         /* true: ns and host are set, false: addr is set */
	struct net_addr addr; /* address asked for; network "" and family 0 when is_host */
	const char *ns;       /* namespace the host name was asked in */
	const char *host;     /* host name */
	bool unfiltered; /* address: visibility of services is not applied (reference dataplane.md 8.3) */
	bool dns; /* host: the name that a DNS client asked for, ns is "" (reference control.md 10.3) */
};

/* One page of a view. Pages of one answer share key and generation, page counts from 0. */
struct ipc_answer_view {
	struct ipc_key key;
	/* false: nothing in the mesh has this key; certain only once the mesh state is in. true without
	 * workload and service: it is there, but no record can hold it; not to be taken for unknown. */
	bool known;
	uint64_t generation; /* of the broker's store */
	uint32_t page;
	bool last;
	const struct workload *workload;  /* NULL or on one page only */
	const struct service *service;    /* NULL or on one page only */
	const struct endpoint *endpoints; /* array of endpoint_cnt; workload of each is set */
	size_t endpoint_cnt;
};

/* One page of the policies that apply to the asking silo's workload. */
struct ipc_answer_policies {
	uint64_t generation;
	uint32_t page;
	bool last;
	const struct policy *policies; /* array of policy_cnt */
	size_t policy_cnt;
};

struct ipc_set_log {
	const char *filter; /* RUST_LOG syntax */
};

/* What a dump asks for; values add up. */
enum ipc_state_what { IPC_STATE_CONNECTIONS = 1, IPC_STATE_CERTIFICATES = 2 };

struct ipc_ask_state {
	uint32_t what; /* sum of enum ipc_state_what */
};

/* Tracked connection for dumps (reference node-agent.md 1.9). */
struct ipc_connection {
	bool inbound;
	struct addr src;
	const char *original_dst; /* outbound "ip:port", inbound service host name, "" = null */
	struct addr actual_dst;
	const char *protocol; /* HBONE, TCP, DOUBLEHBONE */
	uint64_t sent;        /* bytes towards the workload's peer */
	uint64_t received;    /* bytes from it */
};

/* One certificate of a chain for dumps. */
struct ipc_cert {
	const char *pem;
	const char *serial;  /* decimal */
	uint64_t valid_from; /* seconds since 1970 */
	uint64_t expires;    /* seconds since 1970 */
};

/* A certificate entry for dumps (reference control.md 11.5). */
struct ipc_certificate {
	const char *identity;         /* spiffe:// URI */
	const char *state;            /* Available, Initializing, Unavailable: ... */
	const struct ipc_cert *chain; /* leaf first, array of chain_cnt */
	size_t chain_cnt;
	const struct ipc_cert *roots; /* array of root_cnt */
	size_t root_cnt;
};

/* One page of a silo's state. */
struct ipc_answer_state {
	uint32_t page;
	bool last;
	const struct ipc_connection *connections; /* array of connection_cnt */
	size_t connection_cnt;
	const struct ipc_certificate *certificates; /* array of certificate_cnt */
	size_t certificate_cnt;
};

/* Values of one label set (base/metric.h). */
struct ipc_metric {
	uint32_t set;          /* enum metric_set; may be one that this release does not know */
	const uint8_t *labels; /* values joined by zero bytes */
	size_t labels_len;
	uint32_t present;       /* bit (1 << column) of the values that follow */
	const uint64_t *values; /* array of value_cnt, one for each bit */
	size_t value_cnt;
};

/* One page of a silo's counters; with id 0 the last word of a silo that ends. */
struct ipc_answer_metrics {
	uint32_t page;
	bool last;
	const struct ipc_metric *metrics; /* array of metric_cnt */
	size_t metric_cnt;
};

/* How the daemon resolves names that the mesh does not have (reference control.md 10.4). */
struct ipc_answer_resolver {
	const struct addr *servers; /* array of server_cnt; none: forwarding fails */
	size_t server_cnt;
	uint64_t timeout_ms; /* of one attempt */
	uint32_t attempts;   /* with each server */
	bool edns;           /* questions carry EDNS */
	const char *hosts;   /* text of the daemon's hosts(5), cut at a line's end */
};

/* The silo wants the addresses of a host name (reference dataplane.md 4.6). */
struct ipc_ask_resolve {
	const char *host; /* as the mesh has it */
};

/* What the broker's resolver found. */
struct ipc_answer_resolve {
	const char *host; /* that was asked for */
	const struct ip
	        *ips; /* array of ip_cnt, at most 32; none: the lookup failed, or there is no A/AAAA */
	size_t ip_cnt;
	const char *error; /* "", or why the lookup failed */
};

/* A record: correlation id and the body that `type` names. Types without a member have an empty body. */
struct ipc_record {
	uint32_t id; /* joins ask and answer; 0 = none, or a push */
	enum ipc_type type;
	union {
		struct ipc_hello hello;
		struct ipc_unsupported unsupported;
		struct ipc_heritage heritage;
		struct ipc_drain drain;
		struct ipc_start_failed start_failed;
		struct ipc_drained drained;
		struct ipc_silo_attach silo_attach;
		struct ipc_silo_state silo_state;
		struct ipc_node_state node_state;
		struct ipc_mesh_state mesh_state;
		struct ipc_answer_workload answer_workload;
		struct ipc_ask_certificate ask_certificate;
		struct ipc_answer_certificate answer_certificate;
		struct ipc_key ask_address; /* is_host is false */
		struct ipc_key ask_host;    /* is_host is true */
		struct ipc_answer_view answer_view;
		struct ipc_answer_policies answer_policies;
		struct ipc_key evict;
		struct ipc_set_log set_log;
		struct ipc_ask_state ask_state;
		struct ipc_answer_state answer_state;
		struct ipc_answer_resolver answer_resolver;
		struct ipc_ask_resolve ask_resolve;
		struct ipc_answer_resolve answer_resolve;
		struct ipc_answer_metrics answer_metrics;
	};
};

/* Name of a record type for texts, e.g. "AskHost"; "unknown" for others. Static. */
const char *ipc_type_str(enum ipc_type type);

/* Name of a role, e.g. "silo"; static. */
const char *ipc_role_str(enum ipc_role role);

/* What a cheap look at a record shows, before any of it is decoded. */
struct ipc_peek {
	uint32_t id;
	uint32_t type; /* field number of the body, possibly unknown to us; 0 = there is none */
	size_t len;    /* bytes of the whole record */
};

/*
 * Looks at id and body tag only. ERR_PROTOCOL when the top level is malformed,
 * holds two bodies or an id above 32 bits; ERR_TOO_LARGE above IPC_RECORD_MAX.
 */
int ipc_peek(const uint8_t *bytes, size_t len, struct ipc_peek *ret_peek, struct err *err);

/*
 * Encodes a whole record. ERR_TOO_LARGE or ERR_TOO_MANY when a field or the
 * record is above its ceiling (text names it), ERR_BAD_UTF8, ERR_PROTOCOL for
 * a value that has no wire form, -EMSGSIZE when cap < IPC_RECORD_MAX and the
 * record does not fit.
 */
int ipc_encode(const struct ipc_record *rec, uint8_t *dst, size_t cap, size_t *ret_len, struct err *err);

/*
 * Decodes a whole record into arena. ERR_PROTOCOL, ERR_TOO_LARGE,
 * ERR_TOO_MANY, ERR_BAD_UTF8 with the field's path in the text; ERR_UNSUPPORTED
 * when the body's type is unknown or absent; -ENOMEM at the arena's ceiling.
 */
int ipc_decode(
        const uint8_t *bytes, size_t len, struct arena *arena, struct ipc_record *ret_rec, struct err *err);

/* Where a paged answer goes on. Zero it before the first page. */
struct ipc_pager {
	size_t next;   /* items sent so far */
	uint32_t page; /* pages sent so far */
	bool done;     /* the last page is out */
};

/* Whether each item of an answer fits a page, so that ipc_encode_page() can send all of it. */
bool ipc_fits_pages(const struct ipc_record *whole);

/*
 * A body that does not: its bytes are appended to dst, for a descriptor that
 * goes along with a record whose lists are empty. Fields have the same ceilings.
 * 0, -EMSGSIZE (dst's ceiling), -ENOMEM or a code of the field.
 */
int ipc_file_encode(const struct ipc_record *rec, struct buf *dst, struct err *err);

/* Reads such bytes; *ret_rec has id 0. What hangs from it lives in arena. Errors as ipc_decode(). */
int ipc_file_decode(enum ipc_type type, const uint8_t *bytes, size_t len, struct arena *arena,
        struct ipc_record *ret_rec, struct err *err);

/*
 * Encodes the next page of `whole` (AnswerView, AnswerPolicies, AnswerState or AnswerMetrics;
 * its page and last are ignored): as many items as fit cap. Call until
 * pager->done. An item that fits no page is ERR_TOO_LARGE with its name in the
 * text; pager->next is then past it, so that the caller may go on without it.
 * Other types are one page.
 */
int ipc_encode_page(const struct ipc_record *whole, struct ipc_pager *pager, uint8_t *dst, size_t cap,
        size_t *ret_len, struct err *err);

/* Whether rec is the last (or only) record of its answer. */
bool ipc_is_last(const struct ipc_record *rec);

/* Bytes that a workload, service or policy takes in a record; above IPC_ITEM_MAX no page of a view has room
 * for it. Negative as ipc_encode. */
int ipc_workload_size(const struct workload *workload, size_t *ret_len, struct err *err);
int ipc_service_size(const struct service *service, size_t *ret_len, struct err *err);
int ipc_policy_size(const struct policy *policy, size_t *ret_len, struct err *err);

/* Room for one item in a page beside its envelope: an item of up to this size always fits a record. */
#define IPC_ITEM_MAX (IPC_RECORD_MAX - 1024)

/* Deep copies into arena: everything that hangs from src is copied. NULL when the arena is full or memory is
 * out. */
struct workload *ipc_copy_workload(struct arena *arena, const struct workload *src);
struct service *ipc_copy_service(struct arena *arena, const struct service *src);
struct policy *ipc_copy_policies(struct arena *arena, const struct policy *src, size_t cnt);
struct endpoint *ipc_copy_endpoints(struct arena *arena, const struct endpoint *src, size_t cnt);

/* Copies a key's strings into arena. -ENOMEM. */
int ipc_copy_key(struct arena *arena, const struct ipc_key *src, struct ipc_key *ret_key);

/* Whether two keys ask for the same thing. Networks, namespaces and hosts compare as plain strings. */
bool ipc_key_eq(const struct ipc_key *a, const struct ipc_key *b);

#endif
