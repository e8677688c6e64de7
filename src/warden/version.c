/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was built from what. The warden links no TLS: the build says which wolfSSL the others have. */
#include "warden/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warden_revision.h"

#define DIRTY "-dirty"

char *version_line(char *dst)
{
	const char *istio = getenv("ISTIO_META_ISTIO_VERSION");
	size_t len = strlen(CULVERT_GIT_REVISION);
	size_t dirty_len = strlen(DIRTY);
	int is_dirty = len > dirty_len && strcmp(&CULVERT_GIT_REVISION[len - dirty_len], DIRTY) == 0;
	snprintf(dst, VERSION_LINE_MAX,
	        "version.BuildInfo{Version:\"%s\", GitRevision:\"%.*s\", RustVersion:\"none\", BuildProfile:\"%s\", BuildStatus:\"%s\", "
	        "IstioVersion:\"%s\", CryptoProvider:\"wolfssl-%s\"}",
	        CULVERT_VERSION, (int)(is_dirty ? len - dirty_len : len), CULVERT_GIT_REVISION,
	        CULVERT_BUILD_TYPE, is_dirty ? "Modified" : "Clean", istio ? istio : "unknown",
	        CULVERT_WOLFSSL_VERSION);
	return dst;
}

void version_print_help(void)
{
	char line[VERSION_LINE_MAX];
	printf("\n"
	       "culvert (%s)\n"
	       "\n"
	       "Usage: culvertd [COMMAND]\n"
	       "\n"
	       "Commands:\n"
	       "  proxy    run the node's data plane (also without a command; further words are ignored)\n"
	       "  version  print what this is built from\n"
	       "  help     print this text\n"
	       "\n"
	       "Settings come from the environment, see culvertd(8).\n",
	        version_line(line));
}
