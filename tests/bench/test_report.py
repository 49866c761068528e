"""Tests that the page shows the results, and that incomplete results do not change it."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def edit_result(results, section, edit):
    path = results / f"{section}.json"
    result = json.loads(path.read_text())
    edit(result)
    path.write_text(json.dumps(result))


def test_page_and_plots_match_the_results(page):
    import report

    assert report.main() == []
    assert page.read_text() == (DOCS / "benchmarks.md").read_text()
    plots = {path.name: path.read_text() for path in report.PLOTS.iterdir()}
    assert plots == {path.name: path.read_text() for path in (DOCS / "benchmarks").iterdir()}
    assert all(f"(benchmarks/{name})" in page.read_text() for name in plots)


def test_every_section_is_on_the_page_with_its_date_and_load(page):
    import report

    for name in report.SECTIONS:
        body = re.search(f"<!-- bench {name} -->(.*?)<!-- /bench {name} -->", page.read_text(), re.DOTALL)[1]
        if (report.recording.RESULTS / f"{name}.json").exists():
            assert re.search(r"Measured \d{4}-\d\d-\d\d on .*, load ", body), name


def test_incomplete_section_stays_unchanged_and_is_reported(page, results, capsys):
    import report

    before = page.read_text()
    edit_result(results, "clients", lambda result: result["rows"].pop("overhead"))
    edit_result(results, "suite", lambda result: result["rows"]["embedded"].update({"wall s": 1234.0}))
    assert report.main() == ["clients"]
    assert "bench/results/clients.json is incomplete, so its section is unchanged: KeyError('overhead')" in (
        capsys.readouterr().out
    )
    after = page.read_text()
    assert after.partition("<!-- /bench clients -->")[0] == before.partition("<!-- /bench clients -->")[0]
    assert "| embedded | 1,234 |" in after


@pytest.mark.parametrize("section", ["servers", "many", "suite", "contention"])
def test_section_without_a_real_server_shows_the_embedded_one_only(page, results, section):
    import report

    edit_result(results, section, lambda result: result["rows"].pop("real"))
    assert report.main() == []
    body = page.read_text().partition(f"<!-- bench {section} -->")[2].partition(f"<!-- /bench {section} -->")[0]
    assert "| embedded" in body
    assert "better by" not in body


def test_values_too_small_to_compare_have_no_ratio(page, results):
    import report

    edit_result(
        results, "many", lambda result: result["rows"]["embedded"].update({"list in pages of 500, processor s": 0.0})
    )
    assert report.main() == []
    assert re.search(r"\| list in pages of 500, processor s \| 0.00 \| [\d.]+ \|  \|", page.read_text())


def test_run_replaces_earlier_results(page, results):
    from support import recording

    recording.save("suite", {"part": "p", "rows": {"embedded": {"wall s": 1.0}}})
    recording.save("suite", {"rows": {"real": {"wall s": 2.0}}})
    assert recording.load("suite")["rows"] == {"embedded": {"wall s": 1.0}, "real": {"wall s": 2.0}}


def test_partial_run_keeps_the_other_results_and_is_marked(page, results):
    import report
    from support import recording

    edit_result(results, "suite", lambda result: result["run"].update({"date": "2001-02-03"}))
    recording.save("suite", {"rows": {"real": {"wall s": 4321.0}}}, is_partial=True)
    assert set(recording.load("suite")["rows"]) == {"embedded", "real"}
    report.main()
    assert re.search(r"Measured 2001-02-03 on .* Part of it was measured separately on 20\d\d-", page.read_text())


def test_interrupted_save_keeps_the_earlier_results(results, tmp_path, monkeypatch):
    from support import recording

    path = tmp_path / "page.md"
    recording.write(path, "whole")
    monkeypatch.setattr(Path, "write_text", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recording.write(path, "other")
    assert path.read_text() == "whole\n"


def test_interrupted_bench_lists_what_remains(results, monkeypatch):
    import run

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measure", interrupted)
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match=r"interrupted: .* is in bench/results"):
        run.main()
