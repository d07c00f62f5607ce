"""An Iceberg REST catalog over HTTP: the server of Iceberg's own tests, behind a proxy that sees every call.

The proxy counts what is on the wire, and can lose answers, fail, or kill the caller between two calls.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from fakes.jvm import SETTINGS
from fakes.ports import free_port
from fakes.quiet_server import QuietServer

VERSION = "1.10.1"
_JETTY = "11.0.26"
# The server, what it is made of, and where it keeps its tables. The rest comes with these.
_MODULES = f"""
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="dq" module="iceberg-server"/>
  <dependencies defaultconf="default->default">
    <dependency org="org.apache.iceberg" name="iceberg-open-api" rev="{VERSION}" transitive="false">
      <artifact name="iceberg-open-api" type="jar" m:classifier="test-fixtures"/>
    </dependency>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="{VERSION}" conf="default->default">
      <artifact name="iceberg-core" type="jar"/>
      <artifact name="iceberg-core" type="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.eclipse.jetty" name="jetty-servlet" rev="{_JETTY}"/>
    <dependency org="org.xerial" name="sqlite-jdbc" rev="3.50.3.0" transitive="false"/>
  </dependencies>
</ivy-module>
"""
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class RestCall:
    """One call on the wire, and the body that it had."""

    method: str
    path: str
    body: bytes

    @property
    def writes(self) -> bool:
        return self.method in ("POST", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class RestAnswer:
    status: int
    body: bytes


RestFault = Callable[[RestCall, Callable[[], RestAnswer]], RestAnswer | None]
"""What happens to a call instead: gets the call and what would forward it; None hangs up."""


@dataclass
class RestProxy:
    """The server that clients talk to. `faults` are for calls that write, and used up."""

    backend: int
    calls: list[RestCall] = field(default_factory=list)
    faults: list[RestFault] = field(default_factory=list)
    kill_at: tuple[int, str] | None = None
    victim: int = 0

    def __post_init__(self) -> None:
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {"PYICEBERG_CATALOG__DEFAULT__URI": f"http://127.0.0.1:{self._server.server_port}"}

    @property
    def address(self) -> str:
        """Of the server itself, for other readers and writers."""
        return f"http://127.0.0.1:{self.backend}"

    def reset(self) -> None:
        """Forgets every table, call and fault."""
        from pyiceberg.catalog.rest import RestCatalog

        rest = RestCatalog("theirs", uri=self.address)
        namespaces = rest.list_namespaces()
        for namespace in namespaces:
            namespaces += rest.list_namespaces(namespace)
        for namespace in reversed(namespaces):
            for name in rest.list_tables(namespace):
                rest.drop_table(name)
            for name in rest.list_views(namespace):
                rest.drop_view(name)
            rest.drop_namespace(namespace)
        self.calls.clear()
        self.faults.clear()
        self.kill_at = None

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The writes within the block."""
        start = len(self.calls)
        seen: list[str] = []
        yield seen
        seen += [f"{call.method} {call.path}" for call in self.calls[start:] if call.writes]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, call: RestCall, forward: Callable[[], RestAnswer]) -> RestAnswer | None:
        self.calls.append(call)
        self._kill("before")
        made = self.faults.pop(0)(call, forward) if call.writes and self.faults else forward()
        self._kill("after")
        return made

    def _kill(self, when: str) -> None:
        if self.kill_at == (len(self.calls), when):
            os.kill(self.victim, signal.SIGKILL)


def _handler(proxy: RestProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body in one packet: two would wait for each other
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = ("content-type", "authorization")
            headers = {name: text for name, text in self.headers.items() if name.lower() in kept}

            def forward() -> RestAnswer:
                connection = http.client.HTTPConnection("127.0.0.1", proxy.backend, timeout=300)
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                made = RestAnswer(answer.status, answer.read())
                connection.close()
                return made

            answer = proxy.answer(RestCall(self.command, self.path, body), forward)
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_DELETE(self) -> None:
            self._serve()

        def do_HEAD(self) -> None:
            self._serve()

    return Handler


def _jars(folder: Path) -> list[str]:
    """The jars of the server, taken from Maven Central by the Ivy of Spark, or kept from the last time."""
    import pyspark

    spark = Path(str(pyspark.__file__)).parent / "jars"
    (folder / "ivy.xml").write_text(_MODULES)
    (ivy,) = spark.glob("ivy-*.jar")
    made = folder / "classpath"
    command = ["java", *SETTINGS["SPARK_LAUNCHER_OPTS"].split(), "-jar", str(ivy)]
    command += ["-ivy", str(folder / "ivy.xml"), "-cachepath", str(made), "-warn"]
    # A download may fail once; what it has fetched is kept.
    for _ in range(3):
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    hadoop = [str(jar) for jar in spark.glob("hadoop-client-*.jar")]
    return [*made.read_text().strip().split(os.pathsep), *hadoop]


@contextmanager
def serving(folder: Path) -> Iterator[RestProxy]:
    """The server, in a JVM of its own, with its tables below the folder, and the proxy before it."""
    port = free_port()
    command = ["java", *SETTINGS["SPARK_LAUNCHER_OPTS"].split()]
    command += ["-cp", os.pathsep.join(_jars(folder)), "org.apache.iceberg.rest.RESTCatalogServer"]
    settings = {
        "CATALOG_WAREHOUSE": f"{folder}/warehouse",
        "CATALOG_URI": f"jdbc:sqlite:file:{folder}/catalog.db",
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
        # As other catalogs are: no table without a namespace.
        "CATALOG_JDBC_STRICT__MODE": "true",
        "CATALOG_REST_PORT": str(port),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(process, port, folder / "log")
        proxy = RestProxy(port)
        yield proxy
        proxy.close()
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(_SECONDS * 10):
        if process.poll() is not None:
            raise RuntimeError(log.read_text(errors="replace")[-2000:])
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/v1/config")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the Iceberg server did not start")
