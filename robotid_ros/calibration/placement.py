# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Closed-form estimate of the measurement frames and targets from the nominal geometry.

With the tip at (Q_j, p_j) in the base frame, a target at t and a frame (R, c):

    m_j = R (p_j + Q_j t) + c    <=>    M m_j - Q_j t - c' = p_j,   M = R^T, c' = R^T c

is linear in (M, c', t). Left free, M shows mistakes: its singular values are the scale between the
two length units and a negative determinant is a mirrored frame.
"""

from operator import itemgetter

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.calibration.problem import Problem
from robotid_ros.model.transforms import nearest_rotation

_SUBSET_SIZE = 8
_OUTLYING = 8.0  # medians of the distance; no Gaussian measurement is that far
_COARSE = 100  # measurements of every set and target by which starts are compared
_POLISH_STEPS = 8


def place(
    problem: Problem,
    geometry: Array,
    *,
    frames: Array | None = None,
    targets: Array | None = None,
    subsets: int = 60,
    rng: np.random.Generator | None = None,
) -> tuple[float, Array, Array]:
    """Find frames and targets without any guess.

    Returns the median distance that they leave [m], which outliers hardly change, the robot base in each measurement
    frame, shape (S, 4, 4), and the targets in the tip frame, shape (K, 3) [m].

    The linear solution over all measurements and Kabsch's with targets at the tip, and, where
    there are outliers, linear solutions over random small subsets without them, are
    made rotations and polished by alternating Kabsch and linear steps with Cauchy weights; the one
    with the lowest median distance wins.

    ``geometry``, shape (P,): of its chain. ``frames`` and ``targets``, shape (S, 4, 4) and (K, 3): known ones;
    estimated where not given. ``subsets``: how many random subsets, chosen by ``rng``, to try where there seem to be
    outliers.
    """
    rng = rng or np.random.default_rng(0)
    solver = _Alternation(problem, geometry, frames, targets)
    draft = _Alternation(problem.subset(_stratified(problem, rng, _COARSE)), geometry, frames, targets)
    starts = [np.zeros((len(problem.point_names), 3)) if targets is None else targets]
    if frames is None and targets is None:
        starts.append(solver.linear_targets(np.arange(len(problem))))
    coarse = [draft.polish(start, steps=2) for start in starts]
    error, _, _, largest = min(coarse, key=itemgetter(0))
    if frames is None and targets is None and largest > _OUTLYING * error:
        for _ in range(subsets):
            coarse.append(draft.polish(solver.linear_targets(_stratified(problem, rng, _SUBSET_SIZE)), steps=2))
    coarse.sort(key=itemgetter(0))
    fine = [solver.polish(found, _POLISH_STEPS) for _, _, found, _ in coarse[:3]]
    return min(fine, key=itemgetter(0))[:3]


def _stratified(problem: Problem, rng: np.random.Generator, size: int) -> IntArray:
    """Return a few random measurements of every set and target."""
    chosen: set[int] = set()
    for labels in (problem.set_index, problem.point_index):
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            chosen.update(rng.choice(members, min(size, len(members)), replace=False).tolist())
    return np.array(sorted(chosen), dtype=np.int64)


class _Alternation:
    def __init__(self, problem: Problem, geometry: Array, frames: Array | None, targets: Array | None) -> None:
        pose = problem.chain.evaluate(geometry, problem.q)
        self.tip_rotation, self.tip_position, self.position = pose.rotation, pose.position, problem.position
        self.set_index, self.point_index = problem.set_index, problem.point_index
        self.sets, self.points = len(problem.set_names), len(problem.point_names)
        self.frames, self.targets = frames, targets

    def linear_targets(self, rows: IntArray) -> Array:
        """Return the targets of the linear problem over some measurements, shape (K, 3)."""
        sets, points = self.sets, self.points
        matrix = np.zeros((len(rows), 3, 12 * sets + 3 * points))
        centre, size = self.position.mean(axis=0), max(float(np.ptp(self.position)), 1e-9)
        measured = (self.position[rows] - centre) / size
        at = np.arange(len(rows))
        for axis in range(3):
            for k in range(3):
                matrix[at, axis, 12 * self.set_index[rows] + 3 * axis + k] = measured[:, k]
                matrix[at, axis, 12 * sets + 3 * self.point_index[rows] + k] = -self.tip_rotation[rows, axis, k]
            matrix[at, axis, 12 * self.set_index[rows] + 9 + axis] = -1.0
        solution = np.linalg.lstsq(matrix.reshape(3 * len(rows), -1), self.tip_position[rows].ravel(), rcond=1e-9)[0]
        return np.asarray(solution[12 * sets :].reshape(points, 3))

    def polish(self, targets: Array, steps: int) -> tuple[float, Array, Array, float]:
        """Alternate between frames for given targets and targets for given frames, robustly.

        Returns the median distance [m], frames, targets, and the largest distance.
        """
        weights = np.ones(len(self.position))
        for step in range(steps + 1):
            base = self.tip_position + np.einsum('nij,nj->ni', self.tip_rotation, targets[self.point_index])
            frames = self._kabsch(base, weights) if self.frames is None else self.frames
            rotation, origin = frames[self.set_index, :3, :3], frames[self.set_index, :3, 3]
            left = self.position - origin - np.einsum('nij,nj->ni', rotation, base)
            distance = np.sqrt(np.square(left).sum(axis=1))
            if step == steps:
                break
            scale = max(2.0 * float(np.median(distance)), 1e-12)
            weights = 1.0 / (1.0 + np.square(distance / scale))
            if self.targets is None:
                targets = targets + self._target_steps(rotation @ self.tip_rotation, left, weights)
        return float(np.median(distance)), frames, targets, float(distance.max())

    def _kabsch(self, base: Array, weights: Array) -> Array:
        """Return the frame of every set that takes the base points to the measured ones."""
        frames = np.tile(np.eye(4), (self.sets, 1, 1))
        for s in range(len(frames)):
            rows = self.set_index == s
            w = weights[rows] / weights[rows].sum()
            here, there = base[rows], self.position[rows]
            from_mean, to_mean = w @ here, w @ there
            rotation = nearest_rotation((there - to_mean).T @ ((here - from_mean) * w[:, None]))
            frames[s, :3, :3], frames[s, :3, 3] = rotation, to_mean - rotation @ from_mean
        return frames

    def _target_steps(self, rotation: Array, left: Array, weights: Array) -> Array:
        """Return the corrections of the targets, the frames' translations eliminated."""
        columns = np.zeros((len(left), 3, 3 * self.points))
        rows = np.arange(len(left))
        for axis in range(3):
            columns[rows, :, 3 * self.point_index + axis] = rotation[:, :, axis]
        right = left.copy()
        if self.frames is None:
            for s in range(self.sets):
                of_set = self.set_index == s
                w = weights[of_set] / weights[of_set].sum()
                columns[of_set] -= np.tensordot(w, columns[of_set], axes=1)
                right[of_set] -= w @ right[of_set]
        root = np.sqrt(weights)[:, None]
        matrix = (columns * root[:, :, None]).reshape(3 * len(left), -1)
        return np.asarray(np.linalg.lstsq(matrix, (right * root).ravel(), rcond=1e-6)[0].reshape(-1, 3))
