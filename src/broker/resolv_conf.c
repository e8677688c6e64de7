/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resolv.conf(5) and hosts(5); see resolv_conf.h. */
#include "broker/resolv_conf.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* Most that options ndots: may ask for (resolv.conf(5)). */
#define NDOTS_MAX 15
/* Most seconds and attempts that options may ask for (resolv.conf(5)). */
#define TIMEOUT_MAX 30
#define ATTEMPTS_MAX 5
#define DNS_PORT 53

/* A word of a line, borrowed. */
struct word {
	const char *at;
	size_t len;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word in [*at, end), false when there is none before a comment. */
static bool next_word(const char **at, const char *end, struct word *ret_word)
{
	while (*at < end && is_blank(**at))
		(*at)++;
	if (*at == end || **at == '#' || **at == ';')
		return false;
	ret_word->at = *at;
	while (*at < end && !is_blank(**at))
		(*at)++;
	ret_word->len = (size_t)(*at - ret_word->at);
	return true;
}

/* The next line in [*at, end), false at the end. */
static bool next_line(const char **at, const char *end, struct word *ret_line)
{
	if (*at == end)
		return false;
	const char *stop = memchr(*at, '\n', (size_t)(end - *at));
	ret_line->at = *at;
	ret_line->len = (size_t)((stop ? stop : end) - *at);
	*at = stop ? stop + 1 : end;
	return true;
}

static bool is_word(const struct word *word, const char *text)
{
	return word->len == strlen(text) && memcmp(word->at, text, word->len) == 0;
}

static void take_server(const struct word *word, struct resolv_conf *conf)
{
	struct addr *server = &conf->servers[conf->server_cnt];
	/* A zone (fe80::1%eth0) names an interface, which a link-local server would need: such are skipped.
	 */
	if (conf->server_cnt == RESOLV_SERVER_MAX || ip_parse(word->at, word->len, &server->ip) < 0)
		return;
	server->port = DNS_PORT;
	conf->server_cnt++;
}

static void take_search(const struct word *word, struct resolv_conf *conf)
{
	size_t len = word->len;
	if (len > 0 && word->at[len - 1] == '.')
		len--;
	if (conf->search_cnt == RESOLV_SEARCH_MAX || len == 0 || len >= DNS_TEXT_MAX)
		return;
	memcpy(conf->search[conf->search_cnt], word->at, len);
	conf->search[conf->search_cnt++][len] = '\0';
}

/* The number of an option `name` (which ends with a colon), at most max; false when the word is not that
 * option. */
static bool option_number(const struct word *word, const char *name, uint64_t max, uint64_t *ret_value)
{
	size_t len = strlen(name);
	if (word->len <= len || memcmp(word->at, name, len) != 0 ||
	        num_parse(word->at + len, word->len - len, UINT32_MAX, ret_value) < 0)
		return false;
	if (*ret_value > max)
		*ret_value = max;
	return true;
}

static void take_option(const struct word *word, struct resolv_conf *conf)
{
	uint64_t value;
	if (option_number(word, "ndots:", NDOTS_MAX, &value))
		conf->ndots = (unsigned)value;
	else if (option_number(word, "timeout:", TIMEOUT_MAX, &value) && value > 0)
		conf->timeout_ms = (uint32_t)value * 1000;
	else if (option_number(word, "attempts:", ATTEMPTS_MAX, &value) && value > 0)
		conf->attempts = (uint32_t)value;
	else if (is_word(word, "edns0"))
		conf->edns = true;
}

static void take_line(const struct word *line, struct resolv_conf *conf)
{
	const char *at = line->at;
	const char *end = at + line->len;
	struct word key;
	struct word word;
	if (!next_word(&at, end, &key))
		return;
	bool is_search = is_word(&key, "search") || is_word(&key, "domain");
	/* The last list counts. */
	if (is_search)
		conf->search_cnt = 0;
	while (next_word(&at, end, &word)) {
		if (is_word(&key, "nameserver"))
			take_server(&word, conf);
		else if (is_search)
			take_search(&word, conf);
		else if (is_word(&key, "options"))
			take_option(&word, conf);
	}
}

void resolv_conf_parse(const char *text, size_t len, struct resolv_conf *ret_conf)
{
	const char *at = text;
	struct word line;
	*ret_conf = (struct resolv_conf){.ndots = 1, .timeout_ms = 5000, .attempts = 2};
	while (len > 0 && next_line(&at, text + len, &line))
		take_line(&line, ret_conf);
}

static bool line_names(const char *at, const char *end, const char *name)
{
	struct word word;
	while (next_word(&at, end, &word))
		if (word.len == strlen(name) && strncasecmp(word.at, name, word.len) == 0)
			return true;
	return false;
}

void hosts_find(const char *text, size_t len, const char *name, bool v4, bool v6, struct ip *ips, size_t cap,
        size_t *cnt)
{
	const char *at = text;
	struct word line;
	while (len > 0 && next_line(&at, text + len, &line)) {
		const char *in = line.at;
		struct word word;
		struct ip ip;
		if (!next_word(&in, line.at + line.len, &word) || ip_parse(word.at, word.len, &ip) < 0)
			continue;
		if (!(ip.family == 4 ? v4 : v6) || !line_names(in, line.at + line.len, name))
			continue;
		if (*cnt < cap)
			ips[(*cnt)++] = ip;
	}
}

static unsigned dots_of(const char *name)
{
	unsigned cnt = 0;
	for (; *name; name++)
		cnt += *name == '.';
	return cnt;
}

bool resolv_candidate(const struct resolv_conf *conf, const char *name, size_t i, char ret_name[DNS_TEXT_MAX])
{
	size_t len = strlen(name);
	bool is_absolute = len > 0 && name[len - 1] == '.';
	bool is_first = is_absolute || dots_of(name) >= conf->ndots;
	size_t search_cnt = is_absolute ? 0 : conf->search_cnt;
	if (i > search_cnt)
		return false;
	bool is_plain = i == (is_first ? 0 : search_cnt);
	const char *domain = is_plain ? "" : conf->search[is_first ? i - 1 : i];
	int n = snprintf(ret_name, DNS_TEXT_MAX, "%s%s%s", name, is_plain ? "" : ".", domain);
	if (n < 0 || n >= DNS_TEXT_MAX)
		ret_name[0] = '\0';
	return true;
}
