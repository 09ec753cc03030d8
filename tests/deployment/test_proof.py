"""A site answers the server of its own authority, and nobody else."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from fedhedge.checks import InvalidInput
from fedhedge.deployment.keys import make_keys
from fedhedge.deployment.parcel import Parcel, Rejected
from fedhedge.deployment.proof import Signer, Verifier

REQUEST = Parcel("work", {"round": 3, "acknowledged": 2}, {"down": np.arange(3.0)})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    for folder in (ours, theirs):
        make_keys(folder, ["north"])
    return ours, theirs


def test_the_servers_own_request(folders):
    ours, _ = folders
    found = Verifier(ours / "ca.crt")(Signer(ours)(REQUEST))
    assert (found.kind, found.about) == (REQUEST.kind, REQUEST.about)
    np.testing.assert_array_equal(found.arrays["down"], REQUEST.arrays["down"])


def test_forgeries(folders):
    ours, theirs = folders
    signed = Signer(ours)(REQUEST)
    about = dict(signed.about)
    stranger = Signer(theirs)(REQUEST)
    forgeries = [
        REQUEST,
        stranger,
        dataclasses.replace(stranger, about=stranger.about | {"certificate": about["certificate"]}),
        dataclasses.replace(signed, kind="finish"),
        dataclasses.replace(signed, about=about | {"round": 4}),
        dataclasses.replace(signed, arrays={"down": np.arange(3.0) + 1e-12}),
        dataclasses.replace(signed, arrays={"up": np.arange(3.0)}),
        dataclasses.replace(signed, about=about | {"signature": "00" * 100}),
        dataclasses.replace(signed, about=about | {"signature": None}),
        dataclasses.replace(signed, about=about | {"certificate": (ours / "ca.crt").read_text()}),
    ]
    for forged in forgeries:
        with pytest.raises(Rejected, match="not a request"):
            Verifier(ours / "ca.crt")(forged)


@pytest.mark.parametrize("content", ["garbage", "", "key", None])
def test_what_is_no_certificate_is_named(folders, tmp_path, content):
    ours, _ = folders
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes((ours / "ca.key").read_bytes() if content == "key" else content.encode())
    with pytest.raises(InvalidInput, match=r"certificate: received '.*ca.crt'; allowed: a certificate in PEM form"):
        Verifier(file)


@pytest.mark.parametrize(("name", "what"), [("server.key", "key"), ("server.pem", "certificate")])
def test_what_the_server_cannot_sign_with_is_named(folders, tmp_path, name, what):
    ours, _ = folders
    for file in ("server.key", "server.pem"):
        (tmp_path / file).write_bytes(b"garbage" if file == name else (ours / file).read_bytes())
    with pytest.raises(InvalidInput) as refused:
        Signer(tmp_path)
    assert (refused.value.name, refused.value.received) == (what, str(tmp_path / name))
