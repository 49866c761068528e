"""Tests of the options of `fairlead run` that tune the controllers."""

import click
import pytest
from click.testing import CliRunner

from fairlead.cli.settings import collect_settings, settings_options
from fairlead.cli.shell import set_environment_variables


@click.command()
@settings_options
def command(**options):
    settings = collect_settings(options)
    click.echo(f"{settings} {options}")


set_environment_variables(command, "fairlead_run")


def invoke(*arguments, **environment):
    return CliRunner().invoke(command, arguments, env=environment)


def test_options_set_all_controllers_or_one():
    completed = invoke(
        "--concurrency", "8", "--concurrency", "website=4", "--rate-limit", "inf", "--request-timeout", "5"
    )
    assert completed.output == (
        "{'': {'concurrency': 8, 'rate_limit': inf}, 'website': {'concurrency': 4}} "
        "{'request_timeout': 5, 'shutdown_timeout': None}\n"
    )


def test_environment_variables_set_several_controllers():
    completed = invoke(FAIRLEAD_RUN_BACKOFF_MAX="60 website=90", FAIRLEAD_RUN_REQUEST_TIMEOUT="2.5")
    assert completed.output == (
        "{'': {'backoff_max': 60}, 'website': {'backoff_max': 90}} {'request_timeout': 2.5, 'shutdown_timeout': None}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--concurrency", "0"], "concurrency is a whole number of at least 1; got 0"),
        (["--concurrency", "website=many"], "concurrency is a whole number of at least 1; got 'many'"),
        (["--concurrency", "website="], "concurrency is a whole number of at least 1; got ''"),
        (["--rate-limit", "-1"], "rate_limit is a number greater than 0, or inf for no limit; got -1"),
        (["--backoff-base", "nan"], "backoff_base is a number of seconds greater than 0; got nan"),
        (["--request-timeout", "never"], "request_timeout is a number of seconds greater than 0; got 'never'"),
        (["--resync", "5", "--resync", "6"], "--resync is set twice for all controllers: set it once"),
        (["--resync", "a=5", "--resync", "a=6"], "--resync is set twice for controller a: set it once"),
    ],
)
def test_a_wrong_value_is_reported_with_the_rule(arguments, message):
    completed = invoke(*arguments)
    assert completed.exit_code == 2
    assert message in completed.output
