"""A headless chromium, controlled through its DevTools protocol."""

import asyncio
import base64
import contextlib
import itertools
import json
import shutil

import aiohttp

CHROMIUM = shutil.which("chromium")
PATIENCE = 60.0
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}


class PageLeft(Exception):
    """The page navigated to another one before it answered."""


class BrowserPage:
    """One page of a browser. `requests` has the URL of each request that the page made."""

    def __init__(self, socket):
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers = {}
        self._events = {}
        self.requests = []
        self.errors = []
        """Messages of the console: exceptions, and what the Content-Security-Policy rejected."""

    async def read(self):
        """Dispatch what the browser sends, until it closes the connection."""
        async for frame in self._socket:
            message = json.loads(frame.data)
            if "id" in message:
                self._answers.pop(message["id"]).set_result(message)
                continue
            parameters = message["params"]
            match message["method"]:
                case "Network.requestWillBeSent":
                    self.requests.append(parameters["request"]["url"])
                case "Runtime.exceptionThrown":
                    self.errors.append(parameters["exceptionDetails"])
                case "Log.entryAdded":
                    self.errors.append(parameters["entry"]["text"])
                case name if name in self._events:
                    self._events[name].set()

    async def call(self, method, **parameters):
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE):
            message = await answer
        if message.get("error", {}).get("message") == "Inspected target navigated or closed":
            raise PageLeft
        assert "error" not in message, message
        return message["result"]

    async def open(self, url, *, width=1000, height=800, scheme="light"):
        """Load a page in a window of this size, and wait until it is loaded."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                        mobile=False)  # fmt: skip
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        loaded = self._events["Page.loadEventFired"] = asyncio.Event()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(PATIENCE):
            await loaded.wait()

    async def evaluate(self, expression):
        """Return the value of a JavaScript expression. A promise is awaited."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def wait_for(self, expression):
        """Wait until a JavaScript expression is true."""
        script = f"""new Promise(resolve => {{
            const look = () => ({expression}) ? resolve(true) : requestAnimationFrame(look); look(); }})"""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await self.evaluate(script)
                except PageLeft:
                    continue  # The page followed a link. Look again in the new page.

    async def type(self, text):
        """Type text into the element that has the focus."""
        await self.call("Input.insertText", text=text)

    async def press(self, key):
        code, text = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    async def screenshot(self, path):
        """Write what the window shows as a PNG."""
        result = await self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        path.write_bytes(base64.b64decode(result["data"]))


@contextlib.asynccontextmanager
async def open_browser(profile):
    """Start chromium with an empty profile in this folder. The browser resolves no host name."""
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-first-run", "--disable-background-networking",
        f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    drain = None
    try:
        async with asyncio.timeout(PATIENCE):
            while b"DevTools listening on" not in (line := await process.stderr.readline()):
                assert line, "chromium ended"
        port = line.split(b"/")[2].split(b":")[1].decode()
        drain = asyncio.create_task(process.stderr.read())
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as response:
                address = (await response.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                page = BrowserPage(socket)
                reader = asyncio.create_task(page.read())
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                yield page
                await socket.close()
                await reader
    finally:
        process.terminate()
        await process.wait()
        if drain is not None:
            await drain
