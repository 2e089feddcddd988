"""Put a report on a pull request, in place of the one that has the same hidden marker: `comment.py gate.md`."""

import json
import os
import re
import sys
from pathlib import Path
from urllib.request import Request, urlopen

API = f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
MARKER = re.compile("<!-- traceanalyze gate: .* -->")
PAGE = 100


def asked(method: str, url: str, body: str | None = None):
    """The answer of the service."""
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": "application/vnd.github+json"}
    data = None if body is None else json.dumps({"body": body}).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=30) as answer:  # noqa: S310 - the service's own
        return json.load(answer)


def before(number: str, marker: str) -> int | None:
    """The comment of before; those that quote it begin otherwise."""
    for page in range(1, 100):
        comments = asked("GET", f"{API}/{number}/comments?per_page={PAGE}&page={page}")
        for each in comments:
            if each["body"].startswith("### ") and marker in each["body"]:
                return each["id"]
        if len(comments) < PAGE:
            break
    return None


def main() -> None:
    """Comment; a job that may not is only warned, as in a pull request from a fork."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    number = os.environ["NUMBER"]
    try:
        known = before(number, MARKER.search(text)[0])
        if known is None:
            asked("POST", f"{API}/{number}/comments", text)
        else:
            asked("PATCH", f"{API}/comments/{known}", text)
    except OSError as error:
        needs = "a job needs `permissions: pull-requests: write`, which pull requests from forks do not get"
        sys.stdout.write(f"::warning title=traceanalyze gate::No comment was written ({error}): {needs}\n")


if __name__ == "__main__":
    main()
