"""The direction of motion, exact or smooth near standstill."""

import numpy as np

from robotid_ros.arrays import Array

__all__ = ['direction']


def direction(velocity: Array, scale: Array | None) -> tuple[Array, Array]:
    """Return sign(v), or tanh(v / scale), and its derivative.

    Parameters
    ----------
    velocity : ndarray, shape (N, n)
        [rad/s]
    scale : ndarray, shape (n,) or (), or None
        Speed at which the smooth sign reaches 76 % [rad/s]; None for the exact sign, whose
        derivative is taken as zero.

    Returns
    -------
    sign, slope : ndarray, shape (N, n)
    """
    if scale is None:
        return np.sign(velocity), np.zeros_like(velocity)
    smooth = np.tanh(velocity / scale)
    return smooth, (1.0 - smooth * smooth) / scale
