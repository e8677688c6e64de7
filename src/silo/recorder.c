/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events lie behind each other in one block that is filled round and round; an
 * index of offsets finds them by number. One block, because 256 small pieces
 * would pin the pages of everything freed around them. See recorder.h.
 */
#include "silo/recorder.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "conn/pump.h"
#include "mesh/identity.h"
#include "silo/silo.h"

struct recorder {
	struct silo *silo;
	uint64_t last;                         /* number of the newest event */
	size_t cnt;                            /* events held: last - cnt + 1 .. last */
	size_t write;                          /* where the next one goes, if it fits there */
	uint8_t *bytes;                        /* of RECORDER_BYTES_MAX; NULL = no event yet */
	uint32_t offsets[RECORDER_EVENTS_MAX]; /* by seq % RECORDER_EVENTS_MAX */
	struct list waits;                     /* struct record_wait */
	struct io_task wake;
};

/* --- the watch ----------------------------------------------------------- */

void record_start(struct record_clock *clock)
{
	uint64_t now = clock_us();
	*clock = (struct record_clock){.start_us = now, .lap_us = now};
}

/* Adds to a phase; stays at the maximum instead of wrapping (71 minutes). */
static void add_time(struct record_clock *clock, enum record_phase phase, uint64_t us)
{
	uint64_t sum = clock->us[phase] + us;
	clock->us[phase] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	clock->present |= (uint8_t)(1u << phase);
}

void record_lap_at(struct record_clock *clock, enum record_phase phase, uint64_t at_us)
{
	if (at_us <= clock->lap_us)
		return;
	add_time(clock, phase, at_us - clock->lap_us);
	clock->lap_us = at_us;
}

void record_lap(struct record_clock *clock, enum record_phase phase)
{
	uint64_t now = clock_us();
	add_time(clock, phase, now > clock->lap_us ? now - clock->lap_us : 0);
	clock->lap_us = now;
}

void record_borrow(struct record_clock *clock, const struct record_clock *from)
{
	for (size_t i = 0; i < RECORD_PHASE_CNT; i++) {
		if (from->present & (1u << i))
			add_time(clock, (enum record_phase)i, from->us[i]);
	}
}

/* --- the ring ------------------------------------------------------------ */

static void wake_all(struct io_task *task)
{
	struct recorder *rec = list_entry(task, struct recorder, wake);
	struct list all;
	/* Who waits again meanwhile waits for the next event. */
	list_init(&all);
	list_move_all(&all, &rec->waits);
	while (!list_empty(&all)) {
		struct record_wait *wait = list_entry(all.next, struct record_wait, node);
		list_del(&wait->node);
		wait->on_event(wait);
	}
}

static struct recorder *recorder_of(struct silo *silo)
{
	if (silo->recorder)
		return silo->recorder;
	struct recorder *rec = mem_zalloc(1, sizeof(*rec));
	if (!rec)
		return NULL;
	rec->silo = silo;
	list_init(&rec->waits);
	io_task_init(&rec->wake, wake_all);
	silo->recorder = rec;
	return rec;
}

void recorder_done(struct silo *silo)
{
	struct recorder *rec = silo->recorder;
	if (!rec)
		return;
	io_undefer(&rec->wake);
	while (!list_empty(&rec->waits))
		list_del(rec->waits.next);
	mem_free(rec->bytes);
	mem_free(rec);
	silo->recorder = NULL;
}

static size_t offset_of(const struct recorder *rec, uint64_t seq)
{
	return rec->offsets[seq % RECORDER_EVENTS_MAX];
}

static size_t oldest_offset(const struct recorder *rec)
{
	return offset_of(rec, rec->last - rec->cnt + 1);
}

/* Makes room for len bytes, the oldest events go; returns where. */
static size_t make_room(struct recorder *rec, size_t len)
{
	if (rec->cnt == RECORDER_EVENTS_MAX)
		rec->cnt--;
	if (rec->write + len > RECORDER_BYTES_MAX) {
		/* Those that lie between here and the block's end are older than all from its beginning. */
		while (rec->cnt > 0 && oldest_offset(rec) >= rec->write)
			rec->cnt--;
		rec->write = 0;
	}
	while (rec->cnt > 0 && oldest_offset(rec) >= rec->write && oldest_offset(rec) < rec->write + len)
		rec->cnt--;
	return rec->write;
}

static size_t text_len(const char *text, size_t max)
{
	return text ? strnlen(text, max) : 0;
}

/* Copies the event with its texts behind it. */
static void enter(struct recorder *rec, const struct record_event *event)
{
	size_t peer_len = text_len(event->peer, IDENTITY_STR_MAX);
	size_t error_len = text_len(event->error, RECORDER_ERROR_MAX);
	size_t len = sizeof(*event) + peer_len + 1 + error_len + 1;
	len = (len + alignof(struct record_event) - 1) & ~(alignof(struct record_event) - 1);
	size_t at = make_room(rec, len);
	struct record_event *copy = (struct record_event *)(void *)(rec->bytes + at);
	char *peer = (char *)(copy + 1);
	char *error = peer + peer_len + 1;
	*copy = *event;
	copy->seq = ++rec->last;
	copy->peer = peer;
	copy->error = error;
	if (peer_len)
		memcpy(peer, event->peer, peer_len);
	peer[peer_len] = '\0';
	if (error_len)
		memcpy(error, event->error, error_len);
	error[error_len] = '\0';
	rec->offsets[rec->last % RECORDER_EVENTS_MAX] = (uint32_t)at;
	rec->write = at + len;
	rec->cnt++;
}

/* --- events -------------------------------------------------------------- */

static bool is_error(const char *error, int code)
{
	return error && strcmp(error, err_str(code)) == 0;
}

/* How our own hand ended it. */
static enum record_how how_by_us(const char *error, const struct record_event *event)
{
	if (is_error(error, ERR_DRAINED))
		return RECORD_HOW_DRAIN;
	if (is_error(error, ERR_POLICY_CHANGE))
		return RECORD_HOW_POLICY;
	if (is_error(error, ERR_REVOKED))
		return RECORD_HOW_REVOKED;
	/* Nobody was asked to take it. */
	return event->attempts ? RECORD_HOW_ERROR : RECORD_HOW_REFUSED;
}

/* Who ended it and how: what we cut is ours, whoever had ended one direction before. */
static void judge_end(const struct record_clock *clock, const struct pump *pump, const char *error,
        struct record_event *event)
{
	const struct pump_story story = pump ? pump_story(pump) : (struct pump_story){0};
	enum record_how ours = how_by_us(error, event);
	bool is_cut = ours != RECORD_HOW_ERROR && ours != RECORD_HOW_REFUSED;
	if (is_cut || (!clock->by && story.first == PUMP_FIRST_NONE)) {
		event->by = RECORD_BY_PROXY;
		event->how = (uint8_t)ours;
		return;
	}
	event->by = clock->by                        ? clock->by
	            : story.first == PUMP_FIRST_DOWN ? RECORD_BY_CLIENT
	                                             : RECORD_BY_SERVER;
	event->how = !story.is_broken && !clock->by ? RECORD_HOW_END
	             : error && error[0]            ? RECORD_HOW_ERROR
	                                            : RECORD_HOW_RESET;
}

void recorder_add(struct silo *silo, const struct record_clock *clock, const struct pump *pump,
        const char *error, struct record_event *event)
{
	struct recorder *rec = recorder_of(silo);
	if (rec && !rec->bytes)
		rec->bytes = mem_alloc(RECORDER_BYTES_MAX);
	if (!rec || !rec->bytes)
		return;
	struct record_clock total = *clock;
	uint64_t now = clock_us();
	if (pump && pump_story(pump).first_byte_us)
		record_lap_at(&total, RECORD_FIRST_BYTE, pump_story(pump).first_byte_us);
	memcpy(event->us, total.us, sizeof(event->us));
	event->present = total.present;
	event->duration_us = now > clock->start_us ? now - clock->start_us : 0;
	event->wall_us = clock_wall_us() - event->duration_us;
	event->flag = (uint8_t)err_text_flag(error);
	event->error = error;
	judge_end(clock, pump, error, event);
	enter(rec, event);
	if (!list_empty(&rec->waits))
		io_defer(silo->io, &rec->wake, IO_PHASE_WORK);
}

void recorder_add_denied(struct silo *silo, const struct record_clock *clock, const struct addr *src,
        const struct addr *dst, const char *peer, const char *error)
{
	struct record_event event = {.is_inbound = true,
	        .src = *src,
	        .original_dst = *dst,
	        .tunnels = dst->port == ROUTE_PORT_INBOUND,
	        .peer = peer};
	recorder_add(silo, clock, NULL, error, &event);
}

uint64_t recorder_last(const struct silo *silo)
{
	return silo->recorder ? silo->recorder->last : 0;
}

uint64_t recorder_first(const struct silo *silo)
{
	const struct recorder *rec = silo->recorder;
	return rec && rec->cnt ? rec->last - rec->cnt + 1 : 0;
}

bool recorder_get(const struct silo *silo, uint64_t seq, struct record_event *ret_event)
{
	const struct recorder *rec = silo->recorder;
	if (!rec || rec->cnt == 0 || seq > rec->last || seq < rec->last - rec->cnt + 1)
		return false;
	*ret_event = *(const struct record_event *)(const void *)(rec->bytes + offset_of(rec, seq));
	return true;
}

int recorder_wait(struct silo *silo, struct record_wait *wait)
{
	struct recorder *rec = recorder_of(silo);
	if (!rec)
		return -ENOMEM;
	list_add_tail(&rec->waits, &wait->node);
	return 0;
}
