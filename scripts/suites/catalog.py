"""The suites of `make suite-NAME`: where their sources come from, and how their tests run and report."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Results = dict[str, str]  # test -> passed, failed or skipped
SECONDS = 1200.0


class SuiteError(Exception):
    """The suite cannot run. The message names the remedy."""


def call(command: list[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output. Raises SuiteError if it fails."""
    program = shutil.which(str(command[0]))
    if program is None:
        raise SuiteError(f"{command[0]} was not found: install it first")
    arguments = [program, *map(str, command[1:])]
    completed = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if completed.returncode:
        lines = (completed.stderr or completed.stdout).strip().splitlines()
        raise SuiteError(f"{' '.join(arguments[:3])} failed: {' | '.join(lines[-5:])}")
    return completed.stdout


def run_tests(command: list[str | Path], folder: Path, environment: Mapping[str, str]) -> str:
    """Run the tests and return their output. Failed tests are not an error here."""
    try:
        completed = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode("utf-8", "replace") if isinstance(error.stdout, bytes) else ""
    return completed.stdout


@dataclass(frozen=True)
class Suite:
    """One suite. `access` says how it finds a server: `assets` (KUBEBUILDER_ASSETS) or `kubeconfig` (KUBECONFIG)."""

    title: str
    access: str = "kubeconfig"

    def prepare(self, cache: Path, checkout: Path | None) -> Path:
        """Put the sources into the cache, build what can be built, and return the folder of the sources."""
        raise NotImplementedError

    def run(self, folder: Path, environment: Mapping[str, str]) -> Results:
        """Run all tests once."""
        raise NotImplementedError


@dataclass(frozen=True)
class ControllerRuntime(Suite):
    """The packages of controller-runtime whose tests start envtest."""

    version: str = "v0.25.2"

    def prepare(self, cache: Path, checkout: Path | None) -> Path:
        folder = checkout or cache / f"controller-runtime-{self.version}"
        if not folder.exists():
            module = f"sigs.k8s.io/controller-runtime@{self.version}"
            source = json.loads(call(["go", "mod", "download", "-json", module], cache))["Dir"]
            shutil.copytree(source, folder, copy_function=shutil.copyfile)
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.suffix == ".sh" else 0o644)
        for package in self._find_packages(folder):
            if not (package / "suite.test").exists():
                print(f"building the tests of {package.relative_to(folder)}", flush=True)
                call(["go", "test", "-c", "-o", package / "suite.test", "."], package)
        return folder

    def run(self, folder: Path, environment: Mapping[str, str]) -> Results:
        results: Results = {}
        for package in self._find_packages(folder):
            name = str(package.relative_to(folder))
            with tempfile.TemporaryDirectory() as scratch:
                report = Path(scratch) / "report.json"
                run_tests(["./suite.test", f"-ginkgo.json-report={report}"], package, environment)
                if not report.exists():
                    results[name] = "failed"
                    continue
                for suite in json.loads(report.read_text()):
                    results |= _read_ginkgo_specs(name, suite.get("SpecReports") or [])
        return results

    def _find_packages(self, folder: Path) -> list[Path]:
        tests = (
            path for path in folder.glob("pkg/**/*_test.go") if re.search("envtest|controlplane", path.read_text())
        )
        return sorted({path.parent for path in tests})


def _read_ginkgo_specs(package: str, specs: list[dict]) -> Results:
    results: Results = {}
    for spec in specs:
        if spec["LeafNodeType"] == "It":
            texts = [*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]
            state = spec["State"]
            name = f"{package}: {' '.join(texts)}"
            while name in results:  # generated specs may share a name
                name += "'"
            results[name] = state if state in ("passed", "skipped", "pending") else "failed"
    return results


# The published crate leaves out this development dependency, because it depends on the crate itself.
_KUBE_DEPENDENCY = """
[dev-dependencies.kube]
version = "{version}"
features = ["derive", "client", "ws"]

[patch.crates-io]
kube-client = {{ path = "." }}
"""


@dataclass(frozen=True)
class KubeRs(Suite):
    """The tests of the crate kube-client that need a cluster."""

    version: str = "5.0.0"

    def prepare(self, cache: Path, checkout: Path | None) -> Path:
        folder = checkout / "kube-client" if checkout else cache / f"kube-client-{self.version}"
        if not folder.exists():
            with tempfile.TemporaryDirectory() as scratch:
                probe = Path(scratch)
                (probe / "lib.rs").touch()
                (probe / "Cargo.toml").write_text(
                    '[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
                    f'[dependencies]\nkube-client = "={self.version}"\n'
                )
                call(["cargo", "vendor", "--quiet", cache / "vendor"], probe)
            shutil.copytree(cache / "vendor" / "kube-client", folder)
            (folder / "Cargo.lock").unlink(missing_ok=True)  # A registry mirror may lag behind its versions.
            with (folder / "Cargo.toml").open("a") as file:
                file.write(_KUBE_DEPENDENCY.format(version=self.version))
            shutil.rmtree(cache / "vendor")
        print("building the tests of kube-client", flush=True)
        call(["cargo", "test", "--lib", "--all-features", "--no-run", "--target-dir", cache / "target"], folder)
        return folder

    def run(self, folder: Path, environment: Mapping[str, str]) -> Results:
        target = folder.parent / "target"
        command = ["cargo", "test", "--lib", "--all-features", "--target-dir", target, "--", "--ignored"]
        output = run_tests([*command, "--test-threads=2"], folder, environment)
        states = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
        found = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", output, re.MULTILINE)
        return {name: states[state] for name, state in found}


@dataclass(frozen=True)
class PythonSuite(Suite):
    """Tests of a Python package: those of its source distribution, or of a checkout."""

    package: str = ""
    version: str = ""
    requirements: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    is_published: bool = True  # whether the source distribution has the tests

    def prepare(self, cache: Path, checkout: Path | None) -> Path:
        folder = checkout or cache / f"{self.package}-{self.version}"
        if not folder.exists():
            if not self.is_published:
                raise SuiteError(f"{self.package} does not publish its tests: name a checkout with CHECKOUT=FOLDER")
            pin = f"{self.package}=={self.version}"
            call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", pin], cache)
            shutil.unpack_archive(cache / f"{folder.name}.tar.gz", cache, filter="data")
        python = _find_python(folder)
        if not python.exists():
            print(f"installing {self.package} and its test requirements", flush=True)
            call([sys.executable, "-m", "venv", python.parent.parent], cache)
            call([python, "-m", "pip", "install", "-q", folder, "pytest-timeout", *self.requirements], cache)
        return folder

    def run(self, folder: Path, environment: Mapping[str, str]) -> Results:
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "junit.xml"
            # Some tests wait for a Pod to run, for ever: neither server has nodes.
            options = ["-q", "-p", "no:cacheprovider", "--timeout=15", f"--junitxml={report}"]
            clean = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
            output = run_tests([_find_python(folder), "-m", "pytest", *options, *self.arguments], folder, clean)
            if not report.exists():
                raise SuiteError(f"pytest wrote no report: {' | '.join(output.strip().splitlines()[-3:])}")
            return _read_junit(report)


def _find_python(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.venv") / "bin" / "python"


def _read_junit(report: Path) -> Results:
    results: Results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        tags = {child.tag for child in case}
        state = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        results[f"{case.get('classname')}.{case.get('name')}"] = state
    return results


_KOPF = ("certbuilder", "certvalidator", "freezegun", "kmock", "looptime", "pyngrok")

SUITES: dict[str, Suite] = {
    "controller-runtime": ControllerRuntime("controller-runtime 0.25.2, packages with envtest", "assets"),
    "kube-rs": KubeRs("kube-rs: kube-client 5.0.0, tests that need a cluster"),
    "kubernetes-python": PythonSuite(
        "kubernetes-client/python, e2e and dynamic",
        package="kubernetes",
        version="checkout",
        requirements=("pytest",),
        arguments=("kubernetes/e2e_test", "kubernetes/dynamic"),
        is_published=False,
    ),
    "kopf": PythonSuite(
        "kopf 1.45.2, e2e examples",
        package="kopf",
        version="1.45.2",
        requirements=("pytest", "pytest-asyncio", "pytest-aiohttp", "pytest-mock", *_KOPF),
        arguments=("tests/e2e",),
    ),
    "kubernetes-asyncio": PythonSuite(
        "kubernetes_asyncio, e2e",
        package="kubernetes_asyncio",
        version="36.1.0",
        requirements=("pytest",),
        arguments=("kubernetes_asyncio/e2e_test",),
        is_published=False,
    ),
    "lightkube": PythonSuite(
        "lightkube, e2e",
        package="lightkube",
        version="checkout",
        requirements=("pytest<9", "pytest-asyncio"),
        arguments=("e2e-tests",),
        is_published=False,
    ),
}
