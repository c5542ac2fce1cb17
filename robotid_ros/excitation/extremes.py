# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Exact extremes of a Fourier trajectory, without a grid of samples."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.fourier import FourierTrajectory


def series_extremes(cosine: Array, sine: Array) -> tuple[float, float, float, float]:
    """Return smallest and largest value of sum_l cosine_l cos(l x) + sine_l sin(l x), and where, in [0, 2 pi).

    The derivative's zeros are the unit-circle roots of a polynomial of degree 2 L in z = exp(i x). The angles of all
    its roots and a coarse grid are tried, so that a root that rounding pushed off the circle is not missed.
    """
    order = np.arange(1, len(cosine) + 1)
    # sum l (sine cos(l x) - cosine sin(l x)) = Re sum l (sine + i cosine) z^l
    terms = order * (sine + 1j * cosine)
    polynomial = np.concatenate([terms[::-1], [0.0], np.conj(terms)])
    largest = np.abs(polynomial).max()
    candidates = np.arange(8 * len(cosine)) * (2.0 * np.pi / (8 * len(cosine)))
    if largest > 0.0:
        roots = np.roots(polynomial / largest)
        candidates = np.concatenate([candidates, np.mod(np.angle(roots), 2.0 * np.pi)])
    angles = np.outer(candidates, order)
    values = np.cos(angles) @ cosine + np.sin(angles) @ sine
    low, high = int(np.argmin(values)), int(np.argmax(values))
    return float(values[low]), float(values[high]), float(candidates[low]), float(candidates[high])


def trajectory_extremes(trajectory: FourierTrajectory) -> tuple[Array, Array]:
    """Return the extremes of position, velocity, acceleration and jerk of every joint, and when they are [s].

    Both have the shape (4, n, 2): orders of derivative, joints, (low, high). Times are within the first period.
    """
    angular = 2.0 * np.pi * trajectory.base_frequency * np.arange(1, trajectory.harmonics + 1)
    cosine, sine = -trajectory.b / angular, trajectory.a / angular
    values, times = np.empty((4, trajectory.n, 2)), np.empty((4, trajectory.n, 2))
    for order in range(4):
        for j in range(trajectory.n):
            low, high, at_low, at_high = series_extremes(cosine[j], sine[j])
            values[order, j], times[order, j] = (low, high), (at_low, at_high)
        cosine, sine = angular * sine, -angular * cosine
    values[0] += trajectory.offset[:, None]
    return values, times * (trajectory.period / (2.0 * np.pi))
