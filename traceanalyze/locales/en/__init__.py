"""English, a module for each part of the tool: its texts by kind (`TERMS`, `MESSAGES` …)."""


def named(prefix: str, words: str) -> dict[str, str]:
    """Texts that say what their keys say after the prefix: `no_steps` is "no steps"."""
    return {f"{prefix}{word}": word.replace("_", " ") for word in words.split()}
