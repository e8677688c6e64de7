/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node of a document, shared by the parser and the accessors only. */
#ifndef CULVERT_YAML_INT_H
#define CULVERT_YAML_INT_H

#include "yaml/yaml.h"

/* What `up` of a node is. */
enum yaml_place {
	YAML_AT_TOP = 0, /* nothing above; file names the document */
	YAML_IN_LIST,    /* up = the list, index = position */
	YAML_IS_KEY,     /* up = the map */
	YAML_IS_VALUE,   /* up = the key */
};

struct yaml_node {
	const struct yaml_node *up;
	struct yaml_node *next; /* list: next element; map: key -> value -> next key */
	union {
		const char *text;        /* scalar, terminated */
		struct yaml_node *first; /* list, map */
	};
	const char *tag;  /* "" = none */
	const char *file; /* YAML_AT_TOP only: name for messages */
	uint32_t line;
	uint32_t index;
	uint32_t cnt;  /* children; a pair counts once */
	uint8_t kind;  /* enum yaml_kind */
	uint8_t place; /* enum yaml_place */
	bool is_plain; /* a scalar without quotes */
};

#endif
