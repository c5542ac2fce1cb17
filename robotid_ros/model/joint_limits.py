# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Limits of the joints of an arm; infinity stands for "none given"."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError

FALLING_QUANTITIES = ('velocity', 'acceleration', 'effort')  # those whose limits may fall towards the ends of the range
FALLING_PARTS = ('slope', 'offset', 'lower_end', 'upper_end')
_FALLING = tuple(f'{quantity}_{part}' for quantity in FALLING_QUANTITIES for part in FALLING_PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLimits:
    """Position, velocity, acceleration, jerk and effort limits of n joints.

    Attributes
    ----------
    lower, upper : ndarray, shape (n,)
        Position limits [rad or m]; -inf and inf where there is none.
    velocity, acceleration, jerk, effort : ndarray, shape (n,)
        Largest magnitudes [rad/s, rad/s^2, rad/s^3, N m; or m and N]; inf where there is none.

    velocity_slope, velocity_offset : ndarray, shape (n,), optional
        Velocity limits that fall towards the ends of the range: |dq| <= sqrt(slope * distance) - offset, with the
        distance to the end that the joint moves to [rad/s^2, rad/s; or m/s^2, m/s]; slope inf where they do not fall.
    velocity_lower_end, velocity_upper_end : ndarray, shape (n,), optional
        Those ends [rad or m].
    acceleration_slope, ..., effort_upper_end : ndarray, shape (n,), optional
        The same of accelerations and efforts, towards the end that they act to; an end may lie beyond the range
        [rad/s^4, rad/s^2, rad; N^2 m^2/rad, N m, rad; or m, N].

    Raises
    ------
    ModelError
        If shapes differ, a value is NaN, lower exceeds upper or a magnitude is not positive.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array
    velocity_slope: Array | None = None
    velocity_offset: Array | None = None
    velocity_lower_end: Array | None = None
    velocity_upper_end: Array | None = None
    acceleration_slope: Array | None = None
    acceleration_offset: Array | None = None
    acceleration_lower_end: Array | None = None
    acceleration_upper_end: Array | None = None
    effort_slope: Array | None = None
    effort_offset: Array | None = None
    effort_lower_end: Array | None = None
    effort_upper_end: Array | None = None

    def __post_init__(self) -> None:
        count = len(np.atleast_1d(self.lower))
        for name in _FALLING:
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(count, 0.0 if name.endswith('offset') else np.inf))
        for field in fields(self):
            value = frozen_array(getattr(self, field.name), f'{field.name} limits', (count,), ModelError, finite=False)
            if np.isnan(value).any():
                raise ModelError(f'{field.name} limits: expected numbers or infinity, got NaN')
            positive = field.name not in ('lower', 'upper', *_FALLING) or field.name.endswith('slope')
            if positive and (value <= 0.0).any():
                k = int(np.argmax(value <= 0.0))
                message = f'{field.name} limit of joint {k + 1}: expected a positive number, got {value[k]:g}'
                raise ModelError(message, name=field.name, found=float(value[k]))
            object.__setattr__(self, field.name, value)
        if (self.lower > self.upper).any():
            k = int(np.argmax(self.lower > self.upper))
            raise ModelError(
                f'position limits of joint {k + 1}: lower {self.lower[k]:g} exceeds upper {self.upper[k]:g}'
            )

    @classmethod
    def unlimited(cls, count: int) -> 'JointLimits':
        """Return limits that allow everything, for ``count`` joints."""
        inf = np.full(count, np.inf)
        return cls(lower=-inf, upper=inf, velocity=inf, acceleration=inf, jerk=inf, effort=inf)

    def overridden(self, **values: Any) -> 'JointLimits':
        """Return a copy with the named limits replaced; NaN entries keep what was there."""
        new: dict[str, Array] = {}
        for name, value in values.items():
            array = np.asarray(value, dtype=float)
            new[name] = np.where(np.isnan(array), getattr(self, name), array)
        return replace(self, **new)

    def select(self, index: list[int]) -> 'JointLimits':
        """Return the limits of some joints, in the order of ``index``."""
        return JointLimits(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def falling(self, quantity: str) -> tuple[Array, Array, Array, Array] | None:
        """Return slope, offset, lower and upper ends of limits that fall towards those ends; None where none does."""
        slope, offset, lower, upper = (getattr(self, f'{quantity}_{part}') for part in FALLING_PARTS)
        return (slope, offset, lower, upper) if np.isfinite(slope).any() else None

    def allowed(self, quantity: str, position: Array, side: Array) -> Array:
        """Return the largest magnitude of a quantity at a position, towards the end that ``side`` has the sign of.

        All have shape (n,).
        """
        largest: Array = getattr(self, quantity)
        falling = self.falling(quantity)
        if falling is None:
            return largest
        slope, offset, lower, upper = falling
        distance = np.maximum(np.where(side > 0.0, upper - position, position - lower), 1e-9)
        result: Array = np.minimum(largest, np.maximum(np.sqrt(slope * distance) - offset, 0.0))
        return result
