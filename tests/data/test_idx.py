"""The IDX reader and the two sets of images that use it."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from published import data_file

from fedhedge.data import CorruptData, MissingData, load
from fedhedge.data.idx import FASHION_MNIST, MNIST, ImageSet, load_images, parse_idx
from fedhedge.data.resolve import FileSet


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def tiny(tmp_path: Path) -> tuple[ImageSet, dict[str, np.ndarray]]:
    """Twenty training and five test images, the files of labels packed."""
    rng = np.random.default_rng(0)
    arrays = {
        "train-images": rng.integers(0, 256, (20, 28, 28), dtype=np.uint8),
        "train-labels": rng.integers(0, 10, 20, dtype=np.uint8),
        "test-images": rng.integers(0, 256, (5, 28, 28), dtype=np.uint8),
        "test-labels": rng.integers(0, 10, 5, dtype=np.uint8),
    }
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, array in arrays.items():
        if array.ndim == 3:
            (folder / name).write_bytes(idx(array))
        else:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
    files = FileSet("tiny", tuple(data_file(name, idx(array)) for name, array in arrays.items()), ())
    return ImageSet("tiny", files, tuple(range(10)), 0.5, 0.25), arrays


def test_files_are_read_in_order(tmp_path: Path) -> None:
    images, arrays = tiny(tmp_path)
    dataset = load_images(images, tmp_path)
    assert dataset.features.shape == (25, 28, 28, 1)
    assert dataset.features.dtype == np.uint8
    np.testing.assert_array_equal(dataset.features[:20, ..., 0], arrays["train-images"])
    np.testing.assert_array_equal(dataset.features[20:, ..., 0], arrays["test-images"])
    np.testing.assert_array_equal(dataset.labels, [*arrays["train-labels"], *arrays["test-labels"]])
    np.testing.assert_array_equal(dataset.test, [False] * 20 + [True] * 5)


def test_images_and_labels_must_belong_together(tmp_path: Path) -> None:
    images, arrays = tiny(tmp_path)
    content = idx(arrays["train-labels"][:19])
    (tmp_path / "tiny" / "train-labels").write_bytes(content)
    first, _, *others = images.files.files
    files = FileSet("tiny", (first, data_file("train-labels", content), *others), ())
    with pytest.raises(CorruptData, match="do not belong together"):
        load_images(ImageSet("tiny", files, images.classes, 0.5, 0.25), tmp_path)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 1, 4)])
def test_any_number_of_axes(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    np.testing.assert_array_equal(parse_idx(idx(array), Path("x")), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x: not an IDX file"),
        (b"\x89PNG....", r"x: not an IDX file of unsigned bytes \(starts with 89 50 4e 47\)"),
        (bytes((0, 0, 0x0D, 1)), "x: not an IDX file"),
        (bytes((0, 0, 8, 2, 0, 0, 0, 1)), "x: ends inside its header"),
        (idx(np.zeros((3, 2), np.uint8))[:-1], "x: 5 values, its header says 6"),
        (idx(np.zeros((3, 2), np.uint8)) + b"0", "x: 7 values, its header says 6"),
        (bytes((0, 0, 8, 3)) + b"\xff" * 12, f"x: 0 values, its header says {(2**32 - 1) ** 3}"),
    ],
)
def test_foreign_and_truncated_content_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(CorruptData, match=message):
        parse_idx(content, Path("x"))


def test_missing_files_are_named_with_folder_and_command(tmp_path: Path) -> None:
    with pytest.raises(MissingData) as error:
        load("mnist", root=tmp_path)
    for part in (*(file.name for file in MNIST.files.files), str(tmp_path / "mnist"), "fedhedge data fetch mnist"):
        assert part in str(error.value)


@pytest.mark.data
@pytest.mark.parametrize("images", [MNIST, FASHION_MNIST], ids=lambda images: images.name)
def test_real_images(real_data: Path, images: ImageSet) -> None:
    dataset = load(images.name, root=real_data)
    assert dataset.features.shape == (70_000, 28, 28, 1)
    assert dataset.test is not None
    train = dataset.features[~dataset.test] / np.float32(255)
    # Published to four digits; double precision, as the sum of 47 million numbers needs it.
    assert train.mean(dtype=np.float64) == pytest.approx(images.mean, abs=5.1e-5)
    assert train.std(dtype=np.float64) == pytest.approx(images.sd, abs=5.1e-5)
    assert np.bincount(dataset.labels[dataset.test], minlength=10).sum() == 10_000
    if images is FASHION_MNIST:
        assert np.bincount(dataset.labels[~dataset.test]).tolist() == [6000] * 10
        assert np.bincount(dataset.labels[dataset.test]).tolist() == [1000] * 10
