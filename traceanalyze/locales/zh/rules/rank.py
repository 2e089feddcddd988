"""Texts of the rules about ranks (RNK)."""

from __future__ import annotations

TITLES = {
    "RNK101": "一个 Rank 让其他 Rank 等待",
    "RNK102": "各 Rank 负载不均",
    "RNK103": "两个 Rank 之间链路慢",
    "RNK104": "各 Rank 在不同步中停顿",
}

SENTENCES = {
    "RNK101": "Rank {rank} 使其他 Rank {per}等待 {wait}（{share}）：它在 {last_share} 的集合通信中最后到达。",
    "RNK101_phase": (
        "Rank {rank} 使其他 Rank {per}等待 {wait}（{share}）：它在 {last_share} 的集合通信中最后到达；"
        "原因是{phase}（{per} {excess}）。"
    ),
    "RNK102": "最忙的 Rank 计算耗时比均值多 {imbalance}（各步平均）：Rank {rank} {per} {most}，最少的为 {least}。",
    "RNK102_compute_and_host": (
        "最忙的 Rank 的计算、数据加载与 Host 耗时比均值多 {imbalance}（各步平均）："
        "Rank {rank} {per} {most}，最少的为 {least}。仅计算只相差 {compute_alone}：慢在 Host。"
    ),
    "RNK103": "{pair} 之间的传输（{link}）达到 {bandwidth} GB/s，比同类链路通常的速率低 {below}。",
    "RNK104": "{ranks} 个 Rank 的垃圾回收停顿落在不同的步中：比落在同一步时{per}多 {time}。",
}

ADVICE = {
    "check_link": "检查两者之间的线缆、端口与交换机，以及网络配置。",
    "diff_ranks": (
        "比较另一个 Rank 与该 Rank（traceanalyze compare OTHER LATE），处理变长的部分；并检查其主频与所在机器。"
    ),
    "align_pauses": "gc.disable()，并让所有 Rank 每 N 步一起调用 gc.collect()；保存 checkpoint 与评估也同样处理。",
    "balance_batches": "让各 Rank 的 Token 数一致：按长度分桶或排序；MoE 专家则使用均衡损失与容量限制。",
}

EVIDENCE = {
    "wait": "其他 Rank 的等待",
    "last_share": "它最后到达的集合通信",
    "phase": "慢在哪里",
    "excess": "比其他 Rank 多",
    "rank": "Rank",
    "imbalance": "不均衡度",
    "most": "最多",
    "least": "最少",
    "compute_alone": "仅计算的不均衡度",
    "pair": "从 → 到",
    "link": "链路种类",
    "below": "低于其他",
    "bandwidth": "带宽（GB/s）",
    "ranks": "Rank 数",
    "steps": "步数",
}
