"""Tests of the chain of admission plugins: their names, order and defaults."""

import re
import subprocess

import pytest

from fairlead.server.admission import plugins
from fairlead.server.admission.plugin import AdmissionPlugin
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.testing import real


def create(server, path, body):
    return server.respond(Request("POST", path, {}, {"content-type": "application/json"}, body))


def test_disabled_plugin_does_not_run():
    pod_without_class = (
        b'{"metadata":{"name":"p"},"spec":{"runtimeClassName":"none","containers":[{"name":"c","image":"i"}]}}'
    )
    pods = "/api/v1/namespaces/default/pods"
    assert create(Server(), pods, pod_without_class).status == 403
    assert create(Server(disable_plugins=["RuntimeClass"]), pods, pod_without_class).status == 201


def test_unknown_plugin_name_is_an_error():
    with pytest.raises(ValueError, match="no such admission plugin: Nope; use AlwaysAdmit, AlwaysDeny"):
        Server(enable_plugins=["Nope", "LimitRanger"])


def test_plugins_run_in_the_order_of_the_table():
    order = []

    class Recorder(AdmissionPlugin):
        def admit(self, attributes):
            order.append(self)

    server = Server()
    first, second = Recorder(server), Recorder(server)
    server.admission.plugins.clear()
    server.admission.plugins.update(first=first, second=second)
    assert create(server, "/api/v1/namespaces/default/configmaps", b'{"metadata":{"name":"c"}}').status == 201
    assert order == [first, second]


def test_rejection_names_the_prefix_of_a_generated_name():
    spec = b'{"priorityClassName":"none","containers":[{"name":"c","image":"i"}]}'
    body = b'{"metadata":{"generateName":"p-"},"spec":' + spec + b"}"
    response = create(Server(), "/api/v1/namespaces/default/pods", body)
    assert b'pods \\"p-\\" is forbidden: no PriorityClass with name none was found' in response.body


@pytest.mark.skipif(real.missing() is not None, reason="needs the kube-apiserver binary")
def test_names_and_defaults_are_those_of_kube_apiserver():
    binary = real.find("kube-apiserver")
    help_text = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    usage = " ".join(help_text.partition("--enable-admission-plugins")[2].split())
    defaults, names = re.search(r"ones \((.*?)\).*?list of admission plugins: (.*?)\. The order", usage).groups()
    assert sorted(plugins._PLUGINS) == names.split(", ")
    assert [name for name in plugins._PLUGINS if name not in plugins._OFF_BY_DEFAULT] == defaults.split(", ")
