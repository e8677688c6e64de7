/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Giving up privileges: capabilities, ids, no_new_privs, resource limits
 * (capabilities(7), prctl(2)). Each call affects the calling process only.
 * Knows no settings and no other process.
 */
#ifndef CULVERT_WARDEN_DROP_H
#define CULVERT_WARDEN_DROP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Bit of a capability number in a set. */
#define DROP_CAP(number) (UINT64_C(1) << (number))

/* Effective capabilities. -errno. */
int drop_caps_held(uint64_t *ret_caps);

/*
 * Permitted and effective become what is held of keep, inheritable and ambient
 * the part of it that heirs may have; with CAP_SETPCAP the bounding set loses
 * everything but heirs first. Missing members of keep are no error. -errno
 * with text.
 */
int drop_caps(uint64_t keep, uint64_t heirs, struct err *err);

/* No exec of this process and its children ever grants anything again. -errno with text. */
int drop_no_new_privs(struct err *err);

/* Changes to uid for good (needs CAP_SETUID), dropping supplementary groups where allowed; the gid stays.
 * Keeps permitted capabilities: call drop_caps after it. -errno with text. */
int drop_uid(uid_t uid, struct err *err);

/* Soft limit of descriptors up to the hard one; locked memory to infinity where CAP_SYS_RESOURCE is held,
 * else up to the hard one. -errno of the first that failed. */
int drop_raise_limits(void);

/* Version of the Landlock interface, 0 when the kernel has none. */
int drop_landlock_abi(void);

/* Appends names of the capabilities of the set, lower case, blank between ("none" for an empty one). */
void drop_caps_text(uint64_t caps, struct buf *out);

#endif
