"""The agent's socket. Apart from the agent, because an HTTP server takes a while to import."""

from __future__ import annotations

import socket

_BACKLOG = 64


def family_of(host: str) -> socket.AddressFamily:
    """A pod may have no other address than one of IPv6."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def listen(host: str, port: int) -> socket.socket:
    """Port 0: any free one, told by `getsockname`."""
    listening = socket.socket(family_of(host), socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(_BACKLOG)
    return listening
