"""The reader of CIFAR-10's binary form and of the lossless archives."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from published import data_file

from fedhedge.data import CorruptData, load, resolve
from fedhedge.data.cifar10 import CLASSES, FILES, load_batches, parse_batch, unpack_batch
from fedhedge.data.resolve import FileSet


def batch(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, bytes]:
    """Images, labels, and the official binary form written value by value."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, n, dtype=np.uint8)
    content = bytearray()
    for image, label in zip(images, labels, strict=True):
        content.append(label)
        for channel in range(3):
            content += image[:, :, channel].tobytes()
    return images, labels, bytes(content)


def packed(images: np.ndarray, labels: np.ndarray) -> bytes:
    """The archive of image sheets; 100 sheets of one image each."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("labels.bin", labels.tobytes())
        for number, image in enumerate(images):
            sheet = io.BytesIO()
            Image.fromarray(image).save(sheet, "webp", lossless=True)
            archive.writestr(f"{number:02d}.webp", sheet.getvalue())
    return buffer.getvalue()


def test_batches_are_read_in_order(tmp_path: Path) -> None:
    parts = [batch(4, 0), batch(3, 1)]
    (tmp_path / "cifar10").mkdir()
    for name, part in zip("ab", parts, strict=True):
        (tmp_path / "cifar10" / f"{name}.bin").write_bytes(part[2])
    files = tuple(data_file(f"{name}.bin", part[2]) for name, part in zip("ab", parts, strict=True))
    dataset = load_batches(FileSet("cifar10", files, ()), tmp_path)
    np.testing.assert_array_equal(dataset.features, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(dataset.labels, np.concatenate([part[1] for part in parts]))
    np.testing.assert_array_equal(dataset.test, [False] * 4 + [True] * 3)
    assert dataset.features.flags.c_contiguous


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x: 0 bytes are no whole number of records"),
        (batch(2, 0)[2][:-1], "x: 6145 bytes are no whole number of records of 3073 bytes"),
        (batch(1, 0)[2] + b"\x0a" + bytes(3072), "x: label 10 in record 1, allowed: 0 to 9"),
    ],
)
def test_foreign_and_truncated_content_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(CorruptData, match=message):
        parse_batch(content, Path("x"))


def test_archives_are_unpacked_once_and_the_root_is_left_alone(tmp_path: Path, cache: Path) -> None:
    images, labels, content = batch(100, 0)
    root = tmp_path / "root"
    (root / "cifar10").mkdir(parents=True)
    archive = root / "cifar10" / "one.zip"
    archive.write_bytes(packed(images, labels))
    calls = []

    def unpack(path: Path) -> bytes:
        calls.append(path)
        return unpack_batch(path)

    files = FileSet("cifar10", (data_file("one.bin", content),), (), unpack=unpack)
    for _ in range(2):
        np.testing.assert_array_equal(load_batches(files, root).features, images)
    assert calls == [archive]
    assert [path.name for path in (root / "cifar10").iterdir()] == ["one.zip"]
    assert (cache / "unpacked" / "cifar10" / "one.bin").read_bytes() == content
    with pytest.raises(resolve.MissingData):
        load_batches(files, tmp_path / "other root")


def test_an_archive_of_other_images_is_refused(tmp_path: Path, cache: Path) -> None:
    images, labels, content = batch(100, 0)
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "one.zip").write_bytes(packed(images, (labels + 1) % 10))
    files = replace(FILES, files=(data_file("one.bin", content),))
    with pytest.raises(CorruptData, match="MD5 of the content is"):
        load_batches(files, tmp_path)
    assert not cache.exists()


@pytest.mark.parametrize(
    "content", [b"not an archive", packed(np.zeros((7, 32, 32, 3), np.uint8), np.zeros(7, np.uint8))]
)
def test_a_broken_archive_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.zip"
    path.write_bytes(content)
    with pytest.raises(CorruptData, match=r"bad.zip: not an archive of image sheets"):
        unpack_batch(path)


@pytest.mark.data
def test_one_real_batch_has_the_official_content(real_data: Path) -> None:
    test_batch = replace(FILES, files=FILES.files[-1:])
    dataset = load_batches(test_batch, real_data)
    assert np.bincount(dataset.labels).tolist() == [1000] * 10


@pytest.mark.slow
@pytest.mark.data
def test_real_images(real_data: Path) -> None:
    dataset = load("cifar10", root=real_data)
    assert dataset.classes == CLASSES
    assert dataset.test is not None
    train = dataset.features[~dataset.test]
    assert train.shape == (50_000, 32, 32, 3)
    assert np.bincount(dataset.labels[~dataset.test]).tolist() == [5000] * 10
    np.testing.assert_allclose(train.mean(axis=(0, 1, 2), dtype=np.float64) / 255, (0.4914, 0.4822, 0.4465), atol=6e-5)
    sd = [train[..., channel].std(dtype=np.float64) / 255 for channel in range(3)]
    np.testing.assert_allclose(sd, (0.2470, 0.2435, 0.2616), atol=6e-5)
