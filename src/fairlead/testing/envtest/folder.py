"""Write the folder with the executables `etcd`, `kube-apiserver` and `kubectl` that KUBEBUILDER_ASSETS names."""

import hashlib
import os
import platform
import shlex
import shutil
import site
import sys
from pathlib import Path
from typing import Final

import fairlead
from fairlead.testing import real
from fairlead.testing.envtest.versions import VERSION

_ETCD: Final = """\
#!/bin/sh
# Holds the state of fairlead's embedded Kubernetes API server. Written by `fairlead envtest`.
case "$1" in
-h|--help|help)
  echo 'Usage: etcd [flags]
  Holds the state of the embedded Kubernetes API server of fairlead. It is not etcd.
  --listen-client-urls URL
    The port at which kube-apiserver finds it, and /health answers. It listens on 127.0.0.1 only.
  --unsafe-no-fsync true
    Accepted. The state is in memory.'
  exit 0;;
-version|--version|version) echo 'etcd Version: 3.6.0 (fairlead {version})'; exit 0;;
esac
{path}exec {python} -P -c 'from fairlead.testing.envtest.etcd import main; main()' "$@"
"""

_APISERVER: Final = """\
#!/bin/sh
# Starts fairlead's embedded Kubernetes API server in the etcd of this folder. Written by `fairlead envtest`.
case "$1" in
-h|--help|help)
  echo 'Usage: kube-apiserver [flags]
  Serves the API of Kubernetes {kubernetes} by the embedded server of fairlead. The etcd of this folder has the state.
  Flags: those of kube-apiserver. Flags without an effect are reported on the standard error.'
  exit 0;;
--version|--version=true) echo 'Kubernetes v{kubernetes}'; exit 0;;
esac
exec {python} -I -S {apiserver} "$@"
"""


def default_folder() -> Path:
    """Return the folder in the user's cache for this interpreter and this installation of fairlead."""
    installation = hashlib.sha256(f"{sys.executable} {_sources()} {fairlead.__version__}".encode()).hexdigest()[:8]
    return real.cache_folder().parent.parent / "envtest" / installation / "k8s" / f"{VERSION}-{platform_name()}"


def platform_name() -> str:
    """Return the platform in the form of envtest's folders, for example linux-amd64."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{platform.system().lower()}-{machine}"


def write_folder(folder: Path) -> str:
    """Write the executables. Return the path of the kubectl that the folder links to, or "" if none was found.

    Guarantees: each file is replaced at once, so test suites that run at the same time find complete ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = str(_sources())
    # Packages that are installed are found without a path.
    path = "" if sources in site.getsitepackages() else f"PYTHONPATH={shlex.quote(sources)} "
    values = {
        "python": shlex.quote(sys.executable),
        "path": path,
        "apiserver": shlex.quote(str(Path(__file__).with_name("apiserver.py"))),
        "version": fairlead.__version__,
        "kubernetes": VERSION,
    }
    _replace(folder / "etcd", _ETCD.format(**values))
    _replace(folder / "kube-apiserver", _APISERVER.format(**values))
    return _link_kubectl(folder / "kubectl")


def _sources() -> Path:
    return Path(fairlead.__file__).parent.parent


def _replace(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text)
    scratch.chmod(0o755)
    scratch.replace(path)


def _link_kubectl(link: Path) -> str:
    candidates = [real.cache_folder() / "kubectl", Path(shutil.which("kubectl") or "/nonexistent")]
    found = next((path for path in candidates if os.access(path, os.X_OK) and path.parent != link.parent), None)
    if found is None:
        return ""
    scratch = link.with_name(f".kubectl.{os.getpid()}")
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(found)
    scratch.replace(link)
    return str(found)
