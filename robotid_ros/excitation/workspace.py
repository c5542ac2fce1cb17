# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Limits in space: a box for chosen frames, and clearance between links and to the ground."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import Bound, Constraint, Pullback
from robotid_ros.excitation.geometry import (
    Capsule,
    Geometry,
    capsule_ends,
    closest_points,
    find_frame,
    load_geometry,
    random_positions,
    skeleton,
)
from robotid_ros.excitation.motion import Motion, MotionGradient
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel

WORKSPACE_SCALE = 0.1
"""Excess in space is divided by 1 dm, comparable with a tenth of a joint's range."""


class PointBox:
    """Keeps points fixed to links inside boxes in the base frame.

    Parameters
    ----------
    model : RobotModel
    points : sequence of (str, str, ndarray, ndarray, ndarray)
        A name for the messages, the frame, the point in it, and the lower and upper corner of its
        box in the base frame, each of shape (3,) [m]; infinity where there is no wall.
    """

    def __init__(self, model: RobotModel, points: Sequence[tuple[str, str, Array, Array, Array]]) -> None:
        bounds: list[Bound] = []
        self._columns: list[tuple[int, int]] = []
        self._points: list[tuple[int, Array]] = []
        for name, frame, point, lower, upper in points:
            link, placement = find_frame(model, frame)
            self._points.append((link, placement[:3, :3] @ point + placement[:3, 3]))
            for axis in range(3):
                for sign, wall in ((-1.0, lower[axis]), (1.0, upper[axis])):
                    if np.isfinite(wall):
                        bounds.append(
                            Bound(
                                quantity='xyz'[axis],
                                subject=name,
                                unit='m',
                                bound=float(wall),
                                sign=sign,
                                scale=WORKSPACE_SCALE,
                            )
                        )
                        self._columns.append((len(self._points) - 1, axis))
        self.bounds = tuple(bounds)

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see Constraint."""
        positions = []
        for link, point in self._points:
            fixed = np.tile(point, (len(motion.t), 1))
            positions.append(
                motion.poses[:, link, :3, :3] @ point + motion.poses[:, link, :3, 3] if link >= 0 else fixed
            )
        excess = np.empty((len(motion.t), len(self.bounds)))
        for k, (bound, (index, axis)) in enumerate(zip(self.bounds, self._columns, strict=True)):
            excess[:, k] = bound.sign * (positions[index][:, axis] - bound.bound) / bound.scale

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            forces = np.zeros((len(self._points), len(motion.t), 3))
            for k, (bound, (index, axis)) in enumerate(zip(self.bounds, self._columns, strict=True)):
                forces[index, :, axis] += weights[:, k] * bound.sign / bound.scale
            for (link, _), position, force in zip(self._points, positions, forces, strict=True):
                gradient.add_point(motion, link, position, force)

        return excess, pullback


class Clearance:
    """Keeps capsules of different links apart: their surfaces by at least ``distance`` [m]."""

    def __init__(self, model: RobotModel, geometry: Geometry, distance: float) -> None:
        self._capsules = geometry.capsules
        self._links = [find_frame(model, capsule.frame)[0] for capsule in geometry.capsules]
        self._pairs = geometry.pairs(model, distance)
        radii = [[self._capsules[i].radius for i in pair] for pair in self._pairs]
        self._needed = distance + np.reshape(radii, (-1, 2)).sum(axis=1)
        self.bounds = tuple(
            Bound(
                quantity='clearance',
                subject=f"'{self._capsules[i].frame}' from '{self._capsules[j].frame}'",
                unit='m',
                bound=distance,
                sign=-1.0,
                scale=WORKSPACE_SCALE,
            )
            for i, j in self._pairs
        )

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see Constraint.

        The gradient of a distance is that of its closest points held fixed to their links: moving
        them along the segments changes the distance in second order only.
        """
        if not self._pairs:
            return np.empty((len(motion.t), 0)), lambda weights, gradient: None
        ends = np.array([capsule_ends(motion.model, capsule, motion.poses) for capsule in self._capsules])
        left, right = (ends[[pair[side] for pair in self._pairs]] for side in (0, 1))
        shape = (len(self._pairs), len(motion.t), 3)
        segments = (part[:, end].reshape(-1, 3) for part in (left, right) for end in (0, 1))
        first, second = (points.reshape(shape) for points in closest_points(*segments))
        apart = first - second
        distance = np.sqrt(np.sum(apart * apart, axis=2) + 1e-18)
        excess = (self._needed[:, None] - distance).T / WORKSPACE_SCALE

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            for k, (i, j) in enumerate(self._pairs):
                touched = np.flatnonzero(weights[:, k])
                if not len(touched):
                    continue
                force = -weights[:, k, None] / WORKSPACE_SCALE * apart[k] / distance[k, :, None]
                gradient.add_point(motion, self._links[i], first[k], force)
                gradient.add_point(motion, self._links[j], second[k], -force)

        return excess, pullback


def workspace_box(model: RobotModel, frames: Sequence[str], lower: Sequence[float], upper: Sequence[float]) -> PointBox:
    """Return the limits that keep the origins of some frames inside a box in the base frame.

    The frames are links, attached frames, or 'tip'. The corners [m] have infinity, or are empty, where there is no
    wall.
    """
    low = np.array(lower if len(lower) else [-np.inf] * 3, dtype=float)
    high = np.array(upper if len(upper) else [np.inf] * 3, dtype=float)
    return PointBox(model, [(f"frame '{frame}'", frame, np.zeros(3), low, high) for frame in frames])


def ground_clearance(model: RobotModel, capsules: Sequence[Capsule], height: float, distance: float) -> PointBox:
    """Return the limits that keep moving capsules above the ground, at a height along the base frame's z axis [m].

    A capsule is above a plane when both ends of its segment are its radius above it, here by ``distance`` more. Ends
    whose height no joint changes are left out.
    """
    points = []
    poses = link_transforms(model, random_positions(model, 50))
    for capsule in capsules:
        link, _ = find_frame(model, capsule.frame)
        if link < 0:
            continue
        floor = np.array([-np.inf, -np.inf, height + distance + capsule.radius])
        ends = [capsule.start] if np.array_equal(capsule.start, capsule.end) else [capsule.start, capsule.end]
        heights = [reached[:, 2] for reached in capsule_ends(model, capsule, poses)]
        # Ends whose height is constant, as on a base that turns about the vertical, are left out.
        points += [
            (f"capsule of '{capsule.frame}'", capsule.frame, end, floor, np.full(3, np.inf))
            for end, height in zip(ends, heights, strict=False)
            if np.ptp(height) > 1e-9
        ]
    return PointBox(model, points)


def workspace_constraints(model: RobotModel, config: ExcitationConfig) -> list[Constraint]:
    """Return the workspace, clearance and ground limits that the settings ask for."""
    result: list[Constraint] = []
    if config.workspace_frames:
        result.append(workspace_box(model, config.workspace_frames, config.workspace_lower, config.workspace_upper))
    geometry = None
    if config.geometry:
        geometry = load_geometry(config.geometry)
    elif config.link_radius > 0.0:
        geometry = skeleton(model, config.link_radius)
    if geometry is not None:
        result.append(Clearance(model, geometry, config.clearance))
        if config.ground:
            result.append(ground_clearance(model, geometry.capsules, config.ground_height, config.clearance))
    elif config.ground:
        # without geometry the joints themselves and the tip stay above the ground
        floor = (-np.inf, -np.inf, config.ground_height + config.clearance)
        frames = [name for k, name in enumerate(model.link_names) if k > 0]
        result.append(workspace_box(model, [*frames, 'tip'], floor, ()))
    return result
