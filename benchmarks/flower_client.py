"""What Flower's clients do in work W1, in a module of its own: actors import it, and keep their data between rounds."""

from __future__ import annotations

import functools

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from peers import Loop
from work import BATCH, MLP, STEPS

app = ClientApp()


@functools.cache
def loop() -> Loop:
    """The data and the model of an actor, whose arithmetic is on one thread: its parallelism is over clients."""
    torch.set_num_threads(1)
    return Loop(MLP)


@app.train()
def train(message: Message, context: Context) -> Message:
    mine, client = loop(), int(context.node_config["partition-id"])
    mine.model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(mine.model.parameters(), lr=MLP.step_size)
    for _ in range(STEPS):
        optimiser.zero_grad()
        mine.loss_of(client).backward()
        optimiser.step()
    metrics = MetricRecord({"num-examples": STEPS * BATCH})
    content = RecordDict({"arrays": ArrayRecord(mine.model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)
