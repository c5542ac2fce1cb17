# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm that is simulated: what an identification does not know and has to find, friction first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.arrays import Array, freeze_fields, unset
from robotid_ros.errors import DataError, ModelError
from robotid_ros.files import write_text
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_NAMES, physical_violation, pseudo_inertia, pseudo_inertia_parameters
from robotid_ros.reading import read_yaml, refusing
from robotid_ros.simulation.sensors import PlantMotion

# Shares of the effort limit: dry friction, and viscous friction at the velocity limit, where a URDF has neither. Strain
# wave drives of arms between 5 and 50 kg have about as much.
_TYPICAL_COULOMB_SHARE = 0.04
_TYPICAL_VISCOUS_SHARE = 0.06


# What a law adds to Coulomb and viscous friction, as parts of the Coulomb friction and as speeds: enough to stand out
# of the noise, at speeds that a friction sweep goes through.
_ADDED: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    'coulomb_viscous': ({}, {}),
    'static': ({'breakaway': 0.35}, {'breakaway_speed': 0.01}),
    'stribeck': ({'breakaway': 0.35}, {'stribeck_velocity': 0.1}),
    'daemi_heimann': ({'arctan_gain': -0.25}, {'arctan_rate': 8.0}),
}
LAWS = tuple(_ADDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFriction:
    """Coulomb, viscous, Stribeck or static, and arctangent friction of n joints, and a constant offset.

    tau_f = [F_c + F_b exp(-(dq/v_s)^2)] sign(dq) + F_v dq + F_a arctan(f_b dq) + F_o

    With a break-away speed v_b a step is in the exponential's place: F_c + F_b where |dq| < v_b, and F_c elsewhere.

    (Armstrong-Helouvry, Dupont, Canudas de Wit, 1994, section 2, with the breakaway excess F_b = F_s - F_c; the
    arctangent after Daemi and Heimann, 1996). Within the dry part, sign(0) stands for any value between -1 and 1.

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
    breakaway: Array = field(default_factory=unset)
    stribeck_velocity: Array = field(default_factory=unset)
    offset: Array = field(default_factory=unset)
    arctan_gain: Array = field(default_factory=unset)
    arctan_rate: Array = field(default_factory=unset)
    breakaway_speed: Array = field(default_factory=unset)

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.coulomb))
        usual = {name: np.full(n, 0.1 if name == 'stribeck_velocity' else 0.0) for name in self.names()[2:]}
        signed, positive = ('offset', 'arctan_gain'), ('stribeck_velocity',)
        others = [name for name in self.names() if name not in (*signed, *positive)]
        for names, limits in ((signed, {}), (positive, {'above': 0.0}), (others, {'at_least': 0.0})):
            shapes = dict.fromkeys(names, (n,))
            freeze_fields(self, ModelError, shapes, what='friction: ', defaults=usual, **limits)
        level = (self.coulomb + self.arctan_gain * np.pi / 2.0).min(initial=np.inf)
        if level < 0.0:
            message = f'friction: expected coulomb + arctan_gain pi/2 not to be negative, got {level:g}'
            raise ModelError(message, name='coulomb', found=float(level))

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
        return np.asarray(self.coulomb + self.breakaway * sticking)

    def smooth_torque(self, dq: Array) -> Array:
        """Return the viscous part and the arctangent, F_v dq + F_a arctan(f_b dq), shape (..., n) [N m or N]."""
        return np.asarray(self.viscous * dq + self.arctan_gain * np.arctan(self.arctan_rate * dq))

    def arctan_slope(self, dq: Array) -> Array:
        """Return the viscous friction that exerts the arctangent's torque at ``dq``, F_a arctan(f_b dq) / dq.

        For an implicit integration, which takes no negative one: zero where F_a is negative; shape (..., n)
        [N m s/rad or N s/m].
        """
        ratio = self.arctan_rate * np.asarray(dq, dtype=float)
        share = np.divide(np.arctan(ratio), ratio, out=np.ones_like(ratio), where=ratio != 0.0)
        return np.asarray(np.maximum(self.arctan_gain, 0.0) * self.arctan_rate * share)

    def torque(self, dq: Array) -> Array:
        """Return the friction tau_f that opposes the motion when subtracted, shape (..., n) [N m or N].

        A joint at exactly zero velocity gets no dry friction.
        """
        dq = np.asarray(dq, dtype=float)
        return np.asarray(self.dry_level(dq) * np.sign(dq) + self.smooth_torque(dq) + self.offset)


def prior_friction(model: RobotModel, law: str = 'coulomb_viscous') -> JointFriction:
    """Return the friction a URDF states, or a typical one where it states none.

    A joint whose ``<dynamics>`` has neither damping nor friction gets Coulomb friction of 4 % of its effort limit, and
    viscous friction that reaches 6 % of it at the velocity limit; none where it has no such limits.

    Parameters
    ----------
    model : RobotModel
    law : {'coulomb_viscous', 'static', 'stribeck', 'daemi_heimann'}
        What is added to Coulomb and viscous friction, in a typical amount.
    """
    silent = (model.friction == 0.0) & (model.damping == 0.0)
    effort = np.where(np.isfinite(model.limits.effort), model.limits.effort, 0.0)
    coulomb = np.where(silent, _TYPICAL_COULOMB_SHARE * effort, model.friction)
    shares, speeds = _ADDED[law]
    return JointFriction(
        coulomb=coulomb,
        viscous=np.where(silent, _TYPICAL_VISCOUS_SHARE * effort / model.limits.velocity, model.damping),
        **{name: share * coulomb for name, share in shares.items()},
        **{name: np.full(model.n, speed) for name, speed in speeds.items()},
    )


RIPPLE_WAVES = 100.0  # per turn of the joint: one per turn of a rotor behind a gear of 100
_SLIP = 0.01  # rad/s or m/s; below it the friction of the load fades out, so that it does nothing at rest
# Motor-side torque constant [N m/A] where none is given: between those published for the large and
# the small joints of a UR10 (13.1 and 10.6 N m/A at the joint, behind 101:1).
_TYPICAL_TORQUE_CONSTANT = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """Properties of the drives of n joints beyond rigid bodies and friction that depends on velocity alone.

    tau_m = tau + mu |tau - tau_f| tanh(dq / 0.01) + a sin(100 q),   q_m = q + c tau_m,   shown(t) = tau_m(t - d)

    The plant leads the links. So each property changes the torque or the position of the motor, which is what is
    measured.

    Attributes
    ----------
    load_friction : ndarray, shape (n,)
        mu, friction per torque that the joint carries; not negative.
    ripple : ndarray, shape (n,)
        a, amplitude of a torque ripple [N m or N]; not negative.
    compliance : ndarray, shape (n,)
        c, by how much the motor, which is measured, stands off the link [rad/(N m) or m/N]; not negative.
    delay : float
        d, of the effort behind the position [s]; not negative.

    Raises
    ------
    ModelError
        If shapes differ or a value is negative.
    """

    load_friction: Array
    ripple: Array
    compliance: Array
    delay: float = 0.0

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.load_friction))
        shapes = dict.fromkeys(('load_friction', 'ripple', 'compliance'), (n,))
        freeze_fields(self, ModelError, shapes, what='drive: ', at_least=0.0)
        if not 0.0 <= self.delay < np.inf:
            message = f'drive: expected a delay of at least 0 s, got {self.delay:g}'
            raise ModelError(message, name='delay', found=self.delay)

    @classmethod
    def ideal(cls, count: int) -> 'Drive':
        """Return ``count`` drives that show the torque of their joints as it is."""
        return cls(load_friction=np.zeros(count), ripple=np.zeros(count), compliance=np.zeros(count))

    def load_torque(self, dq: Array, load: Array) -> Array:
        """Return the friction of the load, mu |load| tanh(dq / 0.01), shape (..., n) [N m or N]."""
        return np.asarray(self.load_friction * np.abs(load) * np.tanh(dq / _SLIP))

    def shown(self, motion: PlantMotion) -> PlantMotion:
        """Return a motion of the links with position and torque as they are at the motors, without the delay."""
        torque = motion.motor_torque + self.load_torque(motion.velocity, motion.torque - motion.friction)
        torque = torque + self.ripple * np.sin(RIPPLE_WAVES * motion.position)
        return replace(motion, motor_torque=torque, position=motion.position + self.compliance * torque)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTruth:
    """True dynamics of a simulated arm.

    Attributes
    ----------
    model : RobotModel
        True kinematics, inertial parameters, rotor inertias and gear ratios.
    friction : JointFriction
    drive : Drive
    torque_constant : ndarray, shape (n,)
        True motor-side torque constants [N m/A, or N m per A at the rotor].
    provenance : mapping
        How it was drawn; plain numbers and strings.

    Raises
    ------
    ModelError
        If a link is not a body that can exist, or a torque constant is zero.
    """

    model: RobotModel
    friction: JointFriction
    torque_constant: Array
    drive: Drive
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.model.n
        for name, pi in zip(self.model.link_names, self.model.inertial, strict=True):
            reason = physical_violation(pi)
            if reason is not None:
                raise ModelError(f"link '{name}' cannot be simulated: {reason}", name=name)
        for name, count in (('friction', len(self.friction.coulomb)), ('drive', len(self.drive.ripple))):
            if count != n:
                raise ModelError(f'{name}: expected {n} joints, got {count}', name=name, expected=n, found=count)
        freeze_fields(self, ModelError, {'torque_constant': (n,)})
        if (self.torque_constant == 0.0).any():
            raise ModelError('torque_constant: expected numbers other than 0, got 0', name='torque_constant', found=0.0)

    @property
    def drive_gain(self) -> Array:
        """Joint torque per motor current, k_t times the gear ratio, shape (n,) [N m/A]."""
        return np.asarray(self.torque_constant * self.model.gear_ratio)

    def friction_torque(self, dq: Array, load: Array) -> Array:
        """Return the friction at velocities and loads of the joints, all of shape (..., n) [N m or N]."""
        return self.friction.torque(dq) + self.drive.load_torque(dq, load)

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torques that make the true arm move so, friction and rotors included.

        tau = ID(q, dq, ddq) + I_a ddq + tau_f(dq), without what the drives add

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (N, n)
            [rad, rad/s, rad/s^2]

        Returns
        -------
        ndarray, shape (N, n)
            [N m]
        """
        from robotid_ros.dynamics import inverse_dynamics  # imported here: the simulation itself does not need it

        return inverse_dynamics(self.model, q, dq, ddq) + self.friction.torque(dq)


def nominal_truth(
    model: RobotModel, *, friction: JointFriction | None = None, torque_constant: Sequence[float] | Array | None = None
) -> ArmTruth:
    """Return an arm that is exactly as its URDF says.

    Parameters
    ----------
    model : RobotModel
    friction : JointFriction, optional
        :func:`prior_friction` of the model by default.
    torque_constant : array_like, shape (n,), optional
        Motor side [N m/A]; 0.12 by default.
    """
    constant = np.full(model.n, _TYPICAL_TORQUE_CONSTANT) if torque_constant is None else np.asarray(torque_constant)
    return ArmTruth(
        model=model,
        friction=prior_friction(model) if friction is None else friction,
        torque_constant=constant,
        drive=Drive.ideal(model.n),
        provenance={'inertial_scale': 0.0, 'friction_scale': 0.0},
    )


def perturb(
    model: RobotModel,
    rng: np.random.Generator,
    scale: float = 0.1,
    *,
    friction_scale: float = 0.2,
    breakaway_ratio: float = 0.0,
    geometry_error: float = 0.0,
    friction: JointFriction | None = None,
    torque_constant: Sequence[float] | Array | None = None,
) -> ArmTruth:
    """Draw an arm whose dynamics differ from its URDF, but which can exist.

    The mass distribution of each link is stretched, sheared and moved by an affine map and its
    mass is scaled: the pseudo-inertia becomes J' = G J G^T with

        G = [[E + s U, s r u], [0, 1 + s w]]

    where s is the scale, U, u, w are uniform in [-1, 1] and r is the link's radius of gyration. J' is positive definite
    whenever J is and G is regular, so that every drawn link is physical (Wensing, Kim and Slotine, 2018).

    Parameters
    ----------
    model : RobotModel
        As described.
    rng : numpy.random.Generator
    scale : float
        s, from 0 to 0.3.
    friction_scale : float
        Largest relative change of friction and rotor inertia, from 0 to 0.9.
    breakaway_ratio : float
        Stribeck's excess over Coulomb friction F_b/F_c, not negative; zero switches the effect off.
    geometry_error : float
        Largest relative error of the link lengths, from 0 to 0.1.
    friction : JointFriction, optional
        Where to start from; :func:`prior_friction` of the model by default.
    torque_constant : array_like, shape (n,), optional
        Motor side [N m/A], taken as true; 0.12 by default.

    Raises
    ------
    ModelError
        If a number is out of its range, or the URDF's links are not physical to begin with.
    """
    for name, value, upper in (
        ('scale', scale, 0.3),
        ('friction_scale', friction_scale, 0.9),
        ('breakaway_ratio', breakaway_ratio, np.inf),
        ('geometry_error', geometry_error, 0.1),
    ):
        if not 0.0 <= value <= upper:
            message = f'{name}: expected a number from 0 to {upper:g}, got {value:g}'
            raise ModelError(message, name=name, expected=(0.0, upper), found=value)
    start = nominal_truth(model, friction=friction, torque_constant=torque_constant)
    n = model.n

    def vary(values: Array, share: float) -> Array:
        return np.asarray(values * (1.0 + share * rng.uniform(-1.0, 1.0, n)))

    def deformed(pi: Array) -> Array:
        """Return a link after a random affine map of its mass distribution."""
        matrix, draw, weight, mass = np.eye(4), rng.uniform(-1.0, 1.0, (3, 4)), rng.uniform(-1.0, 1.0), pi[9]
        if mass <= 0.0 or scale == 0.0:
            return pi
        source = pseudo_inertia(pi)
        com = source[:3, 3] / mass
        radius = np.sqrt(max(np.trace(source[:3, :3]) / mass - com @ com, 0.0))
        matrix[:3, :3] += scale * draw[:, :3]
        matrix[:3, 3] = scale * radius * draw[:, 3]
        # A mass factor of (1 + s w) is a factor of its root on the homogeneous coordinate.
        return pseudo_inertia_parameters((1.0 + scale * weight) * matrix @ source @ matrix.T)

    # The order of what is drawn decides which arm belongs to a seed.
    inertial = np.stack([deformed(pi) for pi in model.inertial])
    dry = vary(np.ones(n), friction_scale)
    rotor_inertia = vary(model.rotor_inertia, friction_scale)
    viscous = vary(start.friction.viscous, friction_scale)
    placements = model.placements.copy()
    placements[:, :3, 3] *= 1.0 + geometry_error * rng.uniform(-1.0, 1.0, (n, 1))
    coulomb = start.friction.coulomb * dry
    return replace(
        start,
        model=model.with_inertial(inertial, rotor_inertia=rotor_inertia, placements=placements),
        friction=replace(
            start.friction,
            coulomb=coulomb,
            # in proportion, so that friction that falls with speed still dissipates
            arctan_gain=start.friction.arctan_gain * dry,
            viscous=viscous,
            breakaway=breakaway_ratio * coulomb if breakaway_ratio > 0.0 else start.friction.breakaway * dry,
        ),
        provenance={'inertial_scale': float(scale), 'friction_scale': float(friction_scale)},
    )


def write_truth(path: str | Path, truth: ArmTruth) -> None:
    """Write the truth as YAML, whole or not at all, for tests and comparisons only.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    model = truth.model

    def per_joint(values: Array) -> dict[str, float]:
        return {name: float(value) for name, value in zip(model.joint_names, values, strict=True)}

    document = {
        'robot': model.name,
        'joints': list(model.joint_names),
        'gravity': [float(value) for value in model.gravity],
        'standard_parameters': {
            link: {name: float(value) for name, value in zip(INERTIAL_NAMES, pi, strict=True)}
            for link, pi in zip(model.link_names, model.inertial, strict=True)
        },
        'rotor_inertia': per_joint(model.rotor_inertia),
        'friction': {
            joint: {name: float(getattr(truth.friction, name)[k]) for name in JointFriction.names()}
            for k, joint in enumerate(model.joint_names)
        },
        'gear_ratio': per_joint(model.gear_ratio),
        'torque_constant': per_joint(truth.torque_constant),
        'placements': model.placements.tolist(),
        'drive': {name: np.asarray(getattr(truth.drive, name)).tolist() for name in Drive.__slots__},
        'provenance': dict(truth.provenance),
    }
    write_text(Path(path).expanduser(), yaml.safe_dump(document, sort_keys=False))


def read_truth(path: str | Path, model: RobotModel) -> ArmTruth:
    """Read a truth file of a described arm.

    Raises
    ------
    DataError
        If the file is absent or is not a truth file of an arm with these joints and links.
    """
    document = read_yaml(path, 'truth file', DataError)
    with refusing(f"'{path}' is not a truth file of this package, or", DataError, file=str(path)):
        if tuple(document['joints']) != model.joint_names:
            message = (
                f"truth file '{path}' is of the joints {', '.join(document['joints'])}; "
                f'the arm has: {", ".join(model.joint_names)}'
            )
            raise DataError(message, expected=model.joint_names, found=tuple(document['joints']))

        def per_joint(key: str) -> Array:
            return np.array([document[key][joint] for joint in model.joint_names])

        links, friction = document['standard_parameters'], document['friction']
        # A part of the friction that no joint names has its default.
        named = [name for name in JointFriction.names() if any(name in friction[joint] for joint in model.joint_names)]
        return ArmTruth(
            model=model.with_inertial(
                np.array([[links[link][name] for name in INERTIAL_NAMES] for link in model.link_names]),
                rotor_inertia=per_joint('rotor_inertia'),
                gear_ratio=per_joint('gear_ratio'),
                gravity=np.array(document['gravity'], dtype=float),
                placements=np.array(document['placements'], dtype=float),
            ),
            drive=Drive(**document['drive']),
            friction=JointFriction(
                **{name: np.array([friction[joint][name] for joint in model.joint_names]) for name in named}
            ),
            torque_constant=per_joint('torque_constant'),
            provenance=document.get('provenance', {}),
        )
