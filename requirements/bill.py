"""The bill of materials: what a plain install of comorb is made of, as CycloneDX, from the lock.

``python requirements/bill.py dist/sbom.json``, in an environment with the locked packages. Names,
versions and hashes are those of runtime.txt, licences and what needs what those of the packages
themselves. The same lock gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).with_name("runtime.txt")
_PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAMESPACE = uuid.UUID("6f1b6d0e-6a9a-5c5e-9f0b-1d3c1c5f2a77")


def locked(text: str) -> dict[tuple[str, str], list[str]]:
    """Return the hashes of the files of each package of a lock, by its name and version.

    A package may have several versions, for one Python each.
    """
    starts = [*_PINNED.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    return {
        (canonicalize_name(start[1]), start[2]): sorted(_HASH.findall(text[start.start() : end]))
        for start, end in zip(starts, ends, strict=True)
    }


def bill(text: str) -> dict[str, Any]:
    """Return the bill of materials of a lock."""
    packages = locked(text)
    root = _reference("comorb", metadata.version("comorb"))
    found: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("comorb", metadata.version("comorb"), "application")},
        "components": [
            _component(name, version, "library", hashes)
            for (name, version), hashes in sorted(packages.items())
        ],
        "dependencies": [
            {"ref": root, "dependsOn": _needs("comorb", packages)},
            *(
                {"ref": _reference(name, version), "dependsOn": _needs(name, packages)}
                for name, version in sorted(packages)
            ),
        ],
    }
    plain = json.dumps(found, sort_keys=True)
    return found | {"serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, plain)}"}


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _component(name: str, version: str, kind: str, hashes: list[str] | None = None) -> Any:
    reference = _reference(name, version)
    plain: dict[str, Any] = {"type": kind, "bom-ref": reference, "name": name, "version": version}
    plain["purl"] = reference
    if licence := _licence(name):
        plain["licenses"] = licence
    if hashes:  # one for each file of the version
        plain["hashes"] = [{"alg": "SHA-256", "content": value} for value in hashes]
    return plain


def _licence(name: str) -> list[Any]:
    """Return the licence that a package names; none of one that isn't installed here."""
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return []
    if expression := told.get("License-Expression"):
        return [{"expression": expression}]
    named = [
        line.rpartition(" :: ")[2]
        for line in told.get_all("Classifier") or []
        if line.startswith("License :: ")
    ]
    first = (told.get("License") or "").strip().splitlines()[:1]
    return [{"license": {"name": each}} for each in sorted(set(named)) or first]


def _needs(name: str, packages: dict[tuple[str, str], list[str]]) -> list[str]:
    """Return what a package needs on any machine, without its extras."""
    try:
        wanted = [Requirement(line) for line in metadata.requires(name) or []]
    except metadata.PackageNotFoundError:
        return []
    plain = [each for each in wanted if "extra" not in str(each.marker or "")]
    names = {canonicalize_name(each.name) for each in plain}
    return [_reference(each, version) for each, version in sorted(packages) if each in names]


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    made = bill(LOCK.read_text(encoding="utf-8"))
    out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
