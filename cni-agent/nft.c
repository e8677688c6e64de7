/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs nftables text through libnftables and keeps its messages off our stderr. */
#include "nft.h"

#include <errno.h>
#include <nftables/libnftables.h>
#include <string.h>

int nft_run(const char *commands, struct err *err)
{
	struct nft_ctx *ctx = nft_ctx_new(NFT_CTX_DEFAULT);
	if (!ctx)
		return err_set(err, -ENOMEM, "nftables: %s", err_str(-ENOMEM));
	int rc = nft_ctx_buffer_output(ctx) || nft_ctx_buffer_error(ctx) ? -ENOMEM : 0;
	if (rc < 0) {
		err_set(err, rc, "nftables: %s", err_str(rc));
	} else if (nft_run_cmd_from_buffer(ctx, commands) != 0) {
		const char *text = nft_ctx_get_error_buffer(ctx);
		/* The first line says what, the others point into the text. */
		rc = err_set(err, -EIO, "nftables: %.*s", (int)strcspn(text, "\n"), text);
	}
	nft_ctx_free(ctx);
	return rc;
}
