"""Tests of the demo's page in chromium, if it is installed: offline, light and dark, and on narrow screens."""

import json
import re
import shutil
import subprocess
import zlib
from html import escape, unescape
from struct import unpack

import pytest

from fairlead.api.history import ENDED, REQUEST, ObjectRef, Record
from fairlead.report import page
from fairlead.testing.demo.outcomes import Outcome

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: apt install chromium")

RECORDS = [
    *(
        Record(REQUEST, i / 1000, "operator", "PUT", path=f"/apis/g/v1/things/{i}", outcome="409" if i % 3 else "200")
        for i in range(3000)
    ),
    *(
        Record(
            ENDED,
            i / 10,
            "operator",
            "reconcile",
            ObjectRef("Thing", None, f"thing-{i}"),
            outcome="error" if i % 2 else "success",
        )
        for i in range(3000)
    ),
]
OLD = Outcome({("PUT", "things", 409): 2000}, [300.0], 5000, ["a plan"], ["thing-1"], RECORDS)
NEW = Outcome({("PATCH", "things", 200): 3}, [0.5], 50, [], [], RECORDS[:3:3])


@pytest.fixture(scope="module")
def text():
    return page.render({"things": (3000, {"old": OLD, "new": NEW})})


@pytest.fixture(scope="module")
def address(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(text, encoding="utf-8")
    assert path.stat().st_size < 100_000
    return path.as_uri()


def chromium(profile, *arguments):
    # The browser resolves no hostname, so the page cannot load anything.
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command = [CHROMIUM, *fixed, "--hide-scrollbars", f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=True).stdout


MEASURE = """<script>
const ratio = (a, b) => { const l = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(n => n / 255)
    .map(n => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] + 0.05; };
  const [x, y] = [l(a), l(b)]; return Math.max(x, y) / Math.min(x, y); };
const all = (what, of) => Array.from(document.querySelectorAll(what), of);
const paper = getComputedStyle(document.body).backgroundColor;
const measures = { paper,
  page: document.documentElement.scrollWidth, window: innerWidth,
  cells: all("th, td", cell => cell.getBoundingClientRect().right),
  boxes: all(".wide", box => box.getBoundingClientRect().right),
  scrolls: all(".wide:has(svg)", box => box.scrollWidth > box.clientWidth),
  contrast: Math.min(...all("h1, th, td, .key span, summary", e => ratio(getComputedStyle(e).color, paper))),
};
top.document.title = JSON.stringify(measures);
</script>"""
"""A script that measures the page. The page itself allows no scripts."""


def measure(profile, text, width, scheme):
    """Measure the page in a frame, because a window is at least 500 pixels wide."""
    path = profile / "measured.html"
    inner = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text) + MEASURE
    frame = f'<iframe width={width} height=900 style="border: 0" srcdoc="{escape(inner)}"></iframe>'
    path.write_text(f"<!doctype html><style>:root {{ color-scheme: light dark }}</style>{frame}", encoding="utf-8")
    preferred = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    dom = chromium(profile, *preferred, "--dump-dom", path.as_uri())
    return json.loads(unescape(re.search("<title>(.*?)</title>", dom)[1]))


def pixels(path):
    """Return the width, the height and the rows of a PNG that chromium wrote."""
    png_bytes, at, packed = path.read_bytes(), 8, b""
    while at < len(png_bytes):
        (length,), kind = unpack(">I", png_bytes[at : at + 4]), png_bytes[at + 4 : at + 8]
        if kind == b"IHDR":
            width, height, _, colour = unpack(">IIBB", png_bytes[at + 8 : at + 18])
        elif kind == b"IDAT":
            packed += png_bytes[at + 8 : at + 8 + length]
        at += 12 + length
    size = {2: 3, 6: 4}[colour]
    raw, stride, rows, above = zlib.decompress(packed), width * size, [], bytes(width * size)
    for row in range(height):
        filter_, line = raw[row * (stride + 1)], bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - size] if i >= size else 0
            up, corner = above[i], above[i - size] if i >= size else 0
            guess = {0: 0, 1: left, 2: up, 3: (left + up) // 2}.get(filter_)
            line[i] = (line[i] + (_paeth(left, up, corner) if guess is None else guess)) % 256
        rows.append([tuple(line[i : i + 3]) for i in range(0, stride, size)])
        above = bytes(line)
    return width, height, rows


def _paeth(left, up, corner):
    estimate = left + up - corner
    return min((left, up, corner), key=lambda value: abs(estimate - value))


def test_page_renders_two_timelines(address, tmp_path):
    dom = chromium(tmp_path, "--dump-dom", address)
    assert dom.count("<svg") == 2
    assert "<title>fairlead demo</title>" in dom
    assert "0.001 s PUT" in dom  # the tooltip of a mark


@pytest.mark.parametrize(
    ("scheme", "paper", "failed_colour", "width"),
    [("light", (255, 255, 255), (197, 48, 48), 500), ("dark", (22, 24, 28), (252, 129, 129), 1000)],
)
def test_page_follows_the_colour_scheme(address, tmp_path, scheme, paper, failed_colour, width):
    shot = tmp_path / "shot.png"
    preferred = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(tmp_path, *preferred, f"--window-size={width},520", f"--screenshot={shot}", address)
    wide, _, rows = pixels(shot)
    assert wide == width
    assert rows[0][0] == rows[-1][-1] == paper
    colours = {colour for row in rows for colour in row}
    assert failed_colour in colours  # failures have their own colour
    # The right margin next to the heading is empty: nothing overflows except boxes that scroll.
    assert {colour for row in rows[:80] for colour in row[-10:]} == {paper}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 950, 1400])
def test_page_fits_every_width_with_enough_contrast(text, tmp_path, width, scheme):
    measures = measure(tmp_path, text, width, scheme)
    assert measures["page"] <= measures["window"] == width
    assert len(measures["cells"]) == 30
    assert max(measures["cells"]) <= width
    assert max(measures["boxes"]) <= width
    assert measures["scrolls"] == [width < 800] * 2  # on narrow screens a timeline scrolls in its box
    assert measures["paper"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    assert measures["contrast"] >= 4.5
