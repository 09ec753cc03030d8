"""Secure aggregation: the server learns the sum of the clients' uploads, and no upload.

The protocol is that of Bonawitz et al. 2017, "Practical Secure Aggregation for Privacy-Preserving Machine Learning"
(CCS 2017, doi 10.1145/3133956.3133982), in n clients with threshold t:

1. keys: each client sends two fresh X25519 public keys, one for sealing shares and one for masks.
2. shares: each draws a seed b, and sends Shamir shares (t of n) of b and of its private mask key, sealed for each of
   the others.
3. masked: each sends x + PRG(b) + the masks that it shares with each other client, which cancel in pairs.
4. revealed: told who survived, each reveals its shares of the *seed* of every survivor and of the *mask key* of all who
   were lost since trip 2: never both of one client, so that an upload that only seemed lost stays hidden under its
   seed.

In signed sessions keys are signed, and between 3 and 4 the survivors sign the list of survivors. Uploads are averaged
with equal weight, which is what FedAvg, FedeRage (theta and beta as one vector) and the ADMM methods need; a weight
known in advance is multiplied in by the client. docs/secure-aggregation.md says what this protects and what not.
"""

from __future__ import annotations

from fedhedge.deployment.masking_client import MaskingClient
from fedhedge.deployment.masking_messages import Aborted, BadMessage, Session
from fedhedge.deployment.masking_numbers import Quantiser
from fedhedge.deployment.masking_pairs import Signing
from fedhedge.deployment.masking_server import MaskingServer, Total

__all__ = ["Aborted", "BadMessage", "MaskingClient", "MaskingServer", "Quantiser", "Session", "Signing", "Total"]
