# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque ripple: the frequency per joint that explains most of a residual."""

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.samples import Samples

_FREQUENCIES = (20.0, 1000.0)  # 1/rad: 2 N of a gear of 10 to 4 N of one of 250
_MOST = 1500  # frequencies tried at most
_PERIODS = 3.0  # in the joint's range at least: a slower wave is a trend, which ends where the range does
_BLOCK = 250  # frequencies computed at a time


def strongest_ripple(samples: Samples, residual: Array, own: Array, limit: float, label: IntArray) -> Array:
    """Return the frequencies at which two ripple columns explain most of each joint's residual.

    The grid is as fine as the joint's range of motion allows. Among a thousand frequencies one fits anything, which is
    why the frequency is found again without each group of states.

    Parameters
    ----------
    samples : Samples
    residual : ndarray, shape (N, n)
        Of the torque as filtered [N m].
    own : ndarray, shape (N, n, k)
        Friction columns, filtered alike: what these explain does not count.
    limit : float
        Fastest ripple that counts [Hz].
    label : ndarray of int, shape (N,)
        Groups of states, from 0 to B - 1.

    Returns
    -------
    ndarray, shape (B + 1, n)
        By all samples, then without each group; 0 for a joint that moves too little for any [1/rad].
    """
    count = int(label.max()) + 1
    frequency = np.zeros((count + 1, samples.n))
    member = (label == np.arange(count)[:, None]).astype(float)
    for j in range(samples.n):
        spread = float(np.ptp(samples.q[:, j]))
        slowest = max(_FREQUENCIES[0], 2.0 * np.pi * _PERIODS / max(spread, 1e-9))
        size = min(int((_FREQUENCIES[1] - slowest) * spread / 1.5), _MOST)
        if size < 2 or not residual[:, j].any():
            continue
        root = np.sqrt(samples.weight[:, j, None])
        columns = own[:, j] * root
        inverse = np.linalg.pinv(columns, rcond=1e-9)
        target = residual[:, j, None] * root
        target -= columns @ (inverse @ target)
        grid = np.linspace(slowest, _FREQUENCIES[1], size)
        q, dq = samples.q[:, j, None], samples.dq[:, j, None]
        # The grid is even, so that all blocks share these; single precision is enough to compare frequencies by.
        turns, damped = np.exp(1j * (grid[:_BLOCK] - grid[0]) * q).astype(np.complex64), dq.astype(np.float32)
        sums = np.empty((count, 5, size))
        for start in range(0, size, _BLOCK):
            part = slice(start, min(start + _BLOCK, size))
            wave = turns[:, : part.stop - start] * np.exp(1j * grid[start] * q).astype(np.complex64)
            wave *= _damping(damped, grid[part].astype(np.float32), np.float32(limit))
            waves = samples.filtered(np.concatenate([wave.imag, wave.real], axis=1)) * root
            waves -= columns @ (inverse @ waves)
            s, c = np.hsplit(waves, 2)
            for k, product in enumerate((s * s, s * c, c * c, s * target, c * target)):
                sums[:, k, part] = member @ product
        whole = sums.sum(axis=0)
        frequency[:, j] = [grid[np.argmax(_explained(each))] for each in (whole, *(whole - sums))]
    return frequency


def _damping(dq: Array, grid: Array, limit: float) -> Array:
    """Return how much of each frequency passes, shape (N, F), at speeds (N, 1)."""
    ratio = np.square(dq / (2.0 * np.pi * limit) * grid)
    return np.asarray(1.0 / (1.0 + ratio * ratio))


def _explained(sums: Array) -> Array:
    """Return how much of the sum of squares two columns explain, shape (F,), from their products (5, F)."""
    a, b, c, x, y = sums
    determinant = np.maximum(a * c - b * b, 1e-6 * a * c + 1e-300)
    return np.asarray((c * x * x - 2.0 * b * x * y + a * y * y) / determinant)


def with_ripple(friction: FrictionModel, frequency: Array, limit: float) -> FrictionModel:
    """Return a friction model with a ripple added to some of its joints."""
    name = friction.name if 'ripple' in friction.name else f'{friction.name}+ripple'
    return friction_model(
        name,
        velocity_scale=friction.velocity_scale,
        ripple_frequency=frequency,
        ripple_limit=limit,
        spring=friction.spring,
        presliding=friction.presliding,
    )
