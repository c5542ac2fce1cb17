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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Number
from robotid_ros.dynamics.codegen.minimal_frames import MinimalChain
from robotid_ros.dynamics.codegen.symbolic_regressor import (
    Rows,
    Vector,
    constant_vector,
    cross,
    dot,
    exact,
    matrix_times,
    plus,
    rows_times,
    times,
    turned,
    velocity_matrix,
)

PSEUDO_NAMES = ('Sxx', 'Syy', 'Sxy', 'Sxz', 'Syz', 'mx', 'my', 'Szz', 'mz', 'm')


@dataclass(frozen=True, slots=True)
class Form:
    """Choices that change the length of the equations and not their value."""

    sides: tuple[int, ...]  # per group, see :func:`minimal_chain`
    carried: tuple[bool, ...]  # per link, whether it is evaluated in its group's frame instead of its own
    # per link, whether U is stepped from the body before the group, of which it shares the third column, or made anew
    # from w and dw
    stepped: tuple[bool, ...]
    # per link, whether w_x^2 follows from w_x^2 + w_y^2, which no turn about z changes, instead of w_x
    traced: tuple[bool, ...]


@dataclass(slots=True)
class _Motion:
    """Motion of a body in some frame: w, dw, the rows of U, and the differences of its diagonal."""

    rate: Vector
    change: Vector
    matrix: Rows
    differences: Vector  # Uzz - Uyy, Uxx - Uzz, Uyy - Uxx


def pseudo_parameter_map() -> Array:
    """Return the matrix from inertial parameters (in the same frame) to PSEUDO_NAMES, shape (10, 10)."""
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

    ``motion`` holds the chain's coordinates, velocities and accelerations, ``parameters`` per link, by PSEUDO_NAMES,
    those that are not zero, in the link's own frame.
    """

    def __init__(
        self,
        graph: Graph,
        chain: MinimalChain,
        form: Form,
        motion: Sequence[Sequence[Expression]],
        parameters: Sequence[dict[str, Number]],
    ) -> None:
        self.graph, self.chain, self.form = graph, chain, form
        self.zero: Number = graph.constant(0.0)
        self.angle, self.rate, self.change = (
            [sign * x if turns else x for sign, x, turns in zip(chain.signs, part, chain.revolute, strict=True)]
            for part in motion
        )
        self.parameters = parameters
        self.group_of = {k: group for group in chain.groups for k in group}
        self.places = self._places()

    def torques(self) -> list[Number]:
        """Return the torques: forward pass, then backward pass."""
        chain, n = self.chain, len(self.angle)
        acceleration, rest = constant_vector(self.graph, chain.start), constant_vector(self.graph, np.zeros(3))
        motion = self._motion(rest, rest)
        evaluated: list[_Motion] = [motion] * n
        accelerations: list[Vector] = [acceleration] * n
        arms: list[Vector] = [rest] * n
        for g, group in enumerate(chain.groups):
            if g > 0:
                arms[group[0]] = self._arm(group[0], None)
                acceleration = self._shifted(acceleration, motion, arms[group[0]])
                motion = self._tilted(motion, chain.tilts[g])
                acceleration = matrix_times(chain.tilts[g].T, acceleration)
            acceleration, motion = self._forward(g, motion, acceleration, evaluated, accelerations, arms)
        return self._backward(evaluated, accelerations, arms)

    def _places(self) -> list[int | None]:
        """Return the frame in which each body is evaluated: own frame of a body, or None for its group's.

        A body that slides is evaluated where the body before it is, whose orientation it shares.
        """
        places: list[int | None] = []
        for k, carried in enumerate(self.form.carried):
            if self.chain.revolute[k]:
                places.append(None if carried else k)
            else:
                places.append(None if k == self.group_of[k][0] else places[-1])
        return places

    def _forward(
        self,
        g: int,
        base: _Motion,
        acceleration: Vector,
        evaluated: list[_Motion],
        accelerations: list[Vector],
        arms: list[Vector],
    ) -> tuple[Vector, _Motion]:
        """Go through one group; return acceleration and motion of its last body in its own frame."""
        chain, group = self.chain, self.chain.groups[g]
        place: int | None = None  # the frame the acceleration is in: own frame of this body, or the group's
        motion = base
        for position, k in enumerate(group):
            if position:
                arms[k] = self._arm(k, place)
                acceleration = self._shifted(acceleration, motion, arms[k])
            if chain.revolute[k]:
                motion = self._in_group(k, base) if self.places[k] is None else self._in_own(k, base)
                acceleration = self._turned(acceleration, place, self.places[k])
            else:
                acceleration = self._slid(k, acceleration, motion, self._direction(k, place))
            place = self.places[k]
            evaluated[k], accelerations[k] = motion, acceleration
        last = group[-1]
        if place is None and any(chain.revolute[k] for k in group):
            motion = self._in_own(last, base)
            acceleration = self._turned(acceleration, None, last)
        return acceleration, motion

    def _slid(self, k: int, acceleration: Vector, motion: _Motion, direction: Vector) -> Vector:
        """Add the acceleration of sliding along a direction: 2 w x dq d + ddq d."""
        swing = times(2.0 * self.rate[k], cross(motion.rate, direction))
        return plus(plus(acceleration, swing), times(self.change[k], direction))

    def _backward(self, evaluated: list[_Motion], accelerations: list[Vector], arms: list[Vector]) -> list[Number]:
        """Return the joints' torques."""
        chain = self.chain
        result: list[Number] = [self.zero] * len(self.angle)
        force = moment = constant_vector(self.graph, np.zeros(3))
        for g in range(len(chain.groups) - 1, -1, -1):
            group = chain.groups[g]
            place = self.places[group[-1]]
            if g + 1 < len(chain.groups):
                force, moment = (self._turned(x, group[-1], place) for x in (force, moment))
            for position in range(len(group) - 1, -1, -1):
                k = group[position]
                own_force, own_moment = self._wrench(k, place, evaluated[k], accelerations[k])
                force, moment = plus(force, own_force), plus(moment, own_moment)
                along = dot(force, self._direction(k, place))
                result[k] = chain.signs[k] * moment[2] if chain.revolute[k] else along
                below = self.places[group[position - 1]] if position else None
                force, moment = (self._turned(x, place, below) for x in (force, moment))
                place = below
                if position:
                    moment = plus(moment, cross(arms[k], force))
            if g > 0:
                force, moment = (matrix_times(chain.tilts[g], x) for x in (force, moment))
                moment = plus(moment, cross(arms[group[0]], force))
        return result

    def _angle_between(self, start: int | None, end: int | None) -> tuple[Number, float]:
        """Return the angle from one frame of a group to another: what depends on q, and the constant."""
        total: Number = self.zero
        constant = 0.0
        for k, sign in ((end, 1.0), (start, -1.0)):
            if k is None:
                continue
            group = self.group_of[k]
            constant += sign * self.chain.turns[k]
            for j in group[: group.index(k) + 1]:
                if self.chain.revolute[j] and not (start is not None and end is not None and j <= min(start, end)):
                    total = total + sign * self.angle[j]
        return total, constant

    def _trigonometry(self, start: int | None, end: int | None) -> tuple[Number, Number]:
        angle, constant = self._angle_between(start, end)
        if not isinstance(angle, Expression) or angle.is_zero:
            return self.graph.constant(exact(cos(constant))), self.graph.constant(exact(sin(constant)))
        quarters = round(constant / (pi / 2.0))
        if abs(constant - quarters * pi / 2.0) < 1e-15:
            c, s = angle.cos(), angle.sin()
            return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]
        return (angle + constant).cos(), (angle + constant).sin()

    def _turned(self, vector: Vector, start: int | None, end: int | None) -> Vector:
        if start == end:
            return vector
        return turned(vector, *self._trigonometry(start, end))

    def _tilted(self, motion: _Motion, tilt: Array) -> _Motion:
        """Return the motion in a tilted frame; through right angles, U only changes places and signs."""
        rate, change = matrix_times(tilt.T, motion.rate), matrix_times(tilt.T, motion.change)
        if not np.array_equal(np.abs(tilt), np.round(np.abs(tilt))):
            return self._motion(rate, change)
        source = [int(np.argmax(np.abs(tilt[:, k]))) for k in range(3)]
        sign = [float(tilt[source[k], k]) for k in range(3)]
        u, d = motion.matrix, motion.differences

        def row(i: int) -> Vector:
            x, y, z = (sign[i] * sign[j] * u[source[i]][source[j]] for j in range(3))
            return (x, y, z)

        gap = {(2, 1): d[0], (0, 2): d[1], (1, 0): d[2]}
        gap |= {(j, i): -value for (i, j), value in gap.items()}
        d0, d1, d2 = (gap[source[i], source[j]] for i, j in ((2, 1), (0, 2), (1, 0)))
        return _Motion(rate, change, (row(0), row(1), row(2)), (d0, d1, d2))

    def _motion(self, rate: Vector, change: Vector) -> _Motion:
        xx, yy, zz = (component * component for component in rate)
        return _Motion(rate, change, velocity_matrix(rate, change), (zz - yy, xx - zz, yy - xx))

    def _group_rate(self, k: int) -> tuple[Number, Number]:
        group = self.group_of[k]
        rate: Number = self.zero
        change: Number = self.zero
        for j in group[: group.index(k) + 1]:
            if self.chain.revolute[j]:
                rate, change = rate + self.rate[j], change + self.change[j]
        return rate, change

    def _in_group(self, k: int, base: _Motion) -> _Motion:
        """Return the motion of body k in its group's frame."""
        rate, change = self._group_rate(k)
        x, y, z = base.rate
        rates: Vector = (x, y, z + rate)
        changes: Vector = (base.change[0] + y * rate, base.change[1] - x * rate, base.change[2] + change)
        if not self.form.stepped[k]:
            return self._motion(rates, changes)
        u, (d0, d1, d2) = base.matrix, base.differences
        twice = 2.0 * rate
        extra = (z + rates[2]) * rate
        matrix = (
            (u[0][0] - extra, u[0][1] - change, u[0][2]),
            (u[1][0] + change, u[1][1] - extra, u[1][2]),
            (u[2][0] + twice * x, u[2][1] + twice * y, u[2][2]),
        )
        return _Motion(rates, changes, matrix, (d0 + extra, d1 - extra, d2))

    def _in_own(self, k: int, base: _Motion) -> _Motion:
        """Return the motion of body k in its own frame."""
        rate, change = self._group_rate(k)
        x, y, z = self._turned(base.rate, None, k)
        if not self.form.stepped[k]:
            dx, dy, dz = self._turned(base.change, None, k)
            return self._motion((x, y, z + rate), (dx + y * rate, dy - x * rate, dz + change))
        z, dz = z + rate, base.change[2] + change
        uxz, uyz, _ = self._turned((base.matrix[0][2], base.matrix[1][2], self.zero), None, k)
        yy, zz = y * y, z * z
        xx = -base.matrix[2][2] - yy if self.form.traced[k] else x * x
        xy, xz, yz = x * y, x * z, y * z
        dx, dy = yz - uyz, uxz - xz
        return _Motion(
            (x, y, z),
            (dx, dy, dz),
            ((-(yy + zz), xy - dz, uxz), (xy + dz, -(xx + zz), uyz), (xz - dy, yz + dx, base.matrix[2][2])),
            (zz - yy, xx - zz, yy - xx),
        )

    def _arm(self, k: int, place: int | None) -> Vector:
        """Return the vector from origin k - 1 to origin k, in the frame of body ``place`` or the group's."""
        own = constant_vector(self.graph, self.chain.offsets[k])
        if not self.chain.revolute[k]:
            own = plus(own, times(self.angle[k], constant_vector(self.graph, self.chain.directions[k])))
        if k == self.group_of[k][0]:
            return own
        return self._turned(own, k - 1, place)

    def _direction(self, k: int, place: int | None) -> Vector:
        own = constant_vector(self.graph, self.chain.directions[k])
        if k == self.group_of[k][0]:
            return own
        return self._turned(own, k - 1, place)

    def _shifted(self, acceleration: Vector, motion: _Motion, arm: Vector) -> Vector:
        return plus(acceleration, rows_times(motion.matrix, arm))

    def _wrench(self, k: int, place: int | None, motion: _Motion, acceleration: Vector) -> tuple[Vector, Vector]:
        """Return force and moment about the origin that body k needs."""
        own = {name: self.parameters[k].get(name, self.zero) for name in PSEUDO_NAMES}
        first: Vector = (own['mx'], own['my'], own['mz'])
        u, (ax, ay, az) = motion.matrix, acceleration
        xx, yy, xy, xz, yz, zz, m = (own[name] for name in ('Sxx', 'Syy', 'Sxy', 'Sxz', 'Syz', 'Szz', 'm'))
        turning: Number
        if place == k:
            turning = u[1][0] * xx - u[0][1] * yy
        else:
            c, s = self._trigonometry(k, place)
            first = turned(first, c, s)
            xz, yz, _ = turned((xz, yz, self.zero), c, s)
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
        force = plus(rows_times(u, first), times(m, acceleration))
        d0, d1, d2 = motion.differences
        moment: Vector = (
            u[2][0] * xy - u[1][0] * xz + d0 * yz + u[2][1] * yy - u[1][2] * zz + az * my - ay * mz,
            d1 * xz + u[0][1] * yz + u[0][2] * zz - u[2][0] * xx - u[2][1] * xy + ax * mz - az * mx,
            turning + d2 * xy + u[1][2] * xz - u[0][2] * yz + ay * mx - ax * my,
        )
        return force, moment
