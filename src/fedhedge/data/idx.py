"""MNIST and FashionMNIST: images and labels in the IDX format."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedhedge.data import resolve
from fedhedge.data.resolve import CorruptData, DataFile, FileSet
from fedhedge.data.scaling import Scaling
from fedhedge.data.source import Dataset

_UNSIGNED_BYTES = 0x08
_TRAIN_IMAGES, _TRAIN_LABELS, _TEST_IMAGES, _TEST_LABELS = range(4)


@dataclass(frozen=True)
class ImageSet:
    """What is particular to one set of images in IDX files."""

    name: str
    files: FileSet
    classes: tuple[str | int, ...]
    mean: float
    sd: float


def _files(folder: str, md5: tuple[str, str, str, str], urls: tuple[str, ...], *elsewhere: str) -> FileSet:
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    sizes = (16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000)
    files = tuple(DataFile(*entry) for entry in zip(names, sizes, md5, strict=True))
    return FileSet(folder, files, urls, tuple(map(Path, elsewhere)))


MNIST = ImageSet(
    name="mnist",
    files=_files(
        "mnist",
        (
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
    ),
    classes=tuple(range(10)),
    mean=0.1307,
    sd=0.3081,
)

FASHION_MNIST = ImageSet(
    name="fashion-mnist",
    files=_files(
        "fashion-mnist",
        (
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        # Plain HTTP is all there is: the checksum is what vouches for the content.
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        "/usr/share/datasets/fashion-mnist",
    ),
    classes=(
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    mean=0.2860,
    sd=0.3530,
)


def load_mnist(root: str | os.PathLike[str] | None = None) -> Dataset:
    """Handwritten digits, 60,000 + 10,000 images of 28 x 28 x 1 bytes (LeCun, Cortes, Burges)."""
    return load_images(MNIST, root)


def load_fashion_mnist(root: str | os.PathLike[str] | None = None) -> Dataset:
    """Articles of clothing, 60,000 + 10,000 images of 28 x 28 x 1 bytes (Xiao, Rasul, Vollgraf 2017)."""
    return load_images(FASHION_MNIST, root)


def load_images(images: ImageSet, root: str | os.PathLike[str] | None = None) -> Dataset:
    """The four files of a set as one data set, the official test rows last.

    Raises MissingData when a file is not there, CorruptData when its content is not the published one.
    """
    places = resolve.locate_all(images.files, resolve.data_root(root))
    parts = [
        parse_idx(resolve.read(images.files, file, place), place)
        for file, place in zip(images.files.files, places, strict=True)
    ]
    for pixels, labels in ((_TRAIN_IMAGES, _TRAIN_LABELS), (_TEST_IMAGES, _TEST_LABELS)):
        if parts[pixels].ndim != 3 or parts[labels].shape != parts[pixels].shape[:1]:
            shapes = f"{parts[pixels].shape} and {parts[labels].shape}"
            raise CorruptData(f"{places[pixels]} and {places[labels]} do not belong together: shapes {shapes}")
    rows = np.concatenate([parts[_TRAIN_IMAGES], parts[_TEST_IMAGES]])
    return Dataset(
        name=images.name,
        features=rows[..., None],
        labels=np.concatenate([parts[_TRAIN_LABELS], parts[_TEST_LABELS]]),
        classes=images.classes,
        test=np.arange(len(rows)) >= len(parts[_TRAIN_IMAGES]),
        scaling=Scaling.pixels((images.mean,), (images.sd,)),
        bounds=(0.0, 255.0),
    )


def parse_idx(content: bytes, path: Path) -> np.ndarray:
    """Array of bytes from an IDX file: magic 0 0 8 d, then d sizes (big-endian, 4 bytes each), then the values.

    `path` is only named in the CorruptData that a truncated or foreign file raises.
    """
    if len(content) < 4 or content[:3] != bytes((0, 0, _UNSIGNED_BYTES)):
        raise CorruptData(f"{path}: not an IDX file of unsigned bytes (starts with {content[:4].hex(' ')})")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise CorruptData(f"{path}: ends inside its header")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise CorruptData(f"{path}: {len(content) - start} values, its header says {expected}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
