"""`fairlead envtest`: print a folder for KUBEBUILDER_ASSETS, so that test suites run on the embedded server."""

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
def envtest(output: Path | None, layout: str) -> None:
    """Print a folder with etcd, kube-apiserver and kubectl that run the embedded server (Kubernetes 1.36).

    \b
    export KUBEBUILDER_ASSETS=$(fairlead envtest)
    go test ./...

    FAIRLEAD_CONTROLLERS=gc,namespace in the environment of the suite adds a garbage collector and the deletion of
    namespaces, which envtest does not have.
    """
    from fairlead.testing.envtest import folder

    target = folder.default_folder() if output is None else output.absolute()
    if output is not None and layout == "k8s":
        target = target / "k8s" / f"{folder.VERSION}-{folder.platform_name()}"
    try:
        kubectl = folder.write_folder(target)
    except OSError as error:
        raise _CannotWrite(
            f"cannot write {error.filename or target}: {error.strerror}; choose another --output"
        ) from None
    if not kubectl:
        click.echo("no kubectl was found: the folder has none, which most suites do not need", err=True)
    click.echo(target)
