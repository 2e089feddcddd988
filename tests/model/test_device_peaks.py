"""Peak rates of devices that a user adds."""

import re

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.documents import text
from traceanalyze.model.device_peaks import PEAKS, peaks_of, peaks_of_cycles
from traceanalyze.model.table import NotMeasured
from traceanalyze.pipeline.choices import read_peaks

GOOD = 'pattern = "my (chip|card)"\nname = "My chip"\nbandwidth_gbs = 500\ntflops = { fp32 = 2, bf16 = 4.5 }'
README = text()


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
        ("[[device]", "not TOML: look at line 1"),
        (f"[[device]]\nname = {'[' * 3000}", "not TOML: a number is too long, or it is nested too deeply"),
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
    with pytest.raises(traceanalyze.UsageError, match=re.escape(f"device_peaks={path}: {message}")):
        read_peaks(str(path))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(traceanalyze.UsageError, match=r"none\.toml: cannot be read: No such file"):
        read_peaks(str(tmp_path / "none.toml"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(traceanalyze.UsageError, match="binary: not TOML: not UTF-8"):
        read_peaks(str(tmp_path / "binary"))


@pytest.mark.parametrize(
    ("name", "device", "fp16", "bandwidth"),
    [
        ("Tesla V100-SXM2-16GB", "V100 SXM2", 125, 900),
        ("Tesla V100-SXM2-32GB", "V100 SXM2", 125, 900),
        ("Tesla V100-PCIE-16GB", "V100 PCIe", 112, 900),
        ("Tesla V100S-PCIE-32GB", "V100S PCIe", 130, 1134),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", 312, 1555),
        ("NVIDIA A100-PG509-200", "A100 40GB", 312, 1555),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM", 312, 2039),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe", 312, 1935),
        ("NVIDIA H100 80GB HBM3", "H100 SXM", 989.4, 3352),
        ("NVIDIA H100 PCIe", "H100 PCIe", 756, 2039),
        ("NVIDIA H100 NVL", "H100 NVL", 835.5, 3938),
        ("NVIDIA H200", "H200 SXM", 989.4, 4800),
        ("NVIDIA H200 NVL", "H200 NVL", 835.5, 4800),
        ("NVIDIA GH200 480GB", "GH200 96GB", 989.4, 4000),
        ("NVIDIA B200", "B200", 2250, 8000),
        ("NVIDIA L40S", "L40S", 362, 864),
        ("NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti", 53.8, 616),
        ("NVIDIA GeForce RTX 3060 Ti", "GeForce RTX 3060 Ti", 32.4, 448),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", 165.2, 1008),
        ("AMD Instinct MI250X", "MI250X (one die)", 191.5, 1638),
        ("AMD Instinct MI250", "MI250 (one die)", 181, 1638),
        ("AMD Instinct MI300X", "MI300X", 1307.4, 5300),
        ("AMD Instinct MI300X VF", "MI300X", 1307.4, 5300),
        ("AMD Instinct MI325X", "MI325X", 1307.4, 6000),
        ("AMD Instinct MI210", "MI210", 181, 1638),
        ("AMD Instinct MI350X", "MI350X", 2306.9, 8000),
        ("NVIDIA H800", "H800 SXM", 989.4, 3352),
        ("NVIDIA H20", "H20", 148, 4000),
        ("NVIDIA GB200", "GB200", 2500, 8000),
        ("Tesla T4", "T4", 65, 320),
        ("NVIDIA L4", "L4", 121, 300),
        ("NVIDIA L40", "L40", 181, 864),
        ("NVIDIA A10", "A10", 125, 600),
        ("NVIDIA A40", "A40", 149.7, 696),
        ("NVIDIA RTX A6000", "RTX A6000", 154.8, 768),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", 71.2, 936),
        ("NVIDIA GeForce RTX 5090", "GeForce RTX 5090", 209.5, 1792),
        ("Intel(R) Data Center GPU Max 1550", "Max 1550 (one stack)", 419.5, 1638),
        ("Intel(R) Data Center GPU Max 1100", "Max 1100", 355.5, 1229),
        ("Ascend910B1", "Ascend 910B1, 910C (one die)", 363.7248, 1638),
        ("Ascend910_9392", "Ascend 910B1, 910C (one die)", 363.7248, 1638),
        ("Ascend910B2", "Ascend 910B2, 910C (one die)", 353.8944, 1638),
        ("Ascend910_9382", "Ascend 910B2, 910C (one die)", 353.8944, 1638),
        ("Ascend910B3", "Ascend 910B3, 910C (one die)", 294.912, 1638),
        ("Ascend910B4", "Ascend 910B4", 245.76, 819),
        ("Ascend910A", "Ascend 910A", 256, 1200),
        ("Ascend910ProA", "Ascend 910A", 256, 1200),
        ("Ascend310P3", "Ascend 310P3", 70, 204.8),
        ("Ascend310P", "Ascend 310P3", 70, 204.8),
    ],
)
def test_a_device_is_known_by_the_name_its_driver_gives_it(name, device, fp16, bandwidth):
    found = peaks_of(name)
    assert found is not None
    assert (found.device, found.tflops["fp16"], found.bandwidth) == (device, fp16, bandwidth)
    assert found.rate("fp16") == fp16 * 1000
    assert found.rate("fp4") is None


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA RTX A1000",
        "NVIDIA A100X",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA GH200 144G HBM3e",
        "NVIDIA GB300",
        "NVIDIA A10G",
        "NVIDIA H20-3e",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "AMD Instinct MI300A",
        "Ascend910B",
        "Ascend910B2C",
        "Ascend910B4-1",
        "Ascend910_9362",
        "Ascend310P1",
        "AMD Radeon Graphics",
        "",
    ],
)
def test_a_device_with_a_similar_name_is_not_taken_for_another(name):
    assert peaks_of(name) is None


@pytest.mark.parametrize("peaks", PEAKS, ids=lambda peaks: peaks.device)
def test_narrower_types_are_not_slower(peaks):
    order = [peaks.tflops[dtype] for dtype in ("fp32", "tf32", "fp16", "fp8", "int8") if dtype in peaks.tflops]
    assert order == sorted(order)
    assert peaks.tflops.get("bf16", peaks.tflops["fp16"]) == peaks.tflops["fp16"]


@pytest.mark.parametrize("peaks", PEAKS, ids=lambda peaks: peaks.device)
def test_rates_of_a_device_are_in_the_ratios_of_its_architecture(peaks):
    """Matrix units double their rate as the type halves; the cards for games differ."""
    rates, name = peaks.tflops, peaks.device
    twice = [("fp16", "tf32")] if rates.get("tf32", rates["fp32"]) > rates["fp32"] else []
    if "fp8" in rates:
        twice.append(("fp8", "fp16"))
    for faster, slower in twice:
        assert rates[faster] == pytest.approx(2 * rates[slower], rel=0.015)
    if "int8" in rates:
        of_fp16 = 4 if "GeForce" in name else 1 if name.startswith("MI2") else 2
        assert rates["int8"] == pytest.approx(of_fp16 * rates["fp16"], rel=0.015)
    assert peaks.source
    if "fp64" not in rates:
        assert name.startswith("Ascend")
        return
    matrix_fp64 = ("A100", "H100", "H200", "GH200", "MI210", "MI250", "MI300X", "MI325X", "Max")
    vector = {
        "V100": 2,
        "GB200": 2,
        "B200": 75 / 37,
        "MI350": 2,
        "RTX 2080": 32,
        "RTX": 64,
        "L4": 64,
        "A10": 64,
        "A40": 64,
    }
    vector |= {"T4": 32, "H800": 66.9, "H20": 44}  # the last two are cut for export
    ratio = 1 if name.startswith(matrix_fp64) else next(ratio for each, ratio in vector.items() if each in name)
    assert rates["fp32"] / rates["fp64"] == pytest.approx(ratio, rel=0.025)


@pytest.mark.parametrize(
    ("cycles", "device"),
    [(43_199.6, "910B2"), (44_400, "910B1"), (36_000, "910B3"), (30_000, None), (40_000, None), (None, None)],
)
def test_a_device_without_a_name_is_known_by_its_matrix_units(cycles, device):
    """20 cores at 1500 MHz are those of devices with different memories."""
    found = peaks_of_cycles(cycles)
    assert (found.device.split()[1].strip(",") if found else None) == device


@pytest.mark.parametrize(
    ("stated", "name"), [({0: "A"}, "A"), ({0: "A", 1: "A"}, "A"), ({0: "A", 2: "B"}, "B"), ({0: "A", 1: "B"}, None)]
)
def test_the_only_name_also_fits_a_device_that_is_numbered_otherwise(stated, name):
    """The runtime numbers those that a process may use from 0, the driver all there are."""
    b = TraceBuilder()
    b.header["deviceProperties"] = [{"id": number, "name": text} for number, text in stated.items()]
    b.device(0, 10, device=2)
    assert b.trace().device_name(2) == name
    assert b.rows("devices")[0].device_name == name
