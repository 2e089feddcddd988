"""What is simulated: model, data, script, host, device and ranks. All times in ns."""

from __future__ import annotations

from dataclasses import dataclass, field

US, MS = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder-only transformer."""

    layers: int = 2
    hidden: int = 1024
    heads: int = 16
    sequence: int = 512
    batch: int = 8
    vocabulary: int = 8192
    dtype: str = "c10::BFloat16"
    attention: str = "fused"
    """`fused`, or `plain`: products, scaling and softmax one after the other."""
    activation: int = 1
    """Kernels that the activation function takes; several, where it is written out in operators."""
    casts: int = 0
    """Conversions of the input before every linear layer."""
    relayouts: int = 0
    """Copies of the input into another layout before every linear layer."""
    quantized: str = ""
    """Weights are stored in 4 bits, and dequantised before every product with them: `at once`, or `in steps`, with a
    cast."""


@dataclass(frozen=True, slots=True)
class Loader:
    """Batches come from worker processes, which the profiler does not see, or (`workers` 0) from the loop itself."""

    cost: int = 2 * MS
    """To make one batch."""
    workers: int = 4
    prefetch: int = 2
    """Batches a worker may be ahead."""
    restart: int = 0
    """Starting the workers anew, after every fifth batch."""


@dataclass(frozen=True, slots=True)
class Script:
    """What the training loop does beside forward, backward and optimizer; the places where mistakes are made."""

    optimizer: str = "fused"
    """`fused`, `foreach` or `for_loop`."""
    items: int = 0
    """`loss.item()` calls a step."""
    log: int = 40 * US
    """Python after each of them: the value is written down."""
    device_syncs: int = 0
    """`torch.cuda.synchronize()` calls a step."""
    pinned: bool = True
    """Batches are in pinned memory and copied without waiting."""
    empty_cache: bool = False
    """`torch.cuda.empty_cache()` after every step."""
    pause: int = 0
    """Host stops for so long in every step, and no event tells why."""
    side_kernels: int = 0
    """Kernels a step that a second thread launches on its own stream."""
    barrier: bool = False
    """Ranks meet on the host (gloo) before every step."""
    pin: int = 0
    """Pinning a batch in the loop takes so long."""
    norm: bool = False
    """The norm of the gradients is computed."""
    norm_reads: int = 0
    """Python after it was read, if it is."""
    zero_fill: bool = False
    """Gradients are filled with zeros before every step."""
    unused_search: int = 0
    """DDP looks for unused parameters for so long."""
    micro_steps: int = 1
    """Forward and backward passes before the optimizer's step."""
    no_sync: bool = True
    """Gradients are reduced in the last of them only."""
    collections: int = 0
    """Python collects garbage in two of three steps, anywhere in them; that takes about so long."""
    compile_once: int = 0
    """The first recorded step compiles the model for so long."""
    compile_again: int = 0
    """Every other step compiles it for so long."""
    slow_op: int = 0
    """An operator of every attention block, launched from Python, keeps the host for so long."""
    small_copies: int = 0
    """Tensors of a few kB that are copied to the device before the forward pass, each by itself."""
    churn: int = 0
    """Segments a step that the allocator must give back to the device, and take anew."""
    graph: str = ""
    """Forward, backward and optimizer are one graph, captured `before` or `within` the recording (GPU, one rank)."""
    metric: int = 0
    """Bytes of a tensor that ranks reduce between the forward and the backward pass."""
    metric_waits: bool = False
    """Compute waits for that at once; else after the backward pass."""


@dataclass(frozen=True, slots=True)
class Host:
    """Cost of the program's own work."""

    op: int = 3 * US
    """Inside an operator, before what it does; half of it again after."""
    python: int = 4 * US
    """Between two operators."""
    launch: int = 4_500
    copy: int = 6 * US
    allocate: int = 180 * US
    other: int = 1 * US
    """Event record, stream wait and the like."""
    wake: int = 6 * US
    """From the end of the awaited work to the return of the call that waits."""
    spread: float = 0.1


@dataclass(frozen=True, slots=True)
class TaskQueue:
    """How an NPU program launches: calls are put into a queue, and a second thread takes them out (`TASK_QUEUE`)."""

    on: bool = True
    """False: every thread launches by itself."""
    enqueue: int = 2 * US
    hand_over: int = 5 * US
    """Until the second thread, if it is idle, begins."""
    dequeue: int = 2 * US
    """Of the second thread, before what it does for a task; half of it again after."""
    call: int = 1 * US
    """Of an operator call, before its launches."""


@dataclass(frozen=True, slots=True)
class Device:
    """How fast kernels run and how work reaches them."""

    vendor: str = "nvidia"
    name: str = "Example GPU"
    units: int = 108
    memory: int = 80 * 2**30
    flops: float = 180e12
    """Reached, not peak; so is the bandwidth (bytes a second)."""
    bandwidth: float = 1.2e12
    pcie: float = 20e9
    pageable: float = 5e9
    """Copies from pageable memory go through a staging buffer."""
    floor: int = 1_800
    """No kernel is shorter."""
    latency: int = 6 * US
    """From the begin of a launch call to the begin of its kernel on an idle stream."""
    gap: int = 900
    """Between two kernels of a stream."""
    queue: int = 1000
    """Launches wait when so many kernels of a stream have not begun."""
    spread: float = 0.03
    matmul_extra: int = 0
    """Every matrix product takes so much longer."""
    misaligned: float = 1.0
    """Products with a size that is no multiple of 8 take so many times as long."""
    scalar_extra: int = 0
    """Every kernel on the scalar processors takes so much longer (NPU)."""
    layout_change: int = 0
    """Before every matrix product a kernel brings its input into another layout, and takes so long (NPU)."""
    segment: int = 2 * 2**20
    """Memory is taken from the device in multiples of so many bytes."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Data parallelism."""

    count: int = 1
    strategy: str = "ddp"
    """`ddp` (all-reduce) or `sharded` (reduce-scatter, then all-gather after the optimizer)."""
    bucket: int = 16 * 2**20
    """Gradients are reduced when so many bytes are ready."""
    first_bucket: int = 0
    """The first ones of a backward pass; 0: as the others."""
    bandwidth: float = 100e9
    latency: int = 12 * US
    extra: int = 0
    """Every transfer takes so much longer."""
    lists: bool = False
    """Parameters are gathered into a list of tensors, one a rank, by copies."""
    block: int = 1
    """Ranks exchange multiples of so many bytes (NPU): 512 where the library cuts messages well."""
    slow_rank: int = 0
    slow_by: float = 1.0
    """Kernels of the slow rank take so many times as long."""
    slow_batches: int = 0
    """Its batches take so much longer to make."""
    slow_pause: int = 0
    """Its host stops for so long in every step, and no event tells why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What the profiler records of it."""

    stacks: bool = True
    unlinked: int = 0
    """Of so many kernels one has no launch record; 0: all have one."""
    leftover: int = 0
    """Work launched before recording that runs so long into the first step."""
    clock_offset: int = 0
    """The clock of each rank is so much ahead of the one before."""
    behind: int = 0
    """The clock of the device is so much behind that of the host. Work on an idle stream then begins at its launch, so
    that this is what one finds: from the recording alone, nobody can tell a clock from the time that launches take."""
    drift: float = 0.0
    """It falls behind by so many ns more each ns from the begin of the recording on."""
    cut: int = 0
    """Nothing is kept that the host began in the first so many ns of the recording."""
    unmarked: int = 0
    """So many steps at the begin have no marker."""
    missing: tuple[int, ...] = ()
    """Ranks of which there is no recording."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of `faults.FAULTS` and how big it is."""

    name: str
    size: float


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything a simulation depends on; equal workloads give equal schedules."""

    model: Model = field(default_factory=Model)
    loader: Loader = field(default_factory=Loader)
    script: Script = field(default_factory=Script)
    host: Host = field(default_factory=Host)
    queue: TaskQueue = field(default_factory=TaskQueue)
    """Only NPU programs have one."""
    device: Device = field(default_factory=Device)
    ranks: Ranks = field(default_factory=Ranks)
    recording: Recording = field(default_factory=Recording)
    faults: tuple[Fault, ...] = ()
    warmup: int = 1
    """Steps before recording: workers are ahead as far as they can be. Then the device is waited for."""
    steps: int = 3
    first_step: int = 3
    seed: int = 0
    tick: int = 1
    """Everything happens at multiples of it: 1000 for layouts that store whole microseconds."""
