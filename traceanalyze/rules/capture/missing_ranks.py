from traceanalyze.rules.capture import failed_checks
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "CAP105",
    "missing-ranks",
    title="ranks missing or mixed",
    sentence="Ranks are missing or mixed; see {checks} under the quality of the recording.",
    confidence=Confidence.HIGH,
    needs="",
    advice_texts={"file_per_rank": "Write one file a rank: tensorboard_trace_handler(folder, worker_name=…)."},
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Ranks are missing, or recorded twice or into one file.

    What it finds
        Recordings of several processes in one file, and gaps in the ranks.
    Why it costs time
        It costs the program nothing; it touches the numbers of the report.
    How it is measured
        By the checks of the recording's quality that stand at the end of the report.
    What to do
        One file a rank: `tensorboard_trace_handler(dir, worker_name=f"rank{rank}")`.

    References
        torch.profiler.
    """
    yield from failed_checks(each for each in facts.analysis.checks if each.id == "Q10")
