"""One file served once, to a viewer in the browser of this computer."""

import contextlib
import os
import secrets
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from traceanalyze.errors import UsageError

ADDRESS = "127.0.0.1"
VIEWER = "https://ui.perfetto.dev"


class FileServer(ThreadingHTTPServer):
    """Serves one file to the viewer only, under an address that nobody can guess.

    `fetched` says whether somebody has had all of it.
    """

    # Browsers keep connections open that they do not use; so each has a thread, and requests are waited for in turns.
    timeout = 0.2
    request_queue_size = 64  # a page may ask for as much at once

    def __init__(self, file: Path, port: int) -> None:
        self.file = file
        self.fetched = False
        self.path = f"/{secrets.token_urlsafe(16)}/{file.name}"
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UsageError("--port {port}: cannot be used: {why}", port, error.strerror) from error

    def url(self, place: tuple[int, int] | None = None) -> str:
        """Address that opens the file in the viewer, where `place` says from where to where, ns on the file's clock."""
        found = f"{VIEWER}/#!/?url=http://{ADDRESS}:{self.server_port}{self.path}"
        return found if place is None else f"{found}&visStart={place[0]}&visEnd={place[1]}"

    def serve_once(self) -> None:
        """Answer requests until the file was fetched."""
        while not self.fetched:
            self.handle_request()

    def handle_error(self, request: object, client_address: object) -> None:
        """A request that breaks off is nothing to tell the user about: the viewer asks again."""


def _stranger(port: int, own: int) -> bool:
    """Whether another user of this computer asks, where Linux tells: all can read the address that a browser is given.

    The administrator may: what forwards ports of containers runs as such.
    """
    users = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for _, local, remote, _, _, _, _, user, *_ in map(str.split, Path(table).read_text().splitlines()):
                if local.endswith(f":{port:04X}") and remote.endswith(f":{own:04X}"):
                    users.add(int(user))
    return any(user not in {0, os.geteuid()} for user in users)


class _Handler(BaseHTTPRequestHandler):
    server: FileServer
    timeout = 60  # seconds in which nothing comes or goes; else who only opens connections keeps others out

    def _meant(self) -> bool:
        """Whether it is for the file, and not under another name of this computer (DNS rebinding)."""
        hosts = {f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")}
        asked = self.path.partition("?")[0]
        known = self.headers.get("Host") in hosts and secrets.compare_digest(asked.encode(), self.server.path.encode())
        if known and not _stranger(self.client_address[1], self.server.server_port):
            return True
        self.send_error(404)
        return False

    def do_OPTIONS(self) -> None:
        """What browsers ask before they let a page read from this computer."""
        if self._meant():
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", VIEWER)
            self.send_header("Access-Control-Allow-Methods", "GET")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.end_headers()

    def do_GET(self) -> None:
        """The file, and nothing else of this computer."""
        if not self._meant():
            return
        with self.server.file.open("rb") as file:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(self.server.file.stat().st_size))
            self.send_header("Access-Control-Allow-Origin", VIEWER)
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            try:
                shutil.copyfileobj(file, self.wfile)
            except OSError:
                return  # The browser went away: it may ask again.
        self.server.fetched = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
        """Requests are nothing to tell the user about."""
