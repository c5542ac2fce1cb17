# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque ripple found in the data: its frequency per joint, where the evidence is beyond doubt."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.friction.options import TorqueRipple
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.samples import Samples

__all__ = ['find_ripple', 'with_ripple']

_FREQUENCIES = (20.0, 1000.0)  # 1/rad: 2 N of a gear of 10 to 4 N of one of 250
_EVIDENCE = 10.0  # gain of the log-likelihood, beyond what the best of so many frequencies gains by chance
_SHARE = 0.3  # of the residual's sum of squares: what matters less is left alone
_MOST = 1500
_BLOCK = 250


def find_ripple(samples: Samples, channel: Channel, residual: Array, own: Array, limit: float) -> tuple[Array, Array]:
    """Return the ripple frequency of each joint, 0 where there is none, and the gain in log-likelihood.

    For every frequency of a grid as fine as the joint's range of motion allows, what the two ripple
    columns explain of the residual beyond the friction columns:
    gain = N_e/2 log(rss_0 / rss), with N_e = 2 f T independent samples of a channel of bandwidth f.

    Parameters
    ----------
    samples : Samples
    channel : Channel
    residual : ndarray, shape (N, n)
        Of a fit without ripple [N m].
    own : ndarray, shape (N, n, k)
        Friction columns of that fit, out of the channel.
    limit : float
        Fastest ripple that counts [Hz].

    Returns
    -------
    frequency : ndarray, shape (n,)
        [1/rad]
    gain : ndarray, shape (n,)
    """
    frequency, gains = np.zeros(samples.n), np.zeros(samples.n)
    independent = 2.0 * channel.narrowest * len(samples) / samples.rate
    for j in range(samples.n):
        spread = float(np.ptp(samples.q[:, j]))
        count = min(int((_FREQUENCIES[1] - _FREQUENCIES[0]) * spread / 1.5), _MOST)
        total = float(residual[:, j] @ residual[:, j])
        if count < 2 or total <= 0.0:
            continue
        grid = np.linspace(*_FREQUENCIES, count)
        explained = np.concatenate(
            [_explained(samples, channel, residual[:, j], own[:, j], j, part, limit) for part in _blocks(grid)]
        )
        best = int(np.argmax(explained))
        share = min(float(explained[best]) / total, 1.0 - 1e-12)
        gains[j] = -0.5 * independent * np.log1p(-share) - np.log(count)
        if gains[j] > _EVIDENCE and share > _SHARE:
            frequency[j] = grid[best]
    return frequency, gains


def _blocks(grid: Array) -> list[Array]:
    return [grid[start : start + _BLOCK] for start in range(0, len(grid), _BLOCK)]


def _explained(
    samples: Samples, channel: Channel, residual: Array, own: Array, joint: int, grid: Array, limit: float
) -> Array:
    """Return how much of the sum of squares two columns of each frequency explain, shape (len(grid),)."""
    q, dq = samples.q[:, joint, None], samples.dq[:, joint, None]
    damping = 1.0 / (1.0 + (grid * dq / (2.0 * np.pi * limit)) ** 4)
    columns = channel(np.concatenate([np.sin(grid * q) * damping, np.cos(grid * q) * damping], axis=1))
    basis, scales, _ = np.linalg.svd(own, full_matrices=False)
    basis = basis[:, scales > 1e-9 * max(float(scales.max(initial=0.0)), 1e-300)]
    columns = columns - basis @ (basis.T @ columns)
    left = residual - basis @ (basis.T @ residual)
    sine, cosine = columns[:, : len(grid)], columns[:, len(grid) :]
    a, b, c = np.sum(sine**2, axis=0), np.sum(sine * cosine, axis=0), np.sum(cosine**2, axis=0)
    x, y = sine.T @ left, cosine.T @ left
    determinant = np.maximum(a * c - b * b, 1e-6 * a * c + 1e-300)
    return np.asarray((c * x * x - 2.0 * b * x * y + a * y * y) / determinant)


def with_ripple(friction: FrictionModel, frequency: Array, limit: float) -> FrictionModel:
    """Return a friction model with a ripple added to some of its joints."""
    return TorqueRipple(
        inner=friction, velocity_scale=friction.velocity_scale, ripple_frequency=frequency, ripple_limit=limit
    )
