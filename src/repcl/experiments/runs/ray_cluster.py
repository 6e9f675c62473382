"""The connection to a Ray cluster: found soon or not at all, quiet, the same versions on all machines."""

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from repcl.errors import ClusterUnavailable, InvalidSetting
from repcl.experiments.runs.result import installed_versions

LOCAL, RUNNING_HERE = "local", "auto"
CLIENT = "ray://"
Resources = dict[str, float]  # by Ray's names
TIMEOUT = 5.0  # seconds for a machine to answer; Ray itself would wait for minutes


@contextmanager
def ray_cluster(address: str) -> Iterator[None]:
    """Be connected to a cluster for a while.

    Args:
        address: `local` starts a cluster on this machine and stops it in the end; `auto` is the one this
            machine belongs to; `host:port` and `ray://host:port` name one.
    """
    check_reachable(address)
    ray = _import_ray(address)
    only_here: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **only_here)
    except Exception as error:  # Ray promises no types here; its own words say what is wrong
        raise ClusterUnavailable(_why_not(address, error)) from error
    try:
        _check_machines()
        yield
    finally:
        ray.shutdown()


def resources_of_run(device: str | None, cluster: Mapping[str, float]) -> Resources:
    """What one run occupies: a core, and a GPU if it uses one.

    Args:
        device: as the user gave it; without, GPUs are used if the cluster has any.
        cluster: what all machines have together, as Ray counts it.
    """
    has_gpu = cluster.get("GPU", 0) >= 1
    if cluster.get("CPU", 0) < 1:
        raise ClusterUnavailable("The Ray cluster has no core for a run; add a machine with `ray start`.")
    if device is not None and device.startswith("cuda:"):
        raise InvalidSetting(
            f"With --ray every run gets a GPU of its own, so {device} cannot be asked for; use --device cuda."
        )
    if device == "cuda" and not has_gpu:
        raise InvalidSetting("--device cuda needs a GPU, and the Ray cluster has none; use --device cpu.")
    return {"num_cpus": 1, "num_gpus": 1 if has_gpu and device in (None, "cuda") else 0}


def check_versions(machine: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Refuse a machine where anything that decides numbers has another version than here."""
    other = [
        f"{name} {theirs.get(name, 'missing')} (here {version})"
        for name, version in ours.items()
        if theirs.get(name) != version
    ]
    if other:
        raise ClusterUnavailable(
            f"Machine {machine} of the Ray cluster has {', '.join(other)}; install the same versions on both."
        )


def _import_ray(address: str) -> Any:
    """Ray, which reads its settings from the environment when it is imported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours reports to nobody
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # lost workers are ours to tell, in one line each
    if address == LOCAL:
        os.environ.setdefault("RAY_worker_niceness", "0")  # runs here are as urgent as they are without Ray
    else:
        # Where something else than Ray answers, Ray would try for a quarter of an hour.
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    try:
        import ray
    except ImportError as error:
        raise ClusterUnavailable("--ray needs Ray: pip install 'repcl[ray]'.") from error
    return ray


def check_reachable(address: str) -> None:
    """Find a wrong address within seconds, without Ray."""
    if address in (LOCAL, RUNNING_HERE):
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidSetting(
            f"--ray takes local, auto, HOST:PORT or {CLIENT}HOST:PORT, not {address!r}; "
            f"`ray start --head` shows the address of the cluster that it starts."
        )
    try:
        socket.create_connection((host, int(port)), timeout=TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ClusterUnavailable(_why_not(address, error)) from error


def _why_not(address: str, error: Exception) -> str:
    reason = " ".join(str(error).split()).rstrip(".")
    if "Version mismatch" in reason:
        return f"The Ray cluster at {address} has other versions; install the same on both ({reason})."
    if address == RUNNING_HERE:
        return f"No Ray cluster runs on this machine; start one with `ray start --head` or use --ray {LOCAL}."
    if address == LOCAL:
        return (
            f"Ray could not start a cluster on this machine ({reason}); see `ray status` and the free disk."
        )
    return f"No Ray cluster answers at {address} ({reason}); check the address and that it is running."


def _check_machines() -> None:
    """Ask every machine of the cluster for its versions."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def versions_there() -> dict[str, str]:
        # Defined in here, Ray sends it as code: it must also run where repcl is missing or another one.
        import platform
        from importlib import metadata

        found = {"python": platform.python_version()}
        for name in names:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return found

    ours = installed_versions()
    names = [name for name in ours if name != "python"]
    machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    asked = ray.remote(num_cpus=0, max_retries=0)(versions_there)
    answers = [
        asked.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
        for node in machines
    ]
    for node, theirs in zip(machines, ray.get(answers), strict=True):
        check_versions(node["NodeManagerHostname"], theirs, ours)
