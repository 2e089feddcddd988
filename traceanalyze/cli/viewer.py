"""The viewer that traces are opened in, and how its address is reached."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS = "127.0.0.1"
VIEWER = "https://ui.perfetto.dev"
VIEWER_PORT = 9001
"""The only port of this computer that the viewer's content policy lets it read from."""


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser of this computer can show anything."""
    if sys.platform.startswith(("win", "darwin")):
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def advice(port: int, messages: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """How the address is reached, by people on another computer too."""
    said = [messages["open_viewer"]]
    if port != VIEWER_PORT:
        said.append(messages["open_other_port"].format(port=port))
    if not has_display(environment):
        command = f"ssh -L {port}:{ADDRESS}:{port} {socket.gethostname()}"
        said.append(messages["open_no_display"].format(command=command))
    return said
