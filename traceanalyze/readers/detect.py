"""What a file is, by its first bytes: the name only helps to word the answer."""

import re
from enum import Enum

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.folder import stray

HEAD_BYTES = 1 << 16
"""How much of the beginning (after unpacking) is looked at."""


_GIVE = Phrase("give the .json file export_chrome_trace wrote")
_GIVE_MEMORY = Phrase("give the file torch.cuda.memory._dump_snapshot wrote")


class Kind(Enum):
    """What the first bytes say; the value is the sentence for a file that cannot be analysed."""

    TRACE = Phrase("a trace")
    BLANK = Phrase("the file holds nothing but white space; record the trace again")
    EMPTY = Phrase("the file is empty; record the trace again (was the profiler stopped before the program ended?)")
    JSON = Phrase('this is JSON, but not a trace: it has no "traceEvents"; {give}', _GIVE)
    MEMORY_TIMELINE = Phrase(
        "this is a memory timeline (export_memory_timeline), which `traceanalyze memory` shows; "
        "here give the trace export_chrome_trace wrote"
    )
    SNAPSHOT = Phrase(
        "this is a memory snapshot (torch.cuda.memory._dump_snapshot), which `traceanalyze memory` shows; "
        "here give the trace export_chrome_trace wrote"
    )
    SNAPSHOT_JSON = Phrase(
        "this is a memory snapshot as JSON, which `traceanalyze memory` shows; "
        "here give the trace export_chrome_trace wrote"
    )
    PICKLE = Phrase("this is a Python pickle, not a trace; {give}", _GIVE)
    PERFETTO = Phrase("this is a Perfetto protobuf trace, not supported; {give}", _GIVE)
    FLIGHT_RECORDER = Phrase(
        "this is a dump of NCCL's flight recorder: which collectives were under way, without times of the device; "
        "{give}",
        _GIVE,
    )
    EXECUTION_TRACE = Phrase(
        "this is an execution trace (ExecutionTraceObserver, Chakra), which has no times of the device; {give}", _GIVE
    )
    ROCPROF = Phrase("this is output of rocprof, not supported; {give}", _GIVE)
    NSIGHT = Phrase("this is a file of Nsight or CUPTI, not supported; {give}", _GIVE)
    LFS_POINTER = Phrase("this is only a pointer to a file in Git LFS; fetch the file with `git lfs pull`")
    ASCEND_DB = Phrase(
        "this is the database of an Ascend profile, which can only be read from a file of its own; "
        "unpack or save it first"
    )
    SQLITE = Phrase("this is an SQLite database, not supported; {give}", _GIVE)
    GZIP = Phrase("this was compressed with gzip more than once; unpack it with gunzip first")
    ZSTD = Phrase("this was compressed with zstd more than once; unpack it with `zstd -d` first")
    XZ = Phrase("this is compressed with xz, not supported; unpack it with `xz -d` first")
    BZIP2 = Phrase("this is compressed with bzip2, not supported; unpack it with `bzip2 -d` first")
    TAR = Phrase("this is a tar archive; unpack it first (`tar -xf`) and give the folder")
    ZIP = Phrase("this is a zip archive inside another one; unpack it first")
    UTF16 = Phrase("this is UTF-16 text; convert it first (`iconv -f UTF-16 -t UTF-8`)")
    HTML = Phrase("this is an HTML or XML page, not a trace; {give}", _GIVE)
    TABLE = Phrase("this is a table (CSV), not a trace; {give}", _GIVE)
    TEXT = Phrase("this is text, but not a trace; {give}", _GIVE)
    BINARY = Phrase("this is binary data of an unknown kind, not a trace; {give}", _GIVE)


GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MAGIC = (
    (GZIP_MAGIC, Kind.GZIP),
    (ZSTD_MAGIC, Kind.ZSTD),
    (b"\xfd7zXZ\0", Kind.XZ),
    (b"BZh", Kind.BZIP2),
    (b"PK\x03\x04", Kind.ZIP),
    (b"PK\x05\x06", Kind.ZIP),
    (b"\xff\xfe", Kind.UTF16),
    (b"\xfe\xff", Kind.UTF16),
)
_SQLITE = b"SQLite format 3\0"
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\n\r"
_PICKLE = regex(rb"\x80[\x02-\x05]")
_SNAPSHOT_KEYS = (b"segments", b"device_traces", b"total_size")
_SNAPSHOT_JSON = regex(rb'"(?:segments|device_traces|total_size)"')
_LFS = b"version https://git-lfs.github.com/spec/"
_FLIGHT_RECORDER = regex(rb"nccl_comm_state|pg_status(?s:.)*entries|collective_seq_id")
_EXECUTION_TRACE = regex(rb'"schema"\s*:\s*"[^"]*(?:chakra|\d+\.\d+\.\d+)[^"]*"(?s:.)*"nodes"\s*:\s*\[')
_ROCPROF = regex(
    rb'\{\s*"rocprofiler-sdk-|rocpd_|"?Index"?,"?KernelName"?,|"?(?:Kind|Domain)"?,"?(?:Agent_Id|Function|Operation)"?,'
    rb'|"?(?:Dispatch|Correlation)_I[dD]"?,'
)
_NSIGHT = regex(rb"CUPTI_ACTIVITY_|TARGET_INFO_|NVTX_EVENTS")
_NSIGHT_FILE = regex(r".*\.(nsys-rep|ncu-rep|qdrep|qdstrm|cupti)", re.IGNORECASE)
_TAR = (257, b"ustar")
_CONTROL = regex(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKUP = regex(rb"<[!?A-Za-z]")
_TABLE = regex(rb"[^\n,;\t=]*[,;\t][^\n]*\n")
_TRACE_KEYS = regex(
    rb'"(?:traceEvents|deviceProperties|distributedInfo|baseTimeNanoseconds|displayTimeUnit|traceName|schemaVersion)"'
)
_EVENTS = regex(rb"\[[\s,]*(?:\{|\]|$)")
_NUMBER_LISTS = regex(rb"\[\s*\[\s*-?[0-9.eE+]+\s*[,\]]")


def sniff(head: bytes, name: str = "") -> Kind:
    """Kind of the file that begins with `head` (unpacked, `HEAD_BYTES` of it or the whole file).

    Its name only tells the databases of vendors apart, and binary files without a mark.
    """
    if not head:
        return Kind.EMPTY
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    text = head.removeprefix(_BOM).lstrip(_BLANK)
    if not text:
        return Kind.BLANK
    if text[:1] in {b"{", b"["} and not _is_protobuf(head):
        return _json_kind(text)
    return _other_kind(head, text, name)


def _json_kind(text: bytes) -> Kind:
    if b'"cat"' not in text and b'"BeginNs"' in text:
        return Kind.ROCPROF
    if text[:1] == b"{" and not _TRACE_KEYS.search(text) and b'"ph"' not in text:
        others = (_FLIGHT_RECORDER, Kind.FLIGHT_RECORDER), (_EXECUTION_TRACE, Kind.EXECUTION_TRACE)
        for pattern, kind in (*others, (_ROCPROF, Kind.ROCPROF)):
            if pattern.search(text):
                return kind
    if not _TRACE_KEYS.search(text) and b'"ph"' not in text and _SNAPSHOT_JSON.search(text):
        return Kind.SNAPSHOT_JSON
    if text[:1] == b"{":
        # An object may state its events behind any amount of other members, so a long one stays a possible trace.
        return Kind.TRACE if _TRACE_KEYS.search(text) else Kind.JSON
    if _NUMBER_LISTS.match(text):
        return Kind.MEMORY_TIMELINE
    return Kind.TRACE if _EVENTS.match(text) else Kind.JSON


def _other_kind(head: bytes, text: bytes, name: str) -> Kind:
    if head.startswith(_SQLITE):
        if "ascend" in name.lower() or b"STRING_IDS" in head:
            return Kind.ASCEND_DB
        return Kind.NSIGHT if _NSIGHT.search(head) else Kind.ROCPROF if _ROCPROF.search(head) else Kind.SQLITE
    if _PICKLE.match(head):
        if _FLIGHT_RECORDER.search(head):
            return Kind.FLIGHT_RECORDER
        return Kind.SNAPSHOT if any(key in head for key in _SNAPSHOT_KEYS) else Kind.PICKLE
    checks = (
        (text.startswith(_LFS), Kind.LFS_POINTER),
        (_NSIGHT_FILE.fullmatch(name), Kind.NSIGHT),
        (head[_TAR[0] :].startswith(_TAR[1]), Kind.TAR),
        (_CONTROL.search(head), Kind.PERFETTO if _is_protobuf(head) else Kind.BINARY),
        (_MARKUP.match(text), Kind.HTML),
        (_TABLE.match(text), Kind.ROCPROF if _ROCPROF.match(text) else Kind.TABLE),
    )
    return next((kind for found, kind in checks if found), Kind.TEXT)


def _is_protobuf(head: bytes) -> bool:
    """Is it a sequence of length-delimited packets with field number 1, as a Perfetto trace is?

    Its first byte is a line feed in ASCII, so text is told apart by its lack of control characters.
    """
    pos = packets = 0
    while head[pos : pos + 1] == b"\n":
        length = shift = 0
        while pos + 1 < len(head) and shift < 35:
            pos += 1
            length |= (head[pos] & 0x7F) << shift
            shift += 7
            if head[pos] < 0x80:
                break
        pos += 1 + length
        packets += 1
    complete = pos == len(head) or (pos > len(head) and len(head) >= HEAD_BYTES)
    return packets > 0 and complete and _CONTROL.search(head) is not None


def explain(kind: Kind, name: str, *, of_memory: bool = False) -> InputError:
    """The error for a file that is not a trace; `of_memory`: a memory snapshot would do."""
    known = stray(name) if kind in {Kind.JSON, Kind.TABLE, Kind.TEXT} else None
    what: Phrase = kind.value
    if of_memory and "give" in what.values:
        what = Phrase(what.template, _GIVE_MEMORY)
    return InputError("{name}: {what}", name, known or what)
