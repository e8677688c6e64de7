/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl trace POD`: the pod's flight recorder as lines, the events held first, then each as it comes.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"
#include "ctl/pods.h"
#include "ctl/table.h"

/* How long the silo holds an empty answer back, ms: below the patience of a request. */
#define WAIT_MS 2000
/* While a silo is being replaced nobody answers: tries, and the pause between them, ms. */
#define RETRIES 40
#define PAUSE_MS 250
/* Bytes of one line. */
#define LINE_MAX_LEN 4096

/* A place in a pod's events. */
struct trace {
	const struct ctl *ctl;
	const struct client *client;
	const struct pod_ref *pod;
	uint64_t after; /* number of the last event seen */
};

static double number(const cJSON *object, const char *key)
{
	const cJSON *value = cJSON_GetObjectItem(object, key);
	return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

static void put_duration(struct buf *line, const char *word, double us)
{
	if (us < 1000)
		buf_printf(line, " %s=%.0fus", word, us);
	else if (us < 1000000)
		buf_printf(line, " %s=%.1fms", word, us / 1000);
	else
		buf_printf(line, " %s=%.2fs", word, us / 1000000);
}

static void put_phases(struct buf *line, const cJSON *phases)
{
	const cJSON *phase;
	cJSON_ArrayForEach(phase, phases) if (cJSON_IsNumber(phase) && phase->string)
	        put_duration(line, phase->string, phase->valuedouble);
}

static void put_text(struct buf *line, const char *word, const char *text)
{
	if (text[0] && strcmp(text, "-") != 0)
		buf_printf(line, " %s=%s", word, text);
}

static void print_event(const struct trace *trace, const cJSON *event)
{
	FILE *out = trace->ctl->out;
	struct buf line;
	const char *actual = dump_str(event, "actualDst");
	if (trace->ctl->output == CTL_OUTPUT_JSON) {
		emit_line(out, event);
		fputc('\n', out);
		return;
	}
	buf_init(&line, LINE_MAX_LEN);
	buf_printf(&line, "%s %-8s %-11s %s -> %s", dump_str(event, "time"), dump_str(event, "direction"),
	        dump_str(event, "protocol"), dump_str(event, "src"), dump_str(event, "originalDst"));
	put_text(&line, "via", strcmp(actual, dump_str(event, "originalDst")) ? actual : "");
	put_text(&line, "peer", dump_str(event, "peerIdentity"));
	put_duration(&line, "total", number(event, "durationMicroseconds"));
	put_phases(&line, cJSON_GetObjectItem(event, "phases"));
	buf_printf(&line, " sent=%.0f received=%.0f closed=%s/%s", number(event, "sent"),
	        number(event, "received"), dump_str(event, "closedBy"), dump_str(event, "closeReason"));
	put_text(&line, "flags", dump_str(event, "flags"));
	put_text(&line, "error", dump_str(event, "error"));
	char *text = (char *)(uintptr_t)buf_cstr(&line);
	if (text) {
		table_make_printable(text);
		fprintf(out, "%s\n", text);
	}
	buf_done(&line);
}

/* Prints one answer. -EPROTO, or -EPIPE when nobody reads any more. */
static int print_answer(struct trace *trace, const cJSON *json, struct err *err)
{
	const cJSON *events = cJSON_GetObjectItem(json, "events");
	const cJSON *event;
	double missed = number(json, "missed");
	double last = number(json, "lastSeq");
	if (!cJSON_IsArray(events) || !(last >= 0 && last < 9e15))
		return err_set(err, -EPROTO, "culvertd's answer holds no events");
	/* At the beginning everything is missed that the silo has forgotten. */
	if (missed > 0 && trace->after > 0)
		fprintf(trace->ctl->notes, "culvertctl: %.0f events came too fast and are lost\n", missed);
	cJSON_ArrayForEach(event, events) if (cJSON_IsObject(event)) print_event(trace, event);
	trace->after = (uint64_t)last;
	if (fflush(trace->ctl->out) != 0)
		return err_sys(err, -errno, "writing the output");
	return 0;
}

/* Asks once. -ECONNREFUSED and -EPROTO may mean that the silo has just ended. */
static int ask(struct trace *trace, bool is_first, struct err *err)
{
	char path[96];
	struct answer answer;
	if (is_first)
		snprintf(path, sizeof(path), "/events");
	else
		snprintf(path, sizeof(path), "/events?after=%" PRIu64 "&wait=%d", trace->after, WAIT_MS);
	int r = client_json(trace->client, trace->pod->socket, path, &answer, err);
	if (r < 0)
		return r == -EPROTO ? -ECONNREFUSED : r;
	r = print_answer(trace, answer.json, err);
	answer_done(&answer);
	return r;
}

static int follow(struct trace *trace, struct err *err)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000l};
	unsigned failures = 0;
	for (;;) {
		int r = ask(trace, false, err);
		failures = r == -ECONNREFUSED ? failures + 1 : 0;
		if (r < 0 && (failures == 0 || failures > RETRIES))
			return r;
		if (r < 0)
			nanosleep(&pause, NULL);
	}
}

int cmd_trace(const struct ctl *ctl, struct err *err)
{
	struct client client;
	struct pod_ref pod;
	const char *socket;
	int r = pods_open(ctl, ctl->words[0], &client, &pod, &socket, err);
	if (r < 0)
		return r;
	struct trace trace = {.ctl = ctl, .client = &client, .pod = &pod};
	r = ask(&trace, true, err);
	if (r == 0 && !ctl->options[CTL_OPT_ONCE])
		r = follow(&trace, err);
	client_done(&client);
	return r;
}
