"""Scalars of TensorBoard's event files, written record by record."""

from __future__ import annotations

import struct

import pytest

from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import What
from traceanalyze.incident.tensorboard import is_event_file, masked_crc


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def event(time, step=0, content=b""):
    return record(b"\x09" + struct.pack("<d", time) + (b"\x10" + varint(step) if step else b"") + content)


def scalar(tag, value, form="old"):
    value = {
        "old": b"\x15" + struct.pack("<f", value),
        "float": field(8, b"\x08\x01" + field(5, struct.pack("<f", value))) + field(9, field(1, field(1, b"scalars"))),
        "double": field(8, b"\x08\x02" + field(6, struct.pack("<d", value))) + field(9, field(1, field(1, b"scalars"))),
        "raw": field(8, b"\x08\x01" + field(4, struct.pack("<f", value))) + field(9, field(1, field(1, b"scalars"))),
        "image": field(8, b"\x08\x07"),
    }[form]
    return field(5, field(1, field(1, tag.encode()) + value))


VERSION = event(1769829000.0, content=field(3, b"brain.Event:2"))


def read(folder, content, name="events.out.tfevents.1769829000.a3-17.7.0"):
    path = folder / name
    path.write_bytes(content)
    return read_evidence([str(path)])


def test_the_checksum_is_that_of_the_standard():
    # CRC-32C of "123456789" is 0xE3069283; masked as TensorFlow does.
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("form", ["old", "float", "double", "raw"])
def test_scalars_of_every_form(tmp_path, form):
    steps = [event(1769829000.5 + step, step, scalar("train/loss", 2.5 - step / 4, form)) for step in range(3)]
    found = read(tmp_path, VERSION + b"".join(steps))
    (loss,) = [one for one in found.series if one.name == "loss"]
    assert (loss.steps.tolist(), loss.values.tolist()) == ([0, 1, 2], [2.5, 2.25, 2.0])
    assert loss.times.tolist() == [(1_769_829_000_500 + 1000 * step) * 10**6 for step in range(3)]
    assert (found.files[0].kind, found.files[0].lines, found.files[0].understood) == ("tensorboard", 4, 3)


def test_other_tags_keep_their_names_and_images_are_passed_over(tmp_path):
    image = event(1769829001.0, 1, field(5, field(1, field(1, b"pictures") + field(4, b"x" * 200_000))))
    found = read(
        tmp_path,
        VERSION + event(1769829000.5, 7, scalar("eval/bleu", 30)) + image + event(1769829002.0, 9, scalar("a", 1)),
    )
    assert {one.name: one.steps.tolist() for one in found.series} == {"eval/bleu": [7], "a": [9]}
    assert found.files[0].fault == ""


def test_a_record_with_two_scalars_is_one_that_is_understood(tmp_path):
    found = read(tmp_path, VERSION + event(1769829000.5, 7, scalar("loss", 2) + scalar("grad_norm", 1)))
    assert {one.name: one.values.tolist() for one in found.series} == {"loss": [2], "grad_norm": [1]}
    assert (found.files[0].lines, found.files[0].understood) == (2, 1)


def test_a_writer_that_begins_anew_is_a_restart(tmp_path):
    found = read(tmp_path, VERSION + event(1769829001.0, 5, field(7, b"\x08\x01")))
    (one,) = found.of(What.RESTART)
    assert one.time_ns == 1_769_829_001 * 10**9


@pytest.mark.parametrize("cut", [1, 5, 13, 30])
def test_a_torn_end_keeps_what_was_before(tmp_path, cut):
    content = VERSION + b"".join(event(1769829000.0 + step, step, scalar("loss", 1)) for step in (1, 2, 3))
    found = read(tmp_path, content[:-cut])
    assert [one.steps.tolist() for one in found.series] == [[1, 2]]
    assert "torn" in found.files[0].fault


def test_a_damaged_length_ends_it(tmp_path):
    content = VERSION + event(1769829000.0, 1, scalar("loss", 1)) + b"\xff" * 40
    found = read(tmp_path, content)
    assert [one.steps.tolist() for one in found.series] == [[1]]
    assert "damaged" in found.files[0].fault


def test_other_files_are_none():
    assert not is_event_file(b"\0" * 64)
    assert not is_event_file(b"")


def test_the_reader_of_tensorboard_agrees(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    content = VERSION + event(1769829000.5, 3, scalar("loss", 1.5))
    read(tmp_path, content)
    (path,) = tmp_path.iterdir()
    events = list(reader.LegacyEventFileLoader(str(path)).Load())
    assert [(each.step, each.summary.value[0].simple_value) for each in events if each.summary.value] == [(3, 1.5)]
