"""Peak rates of devices that a user adds."""

import re
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.api.device_peaks import read_peaks

GOOD = 'pattern = "my (chip|card)"\nname = "My chip"\nbandwidth_gbs = 500\ntflops = { fp32 = 2, bf16 = 4.5 }'
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def write(folder, text):
    path = folder / "devices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def recording(folder, device):
    b = TraceBuilder()
    b.header["deviceProperties"] = [{"id": 0, "name": device}]
    b.op("aten::mm", 0, 10, **{"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["float", "float"]})
    b.launch(1, 1, 20, 2000, name="sgemm")
    return b.write(folder / "trace.json")


def share(path, **choices):
    (value,) = traceanalyze.analyze(path, **choices).tables["op_rates"].column("roofline_share")
    return value


def test_a_device_of_the_user_has_a_roofline(tmp_path):
    trace = recording(tmp_path, "My Card 7")
    assert share(trace) == NotMeasured("unknown_device")
    # 2·10⁹ FLOP at 2 TFLOP/s take 1 ms of the 2 ms.
    assert share(trace, device_peaks=write(tmp_path, f"[[device]]\n{GOOD}")) == pytest.approx(0.5)
    run = traceanalyze.load(trace)
    assert share(run, device_peaks=tmp_path / "devices.toml") == pytest.approx(0.5)


def test_entries_of_the_user_come_before_those_of_the_tool(tmp_path):
    trace = recording(tmp_path, "NVIDIA H100 80GB HBM3")
    own = GOOD.replace("my (chip|card)", "H100")
    assert share(trace, device_peaks=write(tmp_path, f"[[device]]\n{own}")) == pytest.approx(0.5)
    first = GOOD.replace("my (chip|card)", "h100").replace("fp32 = 2", "fp32 = 4")
    both = write(tmp_path, f"[[device]]\n{first}\n[[device]]\n{own}")
    assert share(trace, device_peaks=both) == pytest.approx(0.25)


def test_the_example_of_the_readme_is_read(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (peaks,) = read_peaks(str(write(tmp_path, example)))
    assert (peaks.device, peaks.bandwidth, peaks.rate("bf16")) == ("RTX A6000", 768, 154_800)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no [[device]] entry"),
        ("device = 3", "holds no [[device]] entry"),
        ("[[device]", "is not TOML: "),
        (f"[[devices]]\n{GOOD}", "unknown: devices; write [[device]] entries"),
        ("device = [3]", "device 1: write pattern, name, bandwidth_gbs, tflops, and nothing else"),
        (f"[[device]]\n{GOOD}\n[[device]]\nname = 'x'", "device 2: write pattern, name, bandwidth_gbs, tflops"),
        (f"[[device]]\n{GOOD}\nwatts = 3", "device 1: write pattern"),
        (
            f"[[device]]\n{GOOD}".replace("my (", "my (("),
            "device 1: pattern: my ((chip|card): not a regular expression",
        ),
        (f"[[device]]\n{GOOD}".replace('"My chip"', "3"), "device 1: name: write a text"),
        (f"[[device]]\n{GOOD}".replace("500", "true"), "device 1: bandwidth_gbs: write a number above 0"),
        (f"[[device]]\n{GOOD}".replace("500", "inf"), "device 1: bandwidth_gbs: write a number above 0"),
        (f"[[device]]\n{GOOD}".replace("4.5", "-4.5"), "device 1: tflops: bf16: write a number above 0"),
        (f"[[device]]\n{GOOD}".replace("bf16", "bf17"), "device 1: tflops: write TYPE = number in braces"),
        (f"[[device]]\n{GOOD}".replace("{ fp32 = 2, bf16 = 4.5 }", "3"), "device 1: tflops: write TYPE = number"),
    ],
)
def test_errors_say_where_and_what_to_write(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(traceanalyze.UsageError, match=re.escape(f"--device-peaks {path}: {message}")):
        read_peaks(str(path))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(traceanalyze.UsageError, match=r"none\.toml: cannot be read: No such file"):
        read_peaks(str(tmp_path / "none.toml"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(traceanalyze.UsageError, match="binary: is not TOML: not UTF-8"):
        read_peaks(str(tmp_path / "binary"))
