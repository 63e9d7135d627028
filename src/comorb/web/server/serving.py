"""Serving: the port, the one-time link, and the refusal to listen to the world without users."""

from __future__ import annotations

import os
import socket

import uvicorn

from comorb.errors import ComorbError, InputError
from comorb.web.server.app import LOOPBACK, Settings, create_app


def check_address(host: str, has_users: bool) -> None:
    """Refuse any address but this machine's own unless users with tokens exist."""
    if host not in LOOPBACK and not has_users:
        raise InputError(
            f"expected users before listening on {host}, and there are none; add one with "
            "'comorb user add NAME', or listen on 127.0.0.1"
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere it would let two servers share one port
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise InputError(
            f"expected a free port, but {host}:{port} can't be listened on: "
            f"{(error.strerror or 'refused').lower()}; choose another port"
        ) from None
    opened.listen(128)
    return opened


def explorer(settings: Settings, host: str) -> tuple[uvicorn.Server, str | None]:
    """Return the only server of a workspace, and its one-time link's key if there are no users."""
    app = create_app(settings)
    access = app.state.access
    try:
        check_address(host, access.has_users)
        app.state.store.hold()
    except ComorbError:
        app.state.store.close()
        raise
    key = None if access.has_users else access.new_link()
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
    )
    return uvicorn.Server(config), key
