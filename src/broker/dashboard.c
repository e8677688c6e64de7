/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page's files with their headers; see dashboard.h. Knows nothing of what the page shows. */
#include "broker/dashboard.h"

#include <string.h>

#include "conn/web.h"
#include "dashboard_files.h"

/* The page loads its own files, asks its own server, and is in nobody's frame: a name in the mesh that is
 * markup stays text. */
static const char POLICY[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                             "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct file {
	const char *path;
	const char *type;
	const unsigned char *bytes;
	size_t len;
} FILES[] = {
        {"/culvert/", "text/html; charset=utf-8", dashboard_index_html, sizeof(dashboard_index_html)},
        {"/culvert/dashboard.css", "text/css; charset=utf-8", dashboard_dashboard_css,
                sizeof(dashboard_dashboard_css)},
        {"/culvert/dashboard.js", "text/javascript; charset=utf-8", dashboard_dashboard_js,
                sizeof(dashboard_dashboard_js)},
};

void dashboard_serve(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)ctx;
	for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]); i++) {
		const struct file *file = &FILES[i];
		const struct http_header headers[] = {
		        {.name = "content-type", .value = file->type},
		        {.name = "content-security-policy", .value = POLICY},
		        {.name = "x-content-type-options", .value = "nosniff"},
		        {.name = "referrer-policy", .value = "no-referrer"},
		        {.name = "cache-control", .value = "no-store"},
		};
		if (strcmp(request->path, file->path) != 0)
			continue;
		web_reply_fields(
		        conn, 200, headers, sizeof(headers) / sizeof(headers[0]), file->bytes, file->len);
		return;
	}
	web_reply(conn, 404, NULL, NULL, 0);
}
