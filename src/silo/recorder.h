/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: the last connections of this silo with the time that
 * each phase took and who ended them, one event when a connection is over.
 * Bounded memory, made with the first event; a connection costs a few looks at
 * the clock and none per byte. Knows no JSON and no HTTP (admin_events.h).
 */
#ifndef CULVERT_SILO_RECORDER_H
#define CULVERT_SILO_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/list.h"

struct access;
struct pump;
struct recorder;
struct silo;

/* Events kept. */
#define RECORDER_EVENTS_MAX 256
/* Bytes of all of them: 256 with usual identities have 50 KB; with longer texts fewer are kept. */
#define RECORDER_BYTES_MAX (64u * 1024)
/* Longest error kept; what is beyond it is cut. */
#define RECORDER_ERROR_MAX 256

/* Where a connection's time goes. A phase that a connection went through more than once (another try, the
 * inner tunnel of a double one) has the sum. */
enum record_phase {
	RECORD_LOOKUP,      /* our own record, routing, who the source is, the policies' arrival */
	RECORD_POLICY,      /* the verdict of the policies, inbound */
	RECORD_CERTIFICATE, /* until our certificate was there */
	RECORD_TCP,         /* connect to the next hop: tunnel, or application; none over a pooled tunnel */
	RECORD_TLS,         /* handshake, likewise */
	RECORD_CONNECT,     /* CONNECT until its answer, the wait for a free stream included */
	RECORD_FIRST_BYTE,  /* from the beginning of the copy to the first byte of the server */
	RECORD_PHASE_CNT,
};

/* Who ended it, seen from the connection and not from us: the client is who dialled. */
enum record_by { RECORD_BY_NOBODY, RECORD_BY_CLIENT, RECORD_BY_SERVER, RECORD_BY_PROXY };

/* How. */
enum record_how {
	RECORD_HOW_END,     /* by an ordinary end of its direction */
	RECORD_HOW_RESET,   /* by a reset */
	RECORD_HOW_ERROR,   /* by a failure of the connection, or nothing could be opened: see the error */
	RECORD_HOW_REFUSED, /* it was never let in, or led nowhere */
	RECORD_HOW_DRAIN,   /* a drain cut it */
	RECORD_HOW_POLICY,  /* a change of policies cut it */
	RECORD_HOW_REVOKED, /* a CRL did */
};

/* The stop-watch of one connection; embed it, zeroed. */
struct record_clock {
	uint64_t start_us;             /* clock_us() when it came; 0 = not started */
	uint64_t lap_us;               /* and when the present phase began */
	uint32_t us[RECORD_PHASE_CNT]; /* of the phases */
	uint8_t present;               /* bit (1 << enum record_phase) of those gone through */
	uint8_t by;                    /* enum record_by when the owner knows better; else 0 */
};

_Static_assert(RECORD_PHASE_CNT <= 8, "bits of record_clock.present");

/* One event. */
struct record_event {
	uint64_t seq;     /* from 1, without gaps */
	uint64_t wall_us; /* CLOCK_REALTIME of the beginning */
	uint64_t duration_us;
	uint64_t sent;     /* bytes, as the access log counts them */
	uint64_t received; /* likewise */
	uint32_t us[RECORD_PHASE_CNT];
	uint8_t present;  /* see record_clock */
	uint8_t by;       /* enum record_by */
	uint8_t how;      /* enum record_how */
	uint8_t flag;     /* enum response_flag */
	uint8_t attempts; /* endpoints tried */
	uint8_t tunnels;  /* that its far side (outbound) or near side (inbound) lies in: 0, 1, 2 */
	bool is_inbound;
	struct addr src;
	struct addr original_dst; /* what the client dialled; the tunnel's end for HBONE inbound */
	struct addr actual_dst;   /* where its way led; family 0 = it led nowhere */
	/* Texts, terminated; "" = none. In the recorder they stand behind the event. */
	const char *peer;  /* SPIFFE id at the other end of the tunnel */
	const char *error; /* the access log's */
};

/* Starts the watch; again = from zero. */
void record_start(struct record_clock *clock);

/* Since the last lap it was `phase` that took the time. */
void record_lap(struct record_clock *clock, enum record_phase phase);

/* The same for a phase that ended at `at_us` (clock_us); nothing if that was before the last lap. */
void record_lap_at(struct record_clock *clock, enum record_phase phase, uint64_t at_us);

/* Takes over the phases that somebody else went through for this connection (its tunnel). */
void record_borrow(struct record_clock *clock, const struct record_clock *from);

/*
 * A connection is over: fills in times, bytes and end from clock, pump (NULL = nothing was ever copied) and
 * error (NULL = none) and enters the event. The caller has filled in addresses, peer, attempts, tunnels and
 * is_inbound; sent and received are the access log's. Without memory it is forgotten.
 */
void recorder_add(struct silo *silo, const struct record_clock *clock, const struct pump *pump,
        const char *error, struct record_event *event);

/* The same for an inbound connection that nobody let in: from `src` to `dst`, by `peer` (NULL = not known).
 */
void recorder_add_denied(struct silo *silo, const struct record_clock *clock, const struct addr *src,
        const struct addr *dst, const char *peer, const char *error);

/* The number of the last event; 0 = there was none. */
uint64_t recorder_last(const struct silo *silo);

/* The number of the oldest event that is still held; 0 = none is. */
uint64_t recorder_first(const struct silo *silo);

/* Reads event `seq`; false = it is not held. Its texts are borrowed until the next recorder_add(). */
bool recorder_get(const struct silo *silo, uint64_t seq, struct record_event *ret_event);

/* Somebody who waits for the next event; embed it. */
struct record_wait {
	struct list node;                        /* at the recorder, or detached */
	void (*on_event)(struct record_wait *w); /* in the turn after it; once, then it must be added again */
};

/* Waits; 0, or -ENOMEM. The node must have been list_init()ed. */
int recorder_wait(struct silo *silo, struct record_wait *wait);

/* Frees everything; who waits is forgotten. */
void recorder_done(struct silo *silo);

#endif
