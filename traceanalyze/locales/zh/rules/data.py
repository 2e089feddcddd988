"""Texts of the rules about data loading (DAT)."""

from __future__ import annotations

TITLES = {
    "DAT101": "等待数据加载",
    "DAT102": "DataLoader worker 重启",
    "DAT103": "在训练循环中锁页",
    "DAT104": "数据加载时快时慢",
    "DAT105": "数据加载越来越慢",
    "DAT106": "由一个 Rank 为其他 Rank 读数据",
    "DAT107": "各 batch 大小不一",
}

SENTENCES = {
    "DAT101": "设备{per}等待数据加载 {idle}（占单步 {share}）。",
    "DAT101_single": "设备{per}等待数据加载 {idle}（占单步 {share}）：batch 在训练循环中直接生成（num_workers=0）。",
    "DAT101_host": "训练循环{per}等待数据加载 {time}（占单步 {share}）。",
    "DAT101_host_single": "batch 在训练循环中直接生成（num_workers=0），{per}耗时 {time}（占单步 {share}）。",
    "DAT102": "取一个 batch 通常需要 {median}，却有 {count} 次长达 {longest}：worker 在重新启动。",
    "DAT103": "在训练循环中对 batch 锁页，共 {count} 次：{per} {time}。",
    "DAT104": "虽然有 worker，等待数据加载的时间仍波动很大（变异系数 {variation}）。",
    "DAT105": "采集期间等待数据加载的时间从 {first} 增加到 {last}。",
    "DAT106": "Rank {rank} {per}等待数据加载 {time}，其他 Rank 在步首的 broadcast 中等待它（{wait}）。",
    "DAT106_all": (
        "全部 {ranks} 个 Rank 都在等待数据加载，{per} {least} 到 {most}：它们可能共用慢速存储，或在重复读取同样的数据。"
    ),
    "DAT107": "各步计算耗时的波动为 {variation}，且各步的 Shape 不同。",
}

ADVICE = {
    "prefetch_on_reader": (
        "在读数据的 Rank 上用线程提前读取下一个 batch；每个节点一个读取者；或让每个 Rank 读取自己的数据"
        "（DistributedSampler）。"
    ),
    "read_apart": "让每个 Rank 从本地盘读取自己的数据；同一 TP 组需要相同数据时，每组只读一次再 broadcast。",
    "set_workers": (
        "DataLoader(num_workers=4 或更大, pin_memory=True, persistent_workers=True)；"
        "再调整 worker 数与 prefetch_factor。"
    ),
    "more_workers": (
        "增加 DataLoader 的 worker 数或调大 prefetch_factor；并设置 persistent_workers=True、pin_memory=True。"
    ),
    "set_workers_host": (
        "DataLoader(num_workers=…, persistent_workers=True)，worker 数不超过能腾出的 CPU 核数：用 "
        "torch.set_num_threads 让 torch 少占核；再调整 prefetch_factor。"
    ),
    "more_workers_host": (
        "如果能腾出 CPU 核（torch.set_num_threads），就增加 DataLoader 的 worker 数或 prefetch_factor；"
        "persistent_workers=True。"
    ),
    "cheaper_samples": "降低解码与增强的开销，或提前离线完成。",
    "local_data": "把数据放在本地 NVMe 盘上，用少量大文件存放。",
    "persistent_workers": "DataLoader(persistent_workers=True)，或加长 epoch。",
    "pin_in_loader": "在 DataLoader 中锁页（pin_memory=True）；自定义类型的 batch 需要实现 pin_memory() 方法。",
    "worker_cores": "检查 worker 绑定在哪些核上，以及 OMP_NUM_THREADS。",
    "plain_arrays": "样本用 numpy 或 arrow 数组保存，不要用 Python 对象列表。",
    "bucket_lengths": "按长度分桶，保持每个 batch 的 Token 数一致，或填充到少数几种长度。",
}

EVIDENCE = {
    "variation": "波动",
    "first": "前三分之一",
    "last": "后三分之一",
    "idle": "设备空闲",
    "share": "占单步",
    "batches": "batch 数",
}
