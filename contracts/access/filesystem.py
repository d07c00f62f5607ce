"""The one door to file systems behind a URI: opened by scheme and host alone.

pyarrow takes settings of the connection from a query, another endpoint and credentials among them, and a
name in a lake may hold a `?`. Whoever comes here has a place that a `Reach` vouched for, or one that Spark
has listed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from dq.contracts.access.address import FAMILIES
from dq.contracts.shared.errors import MissingTool
from dq.contracts.shared.install import install_command

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

# The container of Azure stands where other schemes could have a user and a password.
_URI = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]+)://((?:[A-Za-z0-9$._\-]+@)?[A-Za-z0-9._\-]*(?::[0-9]+)?)(/.*)?", re.DOTALL
)
_WITH_CONTAINER = frozenset({"abfs", "abfss"})
AT_ONCE = 32
"""How many questions to a storage wait for their answers at once."""


def mend_of(error: Exception, otherwise: str) -> str:
    """How to come to what could not be reached: HDFS needs more than pyarrow, which does not say what."""
    # The second attempt in a process only says that there was one before.
    if not re.search("lib(jvm|hdfs)", str(error)):
        return otherwise
    return (
        "HDFS needs a JVM and Hadoop's native client: on a machine of the cluster, export JAVA_HOME, "
        "HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob)."
    )


def split(uri: str) -> tuple[str, str]:
    """The scheme with the host, as `opened` takes it, and the path as it is written, without any escape.

    Raises ValueError for what is no address of a file system, and for one with a user.
    """
    match = _URI.fullmatch(uri)
    if match is None or ("@" in match[2] and match[1].lower() not in _WITH_CONTAINER):
        raise ValueError("it is no address of a file system")
    scheme = match[1].lower()
    # pyarrow knows one name of S3 alone.
    return f"{FAMILIES.get(scheme, scheme)}://{match[2]}", match[3] or ""


def load() -> None:
    """Loads what opens file systems, where it is installed: a cold disk is not to be timed with a storage."""
    with suppress(ImportError):
        import pyarrow.fs  # noqa: F401  # for who asks next


def opened(root: str, seconds: float | None = None) -> tuple[FileSystem, str]:
    """The file system of a scheme and a host, with the credentials of the environment, and what comes before
    each path in it. With `seconds`, S3 has so long for an answer, in two attempts.

    Raises MissingTool without pyarrow, ValueError for a scheme that it does not know, OSError when the file
    system cannot be reached.
    """
    try:
        from pyarrow import fs, io_thread_count, set_io_thread_count
    except ImportError as error:
        raise MissingTool(f"{root} needs pyarrow, which is not installed.", install_command("s3")) from error
    # Its own eight threads would let no more than eight questions out, however many ask; S3's client takes as
    # many connections, when it is made.
    set_io_thread_count(max(io_thread_count(), AT_ONCE))
    system, before = fs.FileSystem.from_uri(f"{root}/")
    if seconds is not None and isinstance(system, fs.S3FileSystem):
        # Its own client waits for minutes, also when the process wants to end.
        make, (terms,) = system.__reduce__()
        twice = fs.AwsStandardS3RetryStrategy(max_attempts=2)
        half = seconds / 2
        system = make({**terms, "connect_timeout": half, "request_timeout": half, "retry_strategy": twice})
    return system, before.rstrip("/")
