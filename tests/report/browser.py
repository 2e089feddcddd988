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


OPENED = (
    "function opened(at){var part=document.querySelector(at);part.open=true;"
    "return new Promise(function(done){setTimeout(function(){done(part);},50);});}"
)
"""For scripts: what is closed is made when it is opened, a moment later."""


def dump_dom(page: Path, *options: str) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what stood on the console."""
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
        "--window-size=1400,1200", f"--user-data-dir={page.parent / 'profile'}", "--disable-background-networking",
        "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000",
        *(options or ("--dump-dom",)), page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def sheets(html: str, folder: Path) -> int:
    """How many it is printed on."""
    (folder / "page.html").write_text(html, encoding="utf-8")
    dump_dom(folder / "page.html", "--no-pdf-header-footer", f"--print-to-pdf={folder / 'page.pdf'}")
    return len(re.findall(rb"/Type\s*/Page\b", (folder / "page.pdf").read_bytes()))


def evaluated(html: str, folder: Path, script: str, *, more: str = "", options: tuple[str, ...] = ()) -> Any:
    """What a function body returns, or promises, that runs in the loaded page, after `more` script.

    Only for that the page's own policy is taken out.
    """
    probe = (
        f"<script>{more}</script><script>{OPENED}window.addEventListener('load',function(){{"
        f"Promise.resolve((function(){{{script}}})()).then(function(found){{var node=document.createElement('pre');"
        "node.id='probe';node.textContent=JSON.stringify(found);document.body.append(node);});});</script>"
    )
    page = folder / "probe.html"
    page.write_text(_POLICY.sub("", html).replace("</body>", f"{probe}</body>"), encoding="utf-8")
    dom, console = dump_dom(page, *((*options, "--dump-dom") if options else ()))
    assert console == []
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(unescape(found[1]))
