"""A real Kerberos of MIT for tests: a KDC on a loopback port, principals, their keytabs.

Debian's packages krb5-kdc and krb5-admin-server have its programs, krb5-user has `kinit`. `.ci/run`
installs them, with libkrb5-dev, by which `make kerberos` builds the Python package.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

REALM: Final = "EXAMPLE.TEST"
BROKER: Final = f"kafka/localhost@{REALM}"
"""Clients ask for the service at the host to which they connect; Java at its name."""
ALICE: Final = f"alice@{REALM}"
REPORTS: Final = f"reports/host@{REALM}"
_SBIN: Final = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
START_S: Final = 60


def missing() -> str | None:
    """Return what this machine lacks for Kerberos, None if it has everything."""
    for program in _PROGRAMS:
        if shutil.which(program, path=_SBIN) is None:
            return (
                f"no Kerberos: {program} is not installed (Debian: apt install krb5-kdc"
                " krb5-admin-server krb5-user)"
            )
    if find_spec("gssapi") is None:
        return "no Kerberos: the Python package gssapi is not installed (make kerberos)"
    return None


class Kdc:
    """A KDC with the principals of the tests; `start` and `stop` it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self._process: ManagedProcess | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which a program finds this KDC."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "KRB5RCACHEDIR": str(self.directory),
        }

    def keytab(self, principal: str) -> str:
        """Return the file with the key of a principal, made with its first call."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        if not path.exists():
            self._admin(f"addprinc -randkey {principal}", f"ktadd -k {path} {principal}")
        return str(path)

    def start(self) -> None:
        """Make the realm, and wait until the KDC listens."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
            " dns_lookup_realm = false\n rdns = false\n dns_canonicalize_hostname = false\n"
            " udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n 127.0.0.1 = {REALM}\n localhost = {REALM}\n"
        )
        (self.directory / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{self.port}\n'
            f"[realms]\n {REALM} = {{\n  database_name = {self.directory}/principal\n"
            f"  key_stash_file = {self.directory}/stash\n  acl_file = {self.directory}/acl\n"
            "  supported_enctypes = aes256-cts:normal aes128-cts:normal\n }\n"
            f"[logging]\n kdc = FILE:{self.directory}/kdc.log\n"
        )
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self._process = ManagedProcess(
            [_program("krb5kdc"), "-n", "-r", REALM],
            self.directory / "krb5kdc.log",
            environment=self.environment,
        )
        self._process.wait_until(self._listens, START_S, "the KDC")

    def stop(self) -> None:
        """End the KDC."""
        if self._process is not None:
            self._process.stop()

    def ticket(self, principal: str, *options: str) -> dict[str, str]:
        """Return the variables of a client that has a ticket of this principal."""
        cache = self.directory / f"{principal.replace('/', '-')}.ticket"
        environment = {**self.environment, "KRB5CCNAME": f"FILE:{cache}"}
        arguments = ["kinit", *options, "-k", "-t", self.keytab(principal), principal]
        self._run(*arguments, environment=environment)
        return environment

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _admin(self, *commands: str) -> None:
        for command in commands:
            self._run("kadmin.local", "-r", REALM, "-q", command)

    def _run(
        self, name: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        subprocess.run(
            [_program(name), *arguments],
            env={**os.environ, **(environment or self.environment)},
            check=True,
            capture_output=True,
            timeout=START_S,
        )


def _program(name: str) -> str:
    program = shutil.which(name, path=_SBIN)
    assert program is not None, name
    return program


@contextmanager
def running_kdc(directory: Path) -> Iterator[Kdc]:
    """Run a KDC that this process finds, until the block ends."""
    kdc = Kdc(directory)
    kdc.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        yield kdc
    kdc.stop()
