"""A browser without a window, asked by WebDriver: what it shows, logs and requests."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SENT = "Network.requestWillBeSent"
_OWN_PAGES = ("chrome:", "data:,")
_STARTED = "was started successfully on port "
VIOLATIONS = "resultTypes: ['violations'], selectors: false"
"""Options of axe: of what is sound, which is nearly all of a page, no place is written down."""
_BROKEN = """
const pattern = new RegExp(arguments[0], "g"), broken = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const lines = range => new Set([...range.getClientRects()].filter(each => each.width > 0)
  .map(each => Math.round(each.top))).size;
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (!node.parentElement.checkVisibility() || node.parentElement.closest("svg")) continue;
  for (const match of node.data.matchAll(pattern)) {
    const range = document.createRange();
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].length);
    if (lines(range) > 1) broken.push(match[0]);
  }
}
for (const each of document.querySelectorAll(arguments[1])) {
  const range = document.createRange();
  range.selectNodeContents(each);
  if (lines(range) > 1) broken.push(each.textContent);
}
return [...new Set(broken)];
"""
_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def missing() -> str | None:
    """Return what is not installed, None where everything is."""
    for names in (("chromium", "google-chrome"), ("chromedriver",)):
        if not any(map(shutil.which, names)):
            return f"{names[0]} is not installed"
    return None


class Browser:
    """One session."""

    def __init__(self, address: str) -> None:
        self._address = address

    def open(self, page: Path) -> None:
        """Load a file."""
        self._call("url", {"url": page.resolve().as_uri()})

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a function's body returns in the page."""
        return self._call("execute/sync", {"script": script, "args": list(arguments)})

    def run_later(self, script: str) -> Any:
        """Return what a body hands to its last argument, a function."""
        return self._call("execute/async", {"script": script, "args": []})

    def ask(self, command: str, **parameters: object) -> Any:
        """Return the answer to a command of the developer tools' protocol."""
        return self._call("goog/cdp/execute", {"cmd": command, "params": parameters})

    def show(self, width: int, *, is_dark: bool = False, media: str = "") -> None:
        """Set the width of the window, the scheme of colours, and `print` or nothing."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def broken(self, pattern: str, selector: str) -> list[str]:
        """Return what is shown in more than one line, and should not be.

        Args:
            pattern: Of texts that are to stand in one line.
            selector: Of elements that are.
        """
        found: list[str] = self.run(_BROKEN, pattern, selector)
        return found

    def picture(self, top: int = 0, height: int = 900) -> bytes:
        """Return a part of the page as PNG."""
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(found["data"])

    def log(self, kind: str) -> list[Mapping[str, Any]]:
        """Return what was logged since it was last asked: of `browser` or `performance`."""
        found: list[Mapping[str, Any]] = self._call("se/log", {"type": kind})
        return found

    def errors(self) -> list[str]:
        """Return what pages logged since the log was last read, but the browser's own pages."""
        found = [each["message"] for each in self.log("browser")]
        return [each for each in found if not each.startswith(_OWN_PAGES)]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the log was last read.

        What the browser's own pages ask for is left out: a slow machine still loads the page of
        a new tab when a test opens its first.
        """
        messages = (json.loads(each["message"])["message"] for each in self.log("performance"))
        sent = (each["params"] for each in messages if each["method"] == _SENT)
        return [
            each["request"]["url"]
            for each in sent
            if not each["documentURL"].startswith(_OWN_PAGES)
        ]

    def _call(self, name: str, body: Mapping[str, Any]) -> Any:
        return _post(f"{self._address}/{name}", body)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser and end it.

    Args:
        profile: An empty folder of its own.
    """
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert driver.stdout is not None
        line = next(each for each in driver.stdout if _STARTED in each)
        port = line.partition(_STARTED)[2].strip(" .\n")
        at = f"http://127.0.0.1:{port}/session"
        options = {
            "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
            "binary": shutil.which("chromium") or shutil.which("google-chrome"),
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        session = _post(at, {"capabilities": {"alwaysMatch": wanted}})
        address = f"{at}/{session['sessionId']}"
        try:
            yield Browser(address)
        finally:
            urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()
    finally:
        driver.terminate()
        driver.wait()
        if driver.stdout is not None:
            driver.stdout.close()


def _post(address: str, body: Mapping[str, Any]) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["value"]
