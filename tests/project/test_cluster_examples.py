"""The examples for clusters: what they name exists, and no secret stands in them.

`tests/cluster/test_submitting.py` runs their commands.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from ruamel.yaml import YAML

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KUBERNETES = EXAMPLES / "kubernetes"
OF_SPARK = ("job", "cronjob")
FILES = (*OF_SPARK, "trend")
JARS = Path(pyspark.__file__).parent / "jars"
SETTING = re.compile(r"\bspark(?:\.\w+)+")
SETTLED_IN = re.compile(r"/config/|/SparkConf\.class|/k8s/Config|/yarn/Client\b")
"""The classes that name Spark's settings."""
NAMED_BY_PEOPLE = ("spark.executorEnv.", "spark.yarn.appMasterEnv.", ".secretKeyRef.")
"""What comes behind these is a name of an environment variable."""
SECRET = re.compile(r"KEY|SECRET|PASSWORD|TOKEN")


def documents(name: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all((KUBERNETES / f"{name}.yaml").read_text("utf-8")))


def pod_of(name: str) -> dict[str, Any]:
    spec = documents(name)[-1]["spec"]
    pod: dict[str, Any] = spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]
    return pod


def settings() -> Iterator[str]:
    for path in (*KUBERNETES.glob("*.yaml"), EXAMPLES / "yarn" / "submit.sh"):
        for line in path.read_text("utf-8").splitlines():
            if re.search("--conf[= ]", line):
                yield SETTING.findall(line)[0]


def test_every_setting_is_one_of_sparks() -> None:
    named = set(settings())
    assert len(named) > 10
    sought = {
        next((name[: name.index(each) + len(each)] for each in NAMED_BY_PEOPLE if each in name), "")
        or name
        for name in named
    }
    for jar in ("spark-core", "spark-kubernetes", "spark-yarn", "spark-common-utils"):
        for path in JARS.glob(f"{jar}_*.jar"):
            with zipfile.ZipFile(path) as archive:
                classes = b"".join(
                    archive.read(each) for each in archive.namelist() if SETTLED_IN.search(each)
                )
            sought = {each for each in sought if each.encode() not in classes}
    assert sought == set()


@pytest.mark.parametrize("name", FILES)
def test_documents_are_of_kinds_that_kubernetes_has(name: str) -> None:
    kinds = {(each["apiVersion"], each["kind"]) for each in documents(name)}
    assert kinds <= {
        ("v1", "ServiceAccount"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
    }
    assert all(each["metadata"]["name"] for each in documents(name))


@pytest.mark.parametrize("name", FILES)
def test_what_a_pod_refers_to_is_declared(name: str) -> None:
    pod = pod_of(name)
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"
    mounted = {each["name"] for each in container.get("volumeMounts", ())}
    assert mounted == {each["name"] for each in pod.get("volumes", ())}
    words = " ".join(container["args"])
    variables = {each["name"]: each for each in container.get("env", ())}
    assert set(re.findall(r"\$\((\w+)\)", words)) <= set(variables)
    roots = [each["mountPath"] for each in container.get("volumeMounts", ())]
    for path in re.findall(r"(?<![\w:/])/\w[\w./-]*", words):
        assert path.startswith(("/opt/groupscope/", *roots)), path


@pytest.mark.parametrize("name", FILES)
def test_secrets_come_from_secrets(name: str) -> None:
    (container,) = pod_of(name)["containers"]
    for each in container.get("env", ()):
        assert "value" not in each
        assert ("secretKeyRef" in each["valueFrom"]) == bool(SECRET.search(each["name"]))
    given = [each for each in container["args"] if SECRET.search(each)]
    assert all(".secretKeyRef." in each for each in given)
    # The driver has what executors have, of the same secret.
    driver = {
        f"{each['name']}={each['valueFrom']['secretKeyRef']['name']}:"
        f"{each['valueFrom']['secretKeyRef']['key']}"
        for each in container.get("env", ())
        if "secretKeyRef" in each["valueFrom"]
    }
    assert {each.partition(".secretKeyRef.")[2] for each in given} == driver


@pytest.mark.parametrize("name", FILES)
def test_an_exit_code_of_groupscope_is_not_tried_again(name: str) -> None:
    spec = documents(name)[-1]["spec"]
    job = spec.get("jobTemplate", {"spec": spec})["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    (container,) = pod_of(name)["containers"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["containerName"] == container["name"]
    assert rule["onExitCodes"]["values"] == [1, 2, 3, 4]


def test_the_job_may_do_what_its_driver_does() -> None:
    account, role, binding, _ = documents("job")
    assert pod_of("job")["serviceAccountName"] == account["metadata"]["name"]
    assert binding["subjects"] == [{"kind": account["kind"], "name": account["metadata"]["name"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_the_image_has_what_the_containers_start(repository: Path) -> None:
    image = (KUBERNETES / "Dockerfile").read_text("utf-8")
    copied = [
        line.split()[1:]
        for line in re.sub(r"\\\n", " ", image).splitlines()
        if line.startswith("COPY") and "--from" not in line
    ]
    sources = {source for *some, _ in copied for source in some}
    assert {each for each in sources if not (repository / each).exists()} == {"dist/groupscope.zip"}
    there = {f"/opt/groupscope/{Path(each).name}" for each in sources}
    for name in OF_SPARK:
        (container,) = pod_of(name)["containers"]
        words = " ".join(container["args"])
        assert set(re.findall(r"/opt/groupscope/[\w.]+", words)) <= there
        assert container["command"] == ["/opt/spark/bin/spark-submit"]
        assert container["image"] in image


@pytest.mark.parametrize(
    "path",
    [
        *("yarn/submit.sh", "kubernetes/job.yaml", "kubernetes/cronjob.yaml"),
        *("kubernetes/Dockerfile", "connect/notebook.py", "kubernetes/trend.yaml"),
    ],
)
def test_each_says_what_of_it_was_run(path: str) -> None:
    head = (EXAMPLES / path).read_text("utf-8")[:1200]
    assert "Not run: " in head
    assert ("Run in tests: " in head) == (path != "kubernetes/Dockerfile")


def test_the_trend_starts_the_script_that_cron_does() -> None:
    (container,) = pod_of("trend")["containers"]
    assert container["command"] == ["sh"]
    script = Path(container["args"][0])
    assert (EXAMPLES / "cron" / script.name).exists()
    scripts = documents("trend")[0]["metadata"]
    assert scripts["name"] == "groupscope-trend"
    (line,) = [
        each
        for each in (EXAMPLES / "cron" / "crontab").read_text("utf-8").splitlines()
        if each[:1].isdigit()
    ]
    assert line.split()[:5] == ["30", "5", "*", "*", "*"]
    assert f"/{script.name} " in line
    # Both give it the bootstrap server, a folder and client properties.
    assert "--command-config" in line
    assert any("--command-config" in each for each in container["args"])
