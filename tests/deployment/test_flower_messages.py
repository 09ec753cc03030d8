"""Parcels over Flower's records and, where nothing but Flower is between them, a whole federation over its messages."""

import http.server
import io
import socket
import threading
import types

import jax
import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr (extra `flower`) is not installed")
import httpx
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run, RunNotRunningException
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode import start_client_internal as client
from flwr.supernode.nodestate.in_memory_nodestate import InMemoryNodeState

from fedhedge.checks import InvalidInput
from fedhedge.deployment.coordinator import Coordinator
from fedhedge.deployment.flower import superlink
from fedhedge.deployment.flower.answer import reply_to
from fedhedge.deployment.flower.daemon import drop_torn_messages
from fedhedge.deployment.flower.grid_link import GridLink
from fedhedge.deployment.flower.messages import from_record, to_record
from fedhedge.deployment.flower.tasks import Runtime
from fedhedge.deployment.keys import make_keys
from fedhedge.deployment.parcel import Parcel, Rejected
from fedhedge.deployment.proof import FORGED, Signer, Verifier

ARRAYS = {
    "up/0": np.arange(6, dtype=np.float32).reshape(2, 3),
    "up/1": np.array(2.5),
    "n": np.array([1, 2], np.int32),
    "none": np.zeros((1, 0)),
}


def test_there_and_back():
    sent = Parcel("work", {"round": 3, "name": "é", "nothing": None, "nested": {"a": [1.5]}}, ARRAYS)
    found = from_record(to_record(sent))
    assert (found.kind, found.about) == (sent.kind, sent.about)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_what_cannot_be_read_is_rejected():
    good = to_record(Parcel("work", {}, {"a": np.ones(100)}))
    whole = good["arrays"]["a"]
    # The header of an array of Python objects, which NumPy would have to unpickle.
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    stream.write(b"N.")
    for data in (whole.data[:200], whole.data[:40], b"", b"junk", stream.getvalue()):
        broken = ArrayRecord({"a": Array(whole.dtype, whole.shape, whole.stype, data)})
        with pytest.raises(Rejected, match="cannot be read"):
            from_record(RecordDict({"arrays": broken, "about": good["about"]}))
    for about in ({"kind": "work", "json": "{"}, {"kind": 3, "json": "{}"}, {"json": "{}"}):
        with pytest.raises(Rejected):
            from_record(RecordDict({"arrays": good["arrays"], "about": ConfigRecord(about)}))
    with pytest.raises(Rejected):
        from_record(RecordDict({}))


class Grid:
    """Flower's grid as far as the link uses it: one node a site, answered by a call."""

    def __init__(self, sites, keys, broken=()):
        self.keys = keys
        self.nodes = dict(enumerate(sites.values(), start=11))
        self.broken, self.replies = set(broken), {}

    def get_nodes(self):
        online = [
            types.SimpleNamespace(node_id=number, name=site.name, status="online", online_until=1.0)
            for number, site in self.nodes.items()
        ]
        old = types.SimpleNamespace(node_id=5, name="east", status="offline", online_until=0.5)
        stranger = types.SimpleNamespace(node_id=6, name="stranger", status="online", online_until=2.0)
        return [*online, old, stranger]

    def push_messages(self, messages):
        sent = []
        for number, message in enumerate(messages):
            name = f"message-{len(self.replies)}-{number}"
            message.metadata.__dict__["_message_id"] = name
            site = self.nodes[message.metadata.dst_node_id]
            if site.name in self.broken:
                reply = Message(Error(code=2, reason="it broke"), reply_to=message)
            else:
                reply = reply_to(site, message, Verifier(self.keys / "ca.crt"))
            self.replies[name] = reply
            sent.append(name)
        return sent

    def pull_messages(self, names):
        return [self.replies[name] for name in names if name in self.replies]


@pytest.fixture
def keys(tmp_path):
    make_keys(tmp_path / "keys", ["north"])
    return tmp_path / "keys"


@pytest.fixture
def task():
    before = TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    yield
    TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id = before


def test_a_federation_over_flowers_messages_is_the_simulation(small, tmp_path, task, keys):
    content = small.content({"name": "Scaffold"}, rounds=3)
    federation = small.federation(content)
    grid = Grid(small.sites(federation, tmp_path), keys)
    link = GridLink(grid, federation.terms.sites, Signer(keys))
    run = Coordinator(federation, link, tmp_path, lambda line: None).run()
    simulated = small.simulated(content)
    for mine, theirs in zip(jax.tree.leaves(run.params), jax.tree.leaves(simulated.params), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def test_errors_of_flower_are_failures_of_a_site(small, tmp_path, task, keys):
    federation = small.federation(small.content({"name": "FedAvg"}, rounds=1, evaluate_on=[]), at_least=1)
    grid = Grid(small.sites(federation, tmp_path), keys, broken=["north"])
    link = GridLink(grid, federation.terms.sites, Signer(keys))
    coordinator = Coordinator(federation, link, tmp_path, lambda line: None)
    run = coordinator.run()
    assert run.participation["client"].tolist() == [0, 2]
    table = coordinator.progress.attendance.frame().set_index("site")
    assert table.loc["north", "failure"] == "transport: code 2: it broke"


def test_a_request_without_the_servers_proof_is_told_nothing(small, tmp_path, task, keys):
    federation = small.federation(small.content({"name": "FedAvg"}, rounds=1, evaluate_on=[]))
    grid = Grid(small.sites(federation, tmp_path), keys)
    link = GridLink(grid, federation.terms.sites, lambda request: request)
    about = {"fingerprint": federation.fingerprint, "round": 0}
    reply = link.ask({"north": Parcel("enrol", about)}, 5.0)["north"]
    assert reply.kind == "refused"
    assert reply.about == {"reason": FORGED}


def test_a_stale_message_is_answered_without_work(small, tmp_path, task, keys):
    """Not left unanswered: Flower's node takes no further message before it has the answer to this one."""
    federation = small.federation(small.content({"name": "FedAvg"}, rounds=1, evaluate_on=[]))
    message = Message(to_record(Parcel("enrol", {})), dst_node_id=1, message_type="query", ttl=5.0)
    message.metadata.__dict__["_message_id"] = "m"
    message.metadata.created_at -= 100.0
    reply = from_record(reply_to(small.site("north", federation, tmp_path), message, Verifier(keys / "ca.crt")).content)
    assert (reply.kind, reply.about) == ("refused", {"reason": "past its deadline"})


@pytest.mark.parametrize("step", ["pull_object", "confirm_message_received"])
def test_a_message_whose_run_ended_while_it_was_fetched_leaves_nothing(task, monkeypatch, step):
    """What stays of it would be given to the site, which would wait for the rest for ever."""
    monkeypatch.setattr(client, "_pull_and_store_message", client._pull_and_store_message)
    drop_torn_messages()
    store = ObjectStoreFactory().store()
    state = InMemoryNodeState(store)
    state.set_node_id(1)
    state.store_run(Run.create_empty(7))
    message = Message(to_record(Parcel("enrol", {}, ARRAYS)), dst_node_id=1, message_type="query", ttl=5.0)
    message.metadata.__dict__.update(_message_id=message.object_id, _run_id=7)
    contents = {key: value.deflate() for key, value in get_all_nested_objects(message).items()}

    def ended(*_):
        raise RunNotRunningException

    steps = {"pull_object": lambda run, name: contents[name], "confirm_message_received": lambda run, name: None}
    fetched = {
        "receive": lambda: (message, get_object_tree(message)),
        "get_run": None,
        "get_fab": None,
        "node_config": {},
        "trusted_entities": None,
    }
    pull = {"state": state, "object_store": store} | fetched
    assert client._pull_and_store_message(**pull, **steps | {step: ended}) is None
    assert not state.get_messages_legacy(is_reply=False)
    assert [found.status.sub_status for found in state.get_tasks()] == ["failed"]
    # The next one of the same kind is taken in.
    assert client._pull_and_store_message(**pull, **steps) == 7
    assert len(state.get_messages_legacy(is_reply=False)) == 1


def test_a_task_that_is_no_more_is_an_error_and_not_the_end_of_the_process():
    """Flower sends the process an interrupt where its SuperNode has given up a task."""
    with http.server.HTTPServer(("127.0.0.1", 0), Unauthorised) as given_up:
        threading.Thread(target=given_up.serve_forever, daemon=True).start()
        worker = Runtime(f"127.0.0.1:{given_up.server_port}", b"").worker("token", "flwr-clientapp")
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            worker.PullMessages(PullAppMessagesRequest())
        given_up.shutdown()


class Unauthorised(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_error(401)

    def log_message(self, *_):
        pass


def test_a_port_in_use_is_named(monkeypatch):
    monkeypatch.setattr(superlink, "FREED", 0.1)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"--port: received '127.0.0.1:{port}'"):
            superlink._check_free("127.0.0.1", port)
    superlink._check_free("127.0.0.1", port)
