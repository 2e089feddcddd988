"""What accelerators can do at most: dense arithmetic by element type and memory bandwidth, as their makers state.

fp64 and fp32 are the rates of matrix units where these have the type (A100, H100 and H200 for fp64; AMD for both), else
of the vector units. Figures were entered by hand, and checked against each other (ratios between element types, units
times clock, half of the figures with sparsity), not against the documents again. Least certain: the bandwidth of B200
(7.7 to 8 TB/s, by system) and of H100 PCIe, and the GeForce cards, which run at other clocks than the reference.
Ascend 910B and 910C do 16³ products a core and cycle, by cores and clock of CANN's platform configuration
(Ascend910B2.ini and others), half as many of float as HF32 (here tf32) and a quarter as fp32; what is sold as 313, 376
or 400 TFLOP/s would need a higher clock than profiles show. Their 1.6 TB/s are four stacks of HBM2e at 3.2 Gbit/s. A
device is one of the two dies of a 910C. Profiles name a family at most (Ascend910B), hence `cycles`.
Not entered because not known well enough: 910B4-1, 910_9362 (20 cores at 1500 MHz as the 910B4, with another memory);
MI300A; A800.
Least certain of the later ones: H20, RTX 5090 and the fp64 of all cards without matrix units for it. A Max 1550 shows
as its two stacks, each a device, unless the driver was told otherwise. Caches are those of the same documents: L2, of
MI300 to MI350 the Infinity Cache.
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
    cycles: int = 0
    """10⁶ cycles a second of all matrix units together, where that tells the device; 0 elsewhere."""

    def rate(self, dtype: str) -> float | None:
        """Operations per nanosecond for an element type; HF32 is what Ascend has for TF32."""
        peak = self.tflops.get("tf32" if dtype == "hf32" else dtype)
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
_GB200 = "NVIDIA GB200 NVL72 datasheet (2024), one of 72, half of the figures with sparsity"
_T4 = "NVIDIA T4 datasheet (2019)"
_L4 = "NVIDIA L4 datasheet (2023), half of the figures with sparsity"
_L40 = "NVIDIA L40 datasheet (2022), half of the figures with sparsity"
_GA102_CARDS = "NVIDIA A10, A40 and RTX A6000 datasheets (2021), half of the figures with sparsity"
_BLACKWELL_RTX = "NVIDIA RTX Blackwell architecture white paper (2025)"
_MI300 = "AMD CDNA 3 white paper and MI300X datasheet (2023)"
_MAX = "Intel Data Center GPU Max datasheet and architecture guide (2023)"
_910B = "CANN platform configuration (2025); memory: Huawei Atlas 800T A2 and CloudMatrix384 figures"
_910A = "Huawei Ascend 910 figures and HPCA 2021 paper"
_310P = "Huawei Atlas 300I Pro datasheet"
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
"""Element types that have a peak rate."""


def _tflops(*rates: float) -> dict[str, float]:
    """Rates of all of `DTYPES`, in their order."""
    return dict(zip(DTYPES, rates, strict=True))


def _ampere(fp32: float, fp16: float) -> dict[str, float]:
    """Rates of professional cards with the GA102 chip."""
    return {"fp64": fp32 / 64, "fp32": fp32, "tf32": fp16 / 2, "fp16": fp16, "bf16": fp16, "int8": 2 * fp16}


def _max(fp64: float, fp16: float) -> dict[str, float]:
    """Rates of Intel's Max series, whose vector units do fp64 as fast as fp32."""
    return {"fp64": fp64, "fp32": fp64, "tf32": fp16 / 2, "fp16": fp16, "bf16": fp16, "int8": 2 * fp16}


def _cube(cores: int, mhz: int) -> dict[str, float]:
    """Rates of cubes of 16 × 16 × 16 products."""
    fp16 = cores * mhz * 2 * 16**3 / 1e6
    return {"fp32": fp16 / 4, "tf32": fp16 / 2, "fp16": fp16, "bf16": fp16, "int8": 2 * fp16}


_A100_TFLOPS = {"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0, "int8": 624.0}
_HOPPER_TFLOPS = _tflops(66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9)
_HOPPER_NVL_TFLOPS = _tflops(60.0, 60.0, 417.5, 835.5, 835.5, 1670.5, 1670.5)
_RTX_3060_TI_TFLOPS = {"fp64": 0.25, "fp32": 16.2, "tf32": 16.2, "fp16": 32.4, "bf16": 32.4}
_RTX_4090_TFLOPS = _tflops(1.29, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6)
_RTX_3090_TFLOPS = {"fp64": 0.56, "fp32": 35.6, "tf32": 35.6, "fp16": 71.2, "bf16": 71.2, "int8": 284.0}
_RTX_5090_TFLOPS = _tflops(1.64, 104.8, 104.8, 209.5, 209.5, 419.0, 838.0)
_MI250X_TFLOPS = {"fp64": 47.9, "fp32": 47.9, "fp16": 191.5, "bf16": 191.5, "int8": 191.5}
_MI250_TFLOPS = {"fp64": 45.3, "fp32": 45.3, "fp16": 181.0, "bf16": 181.0, "int8": 181.0}
_MI300_TFLOPS = _tflops(163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9)
_MI350_TFLOPS = {"fp64": 72.1, "fp32": 144.2, "fp16": 2306.9, "bf16": 2306.9, "fp8": 4613.7, "int8": 4613.7}


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
    Peaks("H800 SXM", r"\bH800\b(?!.*PCIe)", {**_HOPPER_TFLOPS, "fp64": 1.0}, 3352, "NVIDIA H800 datasheet (2023)", 50),
    Peaks(
        "H20",
        r"\bH20\b(?!-3e)",
        _tflops(1.0, 44.0, 74.0, 148.0, 148.0, 296.0, 296.0),
        4000,
        "NVIDIA H20 figures (2023)",
        60,
    ),
    Peaks("GB200", r"\bGB200", _tflops(40.0, 80.0, 1250.0, 2500.0, 2500.0, 5000.0, 5000.0), 8000, _GB200, 126),
    Peaks("T4", r"\bT4\b", {"fp64": 0.25, "fp32": 8.1, "fp16": 65.0, "int8": 130.0}, 320, _T4, 4),
    Peaks("L4", r"\bL4\b", _tflops(0.47, 30.3, 60.5, 121.0, 121.0, 242.5, 242.5), 300, _L4, 48),
    Peaks("L40", r"\bL40\b", _tflops(1.41, 90.5, 90.5, 181.0, 181.0, 362.0, 362.0), 864, _L40, 96),
    Peaks("A10", r"\bA10\b", _ampere(31.2, 125.0), 600, _GA102_CARDS, 6),
    Peaks("A40", r"\bA40\b", _ampere(37.4, 149.7), 696, _GA102_CARDS, 6),
    Peaks("RTX A6000", r"\bA6000\b", _ampere(38.7, 154.8), 768, _GA102_CARDS, 6),
    Peaks("GeForce RTX 3090", r"RTX 3090(?! Ti)", _RTX_3090_TFLOPS, 936, "NVIDIA Ampere GA102 white paper (2021)", 6),
    Peaks("GeForce RTX 5090", r"RTX 5090(?! D| Laptop)", _RTX_5090_TFLOPS, 1792, _BLACKWELL_RTX, 96),
    Peaks("GeForce RTX 2080 Ti", r"RTX 2080 Ti", {"fp64": 0.42, "fp32": 13.4, "fp16": 53.8}, 616, _TURING, 5.5),
    Peaks("GeForce RTX 3060 Ti", r"RTX 3060 Ti", _RTX_3060_TI_TFLOPS, 448, _GA102, 4),
    Peaks("GeForce RTX 4090", r"RTX 4090(?! D| Laptop)", _RTX_4090_TFLOPS, 1008, _ADA, 72),
    Peaks("MI250X (one die)", r"MI250X", _MI250X_TFLOPS, 1638, "AMD MI250X datasheet (2021), half a board", 8),
    Peaks("MI250 (one die)", r"MI250", _MI250_TFLOPS, 1638, "AMD MI250 datasheet (2021), half a board", 8),
    Peaks("MI210", r"MI210", _MI250_TFLOPS, 1638, "AMD MI210 datasheet (2022)", 8),
    Peaks("MI350X", r"MI350X", _MI350_TFLOPS, 8000, "AMD MI350X datasheet (2025)", 256),
    Peaks("Max 1550 (one stack)", r"GPU Max 1550", _max(26.2, 419.5), 1638, _MAX + ", half a card", 204),
    Peaks("Max 1100", r"GPU Max 1100", _max(22.2, 355.5), 1229, _MAX, 108),
    Peaks("Ascend 910B1, 910C (one die)", r"910B1|910_939[12]", _cube(24, 1850), 1638, _910B, 192, 24 * 1850),
    Peaks("Ascend 910B2, 910C (one die)", r"910B2(?!C)|910_938[12]", _cube(24, 1800), 1638, _910B, 192, 24 * 1800),
    Peaks("Ascend 910B3, 910C (one die)", r"910B3|910_9372", _cube(20, 1800), 1638, _910B, 192, 20 * 1800),
    Peaks("Ascend 910B4", r"910B4(?!-)", _cube(20, 1500), 819, _910B),
    Peaks("Ascend 910A", r"Ascend ?910(Pro|Premium)?A", {"fp32": 4.1, "fp16": 256.0, "int8": 512.0}, 1200, _910A, 32),
    Peaks("Ascend 310P3", r"310P3?\b", {"fp32": 2.0, "fp16": 70.0, "int8": 140.0}, 204.8, _310P),
    Peaks("MI300X", r"MI300X", _MI300_TFLOPS, 5300, _MI300, 256),
    Peaks("MI325X", r"MI325X", _MI300_TFLOPS, 6000, "AMD MI325X datasheet (2024)", 256),
)
"""First match decides, hence special variants first."""


def peaks_of(name: str, own: Sequence[Peaks] = ()) -> Peaks | None:
    """Peak rates of a device by its name, None if it is in neither table; the user's `own` come first."""
    return next((peaks for peaks in (*own, *PEAKS) if re.search(peaks.pattern, name, re.IGNORECASE)), None)


def peaks_of_cycles(cycles: float | None) -> Peaks | None:
    """The same by 10⁶ cycles a second of all matrix units together."""
    return next((peaks for peaks in PEAKS if cycles and abs(cycles - peaks.cycles) < _EXACT * cycles), None)


_EXACT = 0.002
"""Counters are exact to less; variants differ by more."""
