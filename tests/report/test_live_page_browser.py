"""Tests of the live page in chromium, if it is installed: with 1 and 10,000 objects, on narrow screens, hostile text.

`FAIRLEAD_SCREENSHOTS=docs/images pytest tests/report/test_live_page_browser.py -k screenshot` takes the pictures of the
documentation again.
"""

import contextlib
import os
from pathlib import Path

import browser
import pytest

import fairlead as fl
from fairlead.api.history import ENDED, READ, SKIPPED, WOKEN, WRITTEN, Cause, FieldChange, ObjectRef
from fairlead.client.client import Client
from fairlead.report.live.server import serve_page
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed: apt install chromium")

Website = fl.kind("example.com/v1", "Website")
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>\u202e\x1b[31m'\"&"

MEASURE = """(() => {
const luminance = color => { const v = color.match(/[0-9.]+/g).slice(0, 3).map(n => n / 255)
    .map(n => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] + 0.05; };
const paper = each => { while (each) { const color = getComputedStyle(each).backgroundColor;
  if (color !== "rgba(0, 0, 0, 0)") return color; each = each.parentElement; } return "rgb(255, 255, 255)"; };
const texts = Array.from(document.querySelectorAll("main *, header *")).filter(each => each.checkVisibility() &&
  Array.from(each.childNodes).some(node => node.nodeType === 3 && node.textContent.trim()));
const contrast = each => { const [a, b] = [luminance(getComputedStyle(each).color), luminance(paper(each))];
  return Math.max(a, b) / Math.min(a, b); };
return { page: document.documentElement.scrollWidth, window: innerWidth, texts: texts.length,
  contrast: Math.min(...texts.map(contrast)), elements: document.querySelectorAll("*").length,
  unlabelled: Array.from(document.querySelectorAll("input, select, button")).filter(
    each => !each.labels?.length && !each.textContent.trim()).length }; })()"""


def record_pass(history, name, number=0, text="Hello, world", outcome="success", message="", namespace="default"):
    """Emit the records of one pass."""
    ref = ObjectRef("Website", namespace, name, "example.com/v1")
    child = ObjectRef("Deployment", namespace, name, "apps/v1")
    token = history.enter_pass(f"{number:08x}", "websites/website", ref)
    cause = (
        Cause("child", "modified", child, "7")
        if number % 3
        else Cause("primary", "modified", ref, "7", changed=("generation",))
    )
    history.record(WOKEN, "reconcile", object=ref, causes=(cause,))
    history.record(READ, "get", object=ref, source="cache", outcome="found", version="7")
    fields = (
        FieldChange("spec.template.spec.containers[name=web].image", "registry.example/web:1.4.0", f"web:{text}"),
        FieldChange("spec.replicas", 2, 3),
    )
    history.record(WRITTEN, "apply", object=child, outcome="changed", version="8", version_before="7", fields=fields)
    history.record(SKIPPED, "patch", object=ref, subresource="status")
    is_error = outcome == "error"
    history.record(
        ENDED,
        "reconcile",
        object=ref,
        outcome=outcome,
        reason="ConnectionError" if is_error else "Reconciled",
        message=message,
        seconds=0.0042,
        next_look=4.2 if is_error else None,
    )
    history.exit_pass(token)


@contextlib.asynccontextmanager
async def page_in_browser(folder, objects):
    """Serve the page of an operator that knows this many objects, and open a browser."""
    world = fl.World()
    server = Server(world)
    await install_missing(Client(server.transport(), world), [Website])
    op = fl.Operator("websites")

    @op.reconcile(Website)
    async def serve(obj, ctx): ...

    pages = []
    subscribe = serve_page("0")
    async with op.running(
        server.transport(), world, subscribers=[lambda running: pages.append(subscribe(running))]
    ) as running:
        await running.wait_until_idle()
        for number in range(objects):
            outcome = "error" if number % 10 == 7 else "success"
            message = "the registry does not answer" if outcome == "error" else ""
            record_pass(running.history, f"site-{number:05}", number, "1.5.0", outcome, message)
        async with browser.open_browser(folder) as page:
            yield page, pages[0].url, running.history


def take_screenshot(name, tmp_path):
    folder = os.environ.get("FAIRLEAD_SCREENSHOTS")
    return (Path(folder) if folder else tmp_path) / name


@pytest.mark.parametrize("objects", [1, 10_000])
async def test_screenshot_and_size_of_the_page(tmp_path, objects):
    async with page_in_browser(tmp_path, objects) as (page, url, _):
        await page.open(url, width=1000, height=560)
        measures = await page.evaluate(MEASURE)
        assert measures["elements"] < 1000  # With 10,000 objects too: the server sends one page of the list.
        assert measures["unlabelled"] == 0
        text = await page.evaluate("document.querySelector('#objects p').textContent")
        assert text.startswith("1 object." if objects == 1 else "10,000 objects, 1 to 50 shown.")
        path = take_screenshot(f"live-page-{objects}.png", tmp_path)
        await page.screenshot(path)
        assert 5_000 < path.stat().st_size < 150_000
        if objects == 1:
            await page.open(f"{url}object?kind=Website&name=site-00000", width=1000, height=560)
            path = take_screenshot("live-page-object.png", tmp_path)
            await page.screenshot(path)
            assert 5_000 < path.stat().st_size < 150_000
        assert {address.split("/")[2] for address in page.requests} == {url.split("/")[2]}
        assert page.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 720, 1400])
async def test_page_fits_every_width_with_enough_contrast(tmp_path, width, scheme):
    async with page_in_browser(tmp_path, 60) as (page, url, history):
        record_pass(history, "n" * 253, 999, "x" * 400, "error", "y" * 500)
        for path in ("", f"object?kind=Website&name={'n' * 253}", "object?kind=Website&name=site-00007"):
            await page.open(url + path, width=width, scheme=scheme)
            measures = await page.evaluate(MEASURE)
            assert measures["page"] <= measures["window"] == width
            assert measures["texts"] > 10
            assert measures["contrast"] >= 4.5


async def test_search_finds_one_of_ten_thousand_objects_and_pages_continue(tmp_path):
    async with page_in_browser(tmp_path, 10_000) as (page, url, _):
        await page.open(url)
        await page.evaluate("document.getElementById('search').focus()")
        await page.type("site-04321")
        await page.wait_for("document.querySelectorAll('#objects tbody tr').length === 1")
        assert await page.evaluate("document.activeElement.id") == "search"
        assert await page.evaluate("location.search") == "?search=site-04321"
        assert "site-04321" in await page.evaluate("document.querySelector('#objects tbody').textContent")
        await page.evaluate("document.querySelector('#objects tbody a').click()")
        await page.wait_for("document.querySelector('#object details[open]')")
        assert "Website default/site-04321" in await page.evaluate("document.querySelector('h2').textContent")
        await page.open(f"{url}?state=failing&offset=50")
        text = await page.evaluate("document.querySelector('#objects p').textContent")
        assert text.startswith("1,000 objects, 51 to 100 shown.")
        assert await page.evaluate("document.getElementById('previous').textContent") == "Previous page"


async def test_page_updates_itself_until_it_is_paused_with_the_keyboard(tmp_path):
    async with page_in_browser(tmp_path, 1) as (page, url, history):
        await page.open(url)
        record_pass(history, "second", 2)
        await page.wait_for("document.querySelectorAll('#objects tbody tr').length === 2")
        await page.evaluate("document.getElementById('pause').focus()")
        await page.press("Enter")
        await page.wait_for("document.getElementById('status').textContent === 'Paused'")
        assert await page.evaluate("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
        requests = len(page.requests)
        record_pass(history, "third", 3)
        await page.evaluate("new Promise(resolve => setTimeout(resolve, 2500))")  # longer than the interval
        assert len(page.requests) == requests
        await page.press("Enter")
        await page.wait_for("document.querySelectorAll('#objects tbody tr').length === 3")


async def test_opened_and_closed_passes_and_the_focus_survive_an_update(tmp_path):
    async with page_in_browser(tmp_path, 0) as (page, url, history):
        record_pass(history, "a", 1)
        record_pass(history, "a", 2)
        await page.open(f"{url}object?kind=Website&name=a")
        await page.evaluate("document.querySelector('#pass-00000002 summary').click()")
        await page.evaluate("document.querySelector('#pass-00000001 summary').click()")
        await page.evaluate("document.querySelector('#pass-00000001 summary').focus()")
        record_pass(history, "a", 3)
        await page.wait_for("document.getElementById('pass-00000003')")
        states = "Array.from(document.querySelectorAll('details'), each => [each.id.at(-1), each.open])"
        assert await page.evaluate(states) == [["3", True], ["2", False], ["1", True]]
        assert await page.evaluate("document.activeElement.parentElement.id") == "pass-00000001"


async def test_operator_that_stopped_is_reported(tmp_path):
    async with browser.open_browser(tmp_path / "browser") as page:
        async with page_in_browser(tmp_path / "other", 1) as (_, url, _):
            await page.open(url)
        await page.wait_for("document.getElementById('status').textContent.startsWith('The operator does not answer')")
        assert await page.evaluate("document.querySelectorAll('#objects tbody tr').length") == 1


async def test_text_of_objects_cannot_run_scripts_or_change_the_page(tmp_path):
    async with page_in_browser(tmp_path, 0) as (page, url, history):
        record_pass(history, HOSTILE, 1, HOSTILE, "error", HOSTILE, namespace=HOSTILE)
        await page.open(f"{url}?search=%3Cimg")
        assert await page.evaluate("document.querySelectorAll('#objects tbody tr').length") == 1
        await page.evaluate("document.querySelector('#objects tbody a').click()")
        await page.wait_for("document.querySelector('#object details[open]')")
        record_pass(history, HOSTILE, 2, HOSTILE, "error", HOSTILE, namespace=HOSTILE)
        await page.wait_for("document.getElementById('pass-00000002')")  # after an update by the script too
        assert await page.evaluate("document.querySelectorAll('img, main script, [onerror]').length") == 0
        assert "hacked" not in (await page.evaluate("document.title")).split("·")[-1]
        assert await page.evaluate("document.title") != "hacked"
        text = await page.evaluate("document.body.textContent")
        assert "<img src=x" in text
        assert not {"\u202e", "\x1b"} & set(text)
        assert {address.split("/")[2] for address in page.requests} == {url.split("/")[2]}
        assert page.errors == []


async def test_page_works_without_scripts(tmp_path):
    async with page_in_browser(tmp_path, 60) as (page, url, _):
        await page.call("Emulation.setScriptExecutionDisabled", value=True)
        await page.open(f"{url}?search=site-00042")
        await page.call("Emulation.setScriptExecutionDisabled", value=False)
        assert await page.evaluate("document.querySelectorAll('#objects tbody tr').length") == 1
        assert await page.evaluate("document.getElementById('pause').hidden") is True
