"""Install the collections of requirements.yml out of the `ansible` wheel.

Usage: install_collections.py REQUIREMENTS_YML WHEEL [DIRECTORY]

The collections go into the directory, by default this interpreter's
site-packages, where Ansible looks for them without configuration. Each must
have exactly the version that requirements.yml names, and its own dependencies
must be named there too.
Nothing is downloaded, and no dependency is resolved.
"""

from __future__ import annotations

import compileall
import json
import sys
import sysconfig
import zipfile
from pathlib import Path

import yaml

ROOT = "ansible_collections"


def required(path: Path) -> dict[str, str]:
    """Return name → exact version of every collection that the file names."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))["collections"]
    return {entry["name"]: str(entry["version"]) for entry in entries}


def faults(wheel: zipfile.ZipFile, wanted: dict[str, str]) -> list[str]:
    """Say everything in which the wheel does not satisfy the requirements."""
    found = []
    for name, version in wanted.items():
        try:
            info = json.loads(wheel.read(f"{prefix(name)}MANIFEST.json"))["collection_info"]
        except KeyError:
            found.append(f"{name} is not in the wheel")
            continue
        if info["version"] != version:
            found.append(f"{name} {version} is required, the wheel holds {info['version']}")
        found += [
            f"{name} depends on {dependency}, which is not listed"
            for dependency in info["dependencies"]
            if dependency not in wanted
        ]
    return found


def prefix(name: str) -> str:
    """Return the directory of a collection in the wheel, with its slash."""
    return f"{ROOT}/{name.replace('.', '/')}/"


def main(requirements: Path, wheel_path: Path, target: Path) -> None:
    """Check the wheel against the requirements, then unzip what they name."""
    wanted = required(requirements)
    with zipfile.ZipFile(wheel_path) as wheel:
        if problems := faults(wheel, wanted):
            lines = "\n  ".join(problems)
            sys.exit(f"{requirements.name} does not fit {wheel_path.name}:\n  {lines}")
        prefixes = tuple(prefix(name) for name in wanted)
        wheel.extractall(target, [name for name in wheel.namelist() if name.startswith(prefixes)])
    # An image's file system is read-only at run time, so compiling comes now.
    compileall.compile_dir(target / ROOT, quiet=2)


if __name__ == "__main__":
    requirements_yml, wheel, *directory = map(Path, sys.argv[1:])
    main(requirements_yml, wheel, directory[0] if directory else Path(sysconfig.get_path("purelib")))
