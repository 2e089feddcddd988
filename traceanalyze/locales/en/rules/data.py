"""Texts of the rules about data loading (DAT)."""

from __future__ import annotations

TITLES = {
    "DAT101": "waiting for the data loader",
    "DAT102": "workers of the loader restarted",
    "DAT103": "pinning in the training loop",
    "DAT104": "loader cannot keep up evenly",
    "DAT105": "loader becomes slower",
    "DAT106": "one rank reads for the others",
    "DAT107": "batches of different size",
}

SENTENCES = {
    "DAT101": "The device waits for the data loader {idle} {per} ({share} of it).",
    "DAT101_single": (
        "The device waits for the data loader {idle} {per} ({share} of it): batches are made in the training loop "
        "itself (num_workers=0)."
    ),
    "DAT101_host": "The step waits {time} {per} for the data loader ({share} of it).",
    "DAT101_host_single": (
        "Making batches takes {time} {per} ({share} of it), in the training loop itself (num_workers=0)."
    ),
    "DAT102": (
        "The loader takes up to {longest} for a batch, {count} time(s), where {median} is usual: its workers start "
        "anew."
    ),
    "DAT103": "Batches are pinned in the training loop, {count} time(s): {time} {per}.",
    "DAT104": "Waits for the loader vary a lot (coefficient of variation {variation}) although it has workers.",
    "DAT105": "Waits for the loader grow from {first} to {last} during the recording.",
    "DAT106": (
        "Rank {rank} waits for its data loader {time} {per}, and the others wait for it in a broadcast at the start "
        "of the step ({wait})."
    ),
    "DAT106_all": (
        "All {ranks} ranks wait for their data loaders, {least} to {most} {per}: they may share slow storage or read "
        "the same data."
    ),
    "DAT107": "The compute time of steps varies by {variation}, and shapes differ between them.",
}

ADVICE = {
    "set_workers": (
        "DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True); then tune the number of workers "
        "and prefetch_factor."
    ),
    "more_workers": (
        "More workers or a larger prefetch_factor in the DataLoader; persistent_workers=True, pin_memory=True."
    ),
    "set_workers_host": (
        "DataLoader(num_workers=…, persistent_workers=True) with as many workers as cores can be spared: give torch "
        "fewer (torch.set_num_threads); then tune prefetch_factor."
    ),
    "more_workers_host": (
        "More workers or a larger prefetch_factor in the DataLoader, if cores can be spared (torch.set_num_threads); "
        "persistent_workers=True."
    ),
    "cheaper_samples": "Decode and augment more cheaply, or beforehand.",
    "local_data": "Keep the data on a local NVMe disk, in few large files.",
    "persistent_workers": "DataLoader(persistent_workers=True), or longer epochs.",
    "pin_in_loader": "Pin in the DataLoader (pin_memory=True); batches of your own types need a method pin_memory().",
    "worker_cores": "Check which cores the workers are bound to, and OMP_NUM_THREADS.",
    "plain_arrays": "Keep samples in numpy or arrow arrays instead of lists of Python objects.",
    "prefetch_on_reader": (
        "Read the next batch in a thread of the reading rank while the step runs; one reader a node; or give every "
        "rank data of its own (DistributedSampler)."
    ),
    "read_apart": (
        "Let every rank read data of its own from local disks; where the ranks of a tensor parallel group need the "
        "same data, read it once a group and broadcast it."
    ),
    "bucket_lengths": "Bucket samples by length, keep the tokens of a batch constant, or pad to few sizes.",
}

EVIDENCE = {
    "variation": "variation",
    "first": "first third",
    "last": "last third",
    "idle": "device idle",
    "share": "share of the step",
    "batches": "batches",
}
