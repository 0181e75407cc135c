"""The Ray cluster: joined or started, and watched for its loss."""

import os
import socket
import time
from collections.abc import Callable
from importlib import import_module
from traceback import walk_tb
from typing import Any

from kept import _runtime as extras
from kept.errors import BackendError, SettingsError

LOCAL = "local"
CLIENT = "ray://"
ATTEMPTS = 3
OBJECT_STORE_BYTES = 200_000_000
KNOCK_SECONDS = 5.0
WATCH_SECONDS = 10.0
PROOF_SECONDS = 60.0

# Read by Ray when it is loaded. Without its head it would end the whole process after
# a minute, with words of its own, if we did not look for so long: an hour is enough.
RAY_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "3600",
}


class Cluster:
    """The Ray cluster at *address*; ``local`` starts one here."""

    def __init__(self, address: str) -> None:
        extras.RAY.demand()
        for name, value in RAY_SETTINGS.items():
            os.environ.setdefault(name, value)
        self.address = address
        self._ray: Any = import_module("ray")
        self.failures: Any = self._ray.exceptions
        self._let_print(allowed=False)
        try:
            _knock(address)
            self._join(self._ray)
        except Exception as error:
            self.leave()
            raise SettingsError(_not_begun(address, error)) from error
        self._head = _head(self._ray, address)
        self._seen = time.monotonic()
        self._known: dict[Callable[..., Any], Callable[..., Any]] = {}
        self.cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def leave(self) -> None:
        """Let go of it; one that was started here ends."""
        self._ray.shutdown()
        self._let_print(allowed=True)

    def remote(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return what begins *work* in a worker, and in another if that one dies."""

        def begun(*given: object) -> Any:  # noqa: ANN401 -- Ray's
            try:
                return self._begin(work)(*given)
            except OSError as error:
                raise self._gone(error) from error

        return begun

    def awaited(self, reference: Any) -> Any:  # noqa: ANN401 -- of any task
        """Return what a task made, however long it takes, while the head is there.

        Without its head Ray goes on for long and then ends the whole process, so
        whether it is there is looked at time and again.
        """
        try:
            self._look()
            while not self._ray.wait([reference], timeout=WATCH_SECONDS)[0]:
                self._look()
            return self._ray.get(reference)
        except OSError as error:
            if isinstance(error, self.failures.RayError):
                raise  # what a task met
            raise self._gone(error) from error

    def _look(self) -> None:
        """See whether the head is there, unless that was seen lately."""
        if time.monotonic() - self._seen >= WATCH_SECONDS:
            _knock(self._head)
            self._seen = time.monotonic()

    def check_there(self, error: Exception) -> None:
        """Raise if it is the cluster that failed, and not the task alone.

        A task that needs nothing is done by a cluster however busy it is.
        """
        task = self._ray.remote(num_cpus=0, max_retries=ATTEMPTS)(_nothing)
        try:
            _knock(self._head)
            self._ray.get(task.remote(), timeout=PROOF_SECONDS)
        except (OSError, self.failures.RayError):
            raise self._gone(error) from error

    def _begin(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return Ray's own way to begin; the head hears of *work* the first time."""
        if work not in self._known:
            _knock(self._head)
            self._known[work] = self._ray.remote(max_retries=ATTEMPTS)(work).remote
        return self._known[work]

    def _join(self, ray: Any) -> None:  # noqa: ANN401 -- a module
        """Join the cluster, or start one; on a busy machine that may take two tries.

        Ray waits half a minute for its own processes and then raises a bare
        exception; by then they have been read from the disk, which is what took time.
        """
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address != LOCAL:
            ray.init(address=self.address, **quiet)
            return
        here = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        for last in (False, True):
            try:
                ray.init(**here, **quiet)
            except Exception as error:
                _end_half_started(error)
                if last:
                    raise
            else:
                return

    def _let_print(self, *, allowed: bool) -> None:
        """Let Ray print what its processes met, or not: it goes into our output."""
        printing = self._ray._private.worker  # noqa: SLF001 -- there is no setting
        printing._worker_logs_enabled = allowed  # noqa: SLF001

    def _gone(self, error: Exception) -> BackendError:
        here = self.address == LOCAL
        where = "on this machine" if here else f"at {self.address!r}"
        return BackendError(
            f"the Ray cluster {where} does not answer any more "
            f"({type(error).__name__}); what has a receipt is stored, and the same "
            "command goes on from there once the cluster is back, or without --ray"
        )


def _nothing() -> None:
    """Do what any worker can do."""


def _knock(address: str) -> None:
    """See whether anybody listens; Ray itself would try for minutes."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()


def _head(ray: Any, address: str) -> str:  # noqa: ANN401 -- a module
    """Return where the cluster is led from, as far as we can see it."""
    if address.startswith(CLIENT):
        return address
    return str(ray.get_runtime_context().gcs_address)


def _not_begun(address: str, error: Exception) -> str:
    reason = str(error).strip().partition("\n")[0]
    if address == LOCAL:
        return (
            f"Ray did not start on this machine ({reason}); try again when it is "
            "less busy, or leave --ray out: the result is the same"
        )
    return (
        f"there is no Ray cluster at {address!r} ({reason}); give HOST:PORT or "
        "ray://HOST:PORT of one that runs, or 'local'"
    )


def _end_half_started(error: BaseException) -> None:
    """End the processes of a start that failed.

    Ray forgets the node it was starting, and its processes run on; the node is still
    there in the frames of *error*.
    """
    for frame, _ in walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            node.kill_all_processes(check_alive=False, wait=True)
