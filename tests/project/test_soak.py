"""Tests that the soak fails if a figure grows, and passes if figures only fluctuate."""

import random
import runpy
from pathlib import Path

import pytest

SOAK = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "soak.py"))
RESTING = {"tasks": 48, "descriptors": 80, "traced MB": 28.0, "resident MB": 135.0}


def samples(grows=None, by=0.0, count=24):
    """Return figures that fluctuate by 2 %. The figure `grows` grows by `by` from the first to the last sample."""
    rng = random.Random(0)
    return [
        tuple(
            value * rng.uniform(0.98, 1.02) + (by * number / (count - 1) if name == grows else 0)
            for name, value in RESTING.items()
        )
        for number in range(count)
    ]


def test_fluctuating_figures_pass():
    assert SOAK["verdict"](samples(), [])


@pytest.mark.parametrize(("figure", "by"), [("tasks", 10), ("descriptors", 16), ("traced MB", 4), ("resident MB", 20)])
def test_growing_figure_fails(figure, by, capsys):
    assert not SOAK["verdict"](samples(figure, by), [])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "GREW" in line] == [figure.split()[0]]


def test_wrong_cluster_state_fails_without_growth():
    assert not SOAK["verdict"](samples(), ["ConfigMap t1-0"])


def test_single_outlier_passes():
    spiked = samples()
    spiked[-1] = tuple(2 * figure for figure in spiked[-1])
    assert SOAK["verdict"](spiked, [])
