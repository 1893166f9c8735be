"""Chromium without a window, spoken to in its own protocol through a pipe: what the report's page shows."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
SECONDS = 60.0


class Browser:
    """One tab. Calls wait for their answers; an error in the page is an error here."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._left = b""
        self._number = 0
        self._session = ""
        self.problems: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            piece = os.read(self._reading, 1 << 16)
            assert piece, "chromium ended"
            self._left += piece
        one, self._left = self._left.split(b"\0", 1)
        message: dict[str, Any] = json.loads(one)
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(message["params"]["exceptionDetails"])[:500])
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.problems.append(message["params"]["entry"]["text"])
        return message

    def view(self, width: int, height: int = 900, dark: bool = False) -> None:
        """The size of the window, and light or dark."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path) -> None:
        """Open a page of the report, and wait until it is drawn."""
        self._call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + SECONDS
        while not self.run("document.documentElement?.dataset.ready === 'true'"):
            assert time.monotonic() < end, self.problems
            time.sleep(0.05)
        self.drawn()

    def drawn(self) -> None:
        """Wait until what is drawn once a frame is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, code: str) -> Any:
        """The value of an expression, or what a promise gives."""
        done = self._call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """A key, where the focus is."""
        for kind in ("keyDown", "keyUp"):
            text = key if len(key) == 1 and kind == "keyDown" else ""
            self._call("Input.dispatchKeyEvent", type=kind, key=key, text=text)

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in a folder."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
    # It reads from descriptor 3 and writes to descriptor 4.
    shell = ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}', CHROMIUM, *flags]
    with (folder / "chromium.log").open("w") as log:
        child = subprocess.Popen(
            [*shell, f"--user-data-dir={folder / 'profile'}"],
            pass_fds=(to_read, from_write),
            stdout=log,
            stderr=log,
        )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Browser(from_read, to_write)
    finally:
        child.terminate()
        child.wait(SECONDS)
        os.close(to_write)
        os.close(from_read)
