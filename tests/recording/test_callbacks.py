"""Recordings by one added line, with the packages themselves and models made at random on the CPU."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.needs import need
from traceanalyze.errors import UsageError
from traceanalyze.recording import callbacks

if TYPE_CHECKING:
    from pathlib import Path

PROFILER = """
import torch, traceanalyze
from torch.profiler import ProfilerActivity, profile, schedule
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
steps = schedule(wait=1, warmup=1, active=3, repeat=1)
ready = traceanalyze.handler("run")
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=steps, on_trace_ready=ready) as profiler:
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        profiler.step()
"""
TRAINER = """
import torch, traceanalyze
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
sizes = dict(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
data = [{"input_ids": torch.arange(8), "labels": torch.tensor(0)} for _ in range(64)]
arguments = TrainingArguments(
    "out", max_steps=6, per_device_train_batch_size=2, gradient_accumulation_steps=2, use_cpu=True, report_to=[],
    save_strategy="no", disable_tqdm=True,
)
trainer = Trainer(
    BertForSequenceClassification(BertConfig(**sizes)), arguments, train_dataset=data,
    callbacks=[traceanalyze.trainer_callback("run", wait=1, warmup=1, active=3)],
)
trainer.train()
trainer.train()
"""
LIGHTNING = """
import torch, traceanalyze
import lightning.pytorch as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, _):
        return self.layer(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
trainer = lightning.Trainer(
    max_steps=6, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    callbacks=[traceanalyze.lightning_callback("run", wait=1, warmup=1, active=3)],
)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=2))
"""
ACCELERATE = """
import torch, traceanalyze
from accelerate import Accelerator
from accelerate.utils import ProfileKwargs
schedule = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1}
kwargs = ProfileKwargs(activities=["cpu"], schedule_option=schedule, on_trace_ready=traceanalyze.handler("run"))
accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs])
model = torch.nn.Linear(8, 8)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
with accelerator.profile() as profiler:
    for _ in range(6):
        optimizer.zero_grad()
        accelerator.backward(model(torch.ones(4, 8)).sum())
        optimizer.step()
        profiler.step()
"""


@pytest.mark.parametrize(
    ("package", "script"),
    [("torch", PROFILER), ("transformers", TRAINER), ("lightning", LIGHTNING), ("accelerate", ACCELERATE)],
)
def test_one_line_records_what_the_command_records(torch_python, tmp_path: Path, package: str, script: str) -> None:
    need(package)
    (tmp_path / "train.py").write_text(script)
    rank = 3 if package == "torch" else 0
    job = {"RANK": "3", "WORLD_SIZE": "8"} if rank else {}
    done = torch_python.run(["train.py"], tmp_path, {**os.environ, **job})
    assert done.returncode == 0, done.stderr
    about = json.loads((tmp_path / "run" / ("run_rank3.json" if rank else "run.json")).read_text())
    assert about["files"] == [path.name for path in (tmp_path / "run").glob(f"rank{rank}_*.pt.trace.json.gz")]
    assert (about["rank"], about["device"], about["world_size"]) == (rank, "cpu", 8 if rank else None)
    assert [about["options"][name] for name in ("wait", "warmup", "active")] == [1, 1, 3]
    (analysis,) = traceanalyze.analyze(tmp_path / "run").analyses
    assert len(analysis.steps) == 3


def test_a_profiler_of_ones_own_says_its_options(torch_python, tmp_path: Path) -> None:
    need("torch")
    (tmp_path / "train.py").write_text(PROFILER)
    assert torch_python.run(["train.py"], tmp_path, dict(os.environ)).returncode == 0
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {name: about["options"][name] for name in ("shapes", "stacks", "memory")} == {
        "shapes": True, "stacks": False, "memory": False,
    }  # fmt: skip
    # After the fifth step, at which the trace is ready.
    assert about["steps_seen"] == 5
    done = torch_python.run(["train.py"], tmp_path, dict(os.environ))
    assert done.returncode == 1
    assert "run: holds a recording already; give another folder" in done.stderr


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "installed", lambda _: False)
    with pytest.raises(UsageError, match="this callback needs transformers: pip install transformers"):
        traceanalyze.trainer_callback("run")
    with pytest.raises(UsageError, match="pip install pytorch_lightning"):
        traceanalyze.lightning_callback("run")
