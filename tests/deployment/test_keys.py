"""Keys: Flower and TLS take them, nobody else can read them, and none is lost by accident."""

from __future__ import annotations

import argparse
import datetime
import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest

from fedhedge import InvalidInput

pytest.importorskip("cryptography", reason="cryptography (extra `flower`) is not installed")
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from fedhedge.deployment.keys import load_private, load_public, make_keys, make_site_keys, renew_server

HOSTS = ("localhost", "127.0.0.1", "federation.example.org", "::1")


def handshake(authority: Path, certificate: Path, key: Path, name: str) -> None:
    """A whole TLS handshake in memory; raises ssl.SSLError where the client would not trust the server."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    theirs = ssl.create_default_context(cafile=authority)
    theirs.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = theirs.wrap_bio(back, there, server_hostname=name)
    server = ours.wrap_bio(there, back, server_side=True)
    done = []
    while len(done) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if side not in done:
                done.append(side)


def test_clients_trust_the_server_under_its_names_and_no_other(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"], HOSTS)
    for name in HOSTS:
        handshake(paths.authority, paths.server, paths.server_key, name)
    for name in ("example.org", "127.0.0.2"):
        with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"):
            handshake(paths.authority, paths.server, paths.server_key, name)
    other = make_keys(tmp_path / "other", ["north"])
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(other.authority, paths.server, paths.server_key, "localhost")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_agrees(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"])
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "localhost"]
    subprocess.run([*command, "-CAfile", paths.authority, paths.server], check=True, capture_output=True)


def test_flower_loads_the_sites_keys(tmp_path: Path) -> None:
    supernode = pytest.importorskip("flwr.supernode.cli.flower_supernode", reason="Flower is not installed")
    register = pytest.importorskip("flwr.cli.supernode.register")
    pair = make_keys(tmp_path, ["north", "south"]).sites["south"]
    options = argparse.Namespace(auth_supernode_private_key=str(pair.private), auth_supernode_public_key=None)
    private, public = supernode._try_setup_client_authentication(options)
    assert isinstance(private.curve, ec.SECP384R1)
    assert register.try_load_public_key(pair.public) == register.public_key_to_bytes(public)


def test_a_sites_two_keys_belong_together(tmp_path: Path) -> None:
    pairs = make_site_keys(tmp_path, ["north", "south"])
    signature = load_private(pairs["north"].private).sign(b"text", ec.ECDSA(SHA256()))
    load_public(pairs["north"].public).verify(signature, b"text", ec.ECDSA(SHA256()))
    assert load_public(pairs["south"].public) != load_public(pairs["north"].public)
    assert pairs["north"].public.read_text().endswith(" north\n")


def test_private_files_are_private_and_nothing_is_left_over(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"])
    private = {paths.authority_key, paths.server_key, paths.sites["north"].private}
    public = {paths.authority, paths.server, paths.sites["north"].public}
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == private | public
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in public} == {0o644}


def test_keys_are_not_readable_while_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedhedge import files

    seen = []
    write = files.write_bytes

    def watched(path: Path, content: bytes) -> None:
        write(path, content)
        inside = path.relative_to(tmp_path).parts[0]
        seen.append(stat.S_IMODE((tmp_path / inside).stat().st_mode))

    monkeypatch.setattr(files, "write_bytes", watched)
    make_keys(tmp_path, ["north"])
    assert len(seen) == 6
    assert set(seen) == {0o700}


def test_existing_keys_are_kept_unless_asked(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput, match=r"ca.crt, ca.key, server.key, server.pem there already.*when asked to"):
        make_keys(tmp_path, ["south"])
    with pytest.raises(InvalidInput, match=r"sites/north, sites/north.pub there already"):
        make_site_keys(tmp_path, ["east", "north"])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    make_site_keys(tmp_path, ["east"])
    make_keys(tmp_path, ["north"], overwrite=True)
    assert all(path.read_bytes() != content for path, content in before.items())
    handshake(paths.authority, paths.server, paths.server_key, "localhost")


def test_server_can_be_renewed_without_the_sites(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north", "south"])
    trusted = paths.authority.read_bytes()
    old = paths.server.read_bytes()
    renewed = renew_server(tmp_path, ["new.example.org"])
    assert renewed == paths
    assert paths.authority.read_bytes() == trusted
    assert paths.server.read_bytes() != old
    handshake(paths.authority, paths.server, paths.server_key, "new.example.org")
    with pytest.raises(InvalidInput, match="one authority"):
        renew_server(tmp_path / "nowhere")
    other = make_keys(tmp_path / "other", ["north"])
    paths.authority.write_bytes(other.authority.read_bytes())
    with pytest.raises(InvalidInput, match="the key is another certificate's"):
        renew_server(tmp_path)


def test_lifetimes_and_rights_are_the_stated_ones(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"])
    now = datetime.datetime.now(datetime.UTC)
    for path, days, authority in ((paths.authority, 3650, True), (paths.server, 825, False)):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        assert abs(certificate.not_valid_after_utc - now - datetime.timedelta(days=days)) < datetime.timedelta(hours=1)
        assert certificate.not_valid_before_utc < now
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is authority
        assert isinstance(certificate.public_key().curve, ec.SECP384R1)


@pytest.mark.parametrize("sites", [[], "north", ["a/b"], ["../up"], [""], ["x.pub"], ["North", "north"], [3], ["-x"]])
def test_site_names_that_make_no_file(sites: list[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="sites"):
        make_keys(tmp_path / "keys", sites)
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("hosts", [[], "localhost", ["a b"], ["-x.org"], ["10.0.0.256"], ["10.0.0"], [""], [7]])
def test_hosts_that_are_none(hosts: list[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="hosts"):
        make_keys(tmp_path / "keys", ["north"], hosts)
    assert not (tmp_path / "keys").exists()


def test_files_that_hold_no_site_key(tmp_path: Path) -> None:
    paths = make_keys(tmp_path, ["north"])
    for path in (tmp_path / "missing", paths.server_key, paths.sites["north"].public):
        with pytest.raises(InvalidInput, match=r"key: .*ECDSA key on P-384 in OpenSSH form"):
            load_private(path)
    with pytest.raises(InvalidInput, match="P-384"):
        load_public(paths.sites["north"].private)
