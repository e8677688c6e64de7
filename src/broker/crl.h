/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CRL file (CRL_PATH): read, checked, watched, and handed to every silo as
 * a descriptor of its content (reference dataplane.md 12.1).
 */
#ifndef CULVERT_BROKER_CRL_H
#define CULVERT_BROKER_CRL_H

struct broker;
struct crl;
struct ring_chan;

/*
 * Reads the file that the settings name and watches its folder; *ret_crl is NULL when none is named, or when
 * what is there now is no CRL: revocation is then off until the next start, as upstream has it. 0 or -ENOMEM.
 */
int crl_new(struct broker *broker, struct crl **ret_crl);

/* Ends it. NULL is fine. */
void crl_free(struct crl *crl);

/* Sends the present content over a silo's channel; nothing if there is none yet. NULL is fine. */
void crl_send(const struct crl *crl, struct ring_chan *chan);

#endif
