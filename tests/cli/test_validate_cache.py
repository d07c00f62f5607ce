"""Results of `dq validate` are reused for contracts that have not changed, and change no finding."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from dq.contracts.access.files import FileRef, open_private, read_private, write_private
from dq.operations.gate import lint_registry, unenforced
from dq.operations.gate_cache import open_cache
from dq.operations.runtime.context import runtime_context
from dq.validators.lint import FileResult, Linter, lint_contract, load_rules
from dq.validators.policy.policy import DEFAULT
from dq.validators.reports import names

TODAY = date(2026, 11, 21)
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
domain: {domain}
servers:
  - {{server: lake, type: local, path: lake/{table}, format: parquet}}
  - {{server: glue, type: glue, account: '123456789012', database: core, location: 's3://lake/{table}/'}}
team: {{members: [{{username: ana@example.com, role: owner}}]}}
support:
  - {{channel: "#sales", tool: slack, scope: notifications}}
schema:
  - name: {table}
    id: {table}_id
    description: One row per order — für alle.
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, id: number, logicalType: integer, physicalType: bigint, required: true}}
      - name: lines
        logicalType: array
        items: {{logicalType: object, properties: [{{name: price, logicalType: number}}]}}
"""
SLO = """\
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {table}
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          grace: 30m
          partition: {{day: "{{due - 1d:%F}}"}}
          calendar: {{skip: ["2026-12-25"], valid_until: 2026-12-31}}
"""
PLUGIN = """\
    quality:
      - {type: custom, engine: dq, implementation: {check: luhn}, mustBe: 0}
"""
REFERENCE = """\
    relationships:
      - {{from: {table}.id, to: {other}}}
"""
POLICY = """\
profile: strict
sections:
  - {for: {path: "sales/**"}, rules: {missing-owner: {severity: critical}}}
  - {for: {domain: web}, profile: default}
rules:
  missing-description: {severity: error}
own:
  named-after-domain:
    select: contract
    assert: {name: {exists: true}}
    message: it has no name.
waivers:
  - {rule: named-after-domain, contract: c-3, path: name, reason: Old., by: Ana, expires: 2026-12-01}
  - {rule: named-after-domain, contract: c-4, path: name, reason: Old., by: Ana, expires: 2026-01-01}
"""


def contract(number: int) -> str:
    """The contract of this number: good, or with one of many mistakes."""
    table = f"t{number}"
    text = CONTRACT.format(id=f"c-{number}", domain=("sales", "web", "hr")[number % 3], table=table)
    match number % 12:
        case 1:
            return text.replace("status: active", "status: activ\nstatuss: x")
        case 2:
            return text.replace("version: 1.0.0", "version: 1.10")
        case 3:
            return text + REFERENCE.format(table=table, other=f"t{number - 3}.id")
        case 4:
            return text + REFERENCE.format(table=table, other="nowhere.id")
        case 5:
            return text + SLO.format(table=table)
        case 6:
            return text.replace(f"id: c-{number}", f"id: c-{number - 6}")
        case 7:
            return text.replace(f"lake/{table}", "lake/t1").replace("logicalType: date", "logicalType: dat")
        case 8:
            return text + PLUGIN
        case 9:
            return text.replace("schema:", "schema: [")
        case 10:
            return text.replace("name: lines", "name: [lines]").replace("required: true", "required: perhaps")
        case 11:
            return text + REFERENCE.format(
                table=table, other=f"c-{number + 1}.odcs.yaml#/schema/t{number}_id"
            )
        case _:
            return text


# Their results are not saved: one asks a plug-in, the other is no YAML.
NEVER = (8, 9)


@pytest.fixture(scope="module")
def contracts() -> dict[str, str]:
    return {f"{('sales', 'web')[number % 2]}/c-{number}.odcs.yaml": contract(number) for number in range(60)}


@pytest.fixture
def registry(tmp_path: Path, contracts: dict[str, str]) -> Path:
    """Sixty contracts with many kinds of findings, and a policy."""
    folder = tmp_path / "registry"
    for name, text in contracts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "dq-policy.yaml").write_text(POLICY)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "dq"


def lint(registry: Path, cache: Path | None, today: date = TODAY, policy: Path | None = None):
    return lint_registry([registry], policy, today, 1, cache_folder=cache)


def found(registry: Path, cache: Path, today: date = TODAY) -> dict[str, FileResult]:
    """What the cache has for the registry's files, by name."""
    refs = [(file.relative_to(registry).as_posix(), file) for file in sorted(registry.rglob("*.odcs.yaml"))]
    policy = (registry / "dq-policy.yaml").read_bytes()
    opened = open_cache(cache, registry, [registry], ("dq-policy.yaml", policy), None, today)
    return opened.find([(name, FileRef(file.parent, file.name)) for name, file in refs])


def only_file(cache: Path) -> Path:
    (file,) = cache.iterdir()
    return file


# --- what is reused, and what is not


def test_findings_are_the_same_with_and_without_the_cache_in_every_format(dq, registry, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    for format in names():
        shutil.rmtree(cache, ignore_errors=True)
        plain = dq("validate", str(registry), "--format", format, "--no-cache")
        assert not cache.exists()
        first = dq("validate", str(registry), "--format", format)
        written = only_file(cache).stat().st_ino
        second = dq("validate", str(registry), "--format", format)

        assert plain.code == 1
        assert first == plain, format
        assert second == plain, format
        # The contract with a plug-in's rule is evaluated again, and nothing new is saved.
        assert only_file(cache).stat().st_ino == written


def test_each_result_is_restored_exactly(registry, cache, contracts):
    lint(registry, cache)
    results = found(registry, cache)

    never = {name for number, name in enumerate(contracts) if number % 12 in NEVER}
    assert results.keys() == contracts.keys() - never
    rules = load_rules()
    from dq.operations.registry_files import parse_policy

    policy = parse_policy(("dq-policy.yaml", POLICY.encode()), rules)
    linter = Linter(rules, policy, TODAY, unenforced)
    for name, result in results.items():
        fresh = lint_contract(linter, name, contracts[name].encode())
        assert _plain(result) == _plain(fresh), name
    assert any(result.cascade is not None for result in results.values())
    assert any(result.entry.references for result in results.values())
    assert any(result.entry.tables for result in results.values())
    assert any(result.entry.repeated for result in results.values())


def _plain(result: FileResult) -> tuple:
    cascade = result.cascade
    form = None if cascade is None else [(item.rule, item.severity, item.path) for item in cascade.form]
    entry = result.entry
    # The order of the names is that of a set.
    alike = (entry.file, entry.identity, entry.location, entry.objects, sorted(entry.names.split("\n")))
    others = (entry.repeated, entry.ids, entry.references, entry.tables)
    return (
        *(result.file, result.findings, result.data, result.domain, result.digest, result.day),
        *(form, cascade and cascade.removed_paths, alike, others),
    )


def test_one_changed_contract_is_evaluated_again_and_saved(registry, cache):
    lint(registry, cache)
    changed = registry / "sales" / "c-0.odcs.yaml"
    changed.write_text(contract(0).replace("status: active", "status: activ"))

    assert "sales/c-0.odcs.yaml" not in found(registry, cache)
    assert lint(registry, cache) == lint(registry, None)
    assert "sales/c-0.odcs.yaml" in found(registry, cache)


def test_a_moved_contract_is_evaluated_by_the_policy_of_its_new_folder(registry, cache):
    lint(registry, cache)
    (registry / "sales" / "c-0.odcs.yaml").rename(registry / "web" / "c-0.odcs.yaml")

    assert "web/c-0.odcs.yaml" not in found(registry, cache)
    assert lint(registry, cache) == lint(registry, None)


def test_another_policy_reuses_nothing(registry, cache):
    lint(registry, cache)
    (registry / "dq-policy.yaml").write_text("profile: default\n")

    assert found(registry, cache) == {}
    assert lint(registry, cache) == lint(registry, None)


def test_a_policy_of_the_operator_reuses_nothing_of_the_registry_s(registry, cache, tmp_path):
    lint(registry, cache)
    policy = tmp_path / "other.yaml"
    policy.write_text("rules: {missing-description: {severity: critical}}\n")

    assert lint(registry, cache, policy=policy) == lint(registry, None, policy=policy)


def test_on_another_day_only_contracts_whose_rules_read_the_date_are_evaluated_again(
    registry, cache, contracts
):
    lint(registry, cache)
    today = set(found(registry, cache))
    later = TODAY + timedelta(days=400)

    dated = {name for number, name in enumerate(contracts) if number % 12 == 5}
    assert today - set(found(registry, cache, later)) == dated
    assert lint(registry, cache, later) == lint(registry, None, later)
    assert lint(registry, None, later) != lint(registry, None)


def test_the_official_schema_is_a_fact_of_a_result(registry, cache):
    pytest.importorskip("open_data_contract_standard")
    arguments = [registry], None, TODAY, 1
    lint_registry(*arguments, cache_folder=cache)

    official = lint_registry(*arguments, official=True, cache_folder=cache)

    assert official == lint_registry(*arguments, official=True)
    assert official == lint_registry(*arguments, official=True, cache_folder=cache)


def test_a_few_contracts_are_evaluated_without_a_cache(dq, registry, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    dq("validate", str(registry / "sales" / "c-0.odcs.yaml"))
    assert not cache.exists()


# --- what else may lie there


def poisons() -> Iterator[tuple[str, Callable[[Path, random.Random], None]]]:
    """A hundred ways to spoil a cache file."""

    def cut(file: Path, draw: random.Random) -> None:
        data = file.read_bytes()
        file.write_bytes(data[: draw.randrange(len(data))])

    def flip(file: Path, draw: random.Random) -> None:
        data = bytearray(file.read_bytes())
        for _ in range(draw.choice((1, 1, 2, 50))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)

    def no_errors(file: Path, draw: random.Random) -> None:
        data = file.read_bytes()
        word = draw.choice((b'"error"', b'"missing-description"', b'"wrong-type"', b"c-1", b"t1"))
        file.write_bytes(data.replace(word, draw.choice((b'"info"', b'""', b"x"))))

    def swap(file: Path, draw: random.Random) -> None:
        lines = file.read_bytes().split(b"\n")
        first, second = draw.sample(range(2, len(lines)), 2)
        names = [lines[index].split(b",", 1) for index in (first, second)]
        lines[first], lines[second] = (b",".join((names[a][0], names[1 - a][1])) for a in (0, 1))
        file.write_bytes(b"\n".join(lines))

    def drop(file: Path, draw: random.Random) -> None:
        lines = file.read_bytes().split(b"\n")
        del lines[draw.randrange(2, len(lines))]
        file.write_bytes(b"\n".join(lines))

    def noise(file: Path, draw: random.Random) -> None:
        file.write_bytes(draw.randbytes(draw.randrange(4_000)))

    def longer(file: Path, draw: random.Random) -> None:
        file.write_bytes(file.read_bytes() + draw.choice((b"\n[]", b"\0", b"\n" * 9)))

    for number in range(100):
        change = (cut, flip, flip, no_errors, swap, drop, noise, longer)[number % 8]
        yield f"{change.__name__}-{number}", change


def test_a_hundred_poisoned_caches_change_no_finding(registry, cache):
    plain = lint(registry, None)
    lint(registry, cache)
    file = only_file(cache)
    good = file.read_bytes()
    for name, poison in poisons():
        draw = random.Random(name)
        file.write_bytes(good)
        poison(file, draw)
        spoiled = file.read_bytes() != good
        assert not spoiled or found(registry, cache) == {}, name
        assert lint(registry, cache) == plain, name


def test_a_result_under_the_name_of_another_contract_is_not_used(registry, cache, contracts):
    results = list(contracts)
    linter = Linter(load_rules(), DEFAULT, TODAY, unenforced)
    good = lint_contract(linter, results[0], contracts[results[0]].encode())
    policy = ("dq-policy.yaml", POLICY.encode())
    opened = open_cache(cache, registry, [registry], policy, None, TODAY)
    forged = [
        FileResult(name, [], None, None, None, None, good.digest)
        for name in results
        if contracts[name] != contracts[results[0]]
    ]
    opened.save(forged)

    assert found(registry, cache) == {}
    assert lint(registry, cache) == lint(registry, None)


def test_the_cache_of_another_version_of_the_code_is_not_used(registry, cache):
    lint(registry, cache)
    file = only_file(cache)
    data = file.read_bytes()
    (registry / "dq-policy.yaml").write_text("profile: default\n")
    lint(registry, cache)
    (registry / "dq-policy.yaml").write_text(POLICY)
    assert only_file(cache).read_bytes() != data

    # Its key has the facts of the run, so it is not one of this run.
    assert found(registry, cache) == {}
    assert lint(registry, cache) == lint(registry, None)


def something_else(kind: str, file: Path, aside: Path) -> None:
    """Put something else than a file of this user in the place of the cache file."""
    match kind:
        case "link":
            file.rename(aside)
            file.symlink_to(aside)
        case "folder":
            file.unlink()
            file.mkdir()
        case "pipe":
            file.unlink()
            os.mkfifo(file)
        case "world-writable file":
            file.chmod(0o666)
        case "open folder":
            file.parent.chmod(0o755)
        case "file instead of the folder":
            shutil.rmtree(file.parent)
            file.parent.write_text("")
        case "file of another user":
            os.chown(file, 12345, 12345)
        case "folder of another user":
            os.chown(file.parent, 12345, 12345)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes and owners")
@pytest.mark.parametrize(
    "kind",
    [
        *("link", "folder", "pipe", "world-writable file", "open folder"),
        *("file instead of the folder", "file of another user", "folder of another user"),
    ],
)
def test_what_another_user_could_have_laid_there_is_not_used(registry, cache, tmp_path, kind):
    if "another user" in kind and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    plain = lint(registry, None)
    lint(registry, cache)
    something_else(kind, only_file(cache), tmp_path / "aside")

    assert found(registry, cache) == {}
    assert lint(registry, cache) == plain


@pytest.mark.parametrize("home", ["registry", "repository"])
def test_a_cache_that_came_with_the_checkout_is_neither_used_nor_written(dq, registry, monkeypatch, home):
    """The home folder of a CI job may be its checkout."""
    if home == "repository":
        (registry.parent / ".git").mkdir()
    folder = registry if home == "registry" else registry.parent
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(folder))

    assert dq("validate", str(registry)) == dq("validate", str(registry), "--no-cache")
    assert not (folder / ".cache").exists()


@pytest.mark.parametrize("home", ["", "relative", "/dev/null", "/proc/self"])
def test_without_a_home_that_can_be_written_there_is_no_cache_and_no_message(dq, registry, monkeypatch, home):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)

    assert dq("validate", str(registry)) == dq("validate", str(registry), "--no-cache")


def test_a_relative_cache_folder_is_ignored_as_it_could_be_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert runtime_context().cache_folder() == tmp_path / ".cache" / "dq"


def test_a_cache_folder_that_is_a_link_into_the_checkout_is_not_used(registry, cache):
    (registry / "planted").mkdir(mode=0o700)
    cache.parent.mkdir()
    cache.symlink_to(registry / "planted")

    assert lint(registry, cache) == lint(registry, None)
    assert list((registry / "planted").iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_root_creates_no_cache_in_the_home_folder_of_another_user(registry, cache):
    cache.parent.mkdir()
    os.chown(cache.parent, 12345, 12345)

    assert lint(registry, cache) == lint(registry, None)
    assert not cache.exists()


def _run(registry: Path, cache: Path, days: int) -> int:
    return len(lint(registry, cache, TODAY + timedelta(days=days)).findings)


def test_runs_at_the_same_time_do_not_disturb_each_other(registry, cache):
    expected = [len(lint(registry, None, TODAY + timedelta(days=days)).findings) for days in (0, 400)]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        counts = pool.starmap(_run, [(registry, cache, 400 * (number % 2)) for number in range(12)])

    assert counts == expected * 6
    assert len(list(cache.iterdir())) == 1
    assert lint(registry, cache) == lint(registry, None)


def test_the_oldest_files_are_deleted_above_the_limit(tmp_path):
    with open_private(tmp_path / "cache") as folder:
        for number in range(6):
            write_private(folder, f"validate-{number}", bytes(100), 350)
            os.utime(tmp_path / "cache" / f"validate-{number}", (number, number))

        assert read_private(folder, "validate-5", 100) == bytes(100)
        with pytest.raises(Exception, match="validate-5"):
            read_private(folder, "validate-5", 99)
    names = sorted(file.name for file in (tmp_path / "cache").iterdir())
    assert names == ["validate-3", "validate-4", "validate-5"]
