"""`fairlead why`: show the last passes of a running operator over one object."""

import http.client
import json
from urllib.parse import urlencode, urlsplit

import click

from fairlead.api.errors import UserError
from fairlead.report.ui_port import DEFAULT_UI_PORT

TIMEOUT = 10.0
MAX_ANSWER = 32 * 1024 * 1024


@click.command("why")
@click.argument("kind")
@click.argument("name")
@click.option("-n", "--namespace", help="Needed if objects in several namespaces have this name.")
@click.option("--url", default=f"http://127.0.0.1:{DEFAULT_UI_PORT}", show_default=True, help="The operator's page.")
@click.option("--passes", type=click.IntRange(min=1), default=3, show_default=True, help="How many passes to print.")
@click.option(
    "--format", "--output", "-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(kind: str, name: str, namespace: str | None, url: str, passes: int, output: str) -> None:
    """Show why an operator did what it did to an object: its last passes, with causes, reads, writes and results.

    \b
    fairlead run greeter.py --ui             in one terminal
    fairlead why greeting hello              in another one
    kubectl port-forward deploy/greeter 8095 for an operator in a cluster

    The operator must run with --ui. KIND is the kind of a controller, in any case, or its plural.

    Exit status: 0, 1 if the last pass over the object failed, 2 if no operator answered or none knows the object.
    """
    import msgspec

    from fairlead.report.live import shapes

    body = _get(url, {"kind": kind, "name": name, "namespace": namespace or ""})
    try:
        details = msgspec.json.decode(body, type=shapes.ObjectDetails)
    except msgspec.DecodeError:
        raise UserError(f"{url} did not answer as the page of an operator does: check --url") from None
    if output == "json":
        click.echo(json.dumps(json.loads(body), indent=2))
    else:
        from fairlead.report.live.pass_text import print_object

        print_object(details, max_passes=passes)
    if details.summary.failures:
        raise click.exceptions.Exit(1)


def _get(url: str, query: dict[str, str]) -> bytes:
    try:
        url_parts = urlsplit(url)
        scheme, host, port = url_parts.scheme, url_parts.hostname, url_parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme != "http" or not host:
        raise UserError(f"--url {url}: write http://HOST:PORT")
    connection = http.client.HTTPConnection(host, port or 80, timeout=TIMEOUT)
    try:
        connection.request("GET", f"/debug/object?{urlencode(query)}")
        response = connection.getresponse()
        body = response.read(MAX_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"no operator answers at {url} ({error}): start it with fairlead run … --ui, or name its page with --url"
        ) from None
    finally:
        connection.close()
    if response.status == 200:
        return body
    raise UserError(_format_error_message(url, response.status, body))


def _format_error_message(url: str, status: int, body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return str(answer["error"])
    body_text = body[:200].decode(errors="replace").strip()
    return f"{url} answers {status} ({body_text}): it is not the page of an operator; check --url"
