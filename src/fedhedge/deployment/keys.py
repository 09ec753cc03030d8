"""Keys of a federation: a private certificate authority, the server's certificate, and a key pair for each site.

    folder/ca.crt ca.key         certificate authority, valid for 3,650 days; ca.key stays offline
    folder/server.pem server.key the server's certificate, valid for 825 days, and its key
    folder/sites/NAME NAME.pub   a site's key pair in OpenSSH form, without an end of its own: unregister it to end it

    flower-superlink --ssl-ca-certfile ca.crt --ssl-certfile server.pem --ssl-keyfile server.key --enable-supernode-auth
    flower-supernode --root-certificates ca.crt --auth-supernode-private-key NAME
    flwr supernode register NAME.pub

All keys are ECDSA on P-384. Private ones are readable by their owner only (0600) from their first byte on, and have no
password: whoever can read the file can act in its name. A site does best to run `make_site_keys` on its own machine
and to hand over NAME.pub alone.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedhedge import checks, files
from fedhedge.deployment.extra import needed
from fedhedge.deployment.keys_certificates import LOCAL, alternative_names, authority, new_key, pem, pem_key, server

__all__ = [
    "LOCAL",
    "KeyPair",
    "Paths",
    "load_certificate",
    "load_private",
    "load_public",
    "load_roster",
    "load_server_key",
    "make_keys",
    "make_site_keys",
    "renew_server",
]

_PRIVATE, _PUBLIC = 0o600, 0o644
_SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class KeyPair:
    """Files of one site: its private key and its public key, both in OpenSSH form."""

    private: Path
    public: Path


@dataclass(frozen=True)
class Paths:
    """Files that `make_keys` wrote. sites: a key pair for each name."""

    authority: Path
    authority_key: Path
    server: Path
    server_key: Path
    sites: Mapping[str, KeyPair]


def make_keys(
    folder: Path | str, sites: Sequence[str], hosts: Sequence[str] = LOCAL, *, overwrite: bool = False
) -> Paths:
    """A certificate authority, a certificate of the server under these host names and addresses, and the sites' keys.

    Nothing is written unless all can be. Existing files are kept, and named in the error, unless `overwrite` is set:
    a new authority locks out every site that trusts the old one. For the server alone use `renew_server`.

    Raises InvalidInput, MissingExtra without cryptography.
    """
    folder = Path(folder)
    names, places = _site_names(sites), alternative_names(hosts)
    key = new_key()
    issuer = authority(key)
    contents = {
        "ca.crt": (pem(issuer), _PUBLIC),
        "ca.key": (pem_key(key), _PRIVATE),
        **_server(key, issuer, places),
        **_pairs(names),
    }
    _write(folder, contents, overwrite)
    return Paths(
        folder / "ca.crt", folder / "ca.key", folder / "server.pem", folder / "server.key", _paths(folder, names)
    )


def make_site_keys(folder: Path | str, sites: Sequence[str], *, overwrite: bool = False) -> dict[str, KeyPair]:
    """Key pairs of these sites in folder/sites; for a site that makes its own, and for one that joins later."""
    names = _site_names(sites)
    _write(Path(folder), _pairs(names), overwrite)
    return _paths(Path(folder), names)


def renew_server(folder: Path | str, hosts: Sequence[str] = LOCAL) -> Paths:
    """A fresh certificate and key of the server from the authority in `folder`; sites need nothing new.

    Raises InvalidInput where there is no authority in `folder`, or its parts do not belong together.
    """
    folder = Path(folder)
    serialization, x509 = needed("cryptography.hazmat.primitives.serialization"), needed("cryptography.x509")
    allowed = "a folder with the ca.crt and ca.key of one authority"
    try:
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        issuer = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise checks.InvalidInput("folder", str(folder), allowed, str(error)) from None
    if issuer.public_key() != key.public_key():
        raise checks.InvalidInput("folder", str(folder), allowed, "the key is another certificate's")
    _write(folder, _server(key, issuer, alternative_names(hosts)), overwrite=True)
    made = sorted(path.stem for path in (folder / "sites").glob("*.pub"))
    return Paths(
        folder / "ca.crt", folder / "ca.key", folder / "server.pem", folder / "server.key", _paths(folder, made)
    )


def load_certificate(path: Path | str) -> Any:
    """A certificate, as `make_keys` writes ca.crt and server.pem. Raises InvalidInput."""
    loader = needed("cryptography.x509").load_pem_x509_certificate
    return _load("certificate", Path(path), "a certificate in PEM form, as `fedhedge deploy keys` makes it", loader)


def load_server_key(path: Path | str) -> Any:
    """The server's private key, server.key. Raises InvalidInput."""
    loader = needed("cryptography.hazmat.primitives.serialization").load_pem_private_key
    return _load("key", Path(path), "a private key in PEM form, as `fedhedge deploy keys` makes it", loader, None)


def load_private(path: Path | str) -> Any:
    """A site's private key, as `flower-supernode` and the signatures of masking take it. Raises InvalidInput."""
    return _ssh(Path(path), needed("cryptography.hazmat.primitives.serialization").load_ssh_private_key, None)


def load_public(path: Path | str) -> Any:
    """A site's public key. Raises InvalidInput."""
    return _ssh(Path(path), needed("cryptography.hazmat.primitives.serialization").load_ssh_public_key)


def load_roster(folder: Path | str, sites: Sequence[str]) -> dict[str, Any]:
    """The public keys of these sites, NAME.pub in a folder. Raises InvalidInput."""
    return {site: load_public(Path(folder) / f"{site}.pub") for site in sites}


def _ssh(path: Path, loader: Any, *more: None) -> Any:
    wanted = "a file with an ECDSA key on P-384 in OpenSSH form"
    key = _load("key", path, wanted, loader, *more)
    if not isinstance(getattr(key, "curve", None), needed("cryptography.hazmat.primitives.asymmetric.ec").SECP384R1):
        raise checks.InvalidInput("key", str(path), wanted)
    return key


def _load(name: str, path: Path, wanted: str, loader: Any, *more: None) -> Any:
    unsupported = needed("cryptography.exceptions").UnsupportedAlgorithm
    try:
        return loader(path.read_bytes(), *more)
    except (OSError, ValueError, TypeError, unsupported) as error:
        raise checks.InvalidInput(name, str(path), wanted, str(error)) from None


def _server(issuer_key: Any, issuer: Any, places: Sequence[Any]) -> dict[str, tuple[bytes, int]]:
    key = new_key()
    certificate = server(key, issuer_key, issuer, places)
    return {"server.pem": (pem(certificate), _PUBLIC), "server.key": (pem_key(key), _PRIVATE)}


def _pairs(sites: Sequence[str]) -> dict[str, tuple[bytes, int]]:
    form = needed("cryptography.hazmat.primitives.serialization")
    contents = {}
    for site in sites:
        key = new_key()
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
        public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
        contents[f"sites/{site}"] = (private, _PRIVATE)
        contents[f"sites/{site}.pub"] = (public + b" " + site.encode() + b"\n", _PUBLIC)
    return contents


def _paths(folder: Path, sites: Sequence[str]) -> dict[str, KeyPair]:
    return {site: KeyPair(folder / "sites" / site, folder / "sites" / f"{site}.pub") for site in sites}


def _write(folder: Path, contents: Mapping[str, tuple[bytes, int]], overwrite: bool) -> None:
    """All files or, where one exists that may not be overwritten, none."""
    there = sorted(name for name in contents if os.path.lexists(folder / name))
    if there and not overwrite:
        hint = f"{', '.join(there)} there already; keys are overwritten only when asked to"
        raise checks.InvalidInput("folder", str(folder), "a folder without these keys", hint)
    folder.mkdir(parents=True, exist_ok=True)
    # A folder that only its owner can enter, so that no key is ever readable by others, not even while it is written.
    with tempfile.TemporaryDirectory(prefix=".keys.", dir=folder) as staged:
        for name, (content, mode) in contents.items():
            files.write_bytes(Path(staged) / name, content)
            os.chmod(Path(staged) / name, mode)
        for name in contents:
            (folder / name).parent.mkdir(exist_ok=True)
            os.replace(Path(staged) / name, folder / name)


def _site_names(sites: Sequence[str]) -> tuple[str, ...]:
    if isinstance(sites, str) or not isinstance(sites, Sequence) or not sites:
        raise checks.InvalidInput("sites", sites, "a list of at least one name")
    for place, site in enumerate(sites):
        if not isinstance(site, str) or not _SITE.fullmatch(site) or site.endswith(".pub"):
            allowed = "1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit, not *.pub"
            raise checks.InvalidInput(f"sites[{place}]", site, allowed)
        if site.lower() in (other.lower() for other in sites[:place]):
            raise checks.InvalidInput(f"sites[{place}]", site, "a name that no other site has")
    return tuple(sites)
