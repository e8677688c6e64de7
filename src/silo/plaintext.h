/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inbound plaintext captured on 15006: policy without identity, then to the application (reference
 * dataplane.md 9). */
#ifndef CULVERT_SILO_PLAINTEXT_H
#define CULVERT_SILO_PLAINTEXT_H

struct silo;

/* Takes an accepted descriptor over. */
void plaintext_accept(struct silo *silo, int fd);

#endif
