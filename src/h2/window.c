/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growth and shrinking of receive windows by measured use. Knows no stream,
 * no budget and no clock.
 */
#include "h2/window.h"

void h2_window_init(struct h2_window *window, uint32_t floor, uint32_t ceiling, uint64_t now_ms)
{
	*window = (struct h2_window){
	        .size = floor,
	        .floor = floor,
	        .ceiling = ceiling > floor ? ceiling : floor,
	        .since_ms = now_ms,
	};
}

enum h2_window_advice h2_window_used(struct h2_window *window, size_t len, uint64_t now_ms)
{
	uint64_t passed = now_ms > window->since_ms ? now_ms - window->since_ms : 0;
	bool is_emptied;

	window->used += len;
	is_emptied = window->used >= 2 * (uint64_t)window->size;
	if (!is_emptied && passed < WINDOW_SHRINK_MS)
		return H2_WINDOW_KEEP;
	window->used = 0;
	window->since_ms = now_ms;
	if (is_emptied && passed <= WINDOW_GROW_MS)
		return H2_WINDOW_GROW;
	return passed >= WINDOW_SHRINK_MS ? H2_WINDOW_SHRINK : H2_WINDOW_KEEP;
}

uint32_t h2_window_grown(const struct h2_window *window, uint32_t limit)
{
	uint32_t top = window->ceiling < limit ? window->ceiling : limit;

	if (top <= window->size)
		return window->size;
	return window->size > top / 2 ? top : window->size * 2;
}

uint32_t h2_window_shrunk(const struct h2_window *window)
{
	uint32_t half = window->size / 2;

	return half > window->floor ? half : window->floor;
}
