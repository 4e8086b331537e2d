"""A plain Deployment of Kubernetes: pods of `srm-driver`, of which one owns each flow and the others stand by.

Each pod runs Spark in itself (`local[*]`). The lease of a flow decides who copies it, so any number of pods may run.
"""

from __future__ import annotations

from dataclasses import dataclass

from srm_spark.config.keys_process import LISTENER_KEY
from srm_spark.config.load import Loaded
from srm_spark.deploy import manifests
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, Folder, configuration_of
from srm_spark.deploy.manifests import Manifest, as_yaml, labels, metadata
from srm_spark.deploy.report import Deployment
from srm_spark.errors import Problem

PLATFORM = "kubernetes"
_STOP_SECONDS = 180
"""As `TimeoutStopSec` of the systemd unit: room for a large batch in progress."""
_START_TRIES = 60
"""Of 5 seconds: the metrics are there within seconds, but a node that starts many pods is slow."""
_USER = 185
"""`spark` in the images of Apache Spark; any other one works, too."""


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    image: str
    name: str = "srm-spark"
    namespace: str = "default"
    replicas: int = 2
    cpu: str = "2"
    memory: str = "4Gi"
    metrics_from: str = "monitoring"
    """The namespace whose pods may read the metrics."""

    def problems(self) -> list[Problem]:
        """Everything that Kubernetes would refuse."""
        return [
            *manifests.check_image(self.image),
            *manifests.check_name("--name", self.name),
            *manifests.check_name("--namespace", self.namespace),
            *manifests.check_name("--metrics-from", self.metrics_from),
            *manifests.check_quantity("--cpu", self.cpu),
            *manifests.check_quantity("--memory", self.memory),
        ]


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The resources that run `loaded`."""
    export = loaded.settings.export
    port = export.port if export and export.port else manifests.METRICS_PORT
    changed = {LISTENER_KEY: f"0.0.0.0:{port}"}  # probes and Prometheus come from outside of the pod
    configuration = configuration_of(loaded, Folder(manifests.SECRETS_FOLDER), changed)
    made = {
        "configmap.yaml": manifests.config_map(wanted.name, wanted.namespace, {CONFIGURATION: configuration.text}),
        "deployment.yaml": _deployment(wanted, configuration, port),
        "service.yaml": _service(wanted, port),
        "poddisruptionbudget.yaml": _budget(wanted),
        "networkpolicy.yaml": _policy(wanted),
        "monitoring/servicemonitor.yaml": _monitor(wanted),
    }
    return Deployment(
        PLATFORM,
        {path: as_yaml(PLATFORM, manifest) for path, manifest in made.items()},
        configuration.needs,
        configuration.notes,
        tuple(_steps(wanted, configuration)),
    )


def _deployment(wanted: Wanted, configuration: Configuration, port: int) -> Manifest:
    pod = {"labels": labels(wanted.name), "annotations": manifests.digest(configuration)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        "spec": {
            "replicas": wanted.replicas,
            "selector": {"matchLabels": labels(wanted.name)},
            # One goes at a time: its flows are taken over by one that is there already.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
            "template": {"metadata": pod, "spec": _pod(wanted, configuration, port)},
        },
    }


def _pod(wanted: Wanted, configuration: Configuration, port: int) -> Manifest:
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _STOP_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels(wanted.name)},
            }
        ],
        "containers": [_container(wanted, configuration, port)],
        "volumes": [*manifests.volumes(wanted.name, configuration.needs), {"name": "tmp", "emptyDir": {}}],
    }


def _container(wanted: Wanted, configuration: Configuration, port: int) -> Manifest:
    asked = {"httpGet": {"path": "/metrics", "port": "metrics"}, "timeoutSeconds": 10}
    return {
        "name": "srm-driver",
        "image": wanted.image,
        "command": ["srm-driver", "--config", manifests.CONFIG_PATH],
        "ports": [{"name": "metrics", "containerPort": port, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": wanted.cpu, "memory": wanted.memory},
            "limits": {"memory": wanted.memory},
        },
        # A driver has no page of its health but its metrics: they answer while its process lives. One that stands by
        # is as ready as one that copies, and a cluster that is away must not end a pod: flows go on by themselves.
        "startupProbe": {**asked, "periodSeconds": 5, "failureThreshold": _START_TRIES},
        "livenessProbe": {**asked, "periodSeconds": 20, "failureThreshold": 6},
        "readinessProbe": {**asked, "periodSeconds": 10},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [*manifests.mounts(configuration.needs), {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }


def _service(wanted: Wanted, port: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(f"{wanted.name}-metrics", wanted.namespace, wanted.name),
        "spec": {
            "clusterIP": "None",
            "selector": labels(wanted.name),
            "ports": [{"name": "metrics", "port": port, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }


def _budget(wanted: Wanted) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        # Not `minAvailable`: with one pod a node could never be emptied.
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(wanted.name)}},
    }


def _policy(wanted: Wanted) -> Manifest:
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": wanted.metrics_from}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        # What goes out is not limited: at which ports brokers are reached, they say themselves.
        "spec": {
            "podSelector": {"matchLabels": labels(wanted.name)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [monitoring], "ports": [{"port": "metrics", "protocol": "TCP"}]}],
        },
    }


def _monitor(wanted: Wanted) -> Manifest:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(wanted.name, wanted.namespace, wanted.name),
        "spec": {
            "selector": {"matchLabels": labels(wanted.name)},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    }


def _steps(wanted: Wanted, configuration: Configuration) -> list[str]:
    return [
        *manifests.secret_steps(wanted.name, wanted.namespace, configuration.needs),
        "$ kubectl apply -f {out}",
        f"$ kubectl -n {wanted.namespace} rollout status deployment/{wanted.name}",
        "where Prometheus Operator runs:",
        "$ kubectl apply -f {out}/monitoring",
    ]
