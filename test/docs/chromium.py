"""A headless Chromium, controlled over its debugging pipe. Needs only Python's standard library and the browser."""
import base64
import fcntl
import itertools
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser process with one page."""

    def __init__(self, width=1280, height=900):
        self.home = tempfile.mkdtemp(prefix="rosetest-chromium-")
        to_child, self.to = os.pipe()
        self.back, from_child = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4, so the pipes' own ends must
        # not have these numbers.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_child, from_child)]
        os.close(to_child)
        os.close(from_child)

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        command = [found(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-extensions", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync",
                   "--force-color-profile=srgb", "--hide-scrollbars", f"--user-data-dir={self.home}",
                   f"--window-size={width},{height}", "about:blank"]
        self.log = open(pathlib.Path(self.home) / "log", "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        close_fds=False, preexec_fn=place,
                                        start_new_session=True, env=os.environ | {"HOME": self.home})
        for end in high:
            os.close(end)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.events = []
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(domain + ".enable")

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("chromium does not answer: "
                                   + (pathlib.Path(self.home) / "log").read_text(errors="replace")[-500:])
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("chromium has ended: "
                                   + (pathlib.Path(self.home) / "log").read_text(errors="replace")[-500:])
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, seconds=60, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + seconds
        while True:
            answer = self._message(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def until(self, method, seconds=60):
        """Waits for the next event with that name and returns it."""
        deadline = time.monotonic() + seconds
        while True:
            for i, event in enumerate(self.events):
                if event["method"] == method:
                    return self.events.pop(i)
            message = self._message(deadline)
            if "method" in message:
                self.events.append(message)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.until("Page.loadEventFired")

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Waits until the page has been drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def drag(self, x1, y, x2):
        self.mouse("mouseMoved", x1, y)
        self.mouse("mousePressed", x1, y, button="left", buttons=1, clickCount=1)
        for i in range(1, 5):
            self.mouse("mouseMoved", x1 + (x2 - x1) * i / 4, y, button="left", buttons=1)
        self.mouse("mouseReleased", x2, y, button="left", clickCount=1)
        self.settle()

    def key(self, key, text=None, modifiers=0):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40}
        down = {"type": "keyDown" if text else "rawKeyDown", "key": key, "modifiers": modifiers,
                "windowsVirtualKeyCode": codes.get(key, 0)}
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers,
                  windowsVirtualKeyCode=codes.get(key, 0))
        self.settle()

    def size(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=mobile)
        self.settle()

    def media(self, media="", **features):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": n.replace("_", "-"), "value": v} for n, v in features.items()])
        self.settle()

    def picture(self, path, clip=None, scale=1, whole=False):
        params = {"format": "png", "captureBeyondViewport": whole or clip is not None}
        if clip:
            params["clip"] = {**dict(zip(("x", "y", "width", "height"), clip)), "scale": scale}
        elif whole:
            box = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params["clip"] = {"x": 0, "y": 0, "width": box["width"], "height": box["height"], "scale": scale}
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **params)["data"]))

    def complaints(self):
        """Returns what the console reported since open(): errors, warnings, exceptions and violations of the content
        policy."""
        told = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                told.append(params["exceptionDetails"].get("exception",
                                                           {}).get("description", params["exceptionDetails"]["text"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                told.append(f"console.{params['type']}: {[a.get('value') for a in params['args']]}")
            elif event["method"] == "Log.entryAdded":
                told.append(f"{params['entry']['level']}: {params['entry']['text']}")
        return told

    def fetched(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", seconds=10)
            self.process.wait(10)
        except Exception:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.log.close()
        # While the browser's helper processes end, they may still be writing to this folder.
        deadline = time.monotonic() + 20
        while os.path.exists(self.home) and time.monotonic() < deadline:
            shutil.rmtree(self.home, ignore_errors=True)
