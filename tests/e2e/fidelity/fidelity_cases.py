# SPDX-License-Identifier: GPL-2.0-or-later
"""What applications do to each other: name, the client's script, the server's script (words of actor.py)."""
from dataclasses import dataclass
import os

LONG = os.environ.get("CULVERT_TEST_LONG") == "1"
# A reader that pauses, ms; and sizes.
PAUSE = 65000 if LONG else 700
BULK = 100_000_000 if LONG else 6_000_000
QUICK = 10_000 if LONG else 240


@dataclass
class Case:
    name: str
    client: str
    server: str
    family: int = 4  # how the client speaks: 4, 6, or 46 = IPv4 through an IPv6 socket
    server_family: int = 6  # 6 = dual stack
    target: str = "server"  # or "nobody": an address that no one has


def both_families(name, client, server):
    return [Case(name, client, server), Case(name + "_ipv6", client, server, family=6)]


CASES = [
    # Talking.
    *both_families("echo", "connect send:5 recv:5 close", "accept recv:5 send:5 readall"),
    Case("mapped_address", "connect send:5 recv:5 peername", "accept recv:5 send:5 readall", family=46),
    Case("v4_listener", "connect send:5 recv:5 close", "accept recv:5 send:5 peername readall", server_family=4),
    Case("server_speaks_first", "connect recv:20 send:5 readall", "accept send:20 recv:5 send:3 close"),
    Case("banner_only", "connect readall", "accept send:100 close"),
    Case("single_bytes_up", "connect bytes:400 shut readall", "accept readall send:1 close"),
    Case("single_bytes_down", "connect readall", "accept bytes:400 close"),
    Case("single_bytes_to_and_fro", "connect pingpong:100 close", "accept pingpong:100 readall"),
    Case("both_ways_at_once", f"connect bulk:{BULK}", f"accept bulk:{BULK}"),
    Case("large_request", "connect send:3000000 shut readall", "accept readall send:7 close"),
    Case("large_answer", "connect send:7 shut readall", "accept readall send:3000000 close"),
    Case("tiny_buffers_up", "smallbuf connect send:150000 shut readall", "smallbuf accept readall send:1 close"),
    Case("tiny_buffers_down", "smallbuf connect readall", "smallbuf accept send:150000 close"),
    Case("connect_without_blocking", "connectnb send:5 recv:5 close", "accept recv:5 send:5 readall"),
    Case("no_delay", "connect nodelay send:5 recv:5 close", "accept nodelay recv:5 send:5 readall"),
    Case("segment_size", "connect mss close", "accept mss readall"),

    # Ends.
    Case("client_closes_at_once", "connect close", "accept readall"),
    Case("server_closes_at_once", "connect readall", "accept close"),
    *both_families("client_half_closes", "connect send:10 shut readall", "accept readall send:10 close"),
    *both_families("server_half_closes", "connect readall send:10 close", "accept send:10 shut readall"),
    Case("both_half_close", "connect send:1 shut sync:1 readall", "accept send:1 shut sync:1 readall"),
    Case("client_half_closes_in_silence", "connect shut readall", "accept readall close"),
    Case("server_half_closes_in_silence", "connect readall close", "accept shut readall"),
    Case("long_talk_after_client_half_close", "connect shut readall",
         "accept readall send:10 sleep:100 send:100000 sleep:100 send:10 close"),
    Case("long_talk_after_server_half_close", "connect readall send:10 sleep:100 send:100000 sleep:100 send:10 close",
         "accept shut readall"),
    Case("large_upload_after_server_half_close", "connect readall send:3000000 shut", "accept shut readall"),
    Case("poll_shows_an_end", "connect sync:1 poll", "accept sync:1 shut sleep:300 close"),
    Case("linger_waits_for_bytes", "connect send:200000 lingerclose:8", "accept sleep:200 readall"),
    Case("listener_closes_first", "connect sync:1 send:5 readall", "accept closelisten sync:1 recv:5 send:5 close"),
    Case("client_reads_no_more", "connect shutrd send:10 shut sync:1", "accept readall send:10 sync:1 close"),

    # Resets.
    *both_families("client_resets", "connect sync:1 rst", "accept sync:1 readall"),
    *both_families("server_resets", "connect sync:1 readall", "accept sync:1 rst"),
    Case("client_resets_after_data", "connect send:100 sync:1 rst", "accept recv:100 sync:1 readall"),
    Case("server_resets_after_data", "connect recv:100 sync:1 readall", "accept send:100 sync:1 rst"),
    Case("client_resets_behind_data", "connect sync:1 send:100 sleep:200 rst", "accept sync:1 sleep:500 readall"),
    Case("server_resets_behind_data", "connect sync:1 sleep:500 readall", "accept sync:1 send:100 sleep:200 rst"),
    Case("client_resets_behind_much_data", "connect sync:1 send:50000 sleep:300 rst", "accept sync:1 sleep:700 readall"),
    Case("client_resets_during_answer", "connect send:5 recv:1000 sync:1 rst", "accept recv:5 send:1000 sync:1 readall"),
    Case("server_resets_instead_of_answer", "connect send:5 readall", "accept recv:5 rst"),
    Case("server_resets_during_answer", "connect send:5 recv:50000 sync:1 readall",
         "accept recv:5 send:50000 sync:1 rst"),
    Case("server_resets_after_client_half_close", "connect send:5 shut sync:1 readall", "accept readall sync:1 rst"),
    Case("client_resets_after_server_half_close", "connect readall sync:1 rst", "accept shut sync:1 readall"),
    Case("server_resets_after_own_half_close", "connect readall sync:1 sleep:100 sendfail", "accept shut sync:1 rst"),
    Case("client_resets_after_own_half_close", "connect shut sync:1 rst", "accept readall sync:1 sleep:100 sendfail"),
    Case("reset_meets_a_sender", "connect sync:1 sleep:200 sendfail", "accept sync:1 rst"),
    Case("reset_meets_a_sending_server", "connect sync:1 rst", "accept sync:1 sleep:200 sendfail"),
    Case("poll_shows_a_reset", "connect sync:1 poll", "accept sync:1 rst"),
    Case("poll_shows_a_reset_to_the_server", "connect sync:1 rst", "accept sync:1 poll"),
    Case("server_closes_unread", "connect send:1000 sync:1 readall", "accept sync:1 sleep:200 close"),
    Case("client_closes_unread", "connect sync:1 sleep:200 close", "accept send:1000 sync:1 readall"),
    Case("server_closes_under_a_flood", "connect flood", "accept recv:1000 close"),
    Case("client_closes_under_a_flood", "connect recv:1000 close", "accept flood"),
    Case("answer_to_a_closed_client", "connect shut sync:1 close", "accept readall sync:1 sleep:100 sendfail"),
    Case("listener_closes_unaccepted", "connect send:5 sync:1 readall", "sync:1 sleep:200 closelisten"),

    # Processes die.
    Case("server_dies", "connect sync:1 readall", "accept sync:1 kill"),
    Case("client_dies", "connect sync:1 kill", "accept sync:1 readall"),
    Case("server_dies_with_unread_bytes", "connect send:1000 sync:1 readall", "accept sync:1 sleep:200 kill"),
    Case("client_dies_with_unread_bytes", "connect sync:1 sleep:200 kill", "accept send:1000 sync:1 readall"),
    Case("server_dies_during_answer", "connect recv:1000 sync:1 readall", "accept send:1000 sync:1 kill"),
    Case("server_dies_under_a_flood", "connect flood", "accept recv:1000 kill"),

    # No window.
    Case("slow_reading_server", "connect send:3000000 shut readall", f"accept sleep:{PAUSE} readall send:1 close"),
    Case("slow_reading_client", f"connect sleep:{PAUSE} readall", "accept send:3000000 close"),
    Case("both_fill_then_read", "connect fill sync:1 shut readend", "accept fill sync:1 shut readend"),
    Case("client_resets_without_window", "connect fill sync:1 rst", "accept sync:1 sleep:300 readend"),
    Case("server_resets_without_window", "connect sync:1 sleep:300 readend", "accept fill sync:1 rst"),
    Case("reader_resets_without_window", "connect fill sync:1 readend", "accept sync:1 rst"),
    Case("reading_client_resets_without_window", "connect sync:1 rst", "accept fill sync:1 readend"),

    # Nobody there.
    *both_families("closed_port", "connect readall", "nolisten"),
    Case("no_such_address", "connect readall", "nolisten", target="nobody"),

    # Options.
    Case("urgent_byte_up", "connect send:3 oob sleep:100 send:3 shut readall", "accept readurg close"),
    Case("urgent_byte_down", "connect readurg", "accept send:3 oob sleep:100 send:3 shut readall"),
    Case("urgent_byte_inline", "connect send:3 oob sleep:100 send:3 shut readall", "accept oobinline readurg close"),
    Case("keepalive_while_idle", "connect keepalive sleep:2500 send:1 recv:1", "accept keepalive recv:1 send:1 readall"),
    Case("user_timeout_while_idle", "connect usertimeout:1000 sleep:1500 send:1 recv:1", "accept recv:1 send:1 readall"),

    # Names.
    *both_families("addresses", "connect peername peerport sync:1 close", "accept peername sockname sync:1 readall"),
    Case("source_port", "connectbound sync:1 close", "accept sourceport sync:1 readall"),

    # Crowds.
    Case("quick_connections", f"quick:{QUICK}", f"serve:{QUICK}"),
    Case("open_connections", "hold:80", "holdserve:80"),
]
