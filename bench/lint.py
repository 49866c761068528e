"""Measure `fairlead lint` on generated Go sources of several sizes: `python bench/lint.py [--lines NUMBER]...`.

The sources are an operator with many controllers: each file has a type, helpers that send requests, and functions that
call helpers of other packages. One process does all the work, so the figures are those of one core.
"""

import argparse
import tempfile
import time
from pathlib import Path

from fairlead.tools.lint.engine import lint

SIZES = (10_000, 50_000, 100_000, 200_000, 400_000)
LIMIT = 5.0  # seconds of CPU for 100,000 lines
FILES_IN_A_PACKAGE = 20
HEAD = """package {package}

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type Order{n} struct {{
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   Order{n}Spec
	Status Order{n}Status
}}

type Order{n}Spec struct{{ Size int }}

type Order{n}Status struct {{
	Phase      string
	Conditions []metav1.Condition
}}

type Reconciler{n} struct{{ client.Client }}
"""
REQUESTS = """
func (r *Reconciler{n}) sync{m}(ctx context.Context, order *Order{n}) error {{
	base := order.DeepCopy()
	if controllerutil.AddFinalizer(order, "shop.example.com/cleanup") {{
		if err := r.Patch(ctx, order, client.MergeFrom(base)); err != nil {{
			return err
		}}
	}}
	if order.Status.Phase == "Ready" {{
		return nil
	}}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {{
		current := &Order{n}{{}}
		if err := r.Get(ctx, client.ObjectKeyFromObject(order), current); err != nil {{
			return client.IgnoreNotFound(err)
		}}
		current.Status.Phase = "Ready"
		err := r.Status().Update(ctx, current)
		if apierrors.IsNotFound(err) {{
			return nil
		}}
		return err
	}})
}}

func (r *Reconciler{n}) Reconcile{m}(ctx context.Context, order *Order{n}) error {{
	if order.Spec.Size == 0 {{
		return nil
	}}
	return r.sync{m}(ctx, order)
}}
"""
COMPUTATION = """
func compute{n}x{m}(sizes []int, limit int) (int, error) {{
	total := 0
	for index, size := range sizes {{
		switch {{
		case size > limit:
			total += limit
		case size < 0:
			continue
		default:
			total += size * index
		}}
	}}
	return total, nil
}}
"""
COMPUTATIONS_PER_REQUEST = 8  # most functions of an operator send no requests


def write_sources(folder, lines):
    """Write a Go module with at least so many lines, and return their number."""
    (folder / "go.mod").write_text("module example.com/shop\n")
    written = number = 0
    while written < lines:
        package = f"shop{number // FILES_IN_A_PACKAGE}"
        parts = [HEAD.format(package=package, n=number)]
        for m in range(4):
            parts.append(REQUESTS.format(n=number, m=m))
            parts += [COMPUTATION.format(n=number, m=m * 100 + k) for k in range(COMPUTATIONS_PER_REQUEST)]
        text = "".join(parts)
        path = folder / package / f"order{number}.go"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        written += text.count("\n")
        number += 1
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, action="append", help=f"sizes to measure; the default is {SIZES}")
    print(f"{'lines':>8} {'findings':>9} {'CPU':>8} {'per 100,000 lines':>18}")
    for size in parser.parse_args().lines or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            lines = write_sources(Path(folder), size)
            start = time.process_time()
            report = lint(Path(folder))
            seconds = time.process_time() - start
        rate = seconds / lines * 100_000
        verdict = "" if rate < LIMIT else f"  more than {LIMIT:g} s"
        print(f"{lines:>8} {len(report.findings):>9} {seconds:>6.2f} s {rate:>16.2f} s{verdict}", flush=True)


if __name__ == "__main__":
    main()
