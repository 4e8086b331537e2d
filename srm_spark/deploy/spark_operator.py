"""A SparkApplication: of Apache's Spark Kubernetes Operator, or of Kubeflow's Spark Operator.

Driver and executors are pods of one image; both mount the configuration and what it refers to, since stores are read by
executors, too. The operator starts a driver anew that ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from srm_spark.config.load import Loaded
from srm_spark.deploy import manifests
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, Folder, configuration_of
from srm_spark.deploy.manifests import CONFIG_FOLDER, CONFIG_PATH, Manifest, as_yaml, metadata
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.spark import JOB, JOB_TEXT, NEWEST, Spark, check_memory
from srm_spark.errors import Problem

PLATFORM = "spark-operator"
_JOB_URI = f"local://{CONFIG_FOLDER}/{JOB}"
_USER = 185
"""`spark` in the images of Apache Spark."""
_RETRY_SECONDS = 30
_STOP_SECONDS = 180


class Operator(Enum):
    """Whose operator runs the job, by the API group of its resource."""

    APACHE = "apache"
    KUBEFLOW = "kubeflow"


_ACCOUNTS = {Operator.APACHE: "spark", Operator.KUBEFLOW: "spark-operator-spark"}
"""As the charts of the operators call the account that may start executors."""


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    operator: Operator
    image: str
    name: str = "srm-spark"
    namespace: str = "default"
    service_account: str = ""
    """Empty: as the operator's chart calls it."""
    driver_memory: str = "4g"
    executors: int = 2
    executor_cores: int = 2
    executor_memory: str = "4g"
    spark: Spark = NEWEST

    @property
    def account(self) -> str:
        """Who starts executors."""
        return self.service_account or _ACCOUNTS[self.operator]

    def problems(self) -> list[Problem]:
        """Everything that Kubernetes or Spark would refuse."""
        return [
            *manifests.check_image(self.image),
            *manifests.check_name("--name", self.name),
            *manifests.check_name("--namespace", self.namespace),
            *manifests.check_name("--service-account", self.account),
            *check_memory("--driver-memory", self.driver_memory),
            *check_memory("--executor-memory", self.executor_memory),
        ]


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The resources that run `loaded`."""
    configuration = configuration_of(loaded, Folder(manifests.SECRETS_FOLDER))
    application = _apache if wanted.operator is Operator.APACHE else _kubeflow
    held = {CONFIGURATION: configuration.text, JOB: JOB_TEXT}
    made = {
        "configmap.yaml": manifests.config_map(wanted.name, wanted.namespace, held),
        "sparkapplication.yaml": application(wanted, configuration),
    }
    return Deployment(
        PLATFORM,
        {path: as_yaml(PLATFORM, manifest) for path, manifest in made.items()},
        configuration.needs,
        configuration.notes,
        tuple(_steps(wanted, configuration)),
    )


def _apache(wanted: Wanted, configuration: Configuration) -> Manifest:
    return {
        "apiVersion": "spark.apache.org/v1",
        "kind": "SparkApplication",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        "spec": {
            "pyFiles": _JOB_URI,  # the first of them is what runs
            "driverArgs": ["--config", CONFIG_PATH],
            "sparkConf": {
                **wanted.spark.session,
                "spark.kubernetes.container.image": wanted.image,
                "spark.kubernetes.authenticate.driver.serviceAccountName": wanted.account,
                "spark.driver.memory": wanted.driver_memory,
                "spark.executor.instances": str(wanted.executors),
                "spark.executor.cores": str(wanted.executor_cores),
                "spark.executor.memory": wanted.executor_memory,
            },
            "applicationTolerations": {
                "restartConfig": {
                    "restartPolicy": "Always",
                    "maxRestartAttempts": 1_000,  # in an hour: after one that runs so long they are counted anew
                    "restartCounterResetMillis": 3_600_000,
                    "restartBackoffMillis": _RETRY_SECONDS * 1_000,
                }
            },
            "driverSpec": {"podTemplateSpec": _template(wanted, configuration, "spark-kubernetes-driver")},
            "executorSpec": {"podTemplateSpec": _template(wanted, configuration, "spark-kubernetes-executor")},
            "runtimeVersions": {"sparkVersion": wanted.spark.version, "scalaVersion": wanted.spark.scala},
        },
    }


def _template(wanted: Wanted, configuration: Configuration, container: str) -> Manifest:
    return {
        "metadata": {"labels": manifests.labels(wanted.name), "annotations": manifests.digest(configuration)},
        "spec": {
            "terminationGracePeriodSeconds": _STOP_SECONDS,
            "securityContext": _pod_security(),
            "containers": [
                {
                    "name": container,
                    "securityContext": _container_security(),
                    "volumeMounts": manifests.mounts(configuration.needs),
                }
            ],
            "volumes": manifests.volumes(wanted.name, configuration.needs),
        },
    }


def _kubeflow(wanted: Wanted, configuration: Configuration) -> Manifest:
    pod = {
        "labels": manifests.labels(wanted.name),
        # A changed resource is run anew; a changed ConfigMap alone would not be.
        "annotations": manifests.digest(configuration),
        "podSecurityContext": _pod_security(),
        "securityContext": _container_security(),
        "volumeMounts": manifests.mounts(configuration.needs),
        "terminationGracePeriodSeconds": _STOP_SECONDS,
    }
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        "spec": {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": wanted.spark.version,
            "image": wanted.image,
            "mainApplicationFile": _JOB_URI,
            "arguments": ["--config", CONFIG_PATH],
            "sparkConf": wanted.spark.session,
            "restartPolicy": {
                "type": "Always",
                "onFailureRetryInterval": _RETRY_SECONDS,
                "onSubmissionFailureRetryInterval": _RETRY_SECONDS,
            },
            "volumes": manifests.volumes(wanted.name, configuration.needs),
            "driver": {"cores": 1, "memory": wanted.driver_memory, "serviceAccount": wanted.account, **pod},
            "executor": {
                "instances": wanted.executors,
                "cores": wanted.executor_cores,
                "memory": wanted.executor_memory,
                **pod,
            },
        },
    }


def _pod_security() -> Manifest:
    return {"runAsNonRoot": True, "runAsUser": _USER, "fsGroup": _USER, "seccompProfile": {"type": "RuntimeDefault"}}


def _container_security() -> Manifest:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _steps(wanted: Wanted, configuration: Configuration) -> list[str]:
    group = "spark.apache.org" if wanted.operator is Operator.APACHE else "sparkoperator.k8s.io"
    return [
        *manifests.secret_steps(wanted.name, wanted.namespace, configuration.needs),
        f"where {wanted.name} runs already and is to take another configuration:",
        f"$ kubectl -n {wanted.namespace} delete sparkapplications.{group} {wanted.name}",
        "$ kubectl apply -f {out}",
        f"$ kubectl -n {wanted.namespace} get sparkapplications.{group} {wanted.name}",
    ]
