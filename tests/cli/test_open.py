"""`traceanalyze open`: one file, for one viewer, from this computer only."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from traceanalyze.cli import viewing as viewer
from traceanalyze.cli.serve import FileServer
from traceanalyze.errors import UsageError


@pytest.fixture
def server(tmp_path):
    file = tmp_path / "trace.json.gz"
    file.write_bytes(b"content")
    with FileServer(file, 0) as server:
        thread = threading.Thread(target=server.serve_once)
        thread.start()
        yield server
        server.fetched = True
        thread.join(10)
        assert not thread.is_alive()


def get(server, path=None, **headers):
    path = server.path if path is None else path
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read(), answer.headers


def test_the_viewer_may_read_the_file_and_then_it_ends(server):
    body, headers = get(server)
    assert body == b"content"
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert "Content-Encoding" not in headers
    for _ in range(50):
        if server.fetched:
            break
        time.sleep(0.1)
    assert server.fetched


def test_it_listens_on_this_computer_only_and_the_address_is_the_viewers(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url() == f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{server.server_port}{server.path}"
    assert re.fullmatch(r"/[\w-]{20,}/trace\.json\.gz", server.path)


def test_browsers_are_told_that_the_viewer_may_ask(server):
    address = f"http://127.0.0.1:{server.server_port}{server.path}"
    request = urllib.request.Request(
        address, method="OPTIONS", headers={"Access-Control-Request-Private-Network": "true"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Access-Control-Allow-Private-Network"] == "true"


def test_a_wrong_request_changes_nothing(server):
    for nonsense in (b"\x00\xff\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as connection:
            connection.sendall(nonsense)
    assert get(server)[0] == b"content"


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/", {}), ("/../../etc/passwd", {}), ("/trace.json.gz", {}), (None, {"Host": "evil.example:9001"})],
)
def test_nothing_else_is_given_out(server, path, headers):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, path, **headers)
    assert not server.fetched


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid(), reason="needs a second user")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_another_user_of_this_computer_gets_nothing(family, server):
    os.seteuid(65534)
    try:
        connection = socket.socket(family)
    finally:
        os.seteuid(0)
    with connection:
        connection.connect(("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", server.server_port))
        connection.sendall(f"GET {server.path} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert b" 404 " in connection.recv(100)
    assert get(server)[0] == b"content"


def test_a_port_that_is_taken_is_said(server, tmp_path):
    with pytest.raises(UsageError, match=f"port={server.server_port}"):
        FileServer(tmp_path / "x", server.server_port)


def fetching(monkeypatch, address):
    """The viewer: asks for the file as soon as the server waits for requests, and keeps what it got."""
    got = []

    class Viewed(FileServer):
        def serve_once(self):
            def fetch():
                with urllib.request.urlopen(f"http://127.0.0.1:{self.server_port}{self.path}", timeout=10) as answer:
                    got.append(answer.read())

            thread = threading.Thread(target=fetch)
            thread.start()
            super().serve_once()
            thread.join(10)

    monkeypatch.setattr("traceanalyze.cli.serve.FileServer", Viewed)
    monkeypatch.setattr(webbrowser, "open", address.append)
    return got


@pytest.mark.parametrize(("display", "options", "opened"), [(":0", [], 1), (":0", ["--no-browser"], 0), ("", [], 0)])
def test_it_annotates_and_serves_and_opens_a_browser_where_there_is_a_display(
    display, options, opened, run, sample, monkeypatch
):
    monkeypatch.setattr(viewer.sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    addresses = []
    got = fetching(monkeypatch, addresses)
    result = run("open", sample, "--port", "0", *options)
    assert result.code == 0
    events = json.loads(gzip.decompress(got[0]))["traceEvents"]
    assert any(event.get("cat") == "traceanalyze_overlay" for event in events)
    assert len(addresses) == opened
    assert "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:" in result.out
    assert ("ssh -L" in result.err) == (display == "")
    assert "The viewer has loaded the trace." in result.err


def test_the_viewer_begins_where_the_worst_finding_is(run, monkeypatch):
    folder = Path(__file__).parents[2] / "sample_traces" / "gpu_data_loading"
    fetching(monkeypatch, [])
    result = run("open", folder, "--port", "0", "--no-browser")
    start, end = map(int, re.search(r"&visStart=(\d+)&visEnd=(\d+)$", result.out.strip()).groups())
    with gzip.open(folder / "trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    loads = [event for event in events if event["name"].startswith("enumerate(DataLoader)")]
    assert any(start < (load["ts"] + load["dur"]) * 1e3 - (end - start) / 4 < end for load in loads)
    assert max(load["dur"] for load in loads) * 1e3 < end - start < max(load["dur"] for load in loads) * 2e3


def test_what_is_no_trace_is_said_and_nothing_is_served(run, tmp_path):
    (tmp_path / "x.json").write_text("hello")
    assert run("open", tmp_path / "x.json", "--port", "0").code == 2
