/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is wanted of one pod: who it is, where its namespace is, which
 * addresses it has and how it is captured. The same YAML map describes a pod
 * in a pods file, in the state directory and in a request on the control
 * socket (JSON is YAML). Immutable after it was made; knows no socket and no
 * kernel object.
 */
#ifndef CULVERT_CNI_AGENT_POD_H
#define CULVERT_CNI_AGENT_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "culvert/records.h"
#include "yaml/yaml.h"

/* Addresses of one pod; Kubernetes gives one of each family, multi-homed pods a few more. */
#define POD_IPS_MAX 16
/* Virtual interfaces of one pod; one per nested machine. */
#define POD_IFS_MAX 32
/* Bytes of a path to a namespace (path_resolution(7)). */
#define POD_PATH_MAX 4095
/* Bytes an arena needs at most for one pod. */
#define POD_ARENA_MAX 16384

/* A setting that may be left to the agent's default. */
enum pod_choice { POD_DEFAULT = 0, POD_ON, POD_OFF };

/* A pod as wanted; lives in its arena. */
struct pod_spec {
	struct arena *arena;       /* owns this struct and all below; one reference per holder */
	const char *uid;           /* opaque name, never "" */
	struct workload_info info; /* name, namespace, service account */
	const char *netns;         /* path of the network namespace; NULL when pid is set */
	pid_t pid;                 /* a process in the namespace; 0 when netns is set */
	const struct ip *ips;      /* its addresses */
	size_t ip_cnt;             /* 1 to POD_IPS_MAX */
	enum pod_choice dns;       /* annotation ambient.istio.io/dns-capture */
	bool is_ingress;           /* annotation ambient.istio.io/bypass-inbound-capture */
	const char *const *ifs;    /* annotation istio.io/reroute-virtual-interfaces */
	size_t if_cnt;             /* up to POD_IFS_MAX */
};

/* A node of a list of specs. */
struct pod_entry {
	struct list node;
	const struct pod_spec *spec; /* one reference */
};

/*
 * Reads one pod. Refused with file, line and key: unknown keys, wrong types,
 * empty or unprintable names, a pod that does not fit a ZDS packet, both or
 * none of netns and pid. 0, -EINVAL, -ENOMEM.
 */
int pod_spec_read(const struct yaml_node *node, const struct pod_spec **ret_spec, struct err *err);

/* One more reference; returns spec. */
const struct pod_spec *pod_spec_ref(const struct pod_spec *spec);

/* One reference less. NULL is fine. */
void pod_spec_unref(const struct pod_spec *spec);

/* Whether all members agree. */
bool pod_spec_eq(const struct pod_spec *a, const struct pod_spec *b);

/* Whether name, namespace and service account agree. */
bool pod_info_eq(const struct workload_info *a, const struct workload_info *b);

/* Whether an interface name is safe in a rule: 1 to 15 of letters, digits and _.:- (the kernel's IFNAMSIZ -
 * 1). */
bool pod_if_valid(const char *name);

/* Opens an object's members in the form that pod_spec_read takes; the caller opens and closes the object. */
void pod_spec_members(const struct pod_spec *spec, struct json *json);

/*
 * Reads a document of pods (top key `pods:`, an empty document has none) and
 * appends a pod_entry for each to pods. A uid that is there already is
 * refused. 0, -EINVAL, -E2BIG, -ENOMEM; pods is unchanged then.
 */
int pod_list_parse(const char *file, const char *text, size_t len, struct list *pods, struct err *err);

/* Like pod_list_parse for a file, or for each *.yaml and *.yml of a directory in the order of their names. */
int pod_list_load(const char *path, struct list *pods, struct err *err);

/* Frees all entries. */
void pod_list_done(struct list *pods);

/* The spec with that uid in a list, or NULL. */
const struct pod_spec *pod_list_find(const struct list *pods, const char *uid);

#endif
