"""Loss and step time of the usual training loops, from the lines that they print."""

# ruff: noqa: E501, ISC004  messages as they are printed

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import What


def read(folder, text, name="job.log"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_evidence([str(path)])


def series(found, name):
    (one,) = [each for each in found.series if each.name == name]
    return one


MEGATRON = (
    " [2026-01-31 03:12:44.120441] iteration      {step}/    5000 | consumed samples:        30720 | elapsed time per iteration "
    "(ms): 1843.2 | throughput per GPU (TFLOP/s/GPU): 398.2 | learning rate: 2.999000E-04 | global batch size:   256 | {loss}"
    "loss scale: 1.0 | grad norm: 0.812 | number of skipped iterations:   0 | number of nan iterations:   {nans} |\n"
)
LOOPS = {
    "torchtitan": (
        "[titan] 2026-01-31 03:12:44,120 - root - INFO - step: 120  loss:  2.51374  grad_norm:  0.8123  memory: 41.20GiB"
        "(52.10%)  tps: 7,412  tflops: 398.21  mfu: 40.26%\n",
        {"loss": 2.51374, "grad_norm": 0.8123, "throughput": 7412, "memory_used": 41.2 * 2**30},
    ),
    "titan in colours": (
        "[titan] 2026-01-31 03:12:44,120 - root - INFO - \x1b[31mstep: 120  \x1b[32mloss:  2.51374  \x1b[38;2;180;60;0mgrad_norm:"
        "  0.8123  \x1b[36mmemory: 41.20GiB(52.10%)  \x1b[34mtps: 7,412  \x1b[35mmfu: 40.26%\x1b[39m\n",
        {"loss": 2.51374, "grad_norm": 0.8123},
    ),
    "Megatron": (
        MEGATRON.format(step=120, loss="lm loss: 2.513741E+00 | ", nans=0),
        {"loss": 2.513741, "step_time": 1.8432, "grad_norm": 0.812, "nan_iterations": 0},
    ),
    "DeepSpeed": (
        "[2026-01-31 03:12:44,120] [INFO] [timer.py:1:stop] epoch=0/micro_step=480/global_step=120, "
        "RunningAvgSamplesPerSec=51.2, CurrSamplesPerSec=50.9, MemAllocated=21.3GB, MaxMemAllocated=60.1GB\n",
        {"samples": 50.9},
    ),
    "DeepSpeed pipeline": (
        "steps: 120 loss: 2.5137 iter time (s): 1.843 samples/sec: 138.900\n",
        {"loss": 2.5137, "step_time": 1.843, "samples": 138.9},
    ),
    "nanoGPT": ("iter 120: loss 2.5137, time 184.32ms, mfu 40.26%\n", {"loss": 2.5137, "step_time": 0.18432}),
    "NeMo": (
        "Training epoch 0, iteration 119/4999 | lr: 2.9e-04 | global_batch_size: 256 | global_step: 120 | "
        "reduced_train_loss: 2.513 | train_step_timing in s: 1.843 | consumed_samples: 30976\n",
        {"loss": 2.513, "step_time": 1.843},
    ),
    "Lightning": (
        "Epoch 0:  12%|#2        | 120/1000 [00:30<03:40,  4.00it/s, v_num=3, train_loss=2.510]\n",
        {"loss": 2.51, "iterations": 4.0},
    ),
    "a loop of its own": ("epoch 1 step=120 lr=3e-4 loss=2.51 acc=0.5\n", {"loss": 2.51}),
    "HF Trainer": (
        " 12%|#2        | 120/1000 [00:30<03:40,  4.00it/s]\r{'loss': 2.5137, 'grad_norm': 0.8123456, 'learning_rate': "
        "4.9e-05, 'epoch': 0.12}\n",
        {"loss": 2.5137, "grad_norm": 0.8123456},
    ),
    "HF Trainer, quoted": (
        "{'loss': '2.5137', 'grad_norm': '0.81', 'learning_rate': '4.9e-05', 'epoch': '0.12'}\n"
        " 12%|#2        | 120/1000 [00:30<03:40,  4.00it/s]\n",
        {"loss": 2.5137, "grad_norm": 0.81},
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_line_of_a_loop(tmp_path, loop):
    text, values = LOOPS[loop]
    found = read(tmp_path, text)
    for name, value in values.items():
        one = series(found, name)
        assert (one.steps.tolist(), one.values.tolist()) == ([120], [pytest.approx(value)])
    assert not found.events


def test_a_loss_that_is_not_a_number_is_an_event_where_it_begins(tmp_path):
    lines = "".join(f"iter {at}: loss {'nan' if at > 6 else 2.5}, time 10.00ms, mfu 1.00%\n" for at in range(10))
    found = read(tmp_path, lines)
    (event,) = found.of(What.NAN)
    assert (event.data, event.source.line) == ({"series": "loss", "count": 3, "step": 7}, 8)
    assert np.isnan(series(found, "loss").values).sum() == 3


def test_an_infinite_norm_is_one_too(tmp_path):
    text = LOOPS["torchtitan"][0].replace("grad_norm:  0.8123", "grad_norm:  inf")
    assert read(tmp_path, text).of(What.NAN)[0].data["series"] == "grad_norm"


def test_megatron_drops_the_loss_and_counts_instead(tmp_path):
    found = read(
        tmp_path,
        MEGATRON.format(step=120, loss="lm loss: 2.5E+00 | ", nans=0) + MEGATRON.format(step=121, loss="", nans=1),
    )
    assert series(found, "loss").steps.tolist() == [120]
    assert series(found, "nan_iterations").values.tolist() == [0, 1]
    (event,) = found.of(What.NAN)
    assert event.data == {"series": "nan_iterations", "count": 1, "step": 121}


def test_step_times_by_the_difference_of_printed_times(tmp_path):
    line = LOOPS["torchtitan"][0]
    text = "".join(
        line.replace("03:12:44,120", f"03:12:{at * 4:02},500").replace("step: 120", f"step: {100 + at * 2}")
        for at in range(5)
    )
    one = series(read(tmp_path, text), "step_time")
    assert (one.values.tolist(), one.derived) == ([2.0] * 4, "difference of times")


def test_a_bar_that_goes_back_on_itself_is_read_part_by_part(tmp_path):
    parts = "\r".join(
        f"Epoch 0:  {at}%|#         | {at}/1000 [00:30<03:40,  4.00it/s, train_loss={3 - at / 10:.3f}]"
        for at in range(1, 6)
    )
    found = read(tmp_path, f"start\n{parts}\nValueError: x\nsrun: error: node12: task 3: Killed\n")
    assert series(found, "loss").steps.tolist() == [1, 2, 3, 4, 5]
    assert found.events[0].source.line == 4


def test_eight_ranks_in_one_file(tmp_path):
    line = "[rank{rank}]:iter {step}: loss {loss}, time 10.00ms, mfu 1.00%\n"
    text = "".join(line.format(rank=at % 8, step=at // 8, loss=at) for at in range(80))
    found = read(tmp_path, text)
    losses = {one.rank: one.values.tolist() for one in found.series if one.name == "loss"}
    assert losses == {rank: [rank + 8.0 * step for step in range(10)] for rank in range(8)}


def test_of_very_many_lines_some_are_kept_and_the_rest_is_counted(tmp_path):
    text = "".join(f"iter {at}: loss 2.5, time 10.00ms, mfu 1.00%\n" for at in range(120_000))
    text += "iter 120000: loss nan, time 10.00ms, mfu 1.00%\n"
    found = read(tmp_path, text)
    kept = len(series(found, "loss").steps)
    assert 20_000 < kept < 120_000
    assert (found.files[0].alike, found.files[0].fault) == (120_001 - kept, "")
    assert found.of(What.NAN)[0].data["step"] == 120_000
