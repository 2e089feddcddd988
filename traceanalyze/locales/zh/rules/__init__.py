"""Texts of findings: one module a family, as `locales/en/rules/__init__.py` describes them."""

from __future__ import annotations

from traceanalyze.locales.zh.rules import capture, comm, compile_, data, host, kernel, memory, npu, rank, sync

_FAMILIES = (data, host, sync, memory, kernel, compile_, comm, rank, npu, capture)

TABLES = {
    "findings": "问题",
    "capture_findings": "采集方面的问题",
    "finding_evidence": "各问题的依据",
    "rules_not_judged": "无法判断的规则",
}

COLUMNS = {
    "rule_id": "规则",
    "finding": "问题",
    "saving_ns": "可节省",
    "bound_ns": "至多",
    "confidence": "置信度",
    "where": "位置",
    "duration_ns": "时间",
    "figure": "数值",
    "text": "文本",
}

COLUMN_MEANINGS = {
    "rule_id": "规则编号；`traceanalyze rule ID` 给出说明",
    "findings.severity": "按占单步的比例：20 % 起为高，5 % 起为中；没有可节省时间的由规则决定",
    "findings.finding": "发现了什么",
    "findings.saving_ns": "消除后每步可省时间的估计；不同问题节省的时间互不重复",
    "findings.share": "可节省时间占平均步的比例",
    "findings.count": "在所分析步中出现的次数",
    "capture_findings.severity": "对数值的影响程度",
    "capture_findings.finding": "发现了什么",
    "capture_findings.saving_ns": "无：采集方式不增加程序本身的开销",
    "capture_findings.share": "无",
    "capture_findings.count": "次数",
    "bound_ns": "每步至多可省的时间",
    "confidence": "仅凭采集数据能确认到什么程度",
    "where": "算子、调用、Kernel 或源码行",
    "finding_evidence.evidence": "测得的是什么",
    "finding_evidence.duration_ns": "取值（为时间时）",
    "finding_evidence.share": "取值（为比例时）",
    "finding_evidence.figure": "取值（为数值时）",
    "finding_evidence.bytes": "取值（为大小时）",
    "text": "取值（为名称时）",
    "finding_evidence.start_ns": "在 trace 中查看的位置：开始",
    "finding_evidence.end_ns": "在 trace 中查看的位置：结束",
    "finding_evidence.source_line": "程序的源码行",
    "rules_not_judged.finding": "该规则找什么",
    "rules_not_judged.saving_ns": "未测得及其原因",
}

TERMS = {
    "severity_high": "高",
    "severity_medium": "中",
    "severity_low": "低",
    "severity_info": "提示",
    "confidence_high": "高",
    "confidence_medium": "中",
    "confidence_low": "低",
    **{f"rule_{key}": text for family in _FAMILIES for key, text in family.TITLES.items()},
    **{f"evidence_{key}": text for family in _FAMILIES for key, text in family.EVIDENCE.items()},
}

REASONS = {
    "no_snapshot": "需要分配器快照",
    "no_environment": "采集数据没有给出程序的设置",
    "no_other_ranks": "需要其他 Rank 的采集数据",
    "no_first_step": "需要从程序第一步开始的采集数据",
    "no_kernel_shapes": "并非所有 Rank 都有运行多次且带 Shape 或启动配置的 Kernel",
    "no_machines": "采集数据没有给出各 Rank 所在的机器",
    "unknown_links": "这些链路的带宽未知，也没有其他通信域可比",
    "unknown_capacity": "采集数据没有给出设备的显存容量",
}

_ADVICE = {key: text for family in _FAMILIES for key, text in family.ADVICE.items()}

MESSAGES = {
    "finding_other": "{rule}：{text}",
    **{
        f"finding_{key}": f"{key.partition('_')[0]}：{text}"
        for family in _FAMILIES
        for key, text in family.SENTENCES.items()
    },
    **{
        f"advice_{key}.{platform}": f"→ {_ADVICE.get(f'{key}.{platform}', _ADVICE.get(key, ''))}"
        for key in {name.partition(".")[0] for name in _ADVICE}
        for platform in ("cuda", "ascend")
    },
}
