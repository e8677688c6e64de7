/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of the control socket out of JSON, by the strict YAML reader. */
#include "request.h"

#include <errno.h>

#include "base/mem.h"

/* Name of the text in messages. */
#define TEXT_NAME "request"

static int parse_add(const struct yaml_node *node, struct request *req, struct err *err)
{
	req->kind = REQUEST_ADD;
	return pod_spec_read(node, &req->spec, err);
}

static int parse_del(const struct yaml_node *node, struct request *req, struct err *err)
{
	static const struct yaml_key keys[] = {{"uid", true}};
	const struct yaml_node *uid;
	const char *text;
	int rc = yaml_map(node, keys, 1, false, &uid, err);
	if (rc == 0)
		rc = yaml_str(uid, &text, err);
	if (rc < 0)
		return rc;
	req->kind = REQUEST_DEL;
	req->uid = mem_strdup(text);
	return req->uid ? 0 : err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
}

static int parse_list(const struct yaml_node *node, struct request *req, struct err *err)
{
	req->kind = REQUEST_LIST;
	return yaml_map(node, NULL, 0, false, NULL, err);
}

static int parse_root(const struct yaml_node *root, struct request *req, struct err *err)
{
	enum { ADD, DEL, LIST, CNT };
	static const struct yaml_key keys[CNT] = {
	        [ADD] = {"add", false}, [DEL] = {"del", false}, [LIST] = {"list", false}};
	const struct yaml_node *values[CNT];
	int rc = yaml_map(root, keys, CNT, false, values, err);
	if (rc < 0)
		return rc;
	if (!!values[ADD] + !!values[DEL] + !!values[LIST] != 1)
		return yaml_error(root, err, "one of the keys `add`, `del`, `list` is expected");
	if (values[ADD])
		return parse_add(values[ADD], req, err);
	if (values[DEL])
		return parse_del(values[DEL], req, err);
	return parse_list(values[LIST], req, err);
}

int request_parse(const char *text, size_t len, struct request *ret_req, struct err *err)
{
	const struct yaml_limits limits = {.text_max = REQUEST_MAX, .node_max = 512, .depth_max = 8};
	struct yaml_doc *doc;
	struct request req = {.kind = REQUEST_LIST};
	int rc = yaml_parse(TEXT_NAME, text, len, &limits, &doc, err);
	if (rc < 0)
		return rc;
	rc = parse_root(yaml_root(doc), &req, err);
	yaml_doc_free(doc);
	if (rc == 0)
		*ret_req = req;
	return rc;
}

void request_done(struct request *req)
{
	pod_spec_unref(req->spec);
	mem_free(req->uid);
	*req = (struct request){.kind = REQUEST_LIST};
}

void answer_write(enum pod_outcome outcome, const char *error, struct buf *out)
{
	static const char *const names[] = {
	        [POD_DONE] = "done", [POD_WAITS] = "pending", [POD_REFUSED] = "refused"};
	struct json json;
	json_init(&json, out, false);
	json_obj(&json);
	json_kv_str(&json, "outcome", names[outcome]);
	if (error)
		json_kv_str(&json, "error", error);
	json_obj_end(&json);
	buf_add_str(out, "\n");
}
