"""Tests of kubeconfigs: files are merged as kubectl merges them, and errors are one line with the fix."""

import asyncio
import base64
import functools
import json
import os
import subprocess

import pytest
import yaml

from fairlead.api.world import World
from fairlead.client import kubeconfig
from fairlead.client.access import AccessError, Cluster
from fairlead.client.credentials import CredentialsError, Identity
from fairlead.testing import real, virtual


def encode_base64(text):
    return base64.b64encode(text.encode()).decode()


def config(cluster=None, user=None, context=None, **fields):
    """Return a kubeconfig with one context, `here`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://c.example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        **fields,
    }


@pytest.fixture
def write(tmp_path):
    def write(content, name="config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


@pytest.fixture
def load(write):
    """Return a function: load(kubeconfig, context=None) returns the Access."""
    return lambda content, context=None: kubeconfig.load(World(), path=write(content), context=context, env={})


async def test_a_simple_kubeconfig_is_loaded(load):
    access = load(config(user={"token": "t"}, context={"namespace": "team"}))
    assert access.name == "here"
    assert access.cluster == Cluster("https://c.example:6443")
    assert access.namespace == "team"
    assert await access.credentials.identity() == Identity("Bearer t")


async def test_all_cluster_fields_are_loaded(load):
    cluster_fields = {
        "tls-server-name": "api",
        "proxy-url": "http://p:3128",
        "certificate-authority-data": encode_base64("CA"),
    }
    assert load(config(cluster_fields)).cluster == Cluster(
        "https://c.example:6443", b"CA", tls_server_name="api", proxy_url="http://p:3128"
    )
    assert load(config({"insecure-skip-tls-verify": True})).cluster.insecure


async def test_the_namespace_is_default_unless_the_context_sets_it(load):
    assert load(config()).namespace == "default"


async def test_inline_data_takes_precedence_over_files(load, write):
    write("from file", "ca")
    certificate_authorities = {"certificate-authority": "ca", "certificate-authority-data": encode_base64("from data")}
    assert load(config(certificate_authorities)).cluster.ca_data == b"from data"
    assert load(config({"certificate-authority": "ca"})).cluster.ca_data == b"from file"


async def test_relative_paths_are_relative_to_their_kubeconfig(write, tmp_path):
    write("CA", "one/ca")
    write("T", "two/token")
    clusters_file = write({"clusters": config({"certificate-authority": "ca"})["clusters"]}, "one/config")
    users_file = write({**config(user={"tokenFile": "token"}), "clusters": []}, "two/config")
    access = kubeconfig.load(World(), env={"KUBECONFIG": f"{clusters_file}{os.pathsep}{users_file}"})
    assert access.cluster.ca_data == b"CA"
    assert await access.credentials.identity() == Identity("Bearer T")


async def test_the_first_file_wins_and_missing_files_are_skipped(write, tmp_path):
    first = write(config(user={"token": "first"}, **{"current-context": ""}), "first")
    second = write(config(user={"token": "second"}), "second")
    paths = os.pathsep.join(map(str, [tmp_path / "absent", first, "", second, first]))
    access = kubeconfig.load(World(), env={"KUBECONFIG": paths})
    assert await access.credentials.identity() == Identity("Bearer first")


async def test_the_home_kubeconfig_is_used_last(write, tmp_path):
    write(config(), ".kube/config")
    assert kubeconfig.load(World(), env={"HOME": str(tmp_path)}).name == "here"


async def test_a_context_can_be_selected(load):
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": name}} for name in ("a", "b")]
    assert load(config(contexts=contexts), context="b").namespace == "b"


async def test_a_certificate_is_loaded_and_combined_with_a_token(load, write):
    write("CERT", "cert")
    write("KEY", "key")
    data = {"client-certificate-data": encode_base64("CERT"), "client-key-data": encode_base64("KEY"), "token": "t"}
    files = {"client-certificate": "cert", "client-key": "key", "token": "t"}
    user_fields = {"client-certificate": "cert", "client-key-data": encode_base64("KEY"), "token": "t"}
    for user in (data, files, user_fields):
        assert await load(config(user=user)).credentials.identity() == Identity("Bearer t", b"CERT", b"KEY")


def test_rotated_files_are_read_again(write):
    async def main():
        token, cert = write("T1", "token"), write("C1", "cert")
        write("K", "key")
        user = {"tokenFile": "token", "client-certificate": "cert", "client-key": "key"}
        credentials = kubeconfig.load(virtual.world(), path=write(config(user=user)), env={}).credentials
        identities = [await credentials.identity()]
        token.write_text("T2")
        cert.write_text("C2")
        identities.append(await credentials.identity())
        await asyncio.sleep(10)
        identities.append(await credentials.identity())
        old, new = Identity("Bearer T1", b"C1", b"K"), Identity("Bearer T2", b"C2", b"K")
        assert identities == [old, old, new]

    virtual.run(main())


async def test_a_token_file_takes_precedence_over_a_token(load, write):
    write("file", "token")
    user = {"token": "text", "tokenFile": "token"}
    assert await load(config(user=user)).credentials.identity() == Identity("Bearer file")


async def test_a_password_is_sent_as_basic_auth(load):
    identity = await load(config(user={"username": "a", "password": "b"})).credentials.identity()
    assert identity.authorization == f"Basic {encode_base64('a:b')}"


async def test_impersonation_is_always_sent(load):
    user = {"token": "t", "as": "jane", "as-uid": "1", "as-groups": ["a", "b"], "as-user-extra": {"x/y": ["z"]}}
    identity = await load(config(user=user)).credentials.identity()
    assert identity.authorization == "Bearer t"
    assert identity.impersonate == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-x%2Fy", "z"),
    )


@pytest.mark.parametrize("missing_file", ["token", "cert", "key"])
async def test_a_file_that_disappears_raises_credentials_error(missing_file, load, write, tmp_path):
    for name in ("token", "cert", "key"):
        write(name, name)
    access = load(config(user={"tokenFile": "token", "client-certificate": "cert", "client-key": "key"}))
    (tmp_path / missing_file).unlink()
    with pytest.raises(CredentialsError, match=f"{missing_file} .No such file"):
        await access.credentials.identity()


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never"}

INVALID_CONFIGS = {
    "not YAML": ("a: [", "not YAML at line 1"),
    "not a mapping": ("[1]", "is not a kubeconfig"),
    "another kind": ({"kind": "Pod"}, "is not a kubeconfig"),
    "empty": ("", "kubectl config use-context"),
    "no current context": (config(**{"current-context": ""}), "kubectl config use-context"),
    "no such context": (config(**{"current-context": "x"}), "no context 'x': choose one of these: here"),
    "clusters no list": (config(clusters={"a": 1}), "clusters is not a list"),
    "nameless": (config(users=[{"user": {}}]), "users has no name"),
    "entry no mapping": (config(users=[{"name": "u", "user": "x"}]), "users has no name, or its user is not a mapping"),
    "two of a name": (
        config(users=[{"name": "u"}, {"name": "u", "user": {"token": "secret"}}]),
        "user 'u': exists twice",
    ),
    "no such cluster": (config(context={"cluster": "x"}), "its cluster 'x' does not exist"),
    "no such user": (config(context={"user": "x"}), "its user 'x' does not exist"),
    "no server": (config({"server": ""}), "server is ''"),
    "no scheme": (config({"server": "c:6443"}), "give its address as https://host:port"),
    "server with a password": (config({"server": "https://a:secret@c"}), "put them into the user"),
    "server a number": (config({"server": 1}), "server is not text"),
    "CA not base64": (config({"certificate-authority-data": "%%"}), "certificate-authority-data is not base64"),
    "CA not there": (config({"certificate-authority": "nope"}), "nope, which cannot be read .No such file"),
    "CA and insecure": (
        config({"certificate-authority-data": encode_base64("x"), "insecure-skip-tls-verify": True}),
        "drop insecure-skip-tls-verify",
    ),
    "insecure no bool": (config({"insecure-skip-tls-verify": "yes"}), "neither true nor false"),
    "socks": (config({"proxy-url": "socks5://u:secret@p"}), "use an http:// or https:// proxy"),
    "no key": (config(user={"client-certificate-data": encode_base64("x")}), "has no client-key"),
    "no certificate": (config(user={"client-key-data": encode_base64("x")}), "has no client-certificate"),
    "auth provider": (config(user={"auth-provider": {"name": "oidc"}}), "use an exec plugin"),
    "line in token": (config(user={"token": "secret\nx"}), "without line breaks"),
    "token a number": (config(user={"token": 123}), "put it in quotes"),
    "groups of nobody": (config(user={"as-groups": ["a"]}), "name the user in `as`"),
    "header injection": (config(user={"as": "a\r\nX: y"}), "cannot be sent"),
    "old exec": (config(user={"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}), "k8s.io/v1 "),
    "exec nothing": (config(user={"exec": {**EXEC, "command": ""}}), "name the program"),
    "exec no mapping": (config(user={"exec": "login"}), "exec is not a mapping"),
    "exec terminal": (config(user={"exec": {**EXEC, "interactiveMode": "Always"}}), "wants a terminal"),
    "exec args": (config(user={"exec": {**EXEC, "args": [1]}}), "exec.args are not all text"),
    "exec env": (config(user={"exec": {**EXEC, "env": ["A=b"]}}), "list of name and value"),
}


@pytest.mark.parametrize("invalid_config", INVALID_CONFIGS)
def test_an_invalid_kubeconfig_error_is_one_line_with_the_fix(invalid_config, load, tmp_path):
    content, message = INVALID_CONFIGS[invalid_config]
    with pytest.raises(AccessError, match=message) as raised:
        load(content)
    message = str(raised.value)
    assert "\n" not in message
    assert "secret" not in message
    assert message.startswith(str(tmp_path / "config"))


def test_a_missing_kubeconfig_is_named(tmp_path):
    for options in ({"path": tmp_path / "x"}, {"env": {"KUBECONFIG": str(tmp_path / "x")}}, {"env": {"HOME": "/nope"}}):
        with pytest.raises(AccessError, match=r"there is no kubeconfig at .*: .+") as raised:
            kubeconfig.load(World(), **{"env": {}, **options})
        assert "\n" not in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_kubeconfig_is_named(write):
    path = write(config())
    path.chmod(0)
    with pytest.raises(AccessError, match="check its permissions"):
        kubeconfig.load(World(), path=path, env={})


async def test_kubectl_reads_the_merged_files_the_same_way(write, tmp_path):
    kubectl = real.find("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl: run `make real`, or set KUBEBUILDER_ASSETS")
    first = write({"clusters": config({"server": "https://one:1"})["clusters"]}, "one/config")
    second = write(config({"server": "https://two:2"}, {"token": "t"}, {"namespace": "team"}), "two/config")
    env = {"KUBECONFIG": f"{first}{os.pathsep}{tmp_path / 'absent'}{os.pathsep}{second}", "HOME": str(tmp_path)}
    command = [kubectl, "config", "view", "--minify", "--raw", "-o", "json"]
    run = functools.partial(subprocess.run, command, env=env, capture_output=True, check=True, timeout=30)
    process = await asyncio.to_thread(run)
    view = json.loads(process.stdout)
    access = kubeconfig.load(World(), env=env)
    assert access.cluster.server == view["clusters"][0]["cluster"]["server"]
    assert access.namespace == view["contexts"][0]["context"]["namespace"]
    assert (await access.credentials.identity()).authorization == f"Bearer {view['users'][0]['user']['token']}"
