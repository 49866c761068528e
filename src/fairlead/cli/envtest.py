"""`fairlead envtest`: print a folder for KUBEBUILDER_ASSETS, so that test suites run on the embedded server."""

import os
from pathlib import Path

import click


class _CannotWrite(click.ClickException):
    exit_code = 2


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the executables to this directory instead of one in the user's cache.",
)
@click.option(
    "--layout",
    type=click.Choice(["flat", "k8s"]),
    default="flat",
    show_default=True,
    help="k8s writes to DIR/k8s/VERSION-PLATFORM, where setup-envtest and fabric8's kube-api-test look.",
)
@click.option(
    "--kubernetes",
    default="",
    metavar="VERSION",
    help="The version that the suite expects. Another one than 1.36 gives a warning.",
)
def envtest(output: Path | None, layout: str, kubernetes: str) -> None:
    """Print a folder with etcd, kube-apiserver and kubectl that run the embedded server (Kubernetes 1.36).

    \b
    export KUBEBUILDER_ASSETS=$(fairlead envtest)
    go test ./...

    FAIRLEAD_CONTROLLERS=gc,namespace in the environment of the suite adds a garbage collector and the deletion of
    namespaces, which envtest does not have.
    """
    from fairlead.testing.envtest import folder, versions

    target = folder.default_folder() if output is None else output.absolute()
    if output is not None and layout == "k8s":
        target = target / "k8s" / f"{versions.VERSION}-{folder.platform_name()}"
    try:
        kubectl = folder.write_folder(target)
    except OSError as error:
        raise _CannotWrite(
            f"cannot write {error.filename or target}: {error.strerror}; choose another --output"
        ) from None
    if not kubectl:
        click.echo("no kubectl was found: the folder has none, which most suites do not need", err=True)
    click.echo(f"these executables serve Kubernetes {versions.MINOR}, by the embedded server of fairlead", err=True)
    mismatch = versions.find_mismatch(kubernetes, "--kubernetes")
    for warning in [mismatch] if mismatch else versions.find_mismatches(os.environ):
        click.echo(f"warning: {warning}", err=True)
    click.echo(target)
