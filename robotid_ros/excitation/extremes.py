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


def series_extremes(cosine: Array, sine: Array) -> tuple[Array, Array]:
    """Return smallest and largest value of sum_l cosine_l cos(l x) + sine_l sin(l x), and where, in [0, 2 pi).

    Both are of shape (K, 2) for K series, (K, L). The derivative's zeros are the unit-circle roots of a polynomial of
    degree 2 L in z = exp(i x). The angles of all its roots and a coarse grid are tried, so that a root that rounding
    pushed off the circle is not missed.
    """
    count, harmonics = cosine.shape
    order = np.arange(1, harmonics + 1)
    # sum l (sine cos(l x) - cosine sin(l x)) = Re sum l (sine + i cosine) z^l
    terms = order * (sine + 1j * cosine)
    grid = np.arange(8 * harmonics) * (2.0 * np.pi / (8 * harmonics))
    candidates = np.zeros((count, 10 * harmonics))
    candidates[:, : len(grid)] = grid
    # The companion matrices of one degree go together; a series without its highest harmonic has a smaller one.
    whole = terms[:, -1] != 0.0
    polynomial = np.concatenate([terms[:, ::-1], np.zeros((count, 1)), np.conj(terms)], axis=1)
    companion = np.zeros((int(whole.sum()), 2 * harmonics, 2 * harmonics), dtype=complex)
    companion[:, np.arange(1, 2 * harmonics), np.arange(2 * harmonics - 1)] = 1.0
    companion[:, 0] = -polynomial[whole, 1:] / polynomial[whole, :1]
    candidates[whole, len(grid) :] = np.mod(np.angle(np.linalg.eigvals(companion)), 2.0 * np.pi)
    for k in np.flatnonzero(~whole):
        roots = np.mod(np.angle(np.roots(polynomial[k])), 2.0 * np.pi)
        candidates[k, len(grid) : len(grid) + len(roots)] = roots
    angles = candidates[:, :, None] * order
    values = (np.cos(angles) @ cosine[:, :, None] + np.sin(angles) @ sine[:, :, None])[:, :, 0]
    places = np.stack([np.argmin(values, axis=1), np.argmax(values, axis=1)], axis=1)
    return np.take_along_axis(values, places, axis=1), np.take_along_axis(candidates, places, axis=1)


def trajectory_extremes(trajectory: FourierTrajectory) -> tuple[Array, Array]:
    """Return the extremes of position, velocity, acceleration and jerk of every joint, and when they are [s].

    Both have the shape (4, n, 2): orders of derivative, joints, (low, high). Times are within the first period.
    """
    angular = 2.0 * np.pi * trajectory.base_frequency * np.arange(1, trajectory.harmonics + 1)
    cosine, sine = -trajectory.b / angular, trajectory.a / angular
    orders = [(cosine, sine)]
    for _ in range(3):
        cosine, sine = angular * sine, -angular * cosine
        orders.append((cosine, sine))
    found = series_extremes(*(np.concatenate(series) for series in zip(*orders, strict=True)))
    values, times = (each.reshape(4, trajectory.n, 2) for each in found)
    values[0] += trajectory.offset[:, None]
    return values, times * (trajectory.period / (2.0 * np.pi))
