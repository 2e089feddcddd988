"""A page in a real browser, where there is one."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from typing import TYPE_CHECKING, Any

from tests.needs import BROWSER

if TYPE_CHECKING:
    from pathlib import Path

_POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")


def dump_dom(page: Path) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what stood on the console."""
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
        "--window-size=1400,1200", f"--user-data-dir={page.parent / 'profile'}", "--disable-background-networking",
        "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def evaluated(html: str, folder: Path, script: str) -> Any:
    """What a function body returns that runs in the loaded page; only for that the page's own policy is taken out."""
    probe = (
        "<script>window.addEventListener('load',function(){var node=document.createElement('pre');node.id='probe';"
        f"node.textContent=JSON.stringify((function(){{{script}}})());document.body.append(node);}});</script>"
    )
    page = folder / "probe.html"
    page.write_text(_POLICY.sub("", html).replace("</body>", f"{probe}</body>"), encoding="utf-8")
    dom, console = dump_dom(page)
    assert console == []
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(unescape(found[1]))
