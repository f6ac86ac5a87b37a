# SPDX-License-Identifier: Apache-2.0
"""Drives headless Chromium through its debugging pipe, with Python's standard library alone."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


def chromium():
    """Returns the path of Chromium or Chrome, or None."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Browser:
    """Opens one tab. The `with` block removes its folder and ends its process."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, to_us = os.pipe(), os.pipe()
        # Chromium reads commands from descriptor 3 and writes what happened to descriptor 4.
        command = [
            chromium(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={self.folder.name}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{from_us[0]} 4>&{to_us[1]}', "sh", *command],
            pass_fds=(from_us[0], to_us[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us[0])
        os.close(to_us[1])
        self.commands, self.answers = os.fdopen(from_us[1], "wb", 0), os.fdopen(to_us[0], "rb", 0)
        self.last, self.rest, self.session, self.requests, self.events = 0, b"", None, [], set()
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for part in ("Page", "Network", "Runtime"):
            self.call(f"{part}.enable")
        return self

    def __exit__(self, *_):
        self.commands.close()
        self.answers.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def _message(self):
        while b"\0" not in self.rest:
            piece = self.answers.read(1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        self.events.add(message.get("method"))
        return message

    def call(self, method, **parameters):
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, url, width, height=900, scheme="light"):
        """Opens a page in a window of this size and waits until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._message()

    def value(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait_for(self, script, seconds=20):
        """Returns the script's value once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.value(script)):
            if time.monotonic() > end:
                raise RuntimeError(f"still false after {seconds} s: {script}")
            time.sleep(0.1)
        return value

    def type(self, text):
        """Presses the keys of `text`."""
        for sign in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", key=sign, text=sign)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=sign)

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])
