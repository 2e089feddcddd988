"""Addresses in place of paths: fsspec's memory, a real S3 server, a web server; the report of the local files."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import traceanalyze
from tests.needs import need
from traceanalyze.errors import InputError, TraceAnalyzeError
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, parts, reports
from traceanalyze.pipeline.results import ALONE, Work
from traceanalyze.pipeline.shards import Shard, merged_reports, write_shard
from traceanalyze.readers.remote import is_remote, shown
from traceanalyze.report.json import render

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SECRET = "SECRETSIGNATURE"


def local(name):
    return json.loads(render(reports([str(SAMPLES / name)], Choices()), texts()))


def elsewhere(address, place, work=Work()):  # noqa: B008  of nothing
    """The report with the names that the local files have."""
    found = render(reports([f"{place}/{address}"], Choices(), work=work), texts())
    # Parsed: where lines are broken depends on the lengths of paths.
    return json.loads(found.replace(place, str(SAMPLES)).replace(place.replace("://", ":/"), str(SAMPLES)))


@pytest.mark.parametrize(
    ("path", "remote"),
    [("s3://b/k", True), ("hf://datasets/a/b", True), ("C:/a", False), ("c://a", False), ("a/b", False), ("-", False)],
)
def test_what_is_an_address(path, remote):
    assert is_remote(path) == remote


def test_addresses_are_shown_without_credentials():
    assert shown(f"https://me:{SECRET}@host/a.json?X-Amz-Signature={SECRET}#x") == "https://host/a.json"
    assert shown(f"s3://me:{SECRET}@bucket/a") == "s3://bucket/a"
    assert shown("abfs://container@account.dfs.core.windows.net/a") == "abfs://container@account.dfs.core.windows.net/a"
    assert shown("here@there?") == "here@there?"


def test_other_paths_import_nothing_of_it():
    code = (
        "import sys, traceanalyze; traceanalyze.analyze(sys.argv[1]); print([m for m in sys.modules if 'fsspec' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLES / "gpu_two_ranks")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def memory():
    need("fsspec")
    import fsspec

    system = fsspec.filesystem("memory")
    for path in SAMPLES.rglob("*"):
        if path.is_file():
            system.pipe(f"/samples/{path.relative_to(SAMPLES)}", path.read_bytes())
    yield system
    system.store.clear()


NAMES = ("gpu_data_loading/trace.json.gz", "gpu_two_ranks", "npu_training", "memory", "gpu_s*/*", "gpu_npu_pair")


@pytest.mark.parametrize("name", NAMES)
def test_memory(memory, name):
    assert elsewhere(name, "memory://samples") == local(name)


def test_archives(memory, tmp_path):
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        for path in (SAMPLES / "gpu_two_ranks").glob("*.json.gz"):
            archive.write(path, path.name)
    memory.pipe("/zips/both.zip", (tmp_path / "both.zip").read_bytes())
    expected = render(reports([str(tmp_path / "both.zip")], Choices()), texts())
    for name in ("both.zip", "", "*.zip"):
        found = render(reports([f"memory://zips/{name}"], Choices()), texts())
        assert found.replace("memory://zips", str(tmp_path)).replace("memory:/zips", str(tmp_path)) == expected


def test_commands_take_addresses(memory, tmp_path):
    path = "memory://samples/gpu_data_loading/trace.json.gz"
    traceanalyze.annotate(path, tmp_path / "out.json")
    assert (tmp_path / "out.json").stat().st_size > 10_000
    assert "No difference" in traceanalyze.compare(path, path).verdict
    assert traceanalyze.memory("memory://samples/memory/leak").tables
    with pytest.raises(TraceAnalyzeError, match="copy it to this machine"):
        traceanalyze.postmortem("memory://samples/memory")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("memory://samples/none.json", "memory://samples/none.json: no such file or folder"),
        ("memory://samples/*/none", "no file matches"),
        ("nowhere://a", "nowhere:// is no storage that fsspec knows"),
    ],
)
def test_what_is_not_there(memory, address, said):
    with pytest.raises(InputError, match=said):
        traceanalyze.analyze(address)


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match=r"gcs-none:// needs fsspec|gcsnone:// needs fsspec: pip install"):
        traceanalyze.analyze("gcsnone://a")


def test_a_file_that_changes_is_read_again(memory, tmp_path):
    work = Work(cache=str(tmp_path))
    first = elsewhere("gpu_two_ranks", "memory://samples", work)
    other = next(path for path in memory.find("/samples/gpu_two_ranks") if path.endswith("gz"))
    memory.pipe(other, (SAMPLES / "gpu_sync" / "trace.json.gz").read_bytes())
    assert elsewhere("gpu_two_ranks", "memory://samples", work) != first


@pytest.fixture
def web(tmp_path):
    need("aiohttp")
    handler = partial(SimpleHTTPRequestHandler, directory=str(SAMPLES))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_web(web):
    # This server gives no parts of files: they are streamed.
    assert elsewhere("gpu_data_loading/trace.json.gz", web) == local("gpu_data_loading/trace.json.gz")
    assert elsewhere("gpu_two_ranks/", web) == local("gpu_two_ranks")


def test_signatures_are_told_to_nobody(web):
    with pytest.raises(InputError) as caught:
        traceanalyze.analyze(f"{web}/none.json?X-Amz-Signature={SECRET}")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    found = traceanalyze.analyze(f"{web}/gpu_sync/trace.json.gz?X-Amz-Signature={SECRET}")
    assert SECRET not in render([found], texts())


class Unwilling(BaseHTTPRequestHandler):
    """Answers as the first part of a path says: with a status, half of a file, a file that comes slowly, or never."""

    protocol_version = "HTTP/1.1"
    content = (SAMPLES / "gpu_sync" / "trace.json.gz").read_bytes()
    padded = b" " * 2_000_000 + b'{"traceEvents": []}'

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        kind = self.path.split("/")[1]
        if kind.isdecimal():
            return self.start(int(kind), b"denied: " + SECRET.encode())
        content = self.padded if kind == "middle" else self.content
        self.start(200, content[:0], len(content))
        if self.command == "HEAD":
            return None
        pieces = {"middle": 1_000_000, "begin": 100, "never": 100}
        if kind in pieces:
            self.wfile.write(content[: pieces[kind]])
            self.wfile.flush()
            if kind == "never":
                self.server.ended.wait(30)
            self.close_connection = True
            return self.connection.shutdown(2)
        for at in range(0, len(content), 20_000):
            self.wfile.write(content[at : at + 20_000])
            self.wfile.flush()
            self.server.ended.wait(0.1)
        return None

    def start(self, status, content, size=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if size is None else size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@pytest.fixture
def unwilling(monkeypatch):
    need("aiohttp")
    monkeypatch.setattr("traceanalyze.readers.remote._PATIENCE_S", 1)
    with ThreadingHTTPServer(("127.0.0.1", 0), Unwilling) as server:
        server.ended = threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.ended.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("401", "no permission; are the credentials"),
        ("403", "no permission; are the credentials"),
        ("404", "no such file or folder"),
        ("500", "cannot be read: ClientResponseError 500"),
        ("begin", "cannot be read: "),
        # Not a trace that was cut: another try may have all of it.
        ("middle", "cannot be read: "),
        ("never", "cannot be read: "),
    ],
)
def test_servers_that_fail_are_told_in_one_line(unwilling, kind, said):
    with pytest.raises(InputError) as caught:
        traceanalyze.analyze(f"{unwilling}/{kind}/a.json?X-Amz-Signature={SECRET}")
    assert str(caught.value).startswith(f"{unwilling}/{kind}/a.json: {said}")
    assert SECRET not in str(caught.value)


def test_a_slow_server_has_all_the_time_while_something_comes(unwilling):
    # 13 pieces, 0.1 s each; a second without any would be too long.
    assert traceanalyze.analyze(f"{unwilling}/slow/a.json.gz").verdict.startswith("Step 12.83 ms")


def test_nobody_answers():
    need("aiohttp")
    with pytest.raises(InputError, match="cannot be read: ClientConnectorError"):
        traceanalyze.analyze("http://127.0.0.1:9/a.json")


def test_shares_keep_no_signature(web, tmp_path):
    paths = [f"{web}/gpu_two_ranks/rank{rank}.json.gz?X-Amz-Signature={SECRET}" for rank in range(2)]
    write_shard(paths, Choices(), Shard(0, 1), tmp_path, ALONE, None)
    for path in tmp_path.iterdir():
        for section in parts.sections(path.read_bytes()).values():
            assert SECRET.encode() not in section
    (merged,) = merged_reports(str(tmp_path), Detail.VERBOSE, ALONE)
    assert render([merged], texts()) == render(reports(paths, Choices()), texts())


@pytest.fixture(scope="module")
def s3():
    need("s3")
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as patch:
        server = ThreadedMotoServer(port=0, verbose=False)
        server.start()
        address = "http://{}:{}".format(*server.get_host_and_port())
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", "known")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        system = s3fs.S3FileSystem()
        system.mkdir("samples")
        system.put(f"{SAMPLES}/", "samples/", recursive=True)
        yield address
        server.stop()


@pytest.mark.parametrize("name", NAMES)
def test_s3(s3, name):
    assert elsewhere(name, "s3://samples") == local(name)


def test_s3_in_processes_and_from_the_cache(s3, tmp_path, monkeypatch):
    monkeypatch.setattr("traceanalyze.pipeline.results.LARGE", 2)
    work = Work(2, cache=str(tmp_path))
    expected = local("gpu_two_ranks")
    assert elsewhere("gpu_two_ranks", "s3://samples", work) == expected
    monkeypatch.setattr("traceanalyze.pipeline.results.made", None)
    assert elsewhere("gpu_two_ranks", "s3://samples", work) == expected


class Expired(BaseHTTPRequestHandler):
    """An S3 server that knows no credentials."""

    code = "ExpiredToken"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = f"<Error><Code>{self.code}</Code><Message>{SECRET}</Message><Token-0>{SECRET}</Token-0></Error>".encode()
        self.send_response(400 if self.code == "ExpiredToken" else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "AccessDenied"])
def test_s3_without_credentials_that_hold(s3, monkeypatch, capfd, code):
    monkeypatch.setattr(Expired, "code", code)
    with ThreadingHTTPServer(("127.0.0.1", 0), Expired) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for address in ("s3://samples/gpu_sync/trace.json.gz", "s3://samples/gpu_two_ranks", "s3://samples/*/*.gz"):
            with pytest.raises(InputError) as caught:
                traceanalyze.analyze(address)
            assert str(caught.value) == f"{address}: no permission; are the credentials of this storage set?"
        server.shutdown()
        thread.join()
    s3fs.S3FileSystem.clear_instance_cache()
    assert SECRET not in "".join(capfd.readouterr())


def test_s3_that_cannot_be_used(s3, monkeypatch):
    with pytest.raises(InputError, match="no such file or folder"):
        traceanalyze.analyze("s3://samples/none/")
    with pytest.raises(InputError) as caught:
        traceanalyze.analyze(f"s3://me:{SECRET}@none/trace.json")
    assert SECRET not in str(caught.value)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(*command):
    """A server as a process of its own, once it listens on its port, which is the last argument."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as tried:
            if tried.connect_ex(("localhost", int(command[-1]))) == 0:
                return running
        time.sleep(0.1)
    running.kill()
    raise TimeoutError(command[0])


@pytest.fixture(scope="module", params=["az", "gs"])
def bucket(request):
    """The samples in the storage of Azure or of Google, each played by its emulator."""
    need({"az": "azurite", "gs": "gcs"}[request.param])
    import fsspec

    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "az":
            # The account that every Azurite has.
            key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
            place = f"http://127.0.0.1:{port}/devstoreaccount1"
            account = (
                f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key};BlobEndpoint={place};"
            )
            patch.setenv("AZURE_STORAGE_CONNECTION_STRING", account)
            # Its client may be newer than the emulator.
            options = ("--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry")
            running = started("azurite-blob", "--silent", *options, "--blobPort", str(port))
        else:
            patch.setenv("STORAGE_EMULATOR_HOST", f"http://localhost:{port}")
            # It would ask by gRPC for what only the real one has.
            patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
            running = started("gcp-storage-emulator", "start", "--in-memory", "--port", str(port))
        try:
            system = fsspec.filesystem(request.param)
            system.mkdir("samples")
            system.put(f"{SAMPLES}/", "samples/", recursive=True)
            yield f"{request.param}://samples"
        finally:
            running.kill()
            running.wait()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_azure_and_google(bucket, name):
    assert elsewhere(name, bucket) == local(name)


@pytest.mark.filterwarnings("ignore")
def test_azure_and_google_say_what_is_not_there_and_nothing_else(bucket, capfd):
    for address in (f"{bucket}/none", f"{bucket}-none/a.json", f"{bucket}/none*/a"):
        with pytest.raises(InputError, match=r"no such file or folder|no file matches"):
            traceanalyze.analyze(address)
    assert capfd.readouterr() == ("", "")
