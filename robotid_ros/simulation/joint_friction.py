# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction of the simulated joints: the truth that an identification is asked to find."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel

# Shares of the effort limit: dry friction, and viscous friction at the velocity limit, where a URDF has neither. Strain
# wave drives of arms between 5 and 50 kg have about as much.
_TYPICAL_COULOMB_SHARE = 0.04
_TYPICAL_VISCOUS_SHARE = 0.06


# What a law adds to Coulomb and viscous friction, as parts of the Coulomb friction and as speeds: enough to stand out
# of the noise, at speeds that a friction sweep goes through.
_SHARES = {'static': {'breakaway': 0.35}, 'stribeck': {'breakaway': 0.35}, 'daemi_heimann': {'arctan_gain': -0.25}}
_SPEEDS = {
    'static': {'breakaway_speed': 0.01},
    'stribeck': {'stribeck_velocity': 0.1},
    'daemi_heimann': {'arctan_rate': 8.0},
}
LAWS = ('coulomb_viscous', *_SHARES)


def _unset() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFriction:
    """Coulomb, viscous, Stribeck or static, and arctangent friction of n joints, and a constant offset.

    tau_f = [F_c + F_b exp(-(dq/v_s)^2)] sign(dq) + F_v dq + F_a arctan(f_b dq) + F_o

    With a break-away speed v_b a step is in the exponential's place: F_c + F_b where |dq| < v_b, and F_c elsewhere.

    (Armstrong-Helouvry, Dupont, Canudas de Wit, 1994, section 2, with the breakaway excess
    F_b = F_s - F_c; the arctangent after Daemi and Heimann, 1996). Within the dry part, sign(0)
    stands for any value between -1 and 1.

    Attributes
    ----------
    coulomb : ndarray, shape (n,)
        F_c [N m or N]; not negative.
    viscous : ndarray, shape (n,)
        F_v [N m s/rad or N s/m]; not negative.
    breakaway : ndarray, shape (n,)
        F_b [N m or N]; not negative, zero by default.
    stribeck_velocity : ndarray, shape (n,)
        v_s [rad/s or m/s]; positive, 0.1 by default.
    offset : ndarray, shape (n,)
        F_o [N m or N]; zero by default.
    arctan_gain : ndarray, shape (n,)
        F_a [N m or N]; zero by default. A negative one, with which friction falls with speed, must
        leave F_c + F_a pi/2 not negative, so that friction never drives the joint.
    arctan_rate : ndarray, shape (n,)
        f_b [s/rad or s/m]; not negative, zero by default.
    breakaway_speed : ndarray, shape (n,)
        v_b [rad/s or m/s]; zero, the default, for Stribeck's law.

    Raises
    ------
    ModelError
        If shapes differ or a value has the wrong sign.
    """

    coulomb: Array
    viscous: Array
    breakaway: Array = field(default_factory=_unset)
    stribeck_velocity: Array = field(default_factory=_unset)
    offset: Array = field(default_factory=_unset)
    arctan_gain: Array = field(default_factory=_unset)
    arctan_rate: Array = field(default_factory=_unset)
    breakaway_speed: Array = field(default_factory=_unset)

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.coulomb))
        defaults = {name: 0.1 if name == 'stribeck_velocity' else 0.0 for name in self.names()[2:]}
        for name in self.names():
            value = getattr(self, name)
            if np.size(value) == 0 and name in defaults:
                value = np.full(n, defaults[name])
            value = frozen_array(value, f'friction: {name}', (n,), ModelError)
            lowest = value.min(initial=np.inf)
            signed = name in ('offset', 'arctan_gain')
            if (name == 'stribeck_velocity' and lowest <= 0.0) or (not signed and lowest < 0.0):
                raise ModelError(f'friction: expected {name} to be positive, got {lowest:g}')
            object.__setattr__(self, name, value)
        level = (self.coulomb + self.arctan_gain * np.pi / 2.0).min(initial=np.inf)
        if level < 0.0:
            raise ModelError(f'friction: expected coulomb + arctan_gain pi/2 not to be negative, got {level:g}')

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in the order of the fields."""
        return tuple(entry.name for entry in fields(cls))

    @classmethod
    def none(cls, count: int) -> 'JointFriction':
        """Return ``count`` joints without friction."""
        return cls(coulomb=np.zeros(count), viscous=np.zeros(count))

    def dry_level(self, dq: Array) -> Array:
        """Return the magnitude of the dry part, F_c + F_b exp(-(dq/v_s)^2) or its step, shape (..., n) [N m or N]."""
        ratio = dq / self.stribeck_velocity
        sticking = np.where(self.breakaway_speed > 0.0, np.abs(dq) < self.breakaway_speed, np.exp(-(ratio * ratio)))
        level: Array = self.coulomb + self.breakaway * sticking
        return level

    def smooth_torque(self, dq: Array) -> Array:
        """Return the viscous part and the arctangent, F_v dq + F_a arctan(f_b dq), shape (..., n) [N m or N]."""
        torque: Array = self.viscous * dq + self.arctan_gain * np.arctan(self.arctan_rate * dq)
        return torque

    def arctan_slope(self, dq: Array) -> Array:
        """Return the viscous friction that exerts the arctangent's torque at ``dq``, F_a arctan(f_b dq) / dq.

        For an implicit integration, which takes no negative one: zero where F_a is negative; shape (..., n)
        [N m s/rad or N s/m].
        """
        ratio = self.arctan_rate * np.asarray(dq, dtype=float)
        share = np.divide(np.arctan(ratio), ratio, out=np.ones_like(ratio), where=ratio != 0.0)
        slope: Array = np.maximum(self.arctan_gain, 0.0) * self.arctan_rate * share
        return slope

    def torque(self, dq: Array) -> Array:
        """Return the friction tau_f that opposes the motion when subtracted, shape (..., n) [N m or N].

        A joint at exactly zero velocity gets no dry friction.
        """
        dq = np.asarray(dq, dtype=float)
        torque: Array = self.dry_level(dq) * np.sign(dq) + self.smooth_torque(dq) + self.offset
        return torque

    def as_mapping(self, joint_names: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """Return the parameters per joint, in plain numbers."""
        return {
            joint: {name: float(getattr(self, name)[k]) for name in self.names()} for k, joint in enumerate(joint_names)
        }

    @classmethod
    def from_mapping(cls, values: dict[str, dict[str, Any]], joint_names: tuple[str, ...]) -> 'JointFriction':
        """Return the friction that :meth:`as_mapping` wrote; a part that no joint names has its default."""
        named = [name for name in cls.names() if any(name in values[joint] for joint in joint_names)]
        return cls(**{name: np.array([values[joint][name] for joint in joint_names]) for name in named})


def prior_friction(model: RobotModel, law: str = 'coulomb_viscous') -> JointFriction:
    """Return the friction a URDF states, or a typical one where it states none.

    A joint whose ``<dynamics>`` has neither damping nor friction gets Coulomb friction of 4 % of
    its effort limit, and viscous friction that reaches 6 % of it at the velocity limit; none where
    it has no such limits.

    Parameters
    ----------
    model : RobotModel
    law : {'coulomb_viscous', 'static', 'stribeck', 'daemi_heimann'}
        What is added to Coulomb and viscous friction, in a typical amount.
    """
    silent = (model.friction == 0.0) & (model.damping == 0.0)
    effort = np.where(np.isfinite(model.limits.effort), model.limits.effort, 0.0)
    coulomb = np.where(silent, _TYPICAL_COULOMB_SHARE * effort, model.friction)
    return JointFriction(
        coulomb=coulomb,
        viscous=np.where(silent, _TYPICAL_VISCOUS_SHARE * effort / model.limits.velocity, model.damping),
        **{name: share * coulomb for name, share in _SHARES.get(law, {}).items()},
        **{name: np.full(model.n, speed) for name, speed in _SPEEDS.get(law, {}).items()},
    )
