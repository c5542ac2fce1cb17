# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Customised Newton-Euler recursions on symbols, in minimal frames.

Forward, per link: angular velocity w, the matrix U = [dw]x + [w]x [w]x and the acceleration a of
the origin; backward: force and moment. Inertias enter as the pseudo-inertia's entries
S = integral(x x^T dm), with which the moment about the origin is the antisymmetric part of U S:
n_x = (U S)_zy - (U S)_yz, ... plus first moment x a. For a revolute joint S_zz, the first moment
mz and the mass are regrouped with parameters of the link before, so that each link is a lamina
across its axis with two products.

A link can be evaluated in its own frame, where its parameters are constants and the motion is
turned, or in the frame of its group, where the parameters are turned and the motion is not.

The frames: only the joint axes are given: origins can be moved along them and frames turned about them, so that
as many constants as possible vanish. Consecutive joints with parallel axes form a group: the orientations
of its links differ by sums of joint angles about one direction. Each group has a frame G fixed in
the body before it, with z along the common axis and x along the common normal, so that
that body and G differ by one turn about x (W. Khalil and J.-F. Kleinfinger, "A new geometric notation
for open and closed-loop robots", IEEE ICRA 1986).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import cos, pi, sin

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import frame_along
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Symbols, combined, symbols
from robotid_ros.dynamics.codegen.symbolic_regressor import (
    constant_vector,
    cross,
    turned,
    velocity_matrix,
)
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import transform_inertial_parameters
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import exact


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
    # shape (n, 10, 10): pseudo-parameters of body k in its own frame from the inertial parameters in its link frame
    from_links: Array


def _joint_groups(model: RobotModel, axes: Array, snap: float) -> tuple[tuple[int, ...], ...]:
    """Return runs of joints whose revolute axes are parallel; prismatic joints join the run they are in.

    ``snap`` is the largest sine of the angle between parallel axes.
    """
    groups: list[list[int]] = [[]]
    current: Array | None = None
    for k, kind in enumerate(model.joint_types):
        if kind == 'revolute':
            if current is not None and np.linalg.norm(np.cross(axes[k], current)) > snap:
                groups.append([])
            current = axes[k]
        groups[-1].append(k)
    return tuple(tuple(group) for group in groups)


def minimal_chain(model: RobotModel, sides: Sequence[bool] = (), *, snap: float = 1e-12) -> MinimalChain:
    """Return an arm's geometry in minimal frames.

    For each group, ``sides`` says whether its plane of origins goes through the common normal with the group after it,
    in place of that with the group before. Sines, and lengths relative to the arm's, below ``snap`` are taken as zero.
    """
    frames = link_transforms(model, np.zeros((1, model.n)))[0]
    axes, points = (frames[:, :3, :3] @ model.axes[:, :, None])[:, :, 0], frames[:, :3, 3]  # in the base frame at q = 0
    groups = _joint_groups(model, axes, snap)
    n = model.n
    signs, turns = [1.0] * n, [0.0] * n
    size = max(float(np.abs(points - points[0]).max()), 1e-3)
    revolutes = [[k for k in group if model.joint_types[k] == 'revolute'] for group in groups]
    z = [axes[of[0]] if of else np.array([0.0, 0.0, 1.0]) for of in revolutes]
    origins = _origins(groups, revolutes, axes, points, z, sides, size)
    turned = np.empty((n, 3, 3))
    tilts: list[Array] = []
    before = first = _first_frame(z[0], model.gravity)
    for g, group in enumerate(groups):
        frame = before if g == 0 else frame_along(before[:, 0], z[g])
        tilts.append(np.eye(3) if g == 0 else _snapped(before.T @ frame, snap))
        for position, k in enumerate(group):
            if model.joint_types[k] == 'revolute' and axes[k] @ z[g] < 0.0:
                signs[k] = -1.0
            # x of a body's own frame points to the next origin, or along the common normal.
            following = group[position + 1] if position + 1 < len(group) else None
            if following is not None and np.linalg.norm(origins[following] - origins[k]) > snap * size:
                toward = origins[following] - origins[k]
            elif following is None and g + 1 < len(z):
                toward = np.cross(z[g], z[g + 1])
                toward = toward / np.linalg.norm(toward)
            else:
                turns[k] = turns[group[position - 1]] if position else 0.0
                continue
            angle = float(np.arctan2(toward @ frame[:, 1], toward @ frame[:, 0]))
            nearest = float(round(angle / (np.pi / 2.0)) * (np.pi / 2.0))
            turns[k] = nearest if abs(angle - nearest) < snap else angle
        # A body moved by a prismatic joint, and the body before it, have one orientation; before the first revolute
        # joint nothing turns against the group's frame.
        for previous, k in reversed(list(pairwise(group))):
            if model.joint_types[k] == 'prismatic':
                turns[previous] = turns[k]
        for k in takewhile(lambda k: model.joint_types[k] != 'revolute', group):
            turns[k] = 0.0
        for k in group:
            cosine, sine = np.cos(turns[k]), np.sin(turns[k])
            turned[k] = frame @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        before = turned[group[-1]]
    offsets, directions = np.zeros((n, 3)), np.zeros((n, 3))
    for k in range(n):
        basis = turned[k - 1] if k else first
        if k:
            offsets[k] = _snapped(basis.T @ (origins[k] - origins[k - 1]), snap * size, unit=False)
        if model.joint_types[k] == 'prismatic':
            directions[k] = _snapped(basis.T @ axes[k], snap)
    strength = max(float(np.linalg.norm(model.gravity)), 1e-300)
    start = -strength * _snapped(first.T @ model.gravity / strength, snap)
    moved = [
        transform_inertial_parameters(np.eye(10), own.T @ frame[:3, :3], own.T @ (frame[:3, 3] - origin)).T
        for own, frame, origin in zip(turned, frames, origins, strict=True)
    ]
    return MinimalChain(
        groups=groups,
        revolute=tuple(model.revolute.tolist()),
        signs=tuple(signs),
        turns=tuple(turns),
        offsets=offsets,
        directions=directions,
        tilts=tuple(tilts),
        start=start,
        from_links=_pseudo_parameter_map() @ np.stack(moved),
    )


def _origins(
    groups: Sequence[Sequence[int]],
    revolutes: Sequence[Sequence[int]],
    axes: Array,
    points: Array,
    z: Sequence[Array],
    sides: Sequence[bool],
    size: float,
) -> Array:
    """Return the origins: on the axes, those of a group in one plane across them."""
    origins = points.copy()
    for g, (group, own) in enumerate(zip(groups, revolutes, strict=True)):
        if not own:
            origins[list(group)] = points[group[0]]
            continue
        choices = []
        if g > 0 and revolutes[g - 1]:
            last = revolutes[g - 1][-1]
            choices.append(_foot(points[own[0]], z[g], points[last], axes[last], size))
        if g + 1 < len(groups):
            following = revolutes[g + 1][0]
            choices.append(_foot(points[own[-1]], z[g], points[following], axes[following], size))
        after = g < len(sides) and sides[g]
        anchor = choices[-1 if after else 0] if choices else points[own[0]]
        for k in own:
            origins[k] = points[k] + z[g] * ((anchor - points[k]) @ z[g])
        # The origin of a sliding body is free: at zero it is that of the body before.
        for position, k in enumerate(group):
            if k not in own:
                origins[k] = origins[group[position - 1]] if position else origins[own[0]]
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


def _first_frame(z: Array, gravity: Array) -> Array:
    """Return the frame of the first group: x along the component of gravity across the axis."""
    across = -gravity + z * (gravity @ z)
    if np.linalg.norm(across) < 1e-9 * max(float(np.linalg.norm(gravity)), 1e-300):
        across = np.eye(3)[int(np.argmin(np.abs(z)))]
    return frame_along(across, z)


def _snapped(values: Array, tolerance: float, *, unit: bool = True) -> Array:
    """Return the numbers with those near zero (and near +-1, for direction cosines) made exact."""
    result = np.where(np.abs(values) < tolerance, 0.0, values)
    return np.where(np.abs(np.abs(result) - 1.0) < tolerance, np.sign(result), result) if unit else result


@dataclass(frozen=True, slots=True)
class Form:
    """Choices that change the length of the equations and not their value."""

    sides: tuple[bool, ...]  # per group, see :func:`minimal_chain`
    carried: tuple[bool, ...]  # per link, whether it is evaluated in its group's frame instead of its own
    # per link, whether U is stepped from the body before the group, of which it shares the third column, or made anew
    # from w and dw
    stepped: tuple[bool, ...]
    # per link, whether w_x^2 follows from w_x^2 + w_y^2, which no turn about z changes, instead of w_x
    traced: tuple[bool, ...]


@dataclass(slots=True)
class _Motion:
    """Motion of a body in some frame: w, dw, the rows of U, and the differences of its diagonal."""

    rate: Symbols
    change: Symbols
    matrix: Symbols
    differences: Symbols  # Uzz - Uyy, Uxx - Uzz, Uyy - Uxx

    @classmethod
    def of(cls, rate: Symbols, change: Symbols) -> '_Motion':
        """Return the motion with U made anew from w and dw."""
        xx, yy, zz = (component * component for component in rate)
        return cls(rate, change, velocity_matrix(rate, change), symbols(zz - yy, xx - zz, yy - xx))

    def tilted(self, tilt: Array) -> '_Motion':
        """Return the motion in a tilted frame; through right angles, U only changes places and signs."""
        rate, change = combined(tilt.T, self.rate), combined(tilt.T, self.change)
        if not np.array_equal(np.abs(tilt), np.round(np.abs(tilt))):
            return _Motion.of(rate, change)
        source = [int(np.argmax(np.abs(tilt[:, k]))) for k in range(3)]
        sign = tilt[source, range(3)]
        matrix = self.matrix[np.ix_(source, source)] * np.outer(sign, sign)
        turn = round(np.linalg.det(np.abs(tilt)))  # -1 where two axes change places: each difference is the other way
        return _Motion(rate, change, matrix, turn * self.differences[source])


def _pseudo_parameter_map() -> Array:
    """Return the matrix from inertial parameters to pseudo-parameters in the same frame, shape (10, 10).

    These are Sxx, Syy, Sxy, Sxz, Syz, mx, my, Szz, mz and m, in this order.
    """
    result = np.zeros((10, 10))
    half = 0.5
    for row, (ixx, iyy, izz) in ((0, (-half, half, half)), (1, (half, -half, half)), (7, (half, half, -half))):
        result[row, [0, 3, 5]] = ixx, iyy, izz
    for row, column in ((2, 1), (3, 2), (4, 4)):
        result[row, column] = -1.0
    for row, column in ((5, 6), (6, 7), (8, 8), (9, 9)):
        result[row, column] = 1.0
    return result


class TorqueTracer:
    """Traces the torques of a chain's joints.

    ``motion`` holds the chain's coordinates, velocities and accelerations, ``parameters``, shape (n, 10), each
    link's pseudo-parameters in its own frame.
    """

    def __init__(
        self,
        graph: Graph,
        chain: MinimalChain,
        form: Form,
        motion: Sequence[Symbols],
        parameters: Symbols,
    ) -> None:
        self.graph, self.chain, self.form = graph, chain, form
        self.zero = graph.constant(0.0)
        self.angle, self.rate, self.change = (
            [sign * x if turns else x for sign, x, turns in zip(chain.signs, part, chain.revolute, strict=True)]
            for part in motion
        )
        self.parameters = parameters
        self.evaluated: dict[int, tuple[_Motion, Symbols]] = {}  # motion of each body, and acceleration of its origin
        self.arms: dict[int, Symbols] = {}  # from the origin before to that of each body
        self.group_of = {k: group for group in chain.groups for k in group}
        # The frame in which each body is evaluated: own frame of a body, or None for its group's. A body that slides is
        # evaluated where the body before it is, whose orientation it shares.
        self.places: list[int | None] = []
        for k, carried in enumerate(form.carried):
            if chain.revolute[k]:
                self.places.append(None if carried else k)
            else:
                self.places.append(None if k == self.group_of[k][0] else self.places[-1])

    def torques(self) -> list[Expression]:
        """Return the torques: forward pass, then backward pass."""
        chain = self.chain
        acceleration, rest = constant_vector(self.graph, chain.start), constant_vector(self.graph, np.zeros(3))
        motion = _Motion.of(rest, rest)
        for g, group in enumerate(chain.groups):
            if g > 0:
                self.arms[group[0]] = self._arm(group[0], None)
                acceleration = acceleration + motion.matrix @ self.arms[group[0]]
                motion = motion.tilted(chain.tilts[g])
                acceleration = combined(chain.tilts[g].T, acceleration)
            acceleration, motion = self._forward(group, motion, acceleration)
        return self._backward()

    def _forward(self, group: Sequence[int], base: _Motion, acceleration: Symbols) -> tuple[Symbols, _Motion]:
        """Go through one group; return acceleration and motion of its last body in its own frame."""
        chain = self.chain
        place: int | None = None  # the frame the acceleration is in: own frame of this body, or the group's
        motion = base
        for position, k in enumerate(group):
            if position:
                self.arms[k] = self._arm(k, place)
                acceleration = acceleration + motion.matrix @ self.arms[k]
            if chain.revolute[k]:
                motion = self._in_group(k, base) if self.places[k] is None else self._in_own(k, base)
                acceleration = self._turned(acceleration, place, self.places[k])
            else:
                direction = self._direction(k, place)  # of sliding, which adds 2 w x dq d + ddq d
                swing = cross(motion.rate, direction) * (2.0 * self.rate[k])
                acceleration = acceleration + swing + direction * self.change[k]
            place = self.places[k]
            self.evaluated[k] = motion, acceleration
        last = group[-1]
        if place is None and any(chain.revolute[k] for k in group):
            motion = self._in_own(last, base)
            acceleration = self._turned(acceleration, None, last)
        return acceleration, motion

    def _backward(self) -> list[Expression]:
        """Return the joints' torques."""
        chain = self.chain
        result = [self.zero] * len(self.angle)
        force = moment = constant_vector(self.graph, np.zeros(3))
        for g in range(len(chain.groups) - 1, -1, -1):
            group = chain.groups[g]
            place = self.places[group[-1]]
            if g + 1 < len(chain.groups):
                force, moment = (self._turned(x, group[-1], place) for x in (force, moment))
            for position in range(len(group) - 1, -1, -1):
                k = group[position]
                own_force, own_moment = self._wrench(k, place, *self.evaluated[k])
                force, moment = force + own_force, moment + own_moment
                along = force @ self._direction(k, place)
                result[k] = chain.signs[k] * moment[2] if chain.revolute[k] else along
                below = self.places[group[position - 1]] if position else None
                force, moment = (self._turned(x, place, below) for x in (force, moment))
                place = below
                if position:
                    moment = moment + cross(self.arms[k], force)
            if g > 0:
                force, moment = (combined(chain.tilts[g], x) for x in (force, moment))
                moment = moment + cross(self.arms[group[0]], force)
        return result

    def _trigonometry(self, start: int | None, end: int | None) -> tuple[Expression, Expression]:
        angle = self.zero  # from one frame to the other: what depends on q, and the constant
        constant = 0.0
        for k, sign in ((end, 1.0), (start, -1.0)):
            if k is None:
                continue
            group = self.group_of[k]
            constant += sign * self.chain.turns[k]
            for j in group[: group.index(k) + 1]:
                if self.chain.revolute[j] and not (start is not None and end is not None and j <= min(start, end)):
                    angle = angle + sign * self.angle[j]
        if self.graph.is_zero(angle.reference):
            return self.graph.constant(exact(cos(constant))), self.graph.constant(exact(sin(constant)))
        quarters = round(constant / (pi / 2.0))
        if abs(constant - quarters * pi / 2.0) < 1e-15:
            c, s = angle.cos(), angle.sin()
            return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]
        return (angle + constant).cos(), (angle + constant).sin()

    def _turned(self, vector: Symbols, start: int | None, end: int | None) -> Symbols:
        if start == end:
            return vector
        return turned(vector, *self._trigonometry(start, end))

    def _group_rate(self, k: int) -> tuple[Expression, Expression]:
        group = self.group_of[k]
        rate = change = self.zero
        for j in group[: group.index(k) + 1]:
            if self.chain.revolute[j]:
                rate, change = rate + self.rate[j], change + self.change[j]
        return rate, change

    def _in_group(self, k: int, base: _Motion) -> _Motion:
        """Return the motion of body k in its group's frame."""
        rate, change = self._group_rate(k)
        x, y, z = base.rate
        rates = symbols(x, y, z + rate)
        changes = base.change + symbols(y * rate, -(x * rate), change)
        if not self.form.stepped[k]:
            return _Motion.of(rates, changes)
        u, (d0, d1, d2) = base.matrix, base.differences
        twice = 2.0 * rate
        extra = (z + rates[2]) * rate
        matrix = symbols(
            (u[0][0] - extra, u[0][1] - change, u[0][2]),
            (u[1][0] + change, u[1][1] - extra, u[1][2]),
            (u[2][0] + twice * x, u[2][1] + twice * y, u[2][2]),
        )
        return _Motion(rates, changes, matrix, symbols(d0 + extra, d1 - extra, d2))

    def _in_own(self, k: int, base: _Motion) -> _Motion:
        """Return the motion of body k in its own frame."""
        rate, change = self._group_rate(k)
        x, y, z = self._turned(base.rate, None, k)
        if not self.form.stepped[k]:
            dx, dy, dz = self._turned(base.change, None, k)
            return _Motion.of(symbols(x, y, z + rate), symbols(dx + y * rate, dy - x * rate, dz + change))
        z, dz = z + rate, base.change[2] + change
        uxz, uyz, _ = self._turned(symbols(*base.matrix[:2, 2], self.zero), None, k)
        yy, zz = y * y, z * z
        xx = -base.matrix[2][2] - yy if self.form.traced[k] else x * x
        xy, xz, yz = x * y, x * z, y * z
        dx, dy = yz - uyz, uxz - xz
        return _Motion(
            symbols(x, y, z),
            symbols(dx, dy, dz),
            symbols((-(yy + zz), xy - dz, uxz), (xy + dz, -(xx + zz), uyz), (xz - dy, yz + dx, base.matrix[2][2])),
            symbols(zz - yy, xx - zz, yy - xx),
        )

    def _arm(self, k: int, place: int | None) -> Symbols:
        """Return the vector from origin k - 1 to origin k, in the frame of body ``place`` or the group's."""
        own = constant_vector(self.graph, self.chain.offsets[k])
        if not self.chain.revolute[k]:
            own = own + constant_vector(self.graph, self.chain.directions[k]) * self.angle[k]
        if k == self.group_of[k][0]:
            return own
        return self._turned(own, k - 1, place)

    def _direction(self, k: int, place: int | None) -> Symbols:
        own = constant_vector(self.graph, self.chain.directions[k])
        if k == self.group_of[k][0]:
            return own
        return self._turned(own, k - 1, place)

    def _wrench(self, k: int, place: int | None, motion: _Motion, acceleration: Symbols) -> tuple[Symbols, Symbols]:
        """Return force and moment about the origin that body k needs."""
        xx, yy, xy, xz, yz, mx, my, zz, mz, m = self.parameters[k]
        first = symbols(mx, my, mz)
        u, (ax, ay, az) = motion.matrix, acceleration
        if place == k:
            turning = u[1][0] * xx - u[0][1] * yy
        else:
            c, s = self._trigonometry(k, place)
            first = turned(first, c, s)
            xz, yz, _ = turned(symbols(xz, yz, self.zero), c, s)
            # The 2 x 2 block turned: Sxx - s (P s - Q c), Sxy - s (Q s + P c) with P = Sxx - Syy, Q = 2 Sxy.
            p, q = xx - yy, 2.0 * xy
            moved = s * (p * s - q * c)
            polar = xx + yy
            xx, yy, xy = xx - moved, yy + moved, xy - s * (q * s + p * c)
            if self.form.stepped[k]:
                turning = u[1][0] * xx - u[0][1] * yy
            else:
                turning = motion.change[2] * polar + (motion.rate[0] * motion.rate[1]) * (xx - yy)
        mx, my, mz = first
        force = u @ first + acceleration * m
        d0, d1, d2 = motion.differences
        moment = symbols(
            u[2][0] * xy - u[1][0] * xz + d0 * yz + u[2][1] * yy - u[1][2] * zz + az * my - ay * mz,
            d1 * xz + u[0][1] * yz + u[0][2] * zz - u[2][0] * xx - u[2][1] * xy + ax * mz - az * mx,
            turning + d2 * xy + u[1][2] * xz - u[0][2] * yz + ay * mx - ax * my,
        )
        return force, moment


def trace_torques(
    model: RobotModel, drives: Sequence[str], chain: MinimalChain, columns: Iterable[int], form: Form
) -> tuple[Graph, tuple[int, ...]]:
    """Return the torques of the rigid body as a graph whose inputs are q, dq, ddq and parameters in the minimal frames.

    ``columns`` says which parameters these are, the others being zero: ten pseudo-parameters link by link, then n for
    each symbol of ``drives``.
    """
    graph, n = Graph(), model.n
    q, dq, ddq = graph.inputs(0, n), graph.inputs(n, n), graph.inputs(2 * n, n)
    parameters = np.full((n, 10), graph.constant(0.0), dtype=object)
    rotors: list[tuple[int, Expression]] = []
    for position, column in enumerate(columns):
        parameter = graph.input(3 * n + position)
        if column < 10 * n:
            parameters[divmod(column, 10)] = parameter
        elif drives[(column - 10 * n) // n] == 'Ia':
            rotors.append((column % n, parameter))
    motion = [combined(model.coupling, x) for x in (q, dq, ddq)]
    torques = combined(model.coupling.T, TorqueTracer(graph, chain, form, motion, parameters).torques())
    for joint, parameter in rotors:
        torques[joint] = torques[joint] + ddq[joint] * parameter
    return graph, tuple(torque.reference for torque in torques)
