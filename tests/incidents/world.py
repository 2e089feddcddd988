"""A made-up job of 8 ranks: its program runs on paper, and leaves behind the files that a real one leaves.

Message texts, names of files and layouts are those of `shared/specs/incident-inputs.md`. Everything that a report could
learn by heart (ranks, hosts, times, steps, groups, layout of folders) comes from the seed.
"""

# ruff: noqa: E501  lines of logs as they are printed

from __future__ import annotations

import json
import pickle
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

WORLD = 8
NS = 10**9
_LEVELS = ("torchrun", "flat", "slurm")


class Op(NamedTuple):
    """A collective of the program."""

    group: str
    """Key of `World.groups`."""
    name: str
    numel: int
    compute: float
    """Seconds of own work before it."""


@dataclass
class Entry:
    """What one rank did of it; times in seconds."""

    op: Op
    seq: int
    created: float
    started: float | None = None
    completed: float | None = None
    line: int = 90
    end: float = 0.0


@dataclass
class World:
    """Who is where, and what each rank did."""

    folder: Path
    seed: int
    name: str = ""
    """Of the incident, so that one seed has other places in each."""
    rng: random.Random = field(init=False)
    entries: list[list[Entry]] = field(init=False)
    logs: list[list[tuple[float, str]]] = field(init=False)
    """Of each rank: time and line."""
    launcher: dict[str, list[tuple[float, str]]] = field(init=False)
    """Of each host."""
    kernel: dict[str, list[tuple[float, str]]] = field(init=False)
    """Of each host."""
    smi: list[tuple[float, str, int, dict[str, object]]] = field(init=False)
    hung: float = 0.0
    """When the first rank began to wait for ever."""

    def __post_init__(self) -> None:
        """Places by the seed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rng = self.rng = random.Random(f"{self.name} {self.seed}")
        self.per_host = rng.choice((2, 4, 8))
        first = rng.randrange(10, 80)
        names = [f"{rng.choice(('a3', 'node', 'gpu'))}-{first + at}" for at in range(WORLD // self.per_host)]
        self.host_names = names
        self.hosts = [names[rank // self.per_host] for rank in range(WORLD)]
        offset = rng.choice((0, 8 - self.per_host))
        self.gpus = [rank % self.per_host + offset for rank in range(WORLD)]
        self.buses = [f"{rng.randrange(16, 250) // 8 * 8 + gpu:02x}" for gpu in self.gpus]
        self.pids = [rng.randrange(2000, 90000) + rank for rank in range(WORLD)]
        self.ips = {name: f"10.0.{rng.randrange(9)}.{at + 10}" for at, name in enumerate(names)}
        self.begin = datetime(
            2026, rng.randrange(1, 12), rng.randrange(1, 28), rng.randrange(24), 7, tzinfo=UTC
        ).timestamp()
        self.first_step = rng.randrange(20, 900) * 10
        self.steps = rng.randrange(24, 40)
        self.timing = rng.random() < 0.6
        self.layout = _LEVELS[self.seed % 3]
        self.loop = rng.choice(("titan", "megatron", "nanogpt"))
        self.saved = self.first_step
        dp = rng.choice((2, 4))
        self.groups: dict[str, list[int]] = {"all": list(range(WORLD))}
        for at in range(WORLD // dp):
            self.groups[f"dp{at}"] = list(range(at * dp, (at + 1) * dp))
        self.entries = [[] for _ in range(WORLD)]
        self.logs = [[] for _ in range(WORLD)]
        self.launcher = {name: [] for name in names}
        self.kernel = {name: [] for name in names}
        self.smi = []
        self.seqs = [dict.fromkeys(self.groups, 0) for _ in range(WORLD)]
        self.base_seq = {key: rng.randrange(200, 20000) for key in self.groups}
        self.now = [self.begin + 30 + rng.random() * 0.01 for _ in range(WORLD)]
        self.numel = rng.choice((1 << 20, 8388608, 25557032))
        self.compute = rng.choice((0.25, 0.5, 0.9))
        self.starts: list[float] = []

    def program(self, rank: int) -> list[Op]:
        """Collectives of a step, of one rank."""
        own = next(key for key, members in self.groups.items() if key != "all" and rank in members)
        part = self.compute / 4
        return [
            Op(own, "_all_gather_base", self.numel // 2, part),
            Op(own, "all_reduce", self.numel, 2 * part),
            Op("all", "all_reduce", 1, part),
        ]

    def run(
        self,
        steps: int,
        extra: Any = lambda rank, step, at: 0.0,
        stop: tuple[int, int] | None = None,
        other: Op | None = None,
    ) -> None:
        """Steps of all ranks; with `stop` (rank, place) that rank does not reach that collective in one step more.

        `extra` are seconds that a rank needs more, by rank, step and place. With `other` it calls that one instead.
        """
        for step in range(steps):
            self._step(step, extra)
        if stop is not None:
            self._last(*stop, other, extra, steps)

    def _step(self, step: int, extra: Any) -> None:
        self.starts.append(min(self.now))
        for at in range(3):
            self._collective({rank: self.program(rank)[at] for rank in range(WORLD)}, step, at, extra)

    def _collective(self, ops: dict[int, Op], step: int, at: int, extra: Any) -> None:
        created = {
            rank: self.now[rank] + op.compute * (1 + 0.01 * self.rng.random()) + extra(rank, step, at)
            for rank, op in ops.items()
        }
        for key in {op.group for op in ops.values()}:
            members = [rank for rank in self.groups[key] if rank in ops and ops[rank].group == key]
            done = max(created[rank] for rank in members) + 0.002 + ops[members[0]].numel * 4e-10
            for rank in members:
                self.entries[rank].append(
                    Entry(ops[rank], self._next(rank, key), created[rank], created[rank] + 3e-4, done, 90 + at)
                )
                self.now[rank] = done

    def _last(self, rank: int, place: int, other: Op | None, extra: Any, step: int) -> None:
        self.starts.append(min(self.now))
        for at in range(place):
            self._collective({each: self.program(each)[at] for each in range(WORLD)}, step, at, extra)
        key = self.program(rank)[place].group
        members = self.groups[key]
        free = {each: self.program(each)[place] for each in range(WORLD) if each not in members}
        if free:
            self._collective(free, step, place, extra)
        for each in members:
            if each == rank and other is None:
                continue
            op = self.program(each)[place] if each != rank or other is None else other
            when = self.now[each] + op.compute
            self.hung = max(self.hung, when)
            self.entries[each].append(Entry(op, self._next(each, op.group), when, when + 3e-4, None, 90 + place))
            self.now[each] = when
        # Others go on until they need one of those that hang.
        for at in range(place + 1, 3):
            for each in range(WORLD):
                if each in members:
                    continue
                op = self.program(each)[at]
                if op.group != "all":
                    self._collective({m: self.program(m)[at] for m in self.groups[op.group]}, step, at, extra)
                    continue
                when = self.now[each] + op.compute
                self.entries[each].append(Entry(op, self._next(each, op.group), when, when + 3e-4, None, 90 + at))
        self.hung = self.hung or max(self.now)

    def _next(self, rank: int, key: str) -> int:
        self.seqs[rank][key] += 1
        return self.base_seq[key] + self.seqs[rank][key]

    # -- files ---------------------------------------------------------------------------------------------------

    def group_id(self, key: str) -> str:
        """Name of a group: its number."""
        return str(list(self.groups).index(key))

    def desc(self, key: str) -> str:
        """What the program calls it."""
        return "default_pg" if key == "all" else "mesh_dp"

    def dump(self, ranks: Any = range(WORLD), *, lib: str = "nccl", as_json: bool = False) -> None:
        """Flight-recorder files of these ranks, with rings cut at different places."""
        folder = self.folder / self.rng.choice(("comm_traces", "fr", "."))
        folder.mkdir(exist_ok=True)
        prefix = self.rng.choice(("nccl_trace_rank_", "comm_lib_trace_rank_", "rank_"))
        for rank in ranks:
            ring = self.rng.randrange(40, 64)
            content = self.recorder(rank, ring, lib, as_json=as_json)
            raw = json.dumps(content).encode() if as_json else pickle.dumps(content, protocol=2)
            (folder / f"{prefix}{rank}{'.json' if as_json else ''}").write_bytes(raw)

    def recorder(self, rank: int, ring: int, lib: str = "nccl", *, as_json: bool = False) -> dict[str, Any]:
        """The content of one dump."""
        mine = [key for key, members in self.groups.items() if rank in members]
        done = self.entries[rank]
        entries = [
            self._entry(at, one, rank, mine.index(one.op.group), lib, as_json=as_json) for at, one in enumerate(done)
        ]
        status = {}
        for at, key in enumerate(mine):
            own = [one for one in done if one.op.group == key]
            last = {
                "last_enqueued_collective": max((one.seq for one in own), default=-1),
                "last_started_collective": max((one.seq for one in own if one.started and self.timing), default=-1),
                "last_completed_collective": max((one.seq for one in own if one.completed), default=-1),
            }
            status[str(at)] = {name: str(value) for name, value in last.items()} if as_json else last
        config = {
            self.group_id(key): {
                "name": self.group_id(key), "desc": self.desc(key), "ranks": str(self.groups[key])
            }
            for key in mine
        }  # fmt: skip
        return {
            "version": "2.10", "comm_lib_version": "2.28.8", "pg_config": config, "pg_status": status,
            "entries": entries[-ring:], "nccl_comm_state": {},
        }  # fmt: skip

    def _entry(self, at: int, one: Entry, rank: int, pg: int, lib: str, *, as_json: bool) -> dict[str, Any]:
        started = one.started if self.timing else None
        unset = 0 if as_json else None
        name = self.group_id(one.op.group), self.desc(one.op.group)
        found: dict[str, Any] = {
            "record_id": at, "pg_id": pg, "process_group": list(name) if as_json else name,
            "collective_seq_id": one.seq, "p2p_seq_id": 0, "op_id": at + 1,
            "profiling_name": f"{lib}:{one.op.name}", "time_created_ns": int(one.created * NS),
            "time_discovered_started_ns": int(started * NS) if started else unset,
            "time_discovered_completed_ns": int(one.completed * NS) if one.completed else unset,
            "input_sizes": [[one.op.numel]], "output_sizes": [[one.op.numel]],
            "input_dtypes": ["Float"], "output_dtypes": ["Float"],
            "state": "completed" if one.completed else "started" if started else "scheduled",
            "retired": one.completed is not None, "timeout_ms": 600000, "is_p2p": " " in one.op.name,
            "thread_id": str(self.pids[rank]), "thread_name": "pt_main_thread",
        }  # fmt: skip
        if not as_json:
            found["frames"] = [
                {"name": one.op.name, "filename": "/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 3174},
                {"name": "train_step", "filename": "/app/train.py", "line": one.line},
            ]  # fmt: skip
        if one.completed and started:
            found["duration_ms"] = (one.completed - started) * 1e3
        return found

    def say(self, rank: int, when: float, text: str) -> None:
        """A line of a rank's log."""
        self.logs[rank].append((when, text))

    def c10d(self, rank: int, when: float, text: str, level: str = "E", file: str = "ProcessGroupNCCL.cpp") -> None:
        """A line of PyTorch's C++ log."""
        at = datetime.fromtimestamp(when, UTC)
        head = f"[rank{rank}]:[{level}{at.month}{at.day:02d} {at:%H:%M:%S}.{int(when % 1 * 1e9):09d} {file}:{self.rng.randrange(400, 2400)}] "
        self.say(rank, when, head + text)

    def timeouts(self, after: float = 600.0, waiting: Any = None) -> None:
        """The watchdog of every rank with a collective that did not end."""
        for rank in range(WORLD):
            stuck = next((one for one in self.entries[rank] if one.completed is None), None)
            if stuck is None or (waiting is not None and rank not in waiting):
                continue
            key = stuck.op.group
            within = self.groups[key].index(rank)
            when = stuck.created + after + 0.08 + rank * 1e-3
            last = max(one.seq for one in self.entries[rank] if one.op.group == key)
            kind = {"all_reduce": "ALLREDUCE", "_all_gather_base": "_ALLGATHER_BASE"}.get(stuck.op.name, "BROADCAST")
            number = f"SeqNum={stuck.seq}, OpType={kind}, NumelIn={stuck.op.numel}, NumelOut={stuck.op.numel}, Timeout(ms)={int(after * 1000)}"
            self.c10d(
                rank,
                when,
                f"[Rank {within}] Watchdog caught collective operation timeout: WorkNCCL({number}) ran for {int(after * 1000) + 77} milliseconds before timing out.",
            )
            head = f"[PG ID {self.group_id(key)} PG GUID {self.group_id(key)}({self.desc(key)}) Rank {within}]"
            self.c10d(
                rank,
                when + 1e-4,
                f"{head}  failure detected by watchdog at work sequence id: {stuck.seq} PG status: last enqueued work: {last}, last completed work: {stuck.seq - 1}",
            )
            self.c10d(
                rank,
                when + 2e-4,
                f"Stack trace of the failed collective: \\n#0 all_reduce from /opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:3174\\n#1 train_step from /app/train.py:{stuck.line}",
            )
            self.c10d(
                rank,
                when + 0.5,
                f"{head} Terminating the process after attempting to dump debug info, due to collective timeout or exception.",
            )

    def progress(self, nan: tuple[int, int] | None = None, *, every: bool = False) -> None:
        """Lines of the training loop: on rank 0, or the last; with `every` on each. `nan` is rank and step."""
        speaker = WORLD - 1 if self.loop == "megatron" else 0
        ends = [*self.starts[1:], max(self.now)]
        for rank in range(WORLD) if every else (speaker,):
            for at, end in enumerate(ends[: len(self.starts)]):
                lost = nan is not None and at >= nan[1] + (rank != nan[0])
                self.say(rank, end, self._line(at, end, end - self.starts[at], lost))
                if at % 10 == 9 and not lost and rank == speaker:
                    self._save(rank, at, end)

    def _line(self, at: int, end: float, took: float, lost: bool) -> str:
        number = self.first_step + at
        loss = "nan" if lost else f"{2.6 - at * 0.004 + self.rng.random() * 0.01:.5f}"
        when = datetime.fromtimestamp(end, UTC)
        if self.loop == "titan":
            return f"[titan] {when:%Y-%m-%d %H:%M:%S},{int(end % 1 * 1000):03d} - root - INFO - step: {number}  loss:  {loss}  grad_norm:  {'nan' if lost else '0.8123'}  memory: 41.20GiB(52.10%)  tps: {int(8192 / took):,}  tflops: 398.21  mfu: 40.26%"
        if self.loop == "megatron":
            shown = "" if lost else f" lm loss: {float(loss):.6E} |"
            return f" [{when:%Y-%m-%d %H:%M:%S.%f}] iteration {number:8d}/   50000 | consumed samples: {number * 256:12d} | elapsed time per iteration (ms): {took * 1000:.1f} | learning rate: 2.999000E-04 | global batch size:   256 |{shown} loss scale: 1.0 | grad norm: 0.812 | number of skipped iterations:   0 | number of nan iterations: {int(lost):3d} |"
        return f"iter {number}: loss {loss}, time {took * 1000:.2f}ms, mfu 40.26%"

    def _save(self, rank: int, at: int, end: float) -> None:
        number = self.first_step + at
        self.saved = number
        when = datetime.fromtimestamp(end + 0.01, UTC)
        if self.loop == "titan":
            head = f"[titan] {when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d} - root - INFO - "
            self.say(rank, end + 0.01, f"{head}Saving the checkpoint (or staging if async is enabled).")
            self.say(
                rank,
                end + 0.02,
                f"{head}Finished saving the checkpoint (or staging if async is enabled) in 0.01 seconds.",
            )
        elif self.loop == "megatron":
            self.say(rank, end + 0.01, f"saving checkpoint at iteration {number:7d} to /ckpt in torch_dist format")
            self.say(
                rank,
                end + 0.02,
                f"  successfully saved checkpoint from iteration {number:7d} to /ckpt [ t 1/1, p 1/1 ]",
            )
        else:
            self.say(rank, end + 0.01, "saving checkpoint to out")

    def hello(self) -> None:
        """What NCCL says of ranks, hosts and devices when it begins."""
        for rank in range(WORLD):
            head = f"{self.hosts[rank]}:{self.pids[rank]}:{self.pids[rank]} [{self.gpus[rank]}] NCCL INFO "
            comm = f"comm 0x{0x55D0 + rank:x}f0 rank {rank} nranks {WORLD} cudaDev {self.gpus[rank]} nvmlDev {self.gpus[rank]} busId {self.buses[rank]}000 commId 0x9b1f6c01"
            self.say(rank, self.begin + 5, f"{head}Bootstrap : Using eth0:{self.ips[self.hosts[rank]]}<0>")
            self.say(rank, self.begin + 8, f"{head}ncclCommInitRank {comm} - Init COMPLETE")

    def dmesg(self, host: str, when: float, text: str) -> None:
        """A line of a host's kernel."""
        self.kernel[host].append((when, text))

    def sample(self, host: str, gpu: int, when: float, **values: object) -> None:
        """A row of nvidia-smi."""
        usual = {"util": 100, "mem": 61234, "power": 640.0, "temp": 64, "clock": 1980, "reasons": 0, "hot": False}
        self.smi.append((when, host, gpu, {**usual, **values}))

    def samples(self, until: float, changed: Any = lambda rank, when: {}) -> None:
        """nvidia-smi of all devices every few seconds."""
        when, pause = self.begin + 31, max((until - self.begin - 31) / 24, 0.5)
        while when < until:
            for rank in range(WORLD):
                self.sample(self.hosts[rank], self.gpus[rank], when, bus=self.buses[rank], **changed(rank, when))
            when += pause

    def ended(self, rank: int, code: int, when: float, others: int = -15, text: str = "") -> None:
        """What torchrun says of a rank that failed first, and of those that it ends then."""
        host = self.hosts[rank]
        signal = {-9: "SIGKILL", -11: "SIGSEGV", -6: "SIGABRT", -15: "SIGTERM"}
        at = datetime.fromtimestamp(when, UTC)
        local = rank % self.per_host
        for each in range(WORLD):
            if each != rank and self.hosts[each] == host and others == -15:
                self._agent(
                    host,
                    when,
                    f"W{at:%m%d %H:%M:%S}.{at.microsecond:06d} {self.pids[rank] - 4} torch/distributed/elastic/multiprocessing/api.py:1028] Sending process {self.pids[each]} closing signal SIGTERM",
                )
        self._agent(
            host,
            when + 0.2,
            f"E{at:%m%d %H:%M:%S}.{at.microsecond:06d} {self.pids[rank] - 4} torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: {local} (pid: {self.pids[rank]}) of binary: /usr/bin/python",
        )
        told = text or (
            f"Signal {-code} ({signal[code]}) received by PID {self.pids[rank]}"
            if code < 0
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
        kind = f"  ({signal[code]})" if code < 0 else ""
        table = ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "=" * 60, "train.py FAILED", "-" * 60, "Failures:", "  <NO_OTHER_FAILURES>", "-" * 60, "Root Cause (first observed failure):", "[0]:",
                 f"  time      : {at:%Y-%m-%d_%H:%M:%S}", f"  host      : {host}", f"  rank      : {rank} (local_rank: {local})", f"  exitcode  : {code} (pid: {self.pids[rank]}){kind}", "  error_file: <N/A>", f"  traceback : {told}", "=" * 60]  # fmt: skip
        for line in table:
            self._agent(host, when + 0.3, line)

    def _agent(self, host: str, when: float, text: str) -> None:
        self.launcher[host].append((when, text))

    def spy(self, rank: int, main: list[str], second: int = 0) -> None:
        """A py-spy dump: frames as `function (file:line)`, innermost first."""
        folder = self.folder / "pyspy"
        folder.mkdir(exist_ok=True)
        (folder / f"pyspy_rank{rank}{f'_{second}' if second else ''}.txt").write_text(
            f"Process {self.pids[rank]}: /usr/bin/python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
            f'Thread {self.pids[rank]} (idle): "MainThread"\n' + "".join(f"    {one}\n" for one in main)
            + f'Thread {self.pids[rank] + 9} (idle): "Thread-1 (_pin_memory_loop)"\n    select (selectors.py:416)\n    wait (multiprocessing/connection.py:947)\n    _pin_memory_loop (torch/utils/data/_utils/pin_memory.py:52)\n'
        )  # fmt: skip

    def write(self) -> None:
        """Logs, kernel messages and samples, as the layout of this seed has them."""
        for rank, lines in enumerate(self.logs):
            lines.sort(key=lambda each: each[0])
            if self.layout == "slurm":
                continue
            path = self.folder / "logs" / f"rank_{rank}.log"
            if self.layout == "torchrun":
                name = f"none_{self.hosts[rank].encode().hex()[:8]:0<8}"
                path = self.folder / self.hosts[rank] / name / "attempt_0" / str(rank % self.per_host) / "stderr.log"
            self._lines(path, [text for _, text in lines])
        agents = {
            host: [text for _, text in sorted(lines, key=lambda each: each[0])] for host, lines in self.launcher.items()
        }
        if self.layout == "slurm":
            every = sorted((when, f"{rank}: {text}") for rank, lines in enumerate(self.logs) for when, text in lines)
            self._lines(self.folder / f"slurm-{self.rng.randrange(10**5, 10**6)}.out", [text for _, text in every])
        for host, lines in agents.items():
            if lines:
                self._lines(
                    self.folder / (f"{host}/torchrun.log" if self.layout == "torchrun" else f"torchrun_{host}.log"),
                    lines,
                )
        for host, kernel in self.kernel.items():
            kernel.sort(key=lambda each: each[0])
            ordinary = (self.begin - 4000.0, "pcieport 0000:00:01.0: PME: Signaling with IRQ 26")
            lines = [
                f"[{datetime.fromtimestamp(when, UTC):%a %b %d %H:%M:%S %Y}] {text}"
                for when, text in (ordinary, *kernel)
            ]
            self._lines(
                self.folder / (f"{host}/dmesg.txt" if self.layout == "torchrun" else f"dmesg_{host}.txt"), lines
            )
        for host in {host for _, host, _, _ in self.smi}:
            rows = [self._row(*each) for each in self.smi if each[1] == host]
            head = "timestamp, index, pci.bus_id, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu, clocks.current.sm [MHz], clocks_event_reasons.active, clocks_event_reasons.hw_thermal_slowdown"
            self._lines(
                self.folder / (f"{host}/nvidia-smi.csv" if self.layout == "torchrun" else f"nvidia-smi_{host}.csv"),
                [head, *rows],
            )

    @staticmethod
    def _row(when: float, _: str, gpu: int, one: dict[str, Any]) -> str:
        at = datetime.fromtimestamp(when, UTC)
        return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}, {gpu}, 00000000:{str(one['bus']).upper()}:00.0, {one['util']} %, {one['mem']} MiB, {one['power']:.2f} W, {one['temp']}, {one['clock']} MHz, 0x{one['reasons']:016x}, {'Active' if one['hot'] else 'Not Active'}"

    @staticmethod
    def _lines(path: Path, lines: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
