"""Pictures that look almost the same: fingerprints of 64 bits, and who is near whom."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from PIL import Image
from scipy import sparse
from scipy.fft import dct
from scipy.sparse.csgraph import connected_components

# Of 625 photographs made smaller (x 0.7) and compressed (quality 50), all differ from their copy in at most 4 bits; no
# two different ones in fewer than 11.
MAX_DISTANCE = 4
_SIDE = 32
_BITS = 64
# The 64 lowest frequencies but the mean, slowest first.
_COSINES = dct(np.eye(_SIDE), axis=0, norm="ortho")[:12]
_LOWEST = np.array(sorted(((i, j) for i in range(12) for j in range(12) if i + j), key=lambda f: (sum(f), f))[:_BITS])


def perceptual_hash(image: Image.Image) -> int:
    """Fingerprint of what a picture looks like from afar.

    Which of the 64 lowest frequencies of its cosine transform are above their median (Zauner 2010, "Implementation and
    benchmarking of perceptual image hash functions").

    Examples
    --------
    >>> import numpy as np
    >>> from PIL import Image
    >>> from pictopic.words.duplicates import perceptual_hash
    >>> blocks = np.random.RandomState(0).randint(256, size=(10, 16), dtype=np.uint8)
    >>> picture = Image.fromarray(blocks).resize((160, 100))
    >>> (perceptual_hash(picture) ^ perceptual_hash(picture.resize((80, 50)))).bit_count() < 5
    True
    """
    small = image.getchannel(0) if image.mode == "YCbCr" else image.convert("L")
    levels = np.asarray(small.resize((_SIDE, _SIDE), Image.Resampling.BOX), dtype=np.float64)
    waves = (_COSINES @ levels @ _COSINES.T)[_LOWEST[:, 0], _LOWEST[:, 1]]
    return int.from_bytes(np.packbits(waves > np.sort(waves)[_BITS // 2 - 1]).tobytes(), "big")


def groups(hashes: np.ndarray, max_distance: int = MAX_DISTANCE) -> np.ndarray:
    """Number of the group of near-duplicates that each picture is in.

    Two pictures whose fingerprints differ in at most `max_distance` of 64 bits are in one group, and so are those that
    are linked by others.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)
    max_distance : int, default=4

    Returns
    -------
    int array of shape (n,)
        Numbered in the order in which groups first appear.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.duplicates import groups
    >>> groups(np.array([7, 2**40, 5, 2**64 - 1], np.uint64)).tolist()
    [0, 0, 0, 1]
    """
    if max_distance < 0:
        raise ValueError(f"max_distance must be at least 0, got {max_distance}")
    distinct, inverse = np.unique(np.asarray(hashes, dtype=np.uint64), return_inverse=True)
    # Fingerprints that differ in d bits agree in at least one of d + 1 bands.
    edges = np.linspace(0, _BITS, max_distance + 2).astype(int)
    first, second = np.concatenate([_near_pairs(distinct, a, b, max_distance) for a, b in pairwise(edges)], axis=1)
    links = sparse.coo_array((np.ones(len(first), bool), (first, second)), shape=(len(distinct),) * 2)
    group = connected_components(links, directed=False)[1] if len(distinct) else np.zeros(0, int)
    _, place, number = np.unique(group[inverse], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(place))[number]


def _near_pairs(hashes: np.ndarray, first_bit: int, last_bit: int, max_distance: int) -> np.ndarray:
    """Pairs of near fingerprints among those that agree in a band of bits."""
    band = (hashes >> np.uint64(first_bit)) & np.uint64((1 << int(last_bit - first_bit)) - 1)
    order = np.argsort(band, kind="stable")
    band = band[order]
    pairs = [np.zeros((2, 0), np.int64)]
    places = np.arange(len(order))
    for shift in range(1, len(order)):
        # Sorted by the band, those that agree are neighbours: as long as some agree with the shift-th after them.
        places = places[places + shift < len(order)]
        places = places[band[places] == band[places + shift]]
        if not len(places):
            break
        a, b = order[places], order[places + shift]
        near = np.bitwise_count(hashes[a] ^ hashes[b]) <= max_distance
        pairs.append(np.stack([a[near], b[near]]))
    return np.concatenate(pairs, axis=1)
