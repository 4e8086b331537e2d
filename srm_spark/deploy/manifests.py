"""What resources of Kubernetes have in common: their names, their text, and the pod that holds the configuration."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from srm_spark import __version__
from srm_spark.deploy.configuration import CONFIGURATION, Configuration
from srm_spark.deploy.report import Need
from srm_spark.errors import Problem

Manifest = dict[str, Any]
"""A resource, as YAML has it."""

CONFIG_FOLDER = "/etc/srm-spark/config"
SECRETS_FOLDER = "/etc/srm-spark/secrets"
METRICS_PORT = 9464
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
"""As Kubernetes wants names (RFC 1123), with room for what is added to them."""
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def as_yaml(platform: str, *manifests: Manifest) -> str:
    """The text of a file of these resources."""
    head = f"# Written by srm-control deploy {platform} of srm-spark {__version__}.\n"
    return head + yaml.dump_all(
        manifests, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=len(manifests) > 1
    )


def check_name(option: str, name: str) -> list[Problem]:
    """The problem of a name that Kubernetes does not take."""
    if _LABEL.fullmatch(name):
        return []
    return [Problem(option, "", f"got {name!r}; allowed small letters, digits and `-` within, at most 52 characters")]


def check_quantity(option: str, text: str) -> list[Problem]:
    """The problem of an amount of CPU or memory that Kubernetes does not take."""
    if _QUANTITY.fullmatch(text):
        return []
    return [Problem(option, "", f"got {text!r}; allowed an amount of Kubernetes, such as 2, 500m or 4Gi")]


def check_image(image: str) -> list[Problem]:
    """The problem of an image that cannot be one."""
    if image and not re.search(r"\s|^-", image):
        return []
    return [Problem("--image", "", f"got {image!r}; allowed the name of an image, as registry/name:tag")]


def labels(name: str) -> dict[str, str]:
    """By which the pods of a deployment are found."""
    return {"app.kubernetes.io/name": "srm-spark", "app.kubernetes.io/instance": name}


def metadata(name: str, namespace: str, of: str) -> Manifest:
    """The head of a resource `name` of the deployment `of`."""
    return {"name": name, "namespace": namespace, "labels": labels(of)}


def config_map(name: str, namespace: str, files: Mapping[str, str]) -> Manifest:
    """Files that pods mount."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(f"{name}-config", namespace, name),
        "data": dict(files),
    }


def volumes(name: str, needs: Sequence[Need]) -> list[Manifest]:
    """The configuration, and in one folder what it needs, of whichever Secrets have it."""
    found: list[Manifest] = [{"name": "config", "configMap": {"name": f"{name}-config"}}]
    if not needs:
        return found
    sources: dict[str, list[Manifest]] = {}
    for need in needs:
        secret, key = need.kept or (secret_of(name), need.name)
        sources.setdefault(secret, []).append({"key": key, "path": need.name})
    projected = [{"secret": {"name": secret, "items": items}} for secret, items in sources.items()]
    return [*found, {"name": "secrets", "projected": {"sources": projected, "defaultMode": 0o440}}]


def mounts(needs: Sequence[Need]) -> list[Manifest]:
    """Where a container finds these volumes."""
    found: list[Manifest] = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]
    return [*found, {"name": "secrets", "mountPath": SECRETS_FOLDER, "readOnly": True}] if needs else found


def secret_of(name: str) -> str:
    """The Secret that the user creates."""
    return f"{name}-secrets"


def digest(configuration: Configuration) -> dict[str, str]:
    """An annotation of pods: another configuration makes other pods, which is how it gets to them."""
    return {"srm-spark/configuration": hashlib.sha256(configuration.text.encode()).hexdigest()[:16]}


def secret_steps(name: str, namespace: str, needs: Sequence[Need]) -> list[str]:
    """How the Secret comes to be."""
    own = [need for need in needs if need.kept is None]
    if not own:
        return []
    command = f"$ kubectl -n {namespace} create secret generic {secret_of(name)} --from-file=secrets/"
    folder = (
        "make a folder `secrets` that only you may read, with a file for each that is listed above, under its name:"
    )
    return [folder, *(f"  secrets/{need.name}" for need in own), command]


CONFIG_PATH = f"{CONFIG_FOLDER}/{CONFIGURATION}"
