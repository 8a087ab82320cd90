"""The authorizers that `authorizer.class.name` may name, and their settings.

Source: Kafka AclAuthorizer.configure, StandardAuthorizer.configure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
OLD_ACL_AUTHORIZER: Final = "kafka.security.auth.SimpleAclAuthorizer"
"""The name of `ACL_AUTHORIZER` before Kafka 2.4; Kafka 2.8 took it, too."""
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOWS_UNLISTED: Final = "allow.everyone.if.no.acl.found"
AUTHORIZER_KEYS: Final = frozenset({SUPER_USERS, ALLOWS_UNLISTED})
"""Keys that Kafka's authorizers read by themselves: no table of Kafka's has them."""


class AuthorizerSettings:
    """The settings of the authorizer. Constant."""

    __slots__ = ("allows_unlisted", "class_name", "super_users")

    def __init__(
        self, class_name: str, super_users: frozenset[str], *, allows_unlisted: bool
    ) -> None:
        self.class_name = class_name
        self.super_users = super_users
        """Principals that may do everything: `User:admin`."""
        self.allows_unlisted = allows_unlisted
        """True if everyone may do everything to a resource that no ACL is about."""


def parse_authorizer(class_name: str, settings: Mapping[str, str]) -> AuthorizerSettings | None:
    """Return the settings of the authorizer, None without one. Raises ConfigError.

    `settings`: key → text as the user gave it.
    """
    users = parse_super_users(settings.get(SUPER_USERS, ""))
    allows = settings.get(ALLOWS_UNLISTED, "").strip().lower()
    if allows not in ("", "true", "false"):
        raise ConfigError(f"{ALLOWS_UNLISTED}={allows}: expected true or false")
    if not class_name:
        return None
    if class_name not in (ACL_AUTHORIZER, OLD_ACL_AUTHORIZER, STANDARD_AUTHORIZER):
        raise ConfigError(
            f"authorizer.class.name={class_name}: no Java class is loaded. minibroker has the rules"
            f" of {ACL_AUTHORIZER} and {STANDARD_AUTHORIZER}; name one of them, or none"
        )
    return AuthorizerSettings(class_name, users, allows_unlisted=allows == "true")


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of `super.users`: `User:admin;User:CN=broker`. Raises ConfigError."""
    users = [part.strip() for part in text.split(";") if part.strip()]
    for user in users:
        if ":" not in user:
            raise ConfigError(
                f"{SUPER_USERS}={text}: expected principals as User:name, separated by semicolons,"
                f" not {user!r}"
            )
    return frozenset(users)
