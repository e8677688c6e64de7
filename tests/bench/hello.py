# SPDX-License-Identifier: GPL-2.0-or-later
"""Listens in a pod for a ServerHello from port 15008 and prints what was agreed: version, cipher, key exchange.

Read off the wire, because only that tells what two proxies of the same kind
choose among themselves. Ends after the first one, or after ten seconds.
"""
import socket
import struct
import sys
import time

VERSIONS = {0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}
CIPHERS = {0x1301: "AES_128_GCM_SHA256", 0x1302: "AES_256_GCM_SHA384", 0x1303: "CHACHA20_POLY1305_SHA256",
           0xC02B: "ECDHE_ECDSA_AES_128_GCM_SHA256", 0xC02C: "ECDHE_ECDSA_AES_256_GCM_SHA384"}
GROUPS = {0x0017: "P-256", 0x0018: "P-384", 0x001D: "X25519", 0x11EC: "X25519MLKEM768"}
ETH_P_IP = 0x0800


def tcp_payload(frame):
    """What a frame carries from port 15008, or nothing."""
    if len(frame) < 54 or frame[23] != socket.IPPROTO_TCP:
        return b""
    tcp = frame[14 + (frame[14] & 15) * 4:]
    if len(tcp) < 20 or struct.unpack_from("!H", tcp)[0] != 15008:
        return b""
    return tcp[(tcp[12] >> 4) * 4:]


def agreed(hello):
    """Words for a ServerHello (RFC 8446 4.1.3) at the start of these bytes, else nothing."""
    if len(hello) < 44 or hello[0] != 0x16 or hello[5] != 2:
        return ""
    at = 44 + hello[43]
    version, = struct.unpack_from("!H", hello, 9)
    cipher, = struct.unpack_from("!H", hello, at)
    group = 0
    at += 3
    end = at + 2 + struct.unpack_from("!H", hello, at)[0]
    at += 2
    while at + 6 <= min(end, len(hello)):
        kind, length, value = struct.unpack_from("!HHH", hello, at)
        if kind == 43:
            version = value
        elif kind == 51:
            group = value
        at += 4 + length
    return ", ".join((VERSIONS.get(version, hex(version)), CIPHERS.get(cipher, hex(cipher)),
                      GROUPS.get(group, hex(group) if group else "key exchange not seen")))


def main():
    everything = 3  # ETH_P_ALL: what leaves is seen only by such sockets
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(everything))
    raw.bind(("eth0", 0))
    raw.settimeout(0.5)
    print("listening", flush=True)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            frame = raw.recv(65535)
        except TimeoutError:
            continue
        if struct.unpack_from("!H", frame, 12)[0] != ETH_P_IP:
            continue
        words = agreed(tcp_payload(frame))
        if words:
            print(words, flush=True)
            return 0
    return 1


sys.exit(main())
