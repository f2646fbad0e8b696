"""Replicas as actors of Ray, which starts them, gives them their devices, and starts them again when they are lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pie.config import Config, ModelConfig
from pie.errors import PieError
from pie.isolation.supervisor import Restarts
from pie.replicas.replica import Replica

_OBJECT_STORE_BYTES = 80 << 20
"""Of Ray, which nothing is put into: the least that it takes."""
_THREADS = 4
"""Of an actor: one waits for its end, another one ends it."""

_RESTARTS_PER_MINUTE = 10
"""Of a replica that serves and is lost; beyond it waits."""

LACKS_RAY = "server.replicas needs ray, which is not installed: pip install 'pie-engine[ray]', or set server.replicas to 1"

Up = Callable[[int, int], None]
"""Told that a replica, by its number, serves on a port."""
Down = Callable[[int, str], None]
"""Told that a replica does not serve, and why."""


class ReplicaActor:
    """A replica as Ray calls it. A PieError is answered, for Ray would wrap it."""

    def __init__(self, config: Config) -> None:
        self._replica = Replica(config)

    def begin(self) -> None:
        """Is answered once the process runs; nothing is opened."""

    def open(self) -> tuple[int, tuple[str, str] | None]:
        """The port, or the code and the message of why there is none."""
        try:
            return self._replica.open(), None
        except PieError as error:
            return 0, (error.code, error.message)

    def wait(self) -> None:
        """See `Replica`."""
        self._replica.wait()

    def end(self, drain_s: float) -> None:
        """See `Replica`."""
        self._replica.end(drain_s)


def load_ray() -> Any:
    """The package; PieError `invalid-config` where it is not installed."""
    try:
        import ray  # noqa: PLC0415
    except ModuleNotFoundError:
        raise PieError("invalid-config", LACKS_RAY) from None
    return ray


def n_devices(models: Sequence[ModelConfig]) -> int:
    """CUDA devices that a replica of these models has for itself."""
    return sum(model.tensor_parallel for model in models if model.driver == "cuda" and model.device != "cpu")


def check_devices(n_replicas: int, n_each: int, n_found: int) -> None:
    """PieError `invalid-config` where there are fewer GPUs than replicas need: Ray would wait for them for ever."""
    if n_replicas * n_each > n_found:
        fits = n_found // n_each
        remedy = f"lower server.replicas to {fits}" if fits else "serve fewer models, or lower their tensor_parallel"
        raise PieError(
            "invalid-config",
            f"server.replicas is {n_replicas}, each needs {n_each} GPUs of its own, and Ray finds {n_found}; {remedy}",
            {"key": "server.replicas"},
        )


class Actors:
    """The replicas of one server on a Ray of this machine, which begins and ends with them."""

    def __init__(self, configs: Sequence[Config], up: Up, down: Down) -> None:
        """Starts Ray. `up` and `down` are called on other threads."""
        self._ray = load_ray()
        self._up, self._down = up, down
        self._configs = configs
        self._actors: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        try:
            # Ray asks for a token where one comes from elsewhere, by default.
            self._ray.init(
                address="local",
                include_dashboard=False,
                logging_level=logging.ERROR,
                object_store_memory=_OBJECT_STORE_BYTES,
                namespace="pie",
            )
            check_devices(len(configs), n_devices(configs[0].models), int(self._ray.cluster_resources().get("GPU", 0)))
        except PieError:
            self.close()
            raise
        except Exception as error:  # whatever Ray raises where its processes do not begin
            self.close()
            reason = f"{type(error).__name__}: {_first_line(error)}"
            raise PieError("invalid-config", f"Ray cannot be started ({reason}), which server.replicas needs") from error

    def start(self) -> None:
        """Starts the replicas and returns when each serves, the first before the others: it fills the caches.

        Raises PieError with the number of the replica that cannot be opened.
        """
        options = {"num_cpus": 0, "num_gpus": n_devices(self._configs[0].models), "max_restarts": -1, "max_concurrency": _THREADS}
        remote = self._ray.remote(**options)(ReplicaActor)
        self._actors = [remote.remote(config) for config in self._configs]
        for index in range(len(self._actors)):
            self._open(index)
        for index in range(len(self._actors)):
            thread = threading.Thread(target=self._follow, args=(index,), name=f"pie-replica-{index}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def end(self, drain_s: float) -> None:
        """Ends them, and returns when all have ended; what runs has so long. Called again, they end at once."""
        self._stopping.set()
        ending = [actor.end.remote(drain_s) for actor in self._actors]
        for call in ending:
            try:
                self._ray.get(call)
            except self._ray.exceptions.RayError:
                continue  # it is gone

    def close(self) -> None:
        """Ends Ray with all that it started."""
        self._stopping.set()
        self._ray.shutdown()

    def _open(self, index: int) -> None:
        """Has a replica open, where it has not, once. Raises PieError where it cannot, or is lost meanwhile.

        Ray starts the process of an actor again, at once and for ever, and would do so with the call: a replica that
        dies of being opened would be opened without an end, and without a word.
        """
        actor = self._actors[index]
        try:
            self._ray.get(actor.begin.options(max_task_retries=-1).remote())
            port, error = self._ray.get(actor.open.options(max_task_retries=0).remote())
        except self._ray.exceptions.RayError as lost:
            raise PieError("driver-lost", f"replica {index} was lost while it opened ({_first_line(lost)})") from lost
        if error is not None:
            raise PieError(error[0], f"replica {index}: {error[1]}")
        self._up(index, port)

    def _follow(self, index: int) -> None:
        """Says when a replica is lost, and when it serves again."""
        restarts = Restarts(_RESTARTS_PER_MINUTE)
        while not self._stopping.is_set():
            try:
                self._ray.get(self._actors[index].wait.remote())
                return
            except self._ray.exceptions.RayError as lost:
                if self._stopping.is_set():
                    return
                restarts.lost(time.monotonic(), ran=True)
                self._down(index, f"it was lost ({_first_line(lost)}) and is started again")
            self._restart(index, restarts)

    def _restart(self, index: int, restarts: Restarts) -> None:
        """Opens a replica again, later and later where that fails, until it serves or all ends."""
        said = ""
        while not self._stopping.wait(restarts.wait_s(time.monotonic())):
            try:
                self._open(index)
                return
            except PieError as error:
                restarts.lost(time.monotonic(), ran=False)
                reason = f"it cannot be started again ({error.code}), and is tried later"
                if reason != said and not self._stopping.is_set():
                    self._down(index, reason)
                said = reason


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
