"""`python -m protocol_specs.codegen [--check | --freeze]` writes the generated Python modules.

Without an option it rewrites the files that differ and names them. With `--check` it writes nothing
and exits with 1 if a file would change. With `--freeze` it also records the layouts of new versions
(see `layouts.py`). A test calls `generate` and compares the files with it.
"""

import argparse
import json
import sys
from pathlib import Path

from protocol_specs.codegen.emit_module import api_source, stored_source
from protocol_specs.codegen.emit_releases import releases_source
from protocol_specs.codegen.emit_tables import api_keys_source, error_codes_source, names_source
from protocol_specs.codegen.layouts import Digests, digests_of, digests_text, with_new
from protocol_specs.codegen.spec import ApiSpec, MessageSpec, StoredRecord

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "protocol_specs"
PACKAGE = ROOT / "minibroker"


def load_specs() -> tuple[list[ApiSpec], list[StoredRecord]]:
    """Return every spec file, checked. Raises SpecError."""
    apis = [ApiSpec(path) for path in sorted((SPECS / "apis").glob("*.json"))]
    return apis, [StoredRecord(path) for path in sorted((SPECS / "stored").glob("*.json"))]


def current_digests() -> Digests:
    """Return the digests of the layouts that the specs describe now."""
    apis, stored_specs = load_specs()
    messages: list[MessageSpec] = [side for api in apis for side in (api.request, api.response)]
    return digests_of(messages + [side.message for record in stored_specs for side in record.sides])


def frozen_digests() -> Digests:
    """Return the digests of the layouts that may not change."""
    frozen: Digests = json.loads((SPECS / "layouts.json").read_text())
    return frozen


def generate() -> dict[Path, str]:
    """Return every generated file with its text; write nothing."""
    errors = json.loads((SPECS / "errors.json").read_text())
    releases = json.loads((SPECS / "releases.json").read_text())
    apis, stored_specs = load_specs()
    protocol = PACKAGE / "kafka" / "protocol"
    files = {
        PACKAGE / "kafka" / "error_codes.py": error_codes_source(errors),
        protocol / "api_keys.py": api_keys_source(apis),
        PACKAGE / "rig" / "names.py": names_source(apis, errors),
        protocol / "releases.py": releases_source(releases),
    }
    files |= {protocol / "messages" / f"{api.name}.py": api_source(api) for api in apis}
    files |= {
        protocol / "stored" / f"{record.name}.py": stored_source(record) for record in stored_specs
    }
    return files


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m protocol_specs.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    parser.add_argument("--freeze", action="store_true", help="record the layouts of new versions")
    arguments = parser.parse_args()
    if arguments.freeze:
        text = digests_text(with_new(frozen_digests(), current_digests()))
        (SPECS / "layouts.json").write_text(text)
    check_only = arguments.check
    stale = 0
    for path, text in generate().items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        print(f"{'stale' if check_only else 'wrote'} {path.relative_to(ROOT)}")
        if not check_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if check_only and stale else 0


if __name__ == "__main__":
    sys.exit(main())
