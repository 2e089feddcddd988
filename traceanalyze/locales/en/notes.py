"""What reading says in passing, as the readers word it: patterns, by which other languages know it again."""

from __future__ import annotations

NOTES = {
    "missing_ranks": "{missing} of {all} ranks are missing: {which}",
    "ranks_by_order": "the files do not tell their ranks: they are numbered in the order of host and process",
    "ranks_apart": "some ranks do not overlap in time with the others: different recordings, or clocks that differ",
    "several_recordings": "{folder} holds several recordings, analysed apart; this is number {number}",
    "same_content": "{path} has the same content as {other} and was left out",
    "failed": "left out: {error}",
    "plugin_failed": "the plug-in {name} ({group}) failed, so what it adds is missing: {error}",
    "read_by_plugin": "read by the plug-in {name}",
    "passed_over": "files passed over: {files}",
    "filtered": "filtered: {count} of {all} events are left out; what they did counts as not recorded",
    "no_operator_table": "operator_memory.csv cannot be read ({reason}): no memory curves",
    "no_kernel_table": "kernel_details.csv is missing: no operator types, cores, shapes and counters of kernels",
    "rows_cut": "kernel_details.csv: {count} rows are cut off and were left out",
    "times_lost": (
        "kernel_details.csv: some start times are no exact numbers (was it saved by a spreadsheet?): these rows cannot "
        "be joined to the timeline"
    ),
    "no_operator_memory": "operator_memory.csv is missing: which operator allocated what is not known",
    "no_memory_record": (
        "memory_record.csv is missing: no totals beside those of operators, no memory of the whole process"
    ),
    "no_step_times": "step_trace_time.csv is missing: no step times of the profile's own to compare with",
    "no_profiler_info": "profiler_info.json is missing: the profiler's options are not known, nor perhaps the rank",
    "no_metadata": ("profiler_metadata.json is missing: process groups and settings of the environment are not known"),
    "unreadable_because": "{name} cannot be read ({reason}) and was left out",
    "unreadable_rows": "{name}: {count} row(s) without a readable size or time were left out",
    "unreadable": "{name} cannot be read and was left out",
    "too_large": "{name} has {size} bytes, more than {most}: not compared with the timeline",
    "export_not_compared": "the other export was not compared: {reason}",
    "table_not_compared": "{name} cannot be read ({reason}) and was not compared",
    "parts_lost": "{count} parts of collectives have no task with times and were left out",
    "kernels_lost": "{count} rows of COMPUTE_TASK_INFO have no task with times and were left out",
    "no_kernel_rows": "COMPUTE_TASK_INFO is missing: kernels are known by the type of their task alone",
    "tables_missing": "not in the database, because nothing was recorded or it was lost: {tables}",
}
