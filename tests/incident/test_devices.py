"""States of devices: nvidia-smi as text, XML and csv, DCGM, npu-smi."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import UNKNOWN, What


def read(folder, text, name="states.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_evidence([str(path)])


def values(found, name):
    (one,) = [each for each in found.series if each.name == name]
    return one.values.tolist()


CSV = """\
timestamp, index, pci.bus_id, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu, \
clocks.current.sm [MHz], clocks_event_reasons.active, clocks_event_reasons.hw_thermal_slowdown
2026/01/31 03:12:03.120, 6, 00000000:3B:00.0, 100 %, 78112 MiB, 690.30 W, 71, 1980 MHz, 0x0000000000000004, Not Active
2026/01/31 03:12:04.120, 6, 00000000:3B:00.0, 100 %, 78112 MiB, 251.30 W, 88, 1095 MHz, 0x0000000000000048, Active
2026/01/31 03:12:05.120, 6, 00000000:3B:00.0, 100 %, 78112 MiB, [N/A], 90, 1090 MHz, 0x0000000000000048, Active
2026/01/31 03:12:06.120, 6, 00000000:3B:00.0, 100 %
"""


def test_csv_of_nvidia_smi(tmp_path):
    found = read(tmp_path, CSV)
    assert values(found, "clock") == [1980, 1095, 1090]
    assert values(found, "power") == [690.3, 251.3]
    assert values(found, "memory_used") == [78112 * 2**20] * 3
    (event,) = found.of(What.THROTTLE)
    assert event.data == {
        "mask": 0x48,
        "samples": 2,
        "clock_mhz": 1090,
        "temperature": 90,
        "reason": "hardware slowdown, hardware thermal slowdown",
    }
    assert (event.device, event.until_ns - event.stamp_ns) == ("0000:3b:00", 10**9)
    (device,) = found.devices
    assert (device.number, device.bus) == (6, "0000:3b:00")
    assert found.files[0].kind == "nvidia_smi"


def test_the_older_names_and_flags_without_a_mask(tmp_path):
    text = (
        "timestamp, name, pci.bus_id, clocks.sm [MHz], clocks_throttle_reasons.hw_slowdown\n"
        "2026/01/31 03:12:03.120, NVIDIA H100, 00000000:3B:00.0, 1980 MHz, Not Active\n"
        "2026/01/31 03:12:04.120, NVIDIA H100, 00000000:3B:00.0, 345 MHz, Active\n"
    )
    found = read(tmp_path, text)
    assert found.of(What.THROTTLE)[0].data["mask"] == 8
    assert found.devices[0].name == "NVIDIA H100"


QUERY = """\
==============NVSMI LOG==============

Timestamp                                 : Sat Jan 31 03:12:44 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Reset Status
        Reset Required                    : Yes
        Drain and Reset Recommended       : No
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : 78112 MiB
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : No
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 88 C
    Clocks
        Graphics                          : 1095 MHz
        SM                                : 1095 MHz
GPU 00000000:86:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Temperature
        GPU Current Temp                  : 40 C
"""
XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Sat Jan 31 03:12:44 2026</timestamp>
  <gpu id="00000000:3B:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <clocks_event_reasons>
      <clocks_event_reason_hw_slowdown>Active</clocks_event_reason_hw_slowdown>
      <clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
    </clocks_event_reasons>
    <fb_memory_usage><used>78112 MiB</used></fb_memory_usage>
    <ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>
    <temperature><gpu_temp>88 C</gpu_temp></temperature>
    <clocks><sm_clock>1095 MHz</sm_clock></clocks>
  </gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize("text", [QUERY, XML], ids=["text", "xml"])
def test_one_state_of_nvidia_smi(tmp_path, text):
    found = read(tmp_path, text)
    of = {(one.device, one.name): one.values.tolist() for one in found.series}
    assert of["0000:3b:00", "temperature"] == [88]
    assert of["0000:3b:00", "clock"] == [1095]
    assert of["0000:3b:00", "memory_used"] == [78112 * 2**20]
    assert found.of(What.THROTTLE)[0].data["mask"] == 0x48
    assert [one.data["uncorrected"] for one in found.of(What.ECC) if "uncorrected" in one.data] == [2]
    assert found.devices[0].name == "NVIDIA H100 80GB HBM3"
    assert {one.stamp_ns for one in found.events} == {1_769_829_164 * 10**9}


def test_what_it_recommends(tmp_path):
    assert [one.data["health"] for one in read(tmp_path, QUERY).of(What.DEVICE_HEALTH)] == ["reset required"]


def test_dmon_of_dcgm(tmp_path):
    text = (
        "#Entity   SMCLK          POWER          TMPTR          XIDER\n"
        "ID                       W              C\n"
        "GPU 6     1980           690.300        71             0\n"
        "GPU 6     1095           251.300        88             79\n"
        "#Entity   SMCLK          POWER          TMPTR          XIDER\n"
        "ID                       W              C\n"
        "GPU 6     N/A            250.000        88             79\n"
    )
    found = read(tmp_path, text)
    assert values(found, "clock") == [1980, 1095]
    (event,) = found.of(What.XID)
    assert (event.device, event.data["code"], event.data["meaning"]) == ("GPU 6", 79, "GPU has fallen off the bus")
    assert found.files[0].kind == "dcgm"


def test_csv_of_dcgm(tmp_path):
    text = "timestamp,gpu,DCGM_FI_DEV_SM_CLOCK,DCGM_FI_DEV_XID_ERRORS,DCGM_FI_DEV_ECC_DBE_VOL_TOTAL\n"
    text += "1769829164,6,1980,0,0\n1769829174,6,1095,79,0\n1769829184,6,1095,79,2\n"
    found = read(tmp_path, text)
    assert [one.data.get("code") for one in found.of(What.XID)] == [79]
    assert found.of(What.XID)[0].time_ns == 1_769_829_174 * 10**9
    assert found.of(What.ECC)[0].data["uncorrected"] == 2


NPU = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                              |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 162.6       34                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3419 / 65536         |
+===========================+===============+====================================================+
| 0     Ascend910           | Alarm         | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 97          0    / 0          60000/ 65536         |
+===========================+===============+====================================================+
"""


def test_the_table_of_npu_smi(tmp_path):
    found = read(tmp_path, NPU)
    of = {(one.device, one.name): one.values.tolist() for one in found.series}
    assert of["NPU 0", "power"] == [162.6]
    assert ("NPU 1", "power") not in of
    assert of["NPU 1", "memory_used"] == [60000 * 2**20]
    assert of["NPU 1", "utilisation"] == [97]
    (event,) = found.of(What.DEVICE_HEALTH)
    assert (event.device, event.data["health"]) == ("NPU 1", "Alarm")
    assert [(one.number, one.bus) for one in found.devices] == [(0, "0000:9d:00"), (1, "0000:9f:00")]


def test_keys_and_values_of_npu_smi(tmp_path):
    text = "        NPU ID                         : 3\n        HBM Double Bit Error Count     : 2\n"
    (event,) = read(tmp_path, text).of(What.ECC)
    assert (event.device, event.data["uncorrected"]) == ("NPU 3", 2)


def test_times_that_no_sample_has_are_unknown(tmp_path):
    text = "#Entity   SMCLK   POWER\nID                W\nGPU 0     1980    300\n"
    assert read(tmp_path, text).series[0].times.tolist() == [UNKNOWN]


def test_a_table_of_other_things_is_none(tmp_path):
    found = read(tmp_path, "name,count\na,1\nb,2\n", "table.csv")
    assert (found.series, found.files[0].kind) == ((), "other")
    assert np.isfinite(found.files[0].size)
