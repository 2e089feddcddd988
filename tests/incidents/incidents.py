"""Fourteen jobs that end badly, limp or are healthy, each with what a report must say of it in its first sentence."""

# ruff: noqa: E501  lines of logs as they are printed

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.incidents.world import WORLD, Entry, Op, World


class Truth(NamedTuple):
    """What happened."""

    cause: str
    """Key of the cause."""
    ranks: tuple[int, ...]
    """Whose; empty where it is of no rank."""
    words: tuple[str, ...]
    """Of which the first sentence has at least one."""
    host: str = ""


WAITS = [
    "wait (torch/distributed/distributed_c10d.py:2806)",
    "all_reduce (torch/distributed/distributed_c10d.py:2810)",
    "train_step (train.py:91)",
    "<module> (train.py:160)",
]


def _hang(world: World) -> int:
    """Some rank does not come to a collective any more."""
    rank = world.rng.randrange(WORLD)
    world.run(world.steps, stop=(rank, world.rng.randrange(3)))
    world.hello()
    world.progress()
    return rank


def _dump_all(world: World) -> None:
    world.dump(as_json=world.seed % 4 == 3)


def hang_in_user_code(folder: Path, seed: int) -> Truth:
    """A rank loops in a function of its own; the others wait for it."""
    world = World(folder, seed, "hang_in_user_code")
    rank = _hang(world)
    world.timeouts()
    _dump_all(world)
    own = world.rng.choice(("tokenize (data.py:123)", "match_boxes (losses.py:48)", "poll_lock (util/lock.py:17)"))
    for each in range(WORLD):
        world.spy(each, [own, "train_step (train.py:88)", "<module> (train.py:160)"] if each == rank else WAITS)
    world.write()
    return Truth("hang", (rank,), (own.split()[0],), world.hosts[rank])


def dead_rank(folder: Path, seed: int) -> Truth:
    """A rank is gone without a word; the others lose the connection or wait."""
    world = World(folder, seed, "dead_rank")
    rank = _hang(world)
    code = world.rng.choice((-9, -11))
    when = world.hung
    if code == -11:
        world.dmesg(world.hosts[rank], when - 0.1, f"pt_main_thread[{world.pids[rank]}]: segfault at 7f79a0 ip 00007f79a0b1 sp 00007ffd1c error 4 in libnccl.so.2[7f79a0000000+1000]")  # fmt: skip
    for each in range(WORLD):
        if each != rank:
            head = f"{world.hosts[each]}:{world.pids[each]}:{world.pids[each] + 31} [{world.gpus[each]}] "
            world.say(
                each,
                when + 1 + each * 0.01,
                f"{head}misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer {world.hosts[rank]}<47861>",
            )
    world.timeouts()
    world.ended(rank, code, when)
    world.dump([each for each in range(WORLD) if each != rank])
    world.write()
    return Truth("crash", (rank,), ("SIGKILL", "SIGSEGV", "segmentation fault", "killed"), world.hosts[rank])


def python_error(folder: Path, seed: int) -> Truth:
    """A rank ends with an exception; the launcher ends the others."""
    world = World(folder, seed, "python_error")
    rank = _hang(world)
    when = world.hung
    kind, text = world.rng.choice(
        (("KeyError", "'input_ids'"), ("ValueError", "bad batch 17"), ("IndexError", "list index out of range"))
    )
    for line in (
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/app/train.py", line 160, in <module>',
        f"[rank{rank}]:     main()",
        f'[rank{rank}]:   File "/app/data.py", line 57, in collate',
        f"[rank{rank}]:     return self.rows[at]",
        f"[rank{rank}]: {kind}: {text}",
    ):
        world.say(rank, when, line)
    stack = f'Traceback (most recent call last):\n  File "/app/data.py", line 57, in collate\n    return self.rows[at]\n{kind}: {text}\n'
    folder.joinpath(f"error_rank{rank}").mkdir()
    (folder / f"error_rank{rank}" / "error.json").write_text(
        json.dumps(
            {
                "message": {
                    "message": f"{kind}: {text}",
                    "extraInfo": {"py_callstack": stack, "timestamp": str(int(when))},
                }
            }
        )
    )
    world.ended(rank, 1, when)
    world.write()
    return Truth("crash", (rank,), (kind,), world.hosts[rank])


def desync(folder: Path, seed: int) -> Truth:
    """A rank calls another collective, the same with another size, or in another order."""
    world = World(folder, seed, "desync")
    rank = world.rng.randrange(WORLD)
    own = world.program(rank)[1]
    kind = seed % 3
    other = [own._replace(name="broadcast"), own._replace(numel=own.numel // 2), world.program(rank)[2]][kind]
    world.run(world.steps, stop=(rank, 1), other=other)
    world.hello()
    world.progress()
    world.timeouts()
    _dump_all(world)
    world.write()
    return Truth("desync", (rank,), ("broadcast", "size", "order", "another"), world.hosts[rank])


def out_of_memory(folder: Path, seed: int) -> Truth:
    """The device's memory of a rank is full, or the kernel kills it for the host's."""
    world = World(folder, seed, "out_of_memory")
    rank = _hang(world)
    when = world.hung
    if seed % 3 == 2:
        pid = world.pids[rank]
        for text in (
            "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,oom_memcg=/slurm/job_7,task_memcg=/slurm/job_7/step_0,task=python,pid={pid},uid=1000",
            f"Memory cgroup out of memory: Killed process {pid} (python) total-vm:2623712kB, anon-rss:506500000kB, file-rss:1268kB, shmem-rss:0kB, UID:1000 pgtables:5104kB oom_score_adj:0",
        ):
            world.dmesg(world.hosts[rank], when - 0.2, text)
        world.ended(rank, -9, when)
        words = ("host memory", "oom", "OOM")
    else:
        text = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {world.gpus[rank]} has a total capacity of 79.10 GiB of which 1.18 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 70.10 GiB is allocated by PyTorch, and 6.20 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
        for line in (
            "Traceback (most recent call last):",
            '  File "/app/train.py", line 160, in <module>',
            "    main()",
            '  File "/app/model.py", line 44, in forward',
            "    return x @ w",
            text,
        ):
            world.say(rank, when, f"[rank{rank}]: {line}")
        world.ended(rank, 1, when)
        words = ("out of memory", "ran out of")
    world.timeouts(waiting=[] if seed % 2 else None)
    world.write()
    return Truth("host_oom" if "oom" in words else "oom", (rank,), words, world.hosts[rank])


def not_a_number(folder: Path, seed: int) -> Truth:
    """The loss of one rank is no number any more, a step later that of all."""
    world = World(folder, seed, "not_a_number")
    world.loop = world.rng.choice(("titan", "nanogpt"))
    rank, step = world.rng.randrange(WORLD), world.rng.randrange(6, 18)
    world.run(world.steps)
    world.hello()
    world.progress((rank, step), every=True)
    world.write()
    return Truth("nan", (rank,), ("NaN", "nan"), world.hosts[rank])


def xid(folder: Path, seed: int) -> Truth:
    """A device fails, and its rank stops answering."""
    world = World(folder, seed, "xid")
    rank = _hang(world)
    code, text = world.rng.choice(
        (
            (79, "GPU has fallen off the bus."),
            (
                119,
                "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
            ),
            (74, "NVLink: fatal error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"),
        )
    )
    when = world.hung - world.rng.uniform(0.5, 20)
    world.dmesg(
        world.hosts[rank],
        when,
        f"NVRM: Xid (PCI:0000:{world.buses[rank]}:00): {code}, pid='<unknown>', name=<unknown>, {text}",
    )
    world.timeouts(waiting=[each for each in range(WORLD) if each != rank])
    world.dmesg(
        world.hosts[rank],
        world.hung + 640,
        f"NVRM: Xid (PCI:0000:{world.buses[(rank + 1) % WORLD]}:00): 45, pid={world.pids[(rank + 1) % WORLD]}, name=python, Ch 00000008",
    )
    world.samples(world.hung)
    world.dump([each for each in range(WORLD) if each != rank])
    world.write()
    return Truth("hardware", (rank,), (f"Xid {code}",), world.hosts[rank])


def ecc_and_throttle(folder: Path, seed: int) -> Truth:
    """A device corrects memory errors, gets hot and slow; the run limps on."""
    world = World(folder, seed, "ecc_and_throttle")
    rank, since = world.rng.randrange(WORLD), world.rng.randrange(8, 14)
    world.run(
        world.steps,
        extra=lambda each, step, at: 0.4 * world.compute if each == rank and step >= since and at < 2 else 0.0,
    )
    world.hello()
    world.progress()
    begin = world.starts[since]
    world.dmesg(
        world.hosts[rank],
        begin - 1,
        f"NVRM: Xid (PCI:0000:{world.buses[rank]}:00): 92, pid={world.pids[rank]}, name=python, High single-bit ECC error rate",
    )
    hot = {"power": 251.3, "temp": 88, "clock": 1095, "reasons": 0x48, "hot": True}
    world.samples(max(world.now), lambda each, when: hot if each == rank and when >= begin else {})
    world.dump()
    world.write()
    return Truth("hardware", (rank,), ("throttl", "Xid 92", "ECC"), world.hosts[rank])


def slow_host(folder: Path, seed: int) -> Truth:
    """The CPUs of a host get hot: all its ranks come late from some step on."""
    world = World(folder, seed, "slow_host")
    while world.per_host == WORLD:
        seed += 1000
        world = World(folder, seed, "slow_host")
    host = world.rng.choice(world.host_names)
    ranks = tuple(rank for rank in range(WORLD) if world.hosts[rank] == host)
    since = world.rng.randrange(6, 12)
    world.run(
        world.steps,
        extra=lambda rank, step, at: (
            (0.3 + 0.01 * world.rng.random()) * world.compute if rank in ranks and step >= since else 0.0
        ),
    )
    world.hello()
    world.progress()
    begin = world.starts[since]
    for at in range(4):
        world.dmesg(
            host,
            begin + at * 2,
            f"CPU{4 + at}: Package temperature above threshold, cpu clock throttled (total events = {12 + at})",
        )
    world.samples(max(world.now))
    world.dump()
    world.write()
    return Truth("slow_host", ranks, (host,), host)


def slow_link(folder: Path, seed: int) -> Truth:
    """The network of a host fails: all ranks are in the collective, and none gets out."""
    world = World(folder, seed, "slow_link")
    while world.per_host == WORLD:
        seed += 1000
        world = World(folder, seed, "slow_link")
    rank = world.rng.randrange(WORLD)
    world.timing = True
    world.run(world.steps)
    world.starts.append(min(world.now))
    for at in range(2):
        world._collective({each: world.program(each)[at] for each in range(WORLD)}, world.steps, at, lambda *_: 0.0)
    for each in range(WORLD):
        when = world.now[each] + 0.01
        world.entries[each].append(Entry(world.program(each)[2], world._next(each, "all"), when, when + 3e-4, None, 92))
        world.hung = max(world.hung, when)
    world.hello()
    world.progress()
    host = world.hosts[rank]
    peer = next(each for each in range(WORLD) if world.hosts[each] != host)
    nic = f"mlx5_{world.rng.randrange(8)}"
    world.dmesg(
        host,
        world.hung - 0.3,
        "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
    )
    for each, to, about in ((peer, host, ""), (rank, world.hosts[peer], f" hca {nic}")):
        head = f"{world.hosts[each]}:{world.pids[each]}:{world.pids[each] + 40} [{world.gpus[each]}] transport/net_ib.cc:1295 NCCL WARN "
        world.say(
            each,
            world.hung + 8 + (each == peer),
            f"{head}NET/IB : Got completion from peer {world.ips[to]}<39138> with status=12 opcode=0 len=0 vendor err 129 (Send){about}",
        )
    world.say(
        rank,
        world.hung + 0.5,
        f"{host}:{world.pids[rank]}:{world.pids[rank] + 40} [{world.gpus[rank]}] transport/net_ib.cc:93 NCCL WARN NET/IB : {nic}:1 Got non-fatal async event: port error(10)",
    )
    world.timeouts()
    world.dump()
    world.write()
    return Truth("link", (rank,), ("link", "network"), host)


def constant_sleep(folder: Path, seed: int) -> Truth:
    """A rank stands still for the same time in every step."""
    world = World(folder, seed, "constant_sleep")
    rank, place = world.rng.randrange(WORLD), world.rng.randrange(3)
    pause = world.rng.choice((0.2, 0.35, 0.5))
    world.run(world.steps, extra=lambda each, step, at: pause if each == rank and at == place else 0.0)
    world.hello()
    world.progress()
    world.dump()
    for each in range(WORLD):
        world.spy(
            each,
            ["throttle_io (train.py:77)", "train_step (train.py:85)", "<module> (train.py:160)"]
            if each == rank
            else WAITS,
        )
    world.write()
    return Truth("straggler", (rank,), ("pause", "later", "late"), world.hosts[rank])


def loader(folder: Path, seed: int) -> Truth:
    """A rank waits for its batches, now and then long."""
    world = World(folder, seed, "loader")
    rank = world.rng.randrange(WORLD)
    waits = [world.rng.choice((0.0, 0.4, 0.9, 1.6)) for _ in range(world.steps)]
    world.run(world.steps, extra=lambda each, step, at: waits[step] if each == rank and at == 0 else 0.0)
    world.hello()
    world.progress()
    world.dump()
    starved = [
        "wait (threading.py:331)",
        "get (queue.py:180)",
        "_try_get_data (torch/utils/data/dataloader.py:1133)",
        "_get_data (torch/utils/data/dataloader.py:1289)",
        "_next_data (torch/utils/data/dataloader.py:1330)",
        "__next__ (torch/utils/data/dataloader.py:701)",
        "main (train.py:140)",
    ]
    for each in range(WORLD):
        world.spy(each, starved if each == rank else WAITS)
    world.write()
    return Truth("data", (rank,), ("data",), world.hosts[rank])


def pipeline_imbalance(folder: Path, seed: int) -> Truth:
    """One stage of the pipeline needs longer than the others, which wait for it."""
    world = World(folder, seed, "pipeline_imbalance")
    world.timing = True
    stages = 4
    width = WORLD // stages
    chains = [list(range(at, WORLD, width)) for at in range(width)]
    world.groups = {"all": list(range(WORLD)), **{f"pp{at}": chain for at, chain in enumerate(chains)}}
    world.base_seq = dict.fromkeys(world.groups, 100)
    world.seqs = [dict.fromkeys(world.groups, 0) for _ in range(WORLD)]
    slow = world.rng.randrange(stages)
    cost = [world.compute / 4 * (1.9 if stage == slow else 1.0) for stage in range(stages)]
    for _ in range(world.steps):
        world.starts.append(min(world.now))
        for _micro in range(4):
            for at, chain in enumerate(chains):
                for stage, rank in enumerate(chain):
                    world.now[rank] += cost[stage] * (1 + 0.01 * world.rng.random())
                    if stage + 1 < stages:
                        peer = chain[stage + 1]
                        ready = world.now[rank], world.now[peer]
                        done = max(ready) + 0.001
                        for who, name, began in ((rank, "send", ready[0]), (peer, "recv", ready[1])):
                            pair = f"{stage}->{stage + 1}" if name == "send" else f"{stage + 1}<-{stage}"
                            op = Op(f"pp{at}", f"{name} {pair}", 1 << 20, 0)
                            world.entries[who].append(Entry(op, 0, began, began + 3e-4, done, 60))
                            world.now[who] = done
        world._collective({each: Op("all", "all_reduce", 1, 0.002) for each in range(WORLD)}, 0, 2, lambda *_: 0.0)
    world.hello()
    world.progress()
    world.dump()
    world.write()
    ranks = tuple(sorted(chain[slow] for chain in chains))
    return Truth("pipeline", ranks, ("stage",))


def checkpoint_stall(folder: Path, seed: int) -> Truth:
    """A rank writes its checkpoint to a file system that does not answer."""
    world = World(folder, seed, "checkpoint_stall")
    rank = world.rng.choice((0, world.rng.randrange(WORLD)))
    world.run(world.steps, stop=(rank, 0))
    world.hello()
    world.progress()
    host = world.hosts[rank]
    world.timeouts()
    at = datetime.fromtimestamp(world.hung - 0.1, UTC)
    head = f"[titan] {at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} - root - INFO - "
    world.say(rank, world.hung - 0.1, f"{head}Saving the checkpoint (or staging if async is enabled).")
    if seed % 2:
        world.dmesg(host, world.hung + 20, "nfs: server filer-3 not responding, still trying")
        world.dmesg(host, world.hung + 140, f"INFO: task python:{world.pids[rank]} blocked for more than 120 seconds.")
    writes = [
        "_write_item (torch/distributed/checkpoint/filesystem.py:258)",
        "save (torch/serialization.py:652)",
        "save_checkpoint (ckpt.py:31)",
        "<module> (train.py:150)",
    ]
    for each in range(WORLD):
        world.spy(each, writes if each == rank else WAITS)
    world.dump()
    world.write()
    return Truth("checkpoint", (rank,), ("checkpoint",), host)


def healthy(folder: Path, seed: int) -> Truth:
    """Nothing is wrong."""
    world = World(folder, seed, "healthy")
    world.run(world.steps)
    world.hello()
    world.progress()
    world.samples(max(world.now), lambda each, when: {"reasons": 4} if each == 1 else {})
    world.dump()
    world.write()
    return Truth("", (), ())


BUILDERS: dict[str, Callable[[Path, int], Truth]] = {
    each.__name__: each
    for each in (
        hang_in_user_code, dead_rank, python_error, desync, out_of_memory, not_a_number, xid, ecc_and_throttle, slow_host,
        slow_link, constant_sleep, loader, pipeline_imbalance, checkpoint_stall, healthy,
    )
}  # fmt: skip
