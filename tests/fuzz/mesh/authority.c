/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a CONNECT authority and as an identity: what parses must print back to the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/identity.h"
#include "mesh/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_authority(const char *text, size_t len)
{
	struct route_authority a, again;
	char back[ROUTE_AUTHORITY_MAX + 8];

	if (route_authority_parse(text, len, &a) < 0)
		return;
	if (a.is_host) {
		snprintf(back, sizeof(back), "%s:%u", a.host, a.port);
	} else {
		struct addr addr = {.ip = a.ip, .port = a.port};
		addr_format(&addr, back);
	}
	if (route_authority_parse(back, strlen(back), &again) < 0 || again.is_host != a.is_host ||
	        again.port != a.port)
		abort();
}

static void check_identity(const char *text, size_t len)
{
	struct identity id;
	char back[IDENTITY_STR_MAX];

	if (identity_parse(text, len, &id) < 0)
		return;
	int n = identity_format(&id, back, sizeof(back));
	if (n < 0 || (size_t)n != len || memcmp(back, text, len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check_authority((const char *)data, len);
	check_identity((const char *)data, len);
	return 0;
}
