"""What accelerators can do at most: dense arithmetic by element type and memory bandwidth, as their makers state.

fp64 and fp32 are the rates of matrix units where these have the type (A100, H100 and H200 for fp64; AMD for both), else
of the vector units. Figures were entered by hand, and checked against each other (ratios between element types, units
times clock, half of the figures with sparsity), not against the documents again. Least certain: the bandwidth of B200
(7.7 to 8 TB/s, by system) and of H100 PCIe, and the GeForce cards, which run at other clocks than the reference.
Not entered because not known well enough: Ascend 910B and 910C, whose variants differ in cores and clock; MI300A;
A800, H800 and H20; GB200. Caches are those of the same documents: L2, of MI300 and MI325 the Infinity Cache.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Peaks(NamedTuple):
    """Peak rates of one device as a profile shows it (of MI250 boards one of the two dies)."""

    device: str
    pattern: str
    """Regular expression searched in the device's name."""
    tflops: Mapping[str, float]
    """10¹² operations per second, dense, by element type; 8-bit and 16-bit floats accumulate in 32 bits."""
    bandwidth: float
    """Memory bandwidth, 10⁹ bytes per second."""
    source: str
    cache_mib: float = 0
    """Size of the last-level cache, 2²⁰ bytes; 0 where unknown."""

    def rate(self, dtype: str) -> float | None:
        """Operations per nanosecond for an element type."""
        peak = self.tflops.get(dtype)
        return None if peak is None else peak * 1e3


_V100 = "NVIDIA V100 datasheet (2020)"
_A100 = "NVIDIA A100 datasheet (2022)"
_H100 = "NVIDIA H100 datasheet (2024), half of the figures with sparsity"
_H200 = "NVIDIA H200 datasheet (2024), half of the figures with sparsity"
_H100_PCIE = "NVIDIA H100 architecture white paper (2022), half of the figures with sparsity"
_B200 = "NVIDIA HGX B200 datasheet (2024), an eighth of the board, half of the figures with sparsity"
_L40S = "NVIDIA L40S datasheet (2023), half of the figures with sparsity"
_TURING = "NVIDIA Turing architecture white paper (2018), reference clock"
_GA102 = "NVIDIA Ampere GA102 white paper (2021), rates per SM at 38 SMs and 1.665 GHz"
_ADA = "NVIDIA Ada architecture white paper (2023)"
_MI300 = "AMD CDNA 3 white paper and MI300X datasheet (2023)"
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
"""Element types that have a peak rate."""


def _tflops(*rates: float) -> dict[str, float]:
    """Rates of all of `DTYPES`, in their order."""
    return dict(zip(DTYPES, rates, strict=True))


_A100_TFLOPS = {"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0, "int8": 624.0}
_HOPPER_TFLOPS = _tflops(66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9)
_HOPPER_NVL_TFLOPS = _tflops(60.0, 60.0, 417.5, 835.5, 835.5, 1670.5, 1670.5)
_RTX_3060_TI_TFLOPS = {"fp64": 0.25, "fp32": 16.2, "tf32": 16.2, "fp16": 32.4, "bf16": 32.4}
_RTX_4090_TFLOPS = _tflops(1.29, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6)
_MI250X_TFLOPS = {"fp64": 47.9, "fp32": 47.9, "fp16": 191.5, "bf16": 191.5, "int8": 191.5}
_MI250_TFLOPS = {"fp64": 45.3, "fp32": 45.3, "fp16": 181.0, "bf16": 181.0, "int8": 181.0}
_MI300_TFLOPS = _tflops(163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9)

PEAKS = (
    Peaks("V100S PCIe", r"V100S", {"fp64": 8.2, "fp32": 16.4, "fp16": 130.0}, 1134, _V100, 6),
    Peaks("V100 PCIe", r"V100.*PCIE", {"fp64": 7.0, "fp32": 14.0, "fp16": 112.0}, 900, _V100, 6),
    Peaks("V100 SXM2", r"V100", {"fp64": 7.8, "fp32": 15.7, "fp16": 125.0}, 900, _V100, 6),
    Peaks("A100 80GB PCIe", r"\bA100.*80GB.*PCIe|\bA100.*PCIe.*80GB", _A100_TFLOPS, 1935, _A100, 40),
    Peaks("A100 80GB SXM", r"\bA100.*80GB|PG509-210", _A100_TFLOPS, 2039, _A100, 40),
    Peaks(
        "A100 40GB", r"\bA100(?![\dX])(?!.*64GB)", _A100_TFLOPS, 1555, "NVIDIA A100 architecture white paper (2020)", 40
    ),
    Peaks("H100 PCIe", r"\bH100.*PCIe", _tflops(51.2, 51.2, 378.0, 756.0, 756.0, 1513.0, 1513.0), 2039, _H100_PCIE, 50),
    Peaks("H100 NVL", r"\bH100.*NVL", _HOPPER_NVL_TFLOPS, 3938, _H100, 50),
    Peaks("H100 SXM", r"\bH100", _HOPPER_TFLOPS, 3352, _H100, 50),
    Peaks("H200 NVL", r"\bH200.*NVL", _HOPPER_NVL_TFLOPS, 4800, _H200, 50),
    Peaks("H200 SXM", r"\bH200", _HOPPER_TFLOPS, 4800, _H200, 50),
    Peaks("B200", r"\bB200", _tflops(37.0, 75.0, 1125.0, 2250.0, 2250.0, 4500.0, 4500.0), 8000, _B200, 126),
    Peaks("GH200 96GB", r"\bGH200 480GB", _HOPPER_TFLOPS, 4000, "NVIDIA GH200 datasheet (2024)", 60),
    Peaks("L40S", r"\bL40S", _tflops(1.43, 91.6, 183.0, 362.0, 362.0, 733.0, 733.0), 864, _L40S, 96),
    Peaks("GeForce RTX 2080 Ti", r"RTX 2080 Ti", {"fp64": 0.42, "fp32": 13.4, "fp16": 53.8}, 616, _TURING, 5.5),
    Peaks("GeForce RTX 3060 Ti", r"RTX 3060 Ti", _RTX_3060_TI_TFLOPS, 448, _GA102, 4),
    Peaks("GeForce RTX 4090", r"RTX 4090(?! D| Laptop)", _RTX_4090_TFLOPS, 1008, _ADA, 72),
    Peaks("MI250X (one die)", r"MI250X", _MI250X_TFLOPS, 1638, "AMD MI250X datasheet (2021), half a board", 8),
    Peaks("MI250 (one die)", r"MI250", _MI250_TFLOPS, 1638, "AMD MI250 datasheet (2021), half a board", 8),
    Peaks("MI300X", r"MI300X", _MI300_TFLOPS, 5300, _MI300, 256),
    Peaks("MI325X", r"MI325X", _MI300_TFLOPS, 6000, "AMD MI325X datasheet (2024)", 256),
)
"""First match decides, hence special variants first."""


def peaks_of(name: str, own: Sequence[Peaks] = ()) -> Peaks | None:
    """Peak rates of a device by its name, None if it is in neither table; the user's `own` come first."""
    return next((peaks for peaks in (*own, *PEAKS) if re.search(peaks.pattern, name, re.IGNORECASE)), None)
