# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Frames in which an arm's equations are shortest.

Only the joint axes are given: origins can be moved along them and frames turned about them, so that
as many constants as possible vanish. Consecutive joints with parallel axes form a group: the orientations
of its links differ by sums of joint angles about one direction. Each group has a frame G fixed in
the body before it, with z along the common axis and x along the common normal, so that
that body and G differ by one turn about x (W. Khalil and J.-F. Kleinfinger, "A new geometric notation
for open and closed-loop robots", IEEE ICRA 1986).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalChain:
    """Geometry in minimal frames.

    Body k's own frame has its origin on joint k's axis and z along it. Orientation of own frame k
    in its group's frame G: a turn about z by the sum of the group's joint angles up to k, each
    times its sign, plus ``turns[k]``.
    """

    groups: tuple[tuple[int, ...], ...]  # joints of each group
    revolute: tuple[bool, ...]
    signs: tuple[float, ...]  # -1 where the group's axis points against the joint's
    turns: tuple[float, ...]  # [rad]
    offsets: Array  # shape (n, 3): origin k in own frame k - 1 at q = 0 [m]; zero for k = 0
    # shape (n, 3): for a prismatic joint its direction in own frame k - 1 (frame G of the first group for k = 0)
    directions: Array
    # shape (3, 3): frame G of each group in the own frame of the body before it (identity for the first)
    tilts: tuple[Array, ...]
    start: Array  # shape (3,): minus the acceleration of free fall, in the first group's frame [m/s^2]
    frames: Array  # shape (n, 4, 4): link frame k in own frame k


def joint_groups(model: RobotModel, snap: float) -> tuple[tuple[int, ...], ...]:
    """Return runs of joints whose revolute axes are parallel; prismatic joints join the run they are in.

    ``snap`` is the largest sine of the angle between parallel axes.
    """
    axes, _ = _axes_at_zero(model)
    groups: list[list[int]] = [[]]
    current: Array | None = None
    for k, kind in enumerate(model.joint_types):
        if kind == 'revolute':
            if current is not None and np.linalg.norm(np.cross(axes[k], current)) > snap:
                groups.append([])
            current = axes[k]
        groups[-1].append(k)
    return tuple(tuple(group) for group in groups)


def minimal_chain(model: RobotModel, sides: Sequence[int] = (), *, snap: float = 1e-12) -> MinimalChain:
    """Return an arm's geometry in minimal frames.

    For each group, ``sides`` says whether its plane of origins goes through the common normal with the group before (0)
    or after it (1). Sines, and lengths relative to the arm's, below ``snap`` are taken as zero.
    """
    axes, points = _axes_at_zero(model)
    groups = joint_groups(model, snap)
    n = model.n
    signs, turns = [1.0] * n, [0.0] * n
    size = max(float(np.abs(points - points[0]).max()), 1e-3)
    z = [_common_axis(model, group, axes) for group in groups]
    origins = _origins(model, groups, axes, points, z, sides, size)
    turned = np.empty((n, 3, 3))
    tilts: list[Array] = []
    before = _first_frame(z[0], model.gravity)
    for g, group in enumerate(groups):
        frame = before if g == 0 else _frame(before[:, 0], z[g])
        tilts.append(np.eye(3) if g == 0 else _snapped(before.T @ frame, snap))
        for position, k in enumerate(group):
            if model.joint_types[k] == 'revolute' and axes[k] @ z[g] < 0.0:
                signs[k] = -1.0
            toward = _toward(position, group, origins, z, g, snap * size)
            if toward is None:
                turns[k] = turns[group[position - 1]] if position else 0.0
            else:
                turns[k] = _snapped_angle(float(np.arctan2(toward @ frame[:, 1], toward @ frame[:, 0])), snap)
        turns = _without_needless_turns(turns, group, model)
        for k in group:
            cosine, sine = np.cos(turns[k]), np.sin(turns[k])
            turned[k] = frame @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        before = turned[group[-1]]
    offsets, directions = np.zeros((n, 3)), np.zeros((n, 3))
    for k in range(n):
        basis = turned[k - 1] if k else _first_frame(z[0], model.gravity)
        if k:
            offsets[k] = _snapped(basis.T @ (origins[k] - origins[k - 1]), snap * size, unit=False)
        if model.joint_types[k] == 'prismatic':
            directions[k] = _snapped(basis.T @ axes[k], snap)
    strength = max(float(np.linalg.norm(model.gravity)), 1e-300)
    start = -strength * _snapped(_first_frame(z[0], model.gravity).T @ model.gravity / strength, snap)
    return MinimalChain(
        groups=groups,
        revolute=tuple(kind == 'revolute' for kind in model.joint_types),
        signs=tuple(signs),
        turns=tuple(turns),
        offsets=offsets,
        directions=directions,
        tilts=tuple(tilts),
        start=start,
        frames=_link_frames(model, turned, origins),
    )


def _axes_at_zero(model: RobotModel) -> tuple[Array, Array]:
    """Return directions and points of all joint axes at q = 0, in the base frame."""
    axes, points = np.empty((model.n, 3)), np.empty((model.n, 3))
    for k, transform in enumerate(_transforms_at_zero(model)):
        axes[k], points[k] = transform[:3, :3] @ model.axes[k], transform[:3, 3]
    return axes, points


def _transforms_at_zero(model: RobotModel) -> list[Array]:
    transform, result = np.eye(4), []
    for placement in model.placements:
        transform = transform @ placement
        result.append(transform)
    return result


def _link_frames(model: RobotModel, turned: Array, origins: Array) -> Array:
    frames = np.tile(np.eye(4), (model.n, 1, 1))
    for k, transform in enumerate(_transforms_at_zero(model)):
        frames[k, :3, :3] = turned[k].T @ transform[:3, :3]
        frames[k, :3, 3] = turned[k].T @ (transform[:3, 3] - origins[k])
    return frames


def _revolutes(model: RobotModel, group: Sequence[int]) -> list[int]:
    return [k for k in group if model.joint_types[k] == 'revolute']


def _common_axis(model: RobotModel, group: Sequence[int], axes: Array) -> Array:
    revolutes = _revolutes(model, group)
    return np.asarray(axes[revolutes[0]]) if revolutes else np.array([0.0, 0.0, 1.0])


def _origins(
    model: RobotModel,
    groups: Sequence[Sequence[int]],
    axes: Array,
    points: Array,
    z: Sequence[Array],
    sides: Sequence[int],
    size: float,
) -> Array:
    """Return the origins: on the axes, those of a group in one plane across them."""
    origins = points.copy()
    for g, group in enumerate(groups):
        revolutes = _revolutes(model, group)
        if not revolutes:
            origins[list(group)] = points[group[0]]
            continue
        side = sides[g] if g < len(sides) else 0
        anchor = points[revolutes[0]]
        choices = []
        if g > 0 and _revolutes(model, groups[g - 1]):
            last = _revolutes(model, groups[g - 1])[-1]
            choices.append(_foot(points[revolutes[0]], z[g], points[last], axes[last], size))
        if g + 1 < len(groups):
            following = _revolutes(model, groups[g + 1])[0]
            choices.append(_foot(points[revolutes[-1]], z[g], points[following], axes[following], size))
        if choices:
            anchor = choices[min(side, len(choices) - 1)]
        for k in revolutes:
            origins[k] = points[k] + z[g] * ((anchor - points[k]) @ z[g])
        # The origin of a sliding body is free: at zero it is that of the body before.
        for position, k in enumerate(group):
            if model.joint_types[k] == 'prismatic':
                origins[k] = origins[group[position - 1]] if position else origins[revolutes[0]]
    return origins


def _foot(point: Array, axis: Array, other_point: Array, other_axis: Array, size: float) -> Array:
    """Return the point of a line nearest to another line; where they are almost parallel, to its point."""
    cosine = float(axis @ other_axis)
    gap = other_point - point
    square = 1.0 - cosine * cosine
    if square > 1e-8:
        along = (gap @ axis - (gap @ other_axis) * cosine) / square
        if abs(along) < 100.0 * size:
            return np.asarray(point + along * axis)
    return np.asarray(point + (gap @ axis) * axis)


def _toward(
    position: int, group: Sequence[int], origins: Array, z: Sequence[Array], g: int, small: float
) -> Array | None:
    """Return the direction for x of a body's own frame: to the next origin, or along the common normal."""
    if position + 1 < len(group):
        gap = origins[group[position + 1]] - origins[group[position]]
        return gap if np.linalg.norm(gap) > small else None
    if g + 1 < len(z):
        normal = np.cross(z[g], z[g + 1])
        return np.asarray(normal / np.linalg.norm(normal))
    return None


def _without_needless_turns(turns: list[float], group: Sequence[int], model: RobotModel) -> list[float]:
    """Give a body moved by a prismatic joint, and the body before it, one orientation."""
    result = list(turns)
    for previous, k in reversed(list(pairwise(group))):
        if model.joint_types[k] == 'prismatic':
            result[previous] = result[k]
    for k in group:
        if model.joint_types[k] == 'revolute':
            break
        result[k] = 0.0  # before the first revolute joint nothing turns against the group's frame
    return result


def _first_frame(z: Array, gravity: Array) -> Array:
    """Return the frame of the first group: x along the component of gravity across the axis."""
    across = -gravity + z * (gravity @ z)
    if np.linalg.norm(across) < 1e-9 * max(float(np.linalg.norm(gravity)), 1e-300):
        across = np.eye(3)[int(np.argmin(np.abs(z)))]
        across = across - z * (z @ across)
    return _frame(across, z)


def _frame(x: Array, z: Array) -> Array:
    x = x - z * (x @ z)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _snapped(values: Array, tolerance: float, *, unit: bool = True) -> Array:
    """Return the numbers with those near zero (and near +-1, for direction cosines) made exact."""
    result = np.where(np.abs(values) < tolerance, 0.0, values)
    return np.where(np.abs(np.abs(result) - 1.0) < tolerance, np.sign(result), result) if unit else result


def _snapped_angle(angle: float, tolerance: float) -> float:
    quarter = np.pi / 2.0
    nearest = round(angle / quarter) * quarter
    return float(nearest if abs(angle - nearest) < tolerance else angle)
