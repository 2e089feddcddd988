"""Peak rates of devices that a user adds."""

import re
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.model.device_peaks import PEAKS, peaks_of
from traceanalyze.model.table import NotMeasured
from traceanalyze.pipeline.choices import read_peaks

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
    (example,) = (text for text in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[[device]]" in text)
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


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("Tesla V100-PCIE-16GB", "V100 PCIe"),
        ("Tesla V100S-PCIE-32GB", "V100S PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-PG509-200", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("AMD Instinct MI250X", "MI250X (one die)"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI325X", "MI325X"),
    ],
)
def test_a_device_is_known_by_the_name_its_driver_gives_it(name, device):
    found = peaks_of(name)
    assert found is not None
    assert found.device == device


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA RTX A1000",
        "NVIDIA A100X",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA GH200 144G HBM3e",
        "NVIDIA GB200",
        "NVIDIA L40",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "AMD Instinct MI300A",
        "Ascend910B2",
    ],
)
def test_a_device_with_a_similar_name_is_not_taken_for_another(name):
    assert peaks_of(name) is None


@pytest.mark.parametrize("peaks", PEAKS, ids=lambda peaks: peaks.device)
def test_narrower_types_are_not_slower(peaks):
    order = [peaks.tflops[dtype] for dtype in ("fp32", "tf32", "fp16", "fp8", "int8") if dtype in peaks.tflops]
    assert order == sorted(order)
    assert peaks.tflops.get("bf16", peaks.tflops["fp16"]) == peaks.tflops["fp16"]
