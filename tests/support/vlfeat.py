"""VLFeat's dense SIFT, where Debian's library is installed: the reference of ours."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np


def _struct(name, c_type, fields):
    return type(name, (ctypes.Structure,), {"_fields_": [(field, c_type) for field in fields.split()]})


_Geometry = _struct("_Geometry", ctypes.c_int, "numBinT numBinX numBinY binSizeX binSizeY")
_Keypoint = _struct("_Keypoint", ctypes.c_double, "x y s norm")


class _Filter(ctypes.Structure):
    """The beginning of VlDsiftFilter."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ["imWidth", "imHeight", "stepX", "stepY", "minX", "minY", "maxX", "maxY"]),
        ("geom", _Geometry),
        ("useFlatWindow", ctypes.c_int),
        ("windowSize", ctypes.c_double),
        ("numFrames", ctypes.c_int),
        ("descrSize", ctypes.c_int),
        ("frames", ctypes.POINTER(_Keypoint)),
        ("descrs", ctypes.POINTER(ctypes.c_float)),
    )


def library():
    """VLFeat, or None if it is not installed (Debian: libvlfeat-dev)."""
    found = ctypes.util.find_library("vl")
    if found is None:
        return None
    vl = ctypes.CDLL(found)
    vl.vl_dsift_new_basic.restype = ctypes.POINTER(_Filter)
    vl.vl_dsift_new_basic.argtypes = [ctypes.c_int] * 4
    vl.vl_dsift_process.argtypes = [ctypes.POINTER(_Filter), ctypes.c_void_p]
    vl.vl_dsift_delete.argtypes = [ctypes.POINTER(_Filter)]
    return vl


def dense_sift(vl, gray, step, bin_size):
    """Descriptors, and (x, y, contrast) of the patches."""
    image = np.ascontiguousarray(gray, dtype=np.float32)
    worker = vl.vl_dsift_new_basic(image.shape[1], image.shape[0], step, bin_size)
    try:
        worker.contents.useFlatWindow = 1
        vl.vl_dsift_process(worker, image.ctypes.data)
        n = worker.contents.numFrames
        descriptors = np.ctypeslib.as_array(worker.contents.descrs, (n, 128)).copy()
        frames = np.ctypeslib.as_array(ctypes.cast(worker.contents.frames, ctypes.POINTER(ctypes.c_double)), (n, 4))
        return descriptors, frames[:, [0, 1, 3]].copy()
    finally:
        vl.vl_dsift_delete(worker)


def smooth(vl, gray, sigma):
    """The picture after VLFeat's Gaussian filter."""
    image = np.ascontiguousarray(gray, dtype=np.float32)
    height, width = image.shape
    out = np.empty_like(image)
    size = ctypes.c_size_t
    vl.vl_imsmooth_f(
        out.ctypes.data_as(ctypes.c_void_p), size(width), image.ctypes.data_as(ctypes.c_void_p), size(width),
        size(height), size(width), ctypes.c_double(sigma), ctypes.c_double(sigma),
    )  # fmt: skip
    return out
