"""Guard: a version that clients speak never changes its layout again."""

from __future__ import annotations

from protocol_specs.codegen.__main__ import current_digests, frozen_digests
from protocol_specs.codegen.layouts import differences


def test_no_frozen_layout_has_changed() -> None:
    changed = differences(frozen_digests(), current_digests())
    assert not changed, (
        "fields of a released version were renamed, moved, retyped or given another default; a new "
        f"layout needs a new version: {changed}"
    )


def test_every_version_is_frozen() -> None:
    frozen = frozen_digests()
    new = [
        f"{name} version {version}"
        for name, versions in current_digests().items()
        for version in versions
        if version not in frozen.get(name, {})
    ]
    assert not new, f"run `python -m protocol_specs.codegen --freeze`: {new}"
