"""Makes `kafka/protocol/releases.py`, the versions of each Kafka release, of `releases.json`.

The table keeps the form of the facts: for each API the versions from a release on. A broker that
advertises a release reads it once, at its start.
"""

from typing import Any

from protocol_specs.codegen.text import banner, wrap_text


def releases_source(table: dict[str, Any]) -> str:
    """Return the text of the module. Raises ValueError for an unknown release or a wrong range."""
    releases: list[str] = table["releases"]
    lines = banner(
        "The versions of every API that the brokers of each Kafka release serve.",
        "protocol_specs/releases.json",
        "Imported only by a broker that passes for one (`minibroker.advertised.kafka.version`).",
    )
    lines += ["RELEASES = ("]
    lines += wrap_text(", ".join(f'"{name}"' for name in releases) + ",", indent=4)
    lines += [
        ")",
        '"""Oldest first."""',
        "",
        "_SINCE: dict[int, tuple[tuple[int, int, int], ...]] = {",
    ]
    for api in table["apis"]:
        rows = [_row(releases, name, text) for name, text in api["since"].items()]
        if rows != sorted(rows):
            raise ValueError(f"{api['api']}: releases are not in order")
        if rows:
            lines.append(f"    {api['key']}: {tuple(rows)},  # {api['api']}")
    lines += [
        "}",
        '"""API key → (index in RELEASES from which it holds, lowest, highest version)."""',
        "",
        "_ADVERTISED_FROM: dict[int, tuple[int, int]] = {",
    ]
    for api in table["apis"]:
        for name, version in api.get("advertised_from", {}).items():
            lines.append(f"    {api['key']}: ({releases.index(name)}, {version}),")
    return "\n".join([*lines, *_FUNCTIONS.rstrip().split("\n"), ""])


def _row(releases: list[str], name: str, text: str | None) -> tuple[int, int, int]:
    """Return the row of one `"release": "low-high"`; null, for a removed API, is an empty range."""
    if text is None:
        return releases.index(name), 0, -1
    low, high = map(int, text.split("-"))
    return releases.index(name), low, high


_FUNCTIONS = '''}
"""API key → (index in RELEASES, lowest version that ApiVersions names though it is not served)."""


def served_by(release: str) -> dict[int, tuple[int, int]]:
    """API key → (lowest, highest version) that brokers of `release` serve.

    Raises ValueError for a text that is not in RELEASES.
    """
    index = RELEASES.index(release)
    versions = {}
    for key, rows in _SINCE.items():
        for since, low, high in reversed(rows):
            if since <= index:
                if low <= high:
                    versions[key] = (low, high)
                break
    return versions


def advertised_by(release: str) -> dict[int, tuple[int, int]]:
    """Return the versions that ApiVersions of a release tells; see `served_by`.

    Kafka 4 names Produce from version 0 on, because librdkafka looks for it before it compresses
    (KAFKA-18659), and serves it from version 3 on.
    """
    index = RELEASES.index(release)
    versions = served_by(release)
    for key, (since, low) in _ADVERTISED_FROM.items():
        if since <= index and key in versions:
            versions[key] = (low, versions[key][1])
    return versions
'''
