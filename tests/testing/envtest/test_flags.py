"""Which settings the flags of kube-apiserver give the embedded server."""

from pathlib import Path

import pytest

from fairlead.testing.envtest.apiserver import find_etcd_port
from fairlead.testing.envtest.flags import FlagError, Flags, read_flags


@pytest.mark.parametrize(
    "arguments",
    [
        ["--etcd-servers=http://127.0.0.1:5/"],
        ["--etcd-servers", "http://0.0.0.0:5"],
        ["-etcd-servers=http://a:5,http://b:6"],
    ],
)
def test_port_of_etcd_is_found(arguments: list[str]) -> None:
    assert find_etcd_port(["--v=2", *arguments, "--secure-port=7"]) == "5"


def test_flags_are_read_in_every_form() -> None:
    flags = Flags(["--a=1", "--a", "2", "-b", "3", "--c", "--d=x,y", "--d", "z", "--e=f=true,g"], Path("/folder"))
    assert flags.all("a") == ["1", "2"]
    assert flags.last("b") == "3"
    assert flags.all("c") == []
    assert flags.names_in("d") == ["x", "y", "z"]
    assert flags.pairs("e") == {"f": "true", "g": "true"}
    assert flags.path("b") == Path("/folder/3")


def test_defaults_are_those_of_kube_apiserver_on_loopback(tmp_path: Path) -> None:
    settings = read_flags([], tmp_path)
    assert settings.server["authorization"] == "AlwaysAllow"
    assert settings.listener == {"host": "127.0.0.1", "port": 6443, "client_ca": None, "certificate": None}
    assert settings.notes == ["listens on 127.0.0.1 instead of 0.0.0.0: the embedded server serves this machine only"]


def test_other_authorization_modes_become_rbac_with_a_note(tmp_path: Path) -> None:
    settings = read_flags(["--authorization-mode=Node,RBAC", "--bind-address=127.0.0.1"], tmp_path)
    assert settings.server["authorization"] == "RBAC"
    assert settings.notes == ["uses RBAC for --authorization-mode=Node,RBAC: other modes do not exist here"]


def test_wrong_port_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="--secure-port=x is not a port number"):
        read_flags(["--secure-port=x"], tmp_path)


def test_unusable_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sa.key").write_text("no key")
    flags = ["--service-account-issuer=https://a", "--service-account-signing-key-file=sa.key"]
    with pytest.raises(FlagError, match="no private RSA, ECDSA or Ed25519 key"):
        read_flags(flags, tmp_path)
