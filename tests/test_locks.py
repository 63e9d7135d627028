"""The locks: every file of every dependency by its hash; and the bill made from them."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

packaging = pytest.importorskip("packaging.requirements")
ROOT = Path(__file__).parents[1]
LOCKS = {path.stem: path.read_text("utf-8") for path in (ROOT / "requirements").glob("*.txt")}
BILL = runpy.run_path(str(ROOT / "requirements" / "bill.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def asked(lock: str) -> set[str]:
    """The names that pyproject.toml asks for in a lock."""
    groups = PROJECT["dependency-groups"]
    plain = PROJECT["project"]["dependencies"]
    extras = [
        name for some in PROJECT["project"]["optional-dependencies"].values() for name in some
    ]
    wanted = {
        "build": groups["build"],
        "runtime": plain,
        "test": plain + groups["test"],
        "dev": plain + extras + groups["test"] + groups["dev"],
    }[lock]
    names = {packaging.Requirement(each).name for each in wanted if isinstance(each, str)}
    return {name.lower().replace("_", "-") for name in names - {"comorb"}}


@pytest.mark.parametrize("lock", ["build", "runtime", "test", "dev"])
def test_a_lock_holds_what_is_asked_for_and_a_hash_of_each_file(lock):
    packages = BILL["locked"](LOCKS[lock])
    assert asked(lock) <= {name for name, _ in packages}
    assert all(packages.values())


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_a_lock_names_versions_and_hashes_and_nothing_else(lock):
    version = r"[\w.-]+==[\w.+!-]+( ; [^\\]+)? \\"
    for line in LOCKS[lock].splitlines():
        assert re.fullmatch(rf"{version}|    --hash=sha256:[0-9a-f]{{64}}( \\)?", line), line
    assert "://" not in LOCKS[lock]


def test_the_locks_agree():
    most = BILL["locked"](LOCKS["dev"])
    names = {name for name, _ in most}
    for lock in ("build", "runtime", "test"):
        for (name, version), hashes in BILL["locked"](LOCKS[lock]).items():
            assert name not in names or most[name, version] == hashes


def test_a_package_of_two_versions_is_both():
    text = "".join(f"a=={n} ; n \\\n    --hash=sha256:{str(n) * 64}\n" for n in (1, 2))
    assert BILL["locked"](text) == {("a", "1"): ["1" * 64], ("a", "2"): ["2" * 64]}
    assert [each["version"] for each in BILL["bill"](text)["components"]] == ["1", "2"]


def test_the_bill_names_every_package_of_a_plain_install_and_is_the_same_each_time():
    bill = BILL["bill"](LOCKS["runtime"])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    packages = BILL["locked"](LOCKS["runtime"])
    assert {(each["name"], each["version"]) for each in bill["components"]} == packages.keys()
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert needs.keys() == {bill["metadata"]["component"]["purl"]} | {
        each["purl"] for each in bill["components"]
    }
    direct = needs[bill["metadata"]["component"]["purl"]]
    assert {re.split("[/@]", reference)[1] for reference in direct} == asked("runtime")
    assert "://" not in json.dumps(bill)
    assert bill == BILL["bill"](LOCKS["runtime"])
    other = BILL["bill"](LOCKS["runtime"].replace("0", "1", 1))
    assert other["serialNumber"] != bill["serialNumber"]
