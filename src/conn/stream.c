/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all streams do alike with their bytes. Knows no socket and no HTTP/2. */
#include "conn/stream.h"

/* A chunk that is less than 1/8 full is copied into the room behind it rather than queued as it is. */
#define SPARSE_SHIFT 3

void stream_absorb(struct chain *to, struct chain *from)
{
	struct chunk *c;
	while ((c = chain_take(from))) {
		bool is_sparse = c->len < c->cap >> SPARSE_SHIFT;
		if (is_sparse && to->tail && chunk_room(to->tail) >= c->len &&
		        chain_write(to, c->pool, chunk_bytes(c), c->len) == 0)
			chunk_free(c);
		else
			chain_append(to, c);
	}
}
