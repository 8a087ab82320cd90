"""The key of a broker in Kerberos; logins are in tests/integration/test_kerberos.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.kafka.errors import ConfigError
from tests.support import kerberos as support

if TYPE_CHECKING:
    from pathlib import Path

_MISSING = support.missing()
if _MISSING is not None:
    pytest.skip(_MISSING, allow_module_level=True)

from minibroker.broker.security.sasl.kerberos import KerberosAcceptor  # noqa: E402  needs libkrb5
from minibroker.client.kerberos import KerberosLogin, login_of_options  # noqa: E402  as above

OPTIONS = {"useKeyTab": "true", "keyTab": "/etc/key", "principal": "kafka/host@R"}
SERVICE = "sasl.kerberos.service.name"


def test_a_line_has_the_key() -> None:
    login = KerberosLogin("kafka/host@R", "/etc/key", "kafka")
    assert login_of_options(ConfigValues({SERVICE: "kafka"}), OPTIONS) == login
    own = {**OPTIONS, "serviceName": "kafka", "keyTab": "file:/etc/key"}
    assert login_of_options(ConfigValues({}), own) == login
    assert login_of_options(ConfigValues({SERVICE: "kafka"}), own) == login


@pytest.mark.parametrize(
    ("options", "service", "sentence"),
    [
        ({}, "", "expected a name, usually kafka"),
        ({"serviceName": "other"}, "kafka", "the JAAS line has another one"),
        ({"useKeyTab": "false"}, "kafka", "has no key of this broker"),
        ({"keyTab": ""}, "kafka", "has no key of this broker"),
        ({"principal": ""}, "kafka", "has no key of this broker"),
    ],
)
def test_a_line_without_a_key_is_refused(
    options: dict[str, str], service: str, sentence: str
) -> None:
    settings = ConfigValues({SERVICE: service} if service else {})
    with pytest.raises(ConfigError, match=sentence):
        login_of_options(settings, {**OPTIONS, **options})


def test_a_keytab_that_is_not_there_is_named(tmp_path: Path) -> None:
    options = {**OPTIONS, "keyTab": str(tmp_path / "none")}
    acceptor = KerberosAcceptor(ConfigValues({SERVICE: "kafka"}), options)
    with pytest.raises(ConfigError, match=f"keytab {tmp_path}/none has no key of kafka/host@R"):
        acceptor.check()


def test_a_wrong_rule_is_refused() -> None:
    rules = {SERVICE: "kafka", "sasl.kerberos.principal.to.local.rules": "RULE:[1:$2]"}
    with pytest.raises(ConfigError, match=r"\$2 is no component"):
        KerberosAcceptor(ConfigValues(rules), OPTIONS)
