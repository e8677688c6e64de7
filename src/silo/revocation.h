/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CRLs of a silo, as the broker hands them over (reference dataplane.md 12). */
#ifndef CULVERT_SILO_REVOCATION_H
#define CULVERT_SILO_REVOCATION_H

#include <stdbool.h>

struct silo;

/* Prepares for CRLs if CRL_PATH is set. 0 or -ENOMEM. */
int revocation_init(struct silo *silo);

/* Frees them; after all sessions and identities. */
void revocation_done(struct silo *silo);

/* Counts the end `code` of a link if a CRL was the cause. */
void revocation_note(struct silo *silo, bool is_inbound, int code);

/* Takes the content that `fd` holds over and judges all peers by it; a bad one leaves the former. The
 * descriptor stays the caller's. */
void revocation_on_file(struct silo *silo, int fd);

#endif
