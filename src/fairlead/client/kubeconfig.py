"""Read the access to a cluster from kubeconfig files, which are merged as by kubectl.

Every error is an AccessError with a message of one line: the file, the entry in the file, and the fix.
"""

import base64
import binascii
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fairlead.api import documents
from fairlead.api.world import World
from fairlead.client.access import Access, AccessError, Cluster
from fairlead.client.credentials import (
    CertificateCredentials,
    Credentials,
    Identity,
    ImpersonatingCredentials,
    RotatedFile,
    StaticCredentials,
    TokenFileCredentials,
)
from fairlead.client.execplugin import GROUP, VERSIONS, ExecCredentials, ExecPlugin

_CLUSTER_INFO_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")


def load(
    world: World,
    *,
    path: Path | None = None,
    context: str | None = None,
    env: Mapping[str, str] = os.environ,
) -> Access:
    """Return the access of a kubeconfig context.

    The kubeconfig is the file at `path`, else the files in $KUBECONFIG, else ~/.kube/config. Without `context`, the
    current-context is used. Raises AccessError.
    """
    config = _Config(world, env)
    for file in _list_files(path, env):
        config.add(file)
    return config.access(context)


def _list_files(path: Path | None, env: Mapping[str, str]) -> Iterator[Path]:
    if path is not None:
        candidates, remedy = [path.expanduser()], "check the path"
    elif listed := env.get("KUBECONFIG"):
        names = dict.fromkeys(item for item in listed.split(os.pathsep) if item)
        candidates, remedy = [Path(name) for name in names], "check $KUBECONFIG"
    else:
        home = env.get("HOME") or "~"
        candidates = [Path(home).expanduser() / ".kube" / "config"]
        remedy = "name one with --kubeconfig (`fairlead run --embedded` needs none)"
    existing = [
        candidate for candidate in candidates if candidate.exists()
    ]  # like kubectl, ignore files that do not exist
    if not existing:
        raise AccessError(f"there is no kubeconfig at {os.pathsep.join(map(str, candidates))}: {remedy}")
    return iter(existing)


class _KubeconfigEntry:
    """One cluster, user or context of a kubeconfig file. Relative paths start at the folder of that file."""

    def __init__(self, section: str, name: str, body: Mapping[str, Any], file: Path) -> None:
        self.section = section
        self.name = name
        self.body = body
        self.file = file

    def text(self, key: str) -> str:
        value = self.body.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.invalid(f"{key} is not text", "put it in quotes")
        return value

    def flag(self, key: str) -> bool:
        value = self.body.get(key) or False
        if not isinstance(value, bool):
            raise self.invalid(f"{key} is neither true nor false", "make it one of them, without quotes")
        return value

    def mapping(self, key: str) -> "_KubeconfigEntry":
        value = self.body.get(key) or {}
        if not isinstance(value, dict):
            raise self.invalid(f"{key} is not a mapping", "indent its fields below it")
        return _KubeconfigEntry(self.section, self.name, value, self.file)

    def items(self, key: str) -> list[Any]:
        value = self.body.get(key) or []
        if not isinstance(value, list):
            raise self.invalid(f"{key} is not a list", "write it as one")
        return value

    def path(self, key: str) -> Path | None:
        path_text = self.text(key)
        return self.file.parent / path_text if path_text else None

    def data(self, key: str) -> bytes | None:
        """Return the decoded field `<key>-data`, else the content of the file in the field `<key>`, else None."""
        if encoded := self.text(f"{key}-data"):
            try:
                return base64.b64decode("".join(encoded.split()), validate=True)
            except binascii.Error as error:
                raise self.invalid(f"{key}-data is not base64", f"encode the PEM file, or name it in {key}") from error
        path = self.path(key)
        if path is None:
            return None
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.invalid(
                f"{key} names {path}, which cannot be read ({error.strerror})", "put the file there"
            ) from error

    def invalid(self, problem: str, remedy: str) -> AccessError:
        return AccessError(f"{self.file}: {self.section} {self.name!r}: {problem}: {remedy}")


class _Config:
    """The merged kubeconfig files. For each entry and for the current context, the first file that has it wins."""

    def __init__(self, world: World, env: Mapping[str, str]) -> None:
        self._world = world
        self._env = env
        self._files: list[Path] = []
        self._current = ""
        self._entries: dict[tuple[str, str], _KubeconfigEntry] = {}

    def add(self, file: Path) -> None:
        try:
            content = documents.parse_one(file.read_bytes())
        except OSError as error:
            raise AccessError(f"{file}: cannot be read ({error.strerror}): check its permissions") from error
        except documents.InvalidYaml as error:
            raise AccessError(f"{file}: {error}; correct it, or name another kubeconfig") from error
        content = {} if content is None else content
        if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
            raise AccessError(f"{file}: is not a kubeconfig (kind: Config): name another file")
        self._files.append(file)
        if not self._current and isinstance(content.get("current-context"), str):
            self._current = content["current-context"]
        for section in ("cluster", "user", "context"):
            for item in _KubeconfigEntry("the list of", f"{section}s", content, file).items(f"{section}s"):
                name = item.get("name") if isinstance(item, dict) else None
                body = (item.get(section) or {}) if isinstance(item, dict) else None
                if not isinstance(name, str) or not isinstance(body, dict):
                    raise AccessError(
                        f"{file}: an entry of {section}s has no name, or its {section} is not a mapping: correct it"
                    )
                entry = self._entries.setdefault((section, name), _KubeconfigEntry(section, name, body, file))
                if entry.file == file and entry.body is not body:
                    raise entry.invalid("exists twice", "rename or delete one of them")

    def access(self, context: str | None) -> Access:
        name = context or self._current
        file_names = os.pathsep.join(map(str, self._files))
        if not name:
            raise AccessError(
                f"{file_names}: no current context: `kubectl config use-context NAME`, or use --context NAME"
            )
        context_entry = self._entries.get(("context", name))
        if context_entry is None:
            context_names = (
                ", ".join(sorted(context_name for section, context_name in self._entries if section == "context"))
                or "none"
            )
            raise AccessError(f"{file_names}: there is no context {name!r}: choose one of these: {context_names}")
        cluster = self._read_cluster(self._get_referenced_entry(context_entry, "cluster"))
        user = (
            self._get_referenced_entry(context_entry, "user")
            if context_entry.text("user")
            else _KubeconfigEntry("user", "", {}, context_entry.file)
        )
        return Access(
            name, cluster, self._read_credentials(user, context_entry), context_entry.text("namespace") or "default"
        )

    def _get_referenced_entry(self, context: _KubeconfigEntry, section: str) -> _KubeconfigEntry:
        name = context.text(section)
        entry = self._entries.get((section, name))
        if entry is None:
            raise context.invalid(
                f"its {section} {name!r} does not exist", f"add it to {section}s, or correct the context"
            )
        return entry

    def _read_cluster(self, entry: _KubeconfigEntry) -> Cluster:
        server = entry.text("server")
        url = urlsplit(server)
        if "@" in url.netloc:
            raise entry.invalid("server contains credentials", "put them into the user")
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise entry.invalid(f"server is {server!r}", "give its address as https://host:port")
        ca = entry.data("certificate-authority")
        insecure = entry.flag("insecure-skip-tls-verify")
        if ca and insecure:
            raise entry.invalid("has both a CA and insecure-skip-tls-verify", "drop insecure-skip-tls-verify")
        proxy = entry.text("proxy-url")
        if proxy and urlsplit(proxy).scheme not in {"http", "https"}:
            scheme = urlsplit(proxy).scheme or "no scheme"
            raise entry.invalid(f"proxy-url has {scheme}", "use an http:// or https:// proxy; others are not supported")
        return Cluster(server, ca, insecure, entry.text("tls-server-name") or None, proxy or None)

    def _read_credentials(self, user: _KubeconfigEntry, context: _KubeconfigEntry) -> Credentials:
        if "auth-provider" in user.body:
            raise user.invalid("auth-provider is no longer supported, also not by kubectl", "use an exec plugin")
        credentials = self._add_certificate(user, self._read_bearer_credentials(user, context))
        headers = tuple(_read_impersonation_headers(user))
        return ImpersonatingCredentials(credentials, headers) if headers else credentials

    def _read_bearer_credentials(self, user: _KubeconfigEntry, context: _KubeconfigEntry) -> Credentials:
        if path := user.path("tokenFile"):
            return TokenFileCredentials(path, self._world)
        if token := user.text("token"):
            if not token.isascii() or not token.isprintable():
                raise user.invalid(
                    "token contains characters that cannot be sent", "copy it again, without line breaks"
                )
            return StaticCredentials.token(token)
        if name := user.text("username"):
            basic = base64.b64encode(f"{name}:{user.text('password')}".encode()).decode()
            return StaticCredentials(Identity(authorization=f"Basic {basic}"))
        if "exec" in user.body:
            return ExecCredentials(
                _read_plugin(user, self._get_referenced_entry(context, "cluster")), self._world, self._env
            )
        return StaticCredentials()

    def _add_certificate(self, user: _KubeconfigEntry, inner: Credentials) -> Credentials:
        certificate = self._get_data_source(user, "client-certificate")
        key = self._get_data_source(user, "client-key")
        if certificate is None and key is None:
            return inner
        if certificate is None or key is None:
            missing_key = "client-certificate" if certificate is None else "client-key"
            raise user.invalid(f"has no {missing_key} to go with the other", f"add {missing_key} or {missing_key}-data")
        return CertificateCredentials(inner, certificate, key)

    def _get_data_source(self, user: _KubeconfigEntry, key: str) -> Callable[[], bytes] | None:
        data, path = user.data(key), user.path(key)
        if path is not None and not user.text(f"{key}-data"):
            return RotatedFile(path, self._world).read
        return None if data is None else lambda: data


def _read_plugin(user: _KubeconfigEntry, cluster: _KubeconfigEntry) -> ExecPlugin:
    entry = user.mapping("exec")
    api_version, command = entry.text("apiVersion"), entry.text("command")
    if api_version not in VERSIONS:
        raise user.invalid(f"exec.apiVersion is {api_version!r}", f"use {GROUP}/v1 (kubectl requires it too)")
    if not command:
        raise user.invalid("exec has no command", "name the program to run")
    if entry.text("interactiveMode") == "Always":
        raise user.invalid(
            "its exec plugin wants a terminal (interactiveMode: Always)", "an operator has none: use IfAvailable"
        )
    args, env = entry.items("args"), entry.items("env")
    if not all(isinstance(arg, str) for arg in args):
        raise user.invalid("exec.args are not all text", "put each in quotes")
    if not all(isinstance(v, dict) and isinstance(v.get("name"), str) for v in env):
        raise user.invalid("exec.env is not a list of name and value", "write it as one")
    if os.sep in command:
        command = str(
            user.file.parent / command
        )  # relative to the file, like kubectl; a name without a slash is looked up in PATH
    return ExecPlugin(
        api_version,
        command,
        tuple(args),
        tuple((v["name"], str(v.get("value") or "")) for v in env),
        entry.text("installHint"),
        _build_cluster_info(cluster) if entry.flag("provideClusterInfo") else None,
    )


def _build_cluster_info(cluster: _KubeconfigEntry) -> dict[str, Any]:
    """Return the cluster as the JSON that an exec plugin gets (`provideClusterInfo`)."""
    info = {key: cluster.body[key] for key in _CLUSTER_INFO_FIELDS if cluster.body.get(key)}
    if ca := cluster.data("certificate-authority"):
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    for extension in cluster.items("extensions"):
        if isinstance(extension, dict) and extension.get("name") == f"{GROUP}/exec":
            info["config"] = extension.get("extension")
    return info


def _read_impersonation_headers(user: _KubeconfigEntry) -> Iterator[tuple[str, str]]:
    headers = [("Impersonate-User", user.text("as")), ("Impersonate-Uid", user.text("as-uid"))]
    headers += [("Impersonate-Group", group) for group in user.items("as-groups")]
    extra = user.mapping("as-user-extra")
    for key in extra.body:
        headers += [(f"Impersonate-Extra-{quote(str(key), safe='')}", value) for value in extra.items(key)]
    headers = [(name, value) for name, value in headers if value]
    if headers and not user.text("as"):
        raise user.invalid("impersonates groups or extras without a user", "name the user in `as`")
    for name, value in headers:
        if not isinstance(value, str) or not value.isprintable():
            raise user.invalid(f"{name} cannot be sent", "write it as one line of text, in quotes")
    yield from headers
