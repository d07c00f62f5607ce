"""What contracts may name: a table of places, roots, hosts and variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from dq.contracts.access.access_policy import AccessPolicy, build_access_policy
from dq.contracts.outcome import UsageError, ValueProblem
from dq.lake.storage import split

SECRET = "ghp_canary_of_the_tests"
ROOTS = ("s3://lake", "s3://shared/team-a", "hdfs://nn:8020/data", "hdfs:///warehouse", "gs://lake/x",
         "abfss://raw@acme.dfs.core.windows.net/in")  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A registry with data, links of every kind, and what is nobody's business beside it."""
    home = tmp_path / "checkout"
    for name in ("lake/orders", ".git", ".secret", "deep/lake"):
        (home / name).mkdir(parents=True)
    (home / ".git" / "config").write_text(SECRET)
    (home / ".env").write_text(SECRET)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text(SECRET)
    for name, target in {
        "out": outside, "lake/linked": outside / "passwd", "hidden": home / ".git", "loop": home / "loop",
        "deep/up": home, "inner": home / "lake", "relative": Path("../outside"), "dangling": outside / "no",
    }.items():  # fmt: skip
        (home / name).symlink_to(target)
    return home


NARROW_TAKES = ("lake", "lake/", "./lake", "lake//orders", "lake/orders/../orders", "lake/*.csv", "inner",
                "deep/../lake", "lake/{a,b}.csv", "deep/up/lake", "not-there-yet/orders", "loop",
                "lake/day=*", "lake/100%", "lake/a b", "lake/año", "lake/x@1", "file:{home}/lake", "file://{home}/lake",
                "file://localhost{home}/lake", "{home}/lake", "deep/lake/../../lake")  # fmt: skip
NARROW_REFUSES = (
    # outside
    "/", "/etc", "/etc/passwd", "..", "../outside", "lake/../../outside/passwd", "//etc/passwd", "///etc",
    "file:/etc/passwd", "file:///etc/passwd", "file://evil/etc", "file:{home}/%2e%2e/outside", "file:lake",
    "FILE:/etc", "{home}-evil", "{home}x/lake", "/proc/self/environ", "/dev/stdin", "lake/../..",
    # by links
    "out", "out/passwd", "relative/passwd", "hidden/config", "deep/up/.env", "dangling", "deep/up/../..",
    # hidden
    ".git", ".git/config", ".env", "./.env", "lake/../.git/config", ".secret", ".*", "*/.env",
    "[.]git/config", ".{git,hg}/config",
    # by patterns
    "{lake,../outside}", "lake/{x,../../outside}/passwd", "lake/*/../../../outside", "{.,x}{.,y}/outside",
    "lake/{a", "lake/a}", "{{a,b},{c,d}}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}", "{/etc,lake}/passwd",
    "[./]./outside", "lake/[!a]",
    # by signs
    "~", "~/x", "~root/x", "lake\\..\\..", "lake?x=1", "lake#x", " lake", "lake ", "lake\n", "lake\0",
    "lake\u202e", "lake\u200b", "lake\t", "lake/%2e%2e/x", "lake/%252e%252e/x", "lake%2f..%2f..", "lake/%5c",
    "lake/%0a",
    "lake/%ff", "%25252525252e", "a:b/c", "C:/x", ":x", "x:y",
    # elsewhere
    "s3://lake/x", "s3a://lake/x", "hdfs://nn/x", "http://169.254.169.254/latest", "ftp://evil/x",
    "jar:file:/x!/y", "data:text,x", "javascript:1",
)  # fmt: skip
WIDE_TAKES = ("s3://lake", "s3://lake/", "s3a://lake/x", "s3n://lake/x/y", "S3://lake/x", "s3://lake/x/*.parquet",
              "s3://shared/team-a", "s3://shared/team-a/x", "hdfs://nn:8020/data/x", "hdfs://NN:8020/data",
              "hdfs:///warehouse/x", "gs://lake/x/y", "abfss://raw@acme.dfs.core.windows.net/in/x",
              "s3://lake/day=2026%3A01", "s3://lake/{a,b}")  # fmt: skip
WIDE_REFUSES = (
    "s3://lake-evil", "s3://lake-evil/x", "s3://lak", "s3://LAKE/x", "s3://shared", "s3://shared/team-ab",
    "s3://shared/team-a/../team-b", "s3://shared/team-b", "s3://shared//team-a", "s3://shared/./team-a",
    "s3://lake@evil/x", "s3://key:secret@lake/x", "s3://evil@lake/x", "s3://lake:80/x", "s3://lake.evil/x",
    "s3:lake/x", "s3:/lake/x", "s3:///lake/x", "s3://lake\\@evil/x", "s3://lake%2fevil", "s3://lake//x",
    "s3://lake/x?endpoint_override=127.0.0.1:9&scheme=http", "s3://lake/x#y", "s3://lake/%3Fendpoint_override=x",
    "s3://lake/%2e%2e/x", "s3://lake/{a,../../evil}", "s3://lake/\nx", "gs://lake/y", "gs://evil/x",
    "hdfs://nn/data/x", "hdfs://nn:8021/data", "hdfs://evil/data", "hdfs:///data", "hdfs://nn:8020/database",
    "hdfs://user:pw@nn:8020/data", "viewfs://nn:8020/data", "webhdfs://nn:8020/data",
    "abfs://raw@acme.dfs.core.windows.net/in/x", "abfss://raw@acme.dfs.core.windows.net.evil/in",
    "abfss://other@acme.dfs.core.windows.net/in", "abfss://a:b@acme.dfs.core.windows.net/in",
    "wasbs://raw@acme.dfs.core.windows.net/in", "http://lake/x", "https://lake.s3.amazonaws.com/x",
    "/etc", "lake", "file:///etc",
)  # fmt: skip


def narrow(home: Path) -> AccessPolicy:
    return build_access_policy(home, registries=[home])


@pytest.mark.parametrize("place", NARROW_TAKES)
def test_without_settings_data_of_the_registry_may_be_named(checkout: Path, place: str) -> None:
    assert isinstance(narrow(checkout).validate(place.replace("{home}", str(checkout))), str)


@pytest.mark.parametrize("place", NARROW_REFUSES)
def test_without_settings_nothing_else_may_be_named(checkout: Path, place: str) -> None:
    assert isinstance(narrow(checkout).validate(place.replace("{home}", str(checkout))), ValueProblem)


@pytest.mark.parametrize("place", WIDE_TAKES)
def test_what_lies_below_a_lake_root_may_be_named(checkout: Path, place: str) -> None:
    assert isinstance(build_access_policy(checkout, ROOTS).validate(place), str)


@pytest.mark.parametrize("place", WIDE_REFUSES)
def test_what_only_looks_like_below_a_lake_root_may_not(checkout: Path, place: str) -> None:
    assert isinstance(build_access_policy(checkout, ROOTS).validate(place), ValueProblem)


@pytest.mark.parametrize(
    ("root", "place", "allowed"),
    [
        ("lake", "lake/orders", True),
        ("lake", "deep/lake", False),
        ("lake", ".", False),
        ("{home}/lake/", "lake/orders", True),
        ("out", "out/passwd", True),
        (".secret", ".secret/x", True),
        ("file:{home}/lake", "lake/orders", True),
        ("{home}", ".git/config", True),  # somebody has chosen it
    ],
)
def test_a_local_root_is_what_it_leads_to(checkout: Path, root: str, place: str, allowed: bool) -> None:
    made = build_access_policy(checkout, [root.replace("{home}", str(checkout))])

    assert isinstance(made.validate(place), str) is allowed


@pytest.mark.parametrize(
    ("place", "allowed"),
    [
        ("hdfs://nn:8020/any", True),
        ("hdfs://nn/any", False),
        ("abfss://any@acme.dfs.core.windows.net/x", True),
        ("abfss://any@dfs.core.windows.net.evil/x", False),
        ("abfss://any@evil-dfs.core.windows.net/x", False),
        ("s3://nn:8020/x", False),
        ("s3://acme.dfs.core.windows.net/x", False),
        ("https://acme.dfs.core.windows.net/x", False),
    ],
)
def test_hosts_are_hosts_and_no_buckets(checkout: Path, place: str, allowed: bool) -> None:
    made = build_access_policy(checkout, [], hosts=["nn:8020", "*.dfs.core.windows.net"])

    assert isinstance(made.validate(place), str) is allowed


@pytest.mark.parametrize(
    "root",
    ["s3://", "s3:a/b", "file://host/x", "s3://a/../b", "s3://a?x", "s3://u:p@a", "s3://a/*", "hdfs://a b/"],
)
def test_a_lake_root_that_is_no_place_is_refused(checkout: Path, root: str) -> None:
    with pytest.raises(UsageError, match="lake root"):
        build_access_policy(checkout, [root])


def test_the_root_of_the_machine_is_no_default(checkout: Path) -> None:
    made = build_access_policy(Path("/"), registries=[Path("/"), checkout])

    assert isinstance(made.validate("/etc/passwd"), ValueProblem)
    assert made.validate(f"{checkout}/lake") == f"{checkout}/lake"


@pytest.mark.parametrize(
    ("names", "value", "default", "given"),
    [
        (["LAKE"], "/data", None, "/data"),
        (["LAKE"], "/data", "/other", "/data"),
        (["LAKE"], "", "/other", "/other"),
        (["LAKE"], None, "/other", "/other"),
        ([], None, "/other", "/other"),
        ([], "", "/other", "/other"),
        ([], None, "", ""),
        (["LAKE"], None, None, "VARIABLE_UNSET"),
        ([], None, None, "VARIABLE_UNSET"),
        ([], SECRET, None, "VARIABLE_WITHHELD"),
        ([], SECRET, "/other", "VARIABLE_WITHHELD"),
        (["lake", "LAKE_", "OTHER"], SECRET, "/other", "VARIABLE_WITHHELD"),
    ],
)
def test_a_variable_is_one_that_the_operator_listed(
    tmp_path: Path, names: list[str], value: str | None, default: str | None, given: str
) -> None:
    environment = {} if value is None else {"LAKE": value}

    found = build_access_policy(tmp_path, names=names, environment=environment).value("LAKE", default)

    assert (found.code if isinstance(found, ValueProblem) else found) == given
    assert SECRET not in str(found)


def test_a_reach_shows_no_value_of_a_variable(tmp_path: Path) -> None:
    made = build_access_policy(tmp_path, names=["LAKE"], environment={"LAKE": SECRET, "TOKEN": SECRET})

    assert SECRET not in repr(made)


@pytest.mark.parametrize(
    "uri",
    ["s3://key:secret@bucket/x", "s3://bucket?endpoint_override=evil/x", "s3://bu cket/x", "/local", "s3:x"],
)
def test_no_file_system_is_opened_by_more_than_a_scheme_and_a_host(uri: str) -> None:
    with pytest.raises(ValueError, match="not a file system URI"):
        split(uri)


def test_a_question_mark_in_the_name_of_a_file_is_no_query() -> None:
    assert split("s3a://bucket/part?endpoint_override=x") == (
        "s3://bucket",
        "/part?endpoint_override=x",
    )


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        pytest.param(lambda lake, out: (lake / "a.csv").write_text("1"), False, id="files"),
        pytest.param(lambda lake, out: (lake / "a.csv").symlink_to(out), True, id="a link to a file"),
        pytest.param(lambda lake, out: (lake / "day=1").symlink_to(out.parent), True, id="to a folder"),
        pytest.param(lambda lake, out: (lake / "a.csv").symlink_to("../../.git/config"), True, id="to .git"),
        pytest.param(lambda lake, out: (lake / "a.csv").symlink_to("orders/b.csv"), False, id="inside"),
        pytest.param(lambda lake, out: (lake / ".a.crc").write_text("1"), False, id="what Hadoop hides"),
    ],
)
def test_data_of_the_registry_is_no_link_to_something_else(checkout, make, refused):
    (checkout / "lake" / "linked").unlink()
    make(checkout / "lake" / "orders", checkout.parent / "outside" / "passwd")

    assert isinstance(narrow(checkout).contents_problem("lake"), ValueProblem) is refused


def test_a_pattern_takes_no_hidden_folder_along(checkout):
    assert isinstance(narrow(checkout).contents_problem("*/config"), ValueProblem)
    assert isinstance(narrow(checkout).contents_problem("{lake,*}/config"), ValueProblem)
    assert narrow(checkout).contents_problem("lake/orders/*") is None
