"""GIST: 384 numbers that say which orientations and scales an image has where (our own, after Oliva & Torralba)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

VERSION = 1  # part of the name of cached results: raise it whenever a number changes
SIDE = 32
PAD = SIDE // 2
SCALES = 3
ORIENTATIONS = 8
BLOCKS = 4
FEATURES = SCALES * ORIENTATIONS * BLOCKS * BLOCKS
CUTOFF = 4.0  # cycles per image, as LMgist's fc_prefilt
BATCH = 16  # images at a time: the work then stays in the cache


def gist(images: NDArray[Any], *, progress: bool = False) -> NDArray[np.float32]:
    """The GIST of each image, (m, 384) in float32.

    ``images`` is (m, 32, 32, 3), or planes as CIFAR has them: (m, 3, 32, 32) or (m, 3072).

    The descriptor is that of A. Oliva and A. Torralba, "Modeling the shape of the scene", IJCV 42(3), 2001, in the
    form used for the 80 million tiny images (Torralba, Fergus, Freeman, 2008): grey images, 24 filters (3 scales of 8
    orientations) times 4×4 blocks = 384. It is written anew; constants are those of the authors' LMgist. Steps:

    1. *Grey*: the mean of the three colours, stretched to 0..255 image by image, as LMgist does.
    2. *Padding*: 16 mirrored pixels on each side. The 64×64 image then repeats without a seam, as the Fourier
       transform wants it, and filters keep it so. LMgist pads more, having larger images.
    3. *Local contrast*: of log(1 + grey) take away a Gaussian blur (half is let through at 4 cycles per image), then
       divide by 0.2 + the local standard deviation, which is blurred the same way.
    4. *Filters*: 24 Gabor-like bumps in the Fourier plane, at 0.3, 0.3/1.85 and 0.3/1.85² cycles per pixel, each in 8
       directions. A filter sees one side of the plane, so the magnitude of its output is a smooth envelope. The mean
       has no direction and is left out (LMgist gives a little of it to the first direction).
    5. *Blocks*: the mean magnitude in each of 4×4 blocks of 8×8 pixels.

    The number for scale s (fine to coarse), orientation o (the frequency's direction: 22.5° · o; 0 is horizontal, the
    stripes are vertical), block row r and column c is at ((s · 8 + o) · 4 + r) · 4 + c.

    All arithmetic is in float64, each image on its own: the result depends on neither batches nor threads.
    """
    gray = grayscale(images)
    low, bank = lowpass(), filters()
    out = np.empty((len(gray), FEATURES), dtype=np.float32)
    with tqdm(total=len(gray), desc="gist", unit="image", disable=not progress) as bar:
        for start in range(0, len(gray), BATCH):
            part = gray[start : start + BATCH]
            out[start : start + BATCH] = block_means(equalize(mirror(stretch(part)), low), bank)
            bar.update(len(part))
    return out


def grayscale(images: NDArray[Any]) -> NDArray[np.float64]:
    """(m, 32, 32): the mean of the colours, whichever way they are laid out."""
    shape = images.shape[1:]
    if shape == (SIDE, SIDE, 3):
        return np.asarray(images.mean(axis=3, dtype=np.float64))
    if shape in ((3, SIDE, SIDE), (3 * SIDE * SIDE,)):
        return np.asarray(images.reshape(-1, 3, SIDE, SIDE).mean(axis=1, dtype=np.float64))
    raise ValueError(f"images must be (m, 32, 32, 3), (m, 3, 32, 32) or (m, 3072), got {images.shape}")


def stretch(gray: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each image to 0..255; an image of one brightness to 0."""
    gray = gray - gray.min(axis=(1, 2), keepdims=True)
    top = gray.max(axis=(1, 2), keepdims=True)
    return np.asarray(255.0 * gray / np.where(top > 0.0, top, 1.0))


def mirror(gray: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.pad(gray, ((0, 0), (PAD, PAD), (PAD, PAD)), mode="symmetric")


def equalize(padded: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
    """Local contrast: what a blur does not explain, relative to how much of it there is nearby."""
    logs = np.log1p(padded)
    detail = logs - blur(logs, low)
    # Rounding may leave a mean of squares just below 0.
    spread = np.sqrt(np.maximum(blur(detail * detail, low), 0.0))
    return np.asarray(detail / (0.2 + spread))


def blur(images: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.fft.irfft2(np.fft.rfft2(images) * low[:, : low.shape[1] // 2 + 1], s=images.shape[1:])


def block_means(images: NDArray[np.float64], bank: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m, 384): mean magnitude of every filter's output in every block."""
    spectra = np.fft.fft2(images)
    size = SIDE // BLOCKS
    out = np.empty((len(images), len(bank), BLOCKS, BLOCKS))
    for f, transfer in enumerate(bank):
        # Only the columns and rows of the image proper are needed, so the padding is left out between the two passes.
        rows = np.fft.ifft(spectra * transfer, axis=1)[:, PAD:-PAD]
        magnitude = np.abs(np.fft.ifft(rows, axis=2)[:, :, PAD:-PAD])
        out[:, f] = magnitude.reshape(-1, BLOCKS, size, BLOCKS, size).mean(axis=(2, 4))
    return out.reshape(len(images), -1)


def plane() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequency and direction of every point of the padded image's Fourier plane, in cycles per pixel and radians."""
    f = np.fft.fftfreq(SIDE + 2 * PAD)
    y, x = np.meshgrid(f, f, indexing="ij")
    return np.hypot(x, y), np.arctan2(y, x)


def lowpass() -> NDArray[np.float64]:
    """A Gaussian that is 1/2 at CUTOFF cycles per image."""
    radius, _ = plane()
    return np.asarray(np.exp(-np.log(2.0) * (radius * SIDE / CUTOFF) ** 2))


def filters() -> NDArray[np.float64]:
    """(24, 64, 64): bumps around a frequency and a direction, on one side of the plane only."""
    radius, angle = plane()
    bank = []
    for s in range(SCALES):
        for o in range(ORIENTATIONS):
            off = angle - np.pi * o / ORIENTATIONS
            off = (off + np.pi) % (2.0 * np.pi) - np.pi
            frequency = 0.3 / 1.85**s
            sharpness = 2.0 * np.pi * 16.0 * ORIENTATIONS**2 / 32.0**2
            bank.append(np.exp(-3.5 * (radius / frequency - 1.0) ** 2 - sharpness * off**2))
    out = np.array(bank)
    out[:, 0, 0] = 0.0  # the mean has no direction
    return out
