"""Flower's tasks, worked on in this process: the apps that Flower would fetch and start are never run.

Flower's own executor starts a fresh interpreter for each message and runs in it whatever app the other side submitted.
Here a process that has the data and the settings takes the task from Flower's Runtime API on loopback, under a secret
of its own, does what *it* was installed to do, and hands back the result. So no code comes over the network, and a
message costs no start of an interpreter. It follows `flwr.supercore.superexec.run_superexec` and
`flwr.supernode.runtime.run_clientapp` of Flower 1.42, whose internals it uses; the extra pins that version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedhedge.deployment.extra import needed

# Stock, Flower tries for ever, also at the door of a process that has gone.
TRIES = 5


@dataclass(frozen=True)
class Runtime:
    """Where a Flower process offers tasks. address: host:port. secret: shared with it. certificate: None for http."""

    address: str
    secret: bytes
    certificate: Path | None = None

    def client(self, interceptors: list[Any], tries: int) -> Any:
        """A client of its Runtime API, which tries so many times before an error."""
        runtime, retry = needed("flwr.supercore.runtime"), needed("flwr.supercore.retry")
        invoker = retry.make_simple_http_retry_invoker()
        invoker.max_tries, invoker.should_giveup = tries, _is_answer
        return runtime.RuntimeHttpClient.from_server_address(
            server_address=self.address,
            insecure=self.certificate is None,
            root_certificates=None if self.certificate is None else self.certificate.read_bytes(),
            interceptors=interceptors,
            retry_invoker=invoker,
        )

    def acquirer(self) -> Any:
        """The client that takes tasks, which proves that it knows the secret."""
        found = needed("flwr.supercore.interceptors")
        proof = found.SuperExecAuthHttpInterceptor(
            master_secret=self.secret, protected_methods=frozenset({"/flwr.proto.Runtime/AcquireTask"})
        )
        return self.client([found.RuntimeVersionHttpInterceptor(component_name="SuperExec"), proof], 1)

    def worker(self, token: str, component: str) -> Any:
        """The client that works on the task of this token."""
        found = needed("flwr.supercore.interceptors")
        version = found.RuntimeVersionHttpInterceptor(component_name=component)
        return self.client([version, found.RuntimeTokenHttpInterceptor(token)], TRIES)


def _is_answer(error: Exception) -> bool:
    """Whether an error is the other side's last word. Stock, "no such task (any more)" ends the whole process."""
    found = isinstance(error, needed("httpx").HTTPStatusError)
    return found and error.response.status_code not in (503, 504)  # type: ignore[attr-defined]


def acquire(client: Any, kind: str) -> str | None:
    """The token of a task of this kind ("CLIENT_APP" or "SERVER_APP") that waits, None where there is none."""
    task_type = getattr(needed("flwr.supercore.constant").TaskType, kind)
    request = needed("flwr.proto.runtime_pb2").AcquireTaskRequest(supported_task_types=[task_type])
    found = client.AcquireTask(request)
    return str(found.token) if found.HasField("task") and found.token else None


def take(client: Any) -> Any:
    """The input of the task; this process is then known to Flower as the one that works on it."""
    found = client.PullTaskInput(needed("flwr.proto.runtime_pb2").PullTaskInputRequest())
    identity = needed("flwr.supercore.task_identity").TaskIdentity
    identity.task_id, identity.run_id, identity.node_id = found.task_id, found.run.run_id, found.context.node_id
    return found


@contextmanager
def working(client: Any) -> Iterator[None]:
    """Within: heartbeats say that the task is being worked on. Afterwards: how it ended."""
    protobuf, heartbeat = needed("flwr.proto.runtime_pb2"), needed("flwr.supercore.heartbeat")
    status, http = needed("flwr.common.constant").SubStatus, needed("httpx")

    def beat() -> bool:
        try:
            client.SendTaskHeartbeat(protobuf.SendTaskHeartbeatRequest())
        except http.HTTPError:
            return False
        return True

    sender = heartbeat.HeartbeatSender(beat)
    sender.start()
    ended, details = status.FAILED, ""
    try:
        yield
        ended = status.COMPLETED
    except BaseException as error:
        details = type(error).__name__
        raise
    finally:
        sender.stop()
        # If whoever offered the task has gone, it counts as failed there anyway.
        with suppress(http.HTTPError):
            client.PushTaskOutput(protobuf.PushTaskOutputRequest(sub_status=ended, details=details))
