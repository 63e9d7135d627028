"""Storage: the model file comes back as it was, or says what is wrong; files are written whole."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from comorb import __version__, storage
from comorb.errors import InputError, StorageError
from comorb.model.blocks import Rows
from comorb.model.emissions import learn_variables
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.mixture import Mixture
from comorb.storage import (
    SavedModel,
    fingerprint,
    fingerprint_of,
    load_model,
    save_model,
    settle,
    write_folder,
    write_whole,
)


@pytest.fixture
def model() -> SavedModel:
    means = np.array([[0.9, 0.1, 1 / 3], [0.0, 1.0, 0.5]])
    return SavedModel(
        Mixture(np.array([0.75, 0.25]), means),
        codes=("250", "401", "428"),
        names=("Diabetes mellitus", "Essential hypertension", "Insuffisance cardiaque, aiguë"),
        clusters=("Diabetes", "Hypertension"),
        numbers=(2, 5),
        system="icd9cm",
        level="category",
        left_out=("V45",),
        preparation={"having": ["428"], "at_least": 3},
        data_hash="ab" * 32,
        run={"records": 12, "k": 2},
    )


@pytest.fixture
def path(model, tmp_path) -> Path:
    save_model(model, tmp_path / "model.comorb")
    return tmp_path / "model.comorb"


def sealed(path: Path, body: bytes) -> None:
    path.write_bytes(body + hashlib.sha256(body).digest())


def test_a_model_comes_back_to_the_last_bit(model, path):
    loaded = load_model(path)
    assert np.array_equal(loaded.mixture.weights, model.mixture.weights)
    assert np.array_equal(loaded.mixture.means, model.mixture.means)
    for field in fields(model)[1:]:
        assert getattr(loaded, field.name) == getattr(model, field.name)
    assert loaded.version == __version__


def test_a_file_without_numbers_counts_its_clusters_from_1(path):
    title, header, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    older = {key: value for key, value in json.loads(header).items() if key != "numbers"}
    sealed(path, b"\n".join([title, json.dumps(older).encode(), numbers]))
    assert load_model(path).numbers == (1, 2)


def test_the_same_model_gives_the_same_bytes(model, path):
    save_model(load_model(path), path.with_name("again"))
    assert path.with_name("again").read_bytes() == path.read_bytes()


def test_the_head_of_the_file_can_be_read_by_people(path):
    title, header, _ = path.read_bytes().split(b"\n", 2)
    assert title == b"comorb model 1"
    assert json.loads(header)["clusters"] == ["Diabetes", "Hypertension"]


def test_the_recipe_in_the_docs_reads_a_model(model, path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")
    recipe = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(path.parent)
    read: dict[str, object] = {}
    exec(recipe, read)
    assert np.array_equal(read["means"], model.mixture.means)
    assert np.array_equal(read["weights"], model.mixture.weights)
    assert all(f"`{key}`" in page for key in read["about"])


def test_a_file_cut_at_any_byte_is_refused(path):
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(StorageError, match=r"model\.comorb is (cut off|no model file)"):
            load_model(path)


def test_a_file_with_any_byte_altered_is_refused(path):
    content = bytearray(path.read_bytes())
    for place in range(len(content)):
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(StorageError, match=r"model\.comorb"):
            load_model(path)
        content[place] ^= 1


def test_an_altered_file_says_what_to_do(path):
    path.write_bytes(path.read_bytes().replace(b"428", b"429"))
    with pytest.raises(
        StorageError, match=r"model\.comorb is cut off or was altered; copy it again, or fit again"
    ):
        load_model(path)


def test_what_is_no_model_is_said_to_be_none(tmp_path):
    other = tmp_path / "records.csv"
    other.write_text("id,dx1\n1,428\n")
    with pytest.raises(
        StorageError, match=r"records\.csv is no model file; give the model\.comorb"
    ):
        load_model(other)
    with pytest.raises(StorageError, match=r"There is no model file .*absent; check the name"):
        load_model(tmp_path / "absent")
    with pytest.raises(StorageError, match=r"can't be read: Is a directory"):
        load_model(tmp_path)


def test_a_newer_format_is_named(path):
    sealed(path, path.read_bytes()[:-32].replace(b"comorb model 1", b"comorb model 3", 1))
    with pytest.raises(
        StorageError, match="has version 3 of the model format and this comorb knows 2; install"
    ):
        load_model(path)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("codes", ["250", "401"], r"2 clusters × 2 codes and 0 numbers of features are 6 numbers"),
        ("codes", "abc", r"'codes' must be a list"),
        ("names", ["Diabetes mellitus"], r"needs as many names: got 2 clusters, 3 codes and 1"),
        ("run", None, r"'run' must be a dict"),
        ("numbers", [5, 2], r"needs as many numbers, in ascending order"),
    ],
)
def test_a_sealed_file_of_the_wrong_shape_is_refused(path, key, value, reason):
    title, header, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    changed = json.dumps(json.loads(header) | {key: value}).encode()
    sealed(path, b"\n".join([title, changed, numbers]))
    with pytest.raises(
        StorageError, match=rf"model\.comorb is sealed but makes no model: .*{reason}"
    ):
        load_model(path)


def test_a_sealed_file_with_impossible_numbers_is_refused(model, path):
    body = path.read_bytes()[:-32]
    sealed(path, body[:-8] + np.array([1.5], "<f8").tobytes())
    with pytest.raises(StorageError, match=r"makes no model: expected means in \[0, 1\]"):
        load_model(path)
    sealed(path, body[:-8] + np.array([np.nan], "<f8").tobytes())
    with pytest.raises(StorageError, match=r"makes no model: expected means in \[0, 1\]"):
        load_model(path)


def test_parts_of_different_sizes_make_no_model(model):
    with pytest.raises(
        InputError, match="2 clusters × 3 codes needs as many names: got 1 clusters"
    ):
        replace(model, clusters=("all",))


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def interrupted() -> None:
        with write_whole(path) as file:
            file.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_can_not_be_written_is_a_clear_error(tmp_path):
    with (
        pytest.raises(
            StorageError, match=r"table\.csv can't be written: No such file or directory"
        ),
        write_whole(tmp_path / "absent" / "table.csv"),
    ):
        pass


def test_a_full_disk_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(
            StorageError,
            match=r"table\.csv can't be written: No space left on device; what was there before is "
            r"untouched\. Make room, or choose another place\.",
        ),
        write_whole(path) as file,
    ):
        file.write(b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_usual_permissions(tmp_path):
    with write_whole(tmp_path / "new") as file:
        file.write(b"x")
    (tmp_path / "usual").write_text("x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def fill(directory: Path, text: str, force: bool = False, stop: bool = False) -> None:
    with write_folder(directory, force) as folder:
        (folder / "a.txt").write_text(text)
        (folder / "b.txt").write_text(text)
        if stop:
            raise KeyboardInterrupt


def texts(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in directory.iterdir()}


def test_a_folder_is_written_whole(tmp_path):
    fill(tmp_path / "deep" / "run", "new")
    assert texts(tmp_path / "deep" / "run") == {"a.txt": "new", "b.txt": "new"}
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["run"]


def test_an_interrupted_folder_changes_nothing(tmp_path):
    fill(tmp_path / "run", "old")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "run", "new", force=True, stop=True)
    assert texts(tmp_path / "run") == {"a.txt": "old", "b.txt": "old"}
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_something_in_it_needs_force(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(
        StorageError,
        match="is there already and not empty; name another directory, or force the",
    ):
        fill(tmp_path, "new")
    fill(tmp_path, "new", force=True)
    assert texts(tmp_path) == {"mine.txt": "mine", "a.txt": "new", "b.txt": "new"}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file is a file; name a directory for the results"):
        fill(tmp_path / "file", "new", force=True)
    with pytest.raises(StorageError, match=r"Nothing can be written to .*file; name another place"):
        fill(tmp_path / "file" / "below", "new")


def test_the_fingerprint_ignores_order_and_sees_every_change():
    rng = np.random.default_rng(0)
    dense = (rng.random((50, 6)) < 0.4).astype(np.uint8)
    codes = ["250", "272", "401", "427", "428", "585"]
    weights = rng.random(50)
    print_of = fingerprint(sparse.csr_array(dense), codes, weights)
    rows, columns = rng.permutation(50), rng.permutation(6)
    shuffled = sparse.csr_array(dense[rows][:, columns])
    assert fingerprint(shuffled, [codes[i] for i in columns], weights[rows]) == print_of
    flipped = dense.copy()
    flipped[7, 3] ^= 1
    others = {
        fingerprint(sparse.csr_array(flipped), codes, weights),
        fingerprint(sparse.csr_array(dense), codes, weights[::-1].copy()),
        fingerprint(sparse.csr_array(dense), codes),
        fingerprint(sparse.csr_array(dense[:-1]), codes, weights[:-1]),
        fingerprint(sparse.csr_array(dense), [*codes[:-1], "586"], weights),
    }
    assert len(others) == 5
    assert print_of not in others


def test_the_fingerprint_of_parts_is_that_of_the_whole():
    rng = np.random.default_rng(1)
    matrix = sparse.csr_array((rng.random((90, 4)) < 0.5).astype(np.uint8))
    weights = rng.random(90)
    codes = ["250", "272", "401", "427"]
    cuts = [(matrix[i : i + 40], weights[i : i + 40]) for i in range(0, 90, 40)]
    parts = [Rows(part.indptr.astype(np.int64), part.indices, heavy) for part, heavy in cuts]
    assert fingerprint_of(parts, codes) == fingerprint(matrix, codes, weights)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("codes", ["250", "250", "428"], "a code stands there twice"),
        ("codes", ["250", 401, "428"], "'codes' must hold nothing but str"),
        ("names", ["a", ["b"], "c"], "'names' must hold nothing but str"),
        ("numbers", [2, "5"], "'numbers' must hold nothing but int"),
        ("numbers", [True, 5], "'numbers' must hold nothing but int"),
        ("left_out", [{}], "'left_out' must hold nothing but str"),
        ("run", [], "'run' must be a dict"),
        ("run", {"passes": float("inf")}, "Out of range float values"),
    ],
)
def test_sealed_nonsense_is_refused(path, field, value, said):
    title, header, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    other = json.loads(header) | {field: value}
    sealed(path, b"\n".join([title, json.dumps(other).encode(), numbers]))
    with pytest.raises(StorageError, match=said):
        load_model(path)


@pytest.mark.parametrize("header", [b"[]", b"7", b"null", b'"codes"'])
def test_a_sealed_header_that_names_nothing_is_refused(path, header):
    title, _, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    sealed(path, b"\n".join([title, header, numbers]))
    with pytest.raises(StorageError, match="sealed but makes no model: its header names nothing"):
        load_model(path)


def test_a_draft_that_a_killed_process_left_is_removed_by_the_next(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    drafts = {
        process: tmp_path / f".out.csv.{process}-0123abcd" for process in (gone.pid, os.getpid())
    }
    other = tmp_path / f".out.csv.{gone.pid}-notes"
    for draft in (*drafts.values(), other):
        draft.write_text("an id")
    storage.write_text("new", tmp_path / "out.csv")
    kept = {drafts[os.getpid()], other, tmp_path / "out.csv"}
    assert set(tmp_path.iterdir()) == kept


@pytest.fixture
def mixed(model) -> SavedModel:
    features = (
        Feature("age", "number"),
        Feature("race", "category", ("a", "b", "c")),
        Feature("stay", "count"),
        Feature("crp", "number", (), "rank"),
    )
    rng = np.random.default_rng(2)
    values = np.column_stack(
        [rng.normal(60, 9, 50), rng.integers(0, 3, 50), rng.poisson(2, 50), rng.gamma(1, 1, 50)]
    )
    variables = learn_variables(FeatureTable(features, values), None, 50.0)
    one = [0.1, 0.9, 0.2, 0.3, 0.5, 1.5, 0.2, 1.1]
    two = [-0.3, 0.8, 0.5, 0.25, 0.25, 4.0, 0.0, 0.7]
    mixture = replace(model.mixture, variables=variables, parameters=np.array([one, two]))
    return replace(model, mixture=mixture)


def test_a_model_with_features_comes_back_to_the_last_bit(mixed, model, tmp_path):
    save_model(mixed, tmp_path / "mixed.comorb")
    loaded = load_model(tmp_path / "mixed.comorb").mixture
    assert loaded.variables == mixed.mixture.variables
    assert loaded.key == mixed.mixture.key
    assert (tmp_path / "mixed.comorb").read_bytes().startswith(b"comorb model 2\n")
    save_model(model, tmp_path / "codes.comorb")
    assert (tmp_path / "codes.comorb").read_bytes().startswith(b"comorb model 1\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda features: features * 2, "a feature stands there twice"),
        (lambda features: features[1:], "numbers of features are"),
        (lambda features: ["age"], "makes no model"),
        (lambda features: [features[0] | {"kind": "colour"}, *features[1:]], "not known"),
        (
            lambda features: [features[0] | {"facts": [0.0, -1.0]}, *features[1:]],
            "must have a mean",
        ),
        (lambda features: [features[0] | {"influence": "much"}, *features[1:]], "are numbers"),
        (lambda features: 7, "makes no model"),
    ],
)
def test_sealed_features_that_make_no_sense_are_refused(mixed, tmp_path, change, said):
    path = tmp_path / "mixed.comorb"
    save_model(mixed, path)
    title, header, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    plain = json.loads(header)
    plain["features"] = change(plain["features"])
    sealed(path, b"\n".join([title, json.dumps(plain).encode(), numbers]))
    with pytest.raises(StorageError, match=said):
        load_model(path)


def test_the_fingerprint_covers_features_in_any_order():
    rng = np.random.default_rng(1)
    matrix = sparse.csr_array((rng.random((40, 4)) < 0.5).astype(np.uint8))
    codes = ["250", "272", "401", "427"]
    features = (Feature("age", "number"), Feature("race", "category", ("a", "b")))
    values = np.column_stack([rng.normal(60, 9, 40), rng.integers(0, 2, 40).astype(float)])
    values[3] = np.nan
    whole = fingerprint(matrix, codes, None, FeatureTable(features, values))
    order = rng.permutation(40)
    turned = (replace(features[1], levels=("b", "a")), features[0])
    moved = np.column_stack([1 - values[order, 1], values[order, 0]])
    assert fingerprint(matrix[order], codes, None, FeatureTable(turned, moved)) == whole
    other = values.copy()
    other[5, 0] += 1e-9
    assert fingerprint(matrix, codes, None, FeatureTable(features, other)) != whole
    assert fingerprint(matrix, codes) != whole
    parts = [
        Rows(part.indptr.astype(np.int64), part.indices, np.empty(0), values[at : at + 25])
        for at, part in ((0, matrix[:25]), (25, matrix[25:]))
    ]
    assert fingerprint_of(parts, codes, features) == whole


def test_a_sealed_file_that_is_nested_too_deeply_is_refused(path):
    title, _, numbers = path.read_bytes()[:-32].split(b"\n", 2)
    sealed(path, b"\n".join([title, b'{"run":' + b"[" * 200_000, numbers]))
    with pytest.raises(StorageError, match="nested too deeply"):
        load_model(path)


def killed_at(step: int, directory: Path) -> int:
    """Write a folder in a process that is killed at one of its renames; return how it ended."""
    child = os.fork()
    if child == 0:
        left = iter(range(step))

        def guarded(act):
            def until(*words):
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return act(*words)

            return until

        for name in ("rename", "replace", "rmdir"):
            setattr(Path, name, guarded(getattr(Path, name)))
        with write_folder(directory, force=True) as draft:
            for name in ("a", "b", "c"):
                (draft / name).write_text("new")
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_folder_that_a_kill_interrupts_is_old_or_new_and_nothing_is_left_over(tmp_path):
    seen, steps = set(), 0
    while True:
        directory = tmp_path / str(steps)
        directory.mkdir()
        for name in ("a", "b", "c", "own"):
            (directory / name).write_text("old")
        done = killed_at(steps, directory) == 0
        settle(directory)
        found = {name: (directory / name).read_text() for name in ("a", "b", "c")}
        assert len(set(found.values())) == 1, (steps, found)
        assert sorted(path.name for path in directory.iterdir()) == ["a", "b", "c", "own"]
        assert (directory / "own").read_text() == "old"
        seen |= set(found.values())
        steps += 1
        if done:
            break
    assert seen == {"old", "new"}
    assert steps > 5


def test_results_that_cannot_be_put_in_place_are_told(tmp_path, monkeypatch):
    (tmp_path / ".ready").mkdir()
    (tmp_path / ".ready" / "a").write_text("new")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StorageError, match="Open it where it can be written"):
        settle(tmp_path)


def test_the_draft_of_a_living_process_stays(tmp_path):
    draft = tmp_path / f".draft-{os.getpid()}-abc"
    draft.mkdir()
    (tmp_path / ".draft-other").mkdir()
    settle(tmp_path)
    assert draft.exists()
    assert (tmp_path / ".draft-other").exists()
