"""A session of the Python client: lists, a watch, a log, exec, patches, a conflict, other errors, and a deletion.

Arguments: the path of the kubeconfig and the namespace. Prints at least one line for each step. Errors raise an exception.
"""
import sys

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

kubeconfig, namespace = sys.argv[1:]
config.load_kube_config(config_file=kubeconfig)
core = client.CoreV1Api()

nodes = core.list_node().items
print("nodes", [node.metadata.name for node in nodes], nodes[0].status.node_info.kubelet_version.split("+")[0])
print("version", client.VersionApi().get_code().git_version.split("+")[0])

core.create_namespaced_config_map(
    namespace,
    client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"level": "3"}),
)
container = client.V1Container(
    name="app",
    image="busybox:1.28",
    command=["sh", "-c", 'echo level $LEVEL; trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'],
    env=[
        client.V1EnvVar(
            name="LEVEL",
            value_from=client.V1EnvVarSource(
                config_map_key_ref=client.V1ConfigMapKeySelector(name="settings", key="level")
            ),
        )
    ],
)
pod = client.V1Pod(
    metadata=client.V1ObjectMeta(name="python", labels={"made-by": "python"}),
    spec=client.V1PodSpec(containers=[container]),
)
created = core.create_namespaced_pod(namespace, pod)
phases = []
watcher = watch.Watch()
for event in watcher.stream(
    core.list_namespaced_pod,
    namespace,
    label_selector="made-by=python",
    resource_version=created.metadata.resource_version,
    timeout_seconds=60,
):
    phase = event["object"].status.phase
    if not phases or phases[-1] != phase:
        phases.append(phase)
    if phase == "Running":
        watcher.stop()
print("phases", phases)
print("log", core.read_namespaced_pod_log("python", namespace).strip())
print("exec", stream(core.connect_get_namespaced_pod_exec, "python", namespace, command=["echo", "hello"], stdout=True).strip())

patched = core.patch_namespaced_pod("python", namespace, {"metadata": {"annotations": {"note": "patched"}}})
print("patch", patched.metadata.annotations["note"])
stale = core.read_namespaced_config_map("settings", namespace)
core.patch_namespaced_config_map("settings", namespace, {"data": {"level": "4"}})
for attempt in (
    lambda: core.replace_namespaced_config_map("settings", namespace, stale),
    lambda: core.read_namespaced_pod("missing", namespace),
    lambda: core.create_namespaced_pod(namespace, pod),
):
    try:
        attempt()
    except ApiException as error:
        print("error", error.status, error.reason)

for event in core.list_namespaced_event(namespace, field_selector="involvedObject.name=python").items:
    if event.reason in ("Scheduled", "Started"):
        print("event", event.reason)
core.delete_namespaced_pod("python", namespace)
for event in watch.Watch().stream(core.list_namespaced_pod, namespace, label_selector="made-by=python", timeout_seconds=60):
    if event["type"] == "DELETED":
        print("deleted", event["object"].metadata.name)
        break
