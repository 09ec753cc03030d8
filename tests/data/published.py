"""Entries of files whose published content a test makes up."""

import hashlib

from fedhedge.data.resolve import DataFile


def data_file(name: str, content: bytes) -> DataFile:
    """The entry of a file whose published content is `content`."""
    return DataFile(name, len(content), hashlib.md5(content).hexdigest())
