"""CIFAR-10: the official binary form, or the same images in lossless archives."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np

from fedhedge.data import resolve
from fedhedge.data.resolve import Archive, CorruptData, DataFile, FileSet
from fedhedge.data.scaling import Scaling
from fedhedge.data.source import Dataset

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_SHEETS = 100


def unpack_batch(path: Path) -> bytes:
    """Official binary content of a batch from an archive of image sheets.

    The .zip holds `labels.bin`, one byte an image, and `00.webp` to `99.webp`, each a lossless column of images, 32
    pixels wide. Raises CorruptData.
    """
    from PIL import Image

    try:
        with zipfile.ZipFile(path) as archive:
            labels = np.frombuffer(archive.read("labels.bin"), np.uint8)
            sheets = [
                np.asarray(Image.open(io.BytesIO(archive.read(f"{sheet:02d}.webp"))).convert("RGB"))
                for sheet in range(_SHEETS)
            ]
            images = np.concatenate(sheets).reshape(len(labels), 32, 32, 3)
    except (zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        raise CorruptData(f"{path}: not an archive of image sheets ({error})") from None
    pixels = images.transpose(0, 3, 1, 2).reshape(len(labels), -1)
    return np.concatenate([labels[:, None], pixels], axis=1).tobytes()


FILES = FileSet(
    folder="cifar10",
    files=tuple(
        DataFile(name, 10_000 * _RECORD, md5)
        for name, md5 in (
            ("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"),
            ("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"),
            ("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"),
            ("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"),
            ("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"),
            ("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"),
        )
    ),
    urls=("https://www.cs.toronto.edu/~kriz/",),
    archive=Archive(
        "cifar-10-binary.tar.gz",
        size_limit=180_000_000,
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ),
    unpack=unpack_batch,
)


def load_cifar10(root: str | os.PathLike[str] | None = None) -> Dataset:
    """Ten kinds of things, 50,000 + 10,000 images of 32 x 32 x 3 bytes (Krizhevsky 2009).

    Raises MissingData when a file is not there, CorruptData when its content is not the published one.
    """
    return load_batches(FILES, root)


def load_batches(file_set: FileSet, root: str | os.PathLike[str] | None = None) -> Dataset:
    """All batches of a set of binary files, of which the last one is the official test split."""
    places = resolve.locate_all(file_set, resolve.data_root(root))
    batches = [
        parse_batch(resolve.read(file_set, file, place), place)
        for file, place in zip(file_set.files, places, strict=True)
    ]
    labels = np.concatenate([batch_labels for _, batch_labels in batches])
    return Dataset(
        name="cifar10",
        features=np.concatenate([images for images, _ in batches]),
        labels=labels,
        classes=CLASSES,
        test=np.arange(len(labels)) >= len(labels) - len(batches[-1][1]),
        scaling=Scaling.pixels((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        bounds=(0.0, 255.0),
    )


def parse_batch(content: bytes, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 32, 32, 3] and labels [n] from records of 1 label byte and 3072 bytes in channel, row, column order.

    `path` is only named in the CorruptData that a truncated or foreign file raises.
    """
    if not content or len(content) % _RECORD:
        raise CorruptData(f"{path}: {len(content)} bytes are no whole number of records of {_RECORD} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    labels = records[:, 0]
    if labels.max() >= len(CLASSES):
        raise CorruptData(f"{path}: label {labels.max()} in record {labels.argmax()}, allowed: 0 to 9")
    return records[:, 1:].reshape(-1, *_SHAPE).transpose(0, 2, 3, 1), labels
