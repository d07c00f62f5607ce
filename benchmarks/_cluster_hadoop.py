"""HDFS and YARN on the nodes of a cluster, by the daemons in Hadoop's package for tests of its clients."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from _cluster import SPARK_HOME, WORK, Node

HOME = "/opt/hadoop"
_CONFIGURATION = f"{WORK}/configuration"
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
"""


@dataclass
class Hadoop:
    """A name node and a resource manager on one node, a data node and a node manager on each other one."""

    master: Node
    workers: tuple[Node, ...]
    configuration: Path

    @property
    def url(self) -> str:
        return f"hdfs://{self.master.name}:9000"

    def start(self, options: str) -> None:
        """Start the daemons, with options of their JVMs, and wait until the nodes have registered."""
        self._configure(self.configuration)
        for node in (self.master, *self.workers):
            self._configure(node.root / _CONFIGURATION.lstrip("/"))
        # Amazon's bundle has an earlier slf4j, which finds no back end, and a daemon that fails says nothing.
        (logging,) = (self.master.root / SPARK_HOME.lstrip("/") / "jars").glob("slf4j-api-*.jar")
        path = f"{_CONFIGURATION}:{SPARK_HOME}/jars/{logging.name}:{SPARK_HOME}/jars/*:{HOME}/*"
        # Its web pages are made by a library that is older than Java 17.
        opened = "--add-opens=java.base/java.lang=ALL-UNNAMED"
        logs = f"-Dyarn.log.dir={WORK}/logs"
        java = ("java", *options.split(), opened, logs, "-Xmx256m", "-cp", path)
        name_node = "org.apache.hadoop.hdfs.server.namenode.NameNode"
        formatted = self.master.run(*java, name_node, "-format")
        if formatted.returncode != 0:
            raise SystemExit(formatted.stderr[-2_000:])
        self.master.start(*java, name_node)
        self.master.start(*java, "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager")
        for node in self.workers:
            node.start(*java, "org.apache.hadoop.hdfs.server.datanode.DataNode")
            node.start(*java, "org.apache.hadoop.yarn.server.nodemanager.NodeManager")

    def wait(self, seconds: float = 600) -> None:
        """Wait until each data node and node manager has registered."""
        end = time.monotonic() + seconds
        while not all(self._is_registered(node) for node in self.workers):
            if time.monotonic() > end:
                logs = "\n".join(
                    f"{node.name}:\n{node.log()[-3_000:]}" for node in (self.master, *self.workers)
                )
                raise SystemExit(f"Hadoop does not start:\n{logs}")
            time.sleep(0.5)

    def _is_registered(self, node: Node) -> bool:
        log = node.log()
        return "successfully registered with NN" in log and "Registered with ResourceManager" in log

    def first_containers(self) -> str:
        """Return what the first containers of applications, such as drivers, printed last."""
        logs = WORK.lstrip("/") + "/logs/userlogs"
        files = (file for node in self.workers for file in (node.root / logs).glob("*/*_000001/std*"))
        return "\n".join(file.read_text("utf-8", "replace")[-3_000:] for file in sorted(files))

    def put(self, spark: Path, folder: Path, target: str) -> None:
        """Copy a folder of this machine to HDFS, by the client in Spark's home."""
        command = ["java", "-cp", f"{self.configuration}:{spark}/jars/*", "org.apache.hadoop.fs.FsShell"]
        done = subprocess.run(
            [*command, "-put", str(folder), target], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr[-2_000:])

    def _configure(self, folder: Path) -> None:
        """Write the files of settings. The pages of the daemons have to exist, and may be empty."""
        folder.mkdir(parents=True, exist_ok=True)
        for page in ("cluster", "node"):
            (folder / "webapps" / page).mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.properties").write_text(_LOGGING, "utf-8")
        for name, settings in self._settings().items():
            (folder / f"{name}.xml").write_text(_xml(settings), "utf-8")

    def _settings(self) -> dict[str, dict[str, object]]:
        core = {"fs.defaultFS": self.url, "hadoop.tmp.dir": f"{WORK}/hadoop"}
        hdfs = {
            "dfs.replication": 2,
            "dfs.permissions.enabled": "false",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.client.use.datanode.hostname": "true",
        }
        yarn = {
            "yarn.resourcemanager.hostname": self.master.name,
            "yarn.nodemanager.resource.memory-mb": 2_400,
            "yarn.nodemanager.resource.cpu-vcores": 2,
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.scheduler.minimum-allocation-mb": 100,
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,LANG",
            "yarn.application.classpath": "",
        }
        queue = "yarn.scheduler.capacity"
        capacity = {
            f"{queue}.root.queues": "default",
            f"{queue}.root.default.capacity": 100,
            f"{queue}.root.default.state": "RUNNING",
            f"{queue}.maximum-am-resource-percent": 1,
            f"{queue}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
        }
        return {"core-site": core, "hdfs-site": hdfs, "yarn-site": yarn, "capacity-scheduler": capacity}


def _xml(settings: Mapping[str, object]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(str(text))}</value></property>\n"
        for name, text in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n"
