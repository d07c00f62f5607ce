"""Which files of a folder are contracts: by what they say, and by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from fakes.work import cpu_seconds

from dq.contracts.access.discovery import Discovery, discover, skipped_summary
from dq.contracts.access.files import FileRejected, read
from dq.contracts.odcs import is_contract
from dq.contracts.outcome import ReadError

CONTRACT = "apiVersion: v3.2.0\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"
DBT = "version: 2\nmodels:\n  - name: orders\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"

SAY_SO = {
    "plain": CONTRACT,
    "kind at the end": "id: a\nschema:\n- name: x\n" + "# filler\n" * 20_000 + "kind: DataContract\n",
    "quotes and a comment": "'kind': \"DataContract\"  # ours\nid: a\n",
    "after a document's start": "%YAML 1.2\n---\n# ours\n\nkind: DataContract\n",
    "indented": "  id: a\n  kind: DataContract\n",
    "JSON": '{"apiVersion": "v3.2.0", "kind":"DataContract"}',
    "flow": "{id: a,\n kind: DataContract}",
    "a tag": "kind: !!str DataContract\n",
    "on the next line": "kind:\n  DataContract\n",
    "breaks of Windows": CONTRACT.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + CONTRACT,
    "a slip in the kind": CONTRACT.replace("DataContract", "Datacontrat"),
    "the words apart": CONTRACT.replace("DataContract", "data-contract"),
    "no kind, and the version of ODCS": "apiVersion: v3.1.0\nid: a\nschema: []\n",
    "two documents": CONTRACT + "---\n" + CONTRACT,
    "broken further down": CONTRACT + "schema: [\n",
}
SAY_NOT = {
    "dbt": DBT,
    "a pod": POD,
    "a contract in a config map": POD + "data:\n  orders.yaml: |\n    kind: DataContract\n    id: orders\n",
    "a contract in a list": "contracts:\n- kind: DataContract\n  id: a\n",
    "a comment": "# kind: DataContract\nid: a\n",
    "a word in a text": "note: a file with kind: DataContract is one\n",
    "another kind": "apiVersion: v1.0.0\nkind: DataProduct\nschema: []\n",
    "a chart": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "nothing": "",
}


@pytest.mark.parametrize("case", SAY_SO)
def test_a_document_is_a_contract_when_it_says_so(case: str) -> None:
    assert is_contract(SAY_SO[case].encode())


@pytest.mark.parametrize("case", SAY_NOT)
def test_what_only_speaks_of_contracts_is_none(case: str) -> None:
    assert not is_contract(SAY_NOT[case].encode())


def test_utf_16_is_found_so_that_it_can_be_refused() -> None:
    assert is_contract(CONTRACT.encode("utf-16"))


def _names(found: Discovery) -> list[str]:
    return [one.name for one in found.contracts]


def _written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_contracts_are_found_by_what_they_say_and_by_name(tmp_path: Path) -> None:
    files = {"orders.yaml": CONTRACT, "b/lines.yml": CONTRACT, "any.odcs.yaml": DBT, "readme.txt": CONTRACT}

    found = discover([_written(tmp_path, files)])

    assert _names(found) == ["any.odcs.yaml", "b/lines.yml", "orders.yaml"]


def test_what_was_passed_over_is_told_with_what_it_seems_to_be(tmp_path: Path, monkeypatch) -> None:
    files = {"orders.yaml": CONTRACT, "m/a.yml": DBT, "m/b.yml": DBT, "pod.yaml": POD, "ci.yaml": "a: 1\n"}
    _written(
        tmp_path, {**files, "dq-policy.yaml": "profile: default\n", "subscriptions/a.yaml": "contract: a\n"}
    )
    monkeypatch.chdir(tmp_path)

    found = discover([Path()])

    assert skipped_summary(found.skipped) == (
        "4 YAML files are not contracts: 2 like dbt (m/a.yml, …), 1 like Kubernetes (pod.yaml), "
        "1 of another kind (ci.yaml)."
    )


def test_a_folder_without_contracts_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"contains no contract. 1 YAML file is not a contract: 1 like dbt"):
        discover([_written(tmp_path, {"a.yml": DBT})])


@pytest.mark.parametrize(
    "folder", [".venv", ".hidden", "node_modules", "venv/lib/site-packages", "__pycache__"]
)
def test_what_a_package_manager_or_a_tool_keeps_is_not_entered(tmp_path: Path, folder: str) -> None:
    _written(
        tmp_path, {"orders.yaml": CONTRACT, f"{folder}/other.yaml": CONTRACT, f"{folder}/x.odcs.yaml": ""}
    )

    found = discover([tmp_path])

    assert _names(found) == ["orders.yaml"]
    assert not found.skipped


def test_no_link_of_any_name_is_followed(tmp_path: Path) -> None:
    _written(tmp_path, {"r/orders.yaml": CONTRACT, "outside/secret.yaml": CONTRACT})
    (tmp_path / "r/link.yaml").symlink_to("../outside/secret.yaml")
    (tmp_path / "r/folder").symlink_to("../outside")
    (tmp_path / "r/loop").symlink_to(".")
    os.mkfifo(tmp_path / "r/pipe.yaml")

    assert _names(discover([tmp_path / "r"])) == ["orders.yaml"]


def test_a_yaml_file_that_may_not_be_read_is_found_and_refused() -> None:
    # Not in tmp_path, whose parents are for their owner alone.
    with TemporaryDirectory() as folder:
        _written(Path(folder), {"orders.yaml": CONTRACT})
        Path(folder).chmod(0o755)
        (Path(folder) / "orders.yaml").chmod(0)

        with _no_root():
            (found,) = discover([Path(folder)]).contracts
            with pytest.raises(FileRejected, match="cannot be read"):
                read(found)


@contextmanager
def _no_root() -> Iterator[None]:
    """As a user whose rights count; root may read every file."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_contract_of_gigabytes_is_found_and_refused(tmp_path: Path) -> None:
    _written(tmp_path, {"big.yaml": CONTRACT, "data.yaml": "rows: []\n"})
    for name in ("big.yaml", "data.yaml"):
        os.truncate(tmp_path / name, 3_000_000_000)

    found = discover([tmp_path])

    assert _names(found) == ["big.yaml"]
    with pytest.raises(FileRejected, match="more than"):
        read(found.contracts[0])


def test_a_path_that_is_named_twice_gives_each_file_once(tmp_path: Path) -> None:
    _written(tmp_path, {"a/orders.yaml": CONTRACT, "a/x.yml": DBT})

    found = discover([tmp_path, tmp_path / "a", tmp_path / "a" / "x.yml"])

    assert sorted(one.path.name for one in found.contracts) == ["orders.yaml", "x.yml"]


def test_thousands_of_other_files_cost_no_parse(tmp_path: Path) -> None:
    text = POD + "spec:\n" + "".join(f"  - {{name: n{row}, value: {row}}}\n" for row in range(300))
    _written(tmp_path, {f"k/{number}.yaml": text for number in range(3_000)} | {"orders.yaml": CONTRACT})

    assert len(discover([tmp_path]).skipped) == 3_000
    # libyaml, the fastest parser at hand, takes more than ten times as long for all of them.
    parse_of_300 = cpu_seconds(lambda: [yaml.load(text, yaml.CSafeLoader) for _ in range(300)], runs=1)
    assert cpu_seconds(lambda: discover([tmp_path])) < parse_of_300
