"""Tests that `fairlead run --dev` reloads the operator after a change, and waits for a change after an error."""

import asyncio
import sys

import pytest

from fairlead.api.world import World
from fairlead.cli import dev
from fairlead.cli.load import load
from fairlead.server.app import Server

OPERATOR = "import fairlead as fl\nop = fl.Operator('{name}')\n"
RAISING = OPERATOR + "@op.startup\ndef connect(resources): raise ConnectionRefusedError('no database')\n"
MISDECLARED = OPERATOR + "@op.cleanup(fl.ConfigMap)\ndef leave(obj, ctx): ...\n"


@pytest.fixture
def target(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # restored after the test
    path = tmp_path / "mine.py"
    path.write_text(OPERATOR.format(name="one"))
    return path


def save(path, text):
    """Save the file as an editor does: replace it with a new file."""
    temporary = path.with_suffix(".swp")
    temporary.write_text(text)
    temporary.replace(path)


async def wait_for_change(files):
    await asyncio.wait_for(files.wait_for_change(), 60)


async def test_change_while_loading_is_detected(target):
    files = dev.SourceFiles(str(target))

    def load_operator():
        operator = load(str(target))
        save(target, OPERATOR.format(name="two"))
        return operator

    assert files.load(load_operator).name == "one"
    await wait_for_change(files)
    assert files.load(lambda: load(str(target))).name == "two"


async def test_changes_of_other_packages_are_ignored_and_stay_loaded(target):
    packages = target.parent / "venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "third_party.py").write_text("")
    sys.path.insert(0, str(packages))
    try:
        import third_party

        files = dev.SourceFiles(str(target))
        files.load(lambda: load(str(target)))
        assert sys.modules.pop("third_party") is third_party
    finally:
        sys.path.remove(str(packages))
    (packages / "new.py").write_text("")
    (target.parent / ".hidden").mkdir()
    (target.parent / ".hidden" / "new.py").write_text("")
    changing = asyncio.ensure_future(wait_for_change(files))
    await asyncio.sleep(0.01)  # it has checked the files by then
    assert not changing.done()
    (target.parent / "new.py").write_text("")
    await changing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RAISING.format(name="two"), "hook connect failed: ConnectionRefusedError: no database; waiting"),
        (MISDECLARED.format(name="two"), "declare both; waiting"),
        ("def (", "SyntaxError: invalid syntax"),
        (None, "there is no file"),
    ],
    ids=["a hook that raises", "a wrong declaration", "a syntax error", "a file that vanishes"],
)
async def test_error_in_the_file_is_logged_until_the_next_change(target, text, message, monkeypatch, caplog):
    monkeypatch.setattr(dev, "POLL_INTERVAL", 0.01)
    world = World()
    server, files = Server(world), dev.SourceFiles(str(target))

    def load_operator():
        return load(str(target))

    async def next_operator(operator):
        return await dev.run_until_change(operator, load_operator, files, server.transport(), world, {})

    async def wait_for_log():
        while message not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    running = asyncio.create_task(next_operator(files.load(load_operator)))
    target.unlink() if text is None else save(target, text)
    if text and "two" in text:  # it loads, and fails when it runs
        running = asyncio.create_task(next_operator(await running))
    await asyncio.wait_for(wait_for_log(), 60)
    save(target, OPERATOR.format(name="three"))
    assert (await asyncio.wait_for(running, 60)).name == "three"
