# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Payload of the last link: its mass, centre of mass and inertia; and drive gains from a known payload.

With the arm's own parameters known, or identified from runs without the payload, the rest of the
torque is linear in the ten parameters of the payload, expressed in the frame of the link that
carries it:

    tau_with - tau_arm = Y_link(q, dq, ddq) pi_payload + d tau_f
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import LARGEST, Array, BoolArray, numerical_slope
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import full_regressor
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import solve
from robotid_ros.identification.physical import physical_parameters
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.prior import arm_length
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import Samples, evenly_weighted, samples_of_datasets
from robotid_ros.identification.torque_fit import covariance_of_estimate
from robotid_ros.model.inertia import INERTIAL_NAMES, inertial_parameters, split_inertial_parameters
from robotid_ros.model.robot_model import STANDARD_GRAVITY, RobotModel

_SLOW = 0.02
"""Below this speed [rad/s or m/s] friction is whatever balances the load: such samples of a joint tell nothing."""
_KNOWN, _FELT, _PLACE, _RADIUS = 0.1, 0.01, 1.0 / 70.0, 1.0 / 30.0
"""Twice a deviation at which a value is known: share of the mass, or of the arm's torque with the mass an arm's length
away; centre and radius of gyration in arm lengths. Of a UR10e some 50 g, 2 cm and 5 cm."""
_LOSS = 0.1  # usual share of the torque that a gear loses
_SWING, _CYCLES, _SECONDS = 0.8, 5, 10.0
"""Of a motion that is asked for: how far joints go [rad], how often at least, and how long it takes [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadMotion:
    """A short motion that would tell more of a payload: joint k goes ``swing[k]`` away and back, ``cycles[k]`` times.

        q_k(t) = start_k + swing_k (1 - cos(2 pi cycles_k t / duration)) / 2

    It begins and ends at rest.
    """

    joints: tuple[str, ...]
    start: tuple[float, ...]  # [rad or m], as the next
    swing: tuple[float, ...]
    cycles: tuple[int, ...]
    leaves: tuple[str, ...] = ()  # what it would still leave open
    duration: float = _SECONDS  # [s]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        rows = zip(self.joints, self.start, self.swing, self.cycles, strict=True)
        return {
            'duration': self.duration,
            'leaves': list(self.leaves),
            'joints': {joint: {'start': s, 'swing': a, 'cycles': c} for joint, s, a, c in rows},
        }

    def sample(self, rate: float) -> tuple[Array, Array, Array, Array]:
        """Return times, shape (N,), and positions, velocities and accelerations of its joints, shape (N, k) each."""
        time = np.arange(round(self.duration * rate) + 1) / rate
        turn = 2.0 * np.pi * np.array(self.cycles) / self.duration
        phase, half = time[:, None] * turn, 0.5 * np.array(self.swing)
        position = np.array(self.start) + half * (1.0 - np.cos(phase))
        return time, position, half * turn * np.sin(phase), half * turn**2 * np.cos(phase)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadResult:
    """An identified payload.

    Attributes
    ----------
    link : str
        The link that carries it, in whose frame everything is expressed.
    inertial : ndarray, shape (10,)
        Physically consistent parameters.
    free : ndarray, shape (10,)
        The same without that constraint.
    covariance : ndarray, shape (10, 10)
        Of the unconstrained ones, with what the arm's own deviations add; meaningless where ``std`` is inf.
    std : ndarray, shape (10,)
        Standard deviations of the unconstrained ones; inf where the motion does not tell a parameter.
    rmse_without, rmse_with : ndarray, shape (n,)
        Torque error along the runs with the payload, of the arm without and with it [N m].
    rmse_free : ndarray, shape (n,)
        The same with the unconstrained parameters, whose mass is negative where something was taken off.
    enough : tuple of float
        Twice a deviation at which a mass (else at a tenth of it), its centre, and its radius of gyration are known
        [kg, m, m].
    motion : PayloadMotion or None
        A motion that would tell what this one leaves open; None where nothing is open, or none was found.
    """

    link: str
    inertial: Array
    free: Array
    covariance: Array
    std: Array
    rmse_without: Array
    rmse_with: Array
    rmse_free: Array
    enough: tuple[float, float, float]
    motion: PayloadMotion | None = None

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.inertial[9])

    @property
    def centre_of_mass(self) -> Array:
        """In the link's frame, shape (3,) [m]."""
        return split_inertial_parameters(self.inertial)[1]

    @property
    def inertia(self) -> Array:
        """About the centre of mass, along the link's axes, shape (3, 3) [kg m^2]."""
        return split_inertial_parameters(self.inertial)[2]

    @property
    def deviations(self) -> tuple[float, Array, Array]:
        """Standard deviations of mass, centre of mass, shape (3,), and inertia, shape (3, 3), as those are returned."""
        return _deviations(self.inertial, self.covariance, np.isfinite(self.std))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Which of mass, centre of mass and inertia the motion leaves open."""
        return _open(self.mass, self.deviations, self.enough)

    def said(self) -> str:
        """Return in a sentence what is known, and what would help."""
        mass, centre, _ = self.deviations
        x, y, z = self.centre_of_mass
        text = f'{self.mass:.4g} ± {mass:.2g} kg at ({x:.4f}, {y:.4f}, {z:.4f}) ± {centre.max():.2g} m of {self.link}'
        if not self.undetermined:
            return text
        text = f'{text}; this motion does not determine: {", ".join(self.undetermined)}'
        if self.motion is None:
            return f'{text}; a short motion would not either: move more joints, faster or for longer'
        rows = zip(self.motion.joints, self.motion.swing, self.motion.cycles, strict=True)
        moves = ', '.join(f'{joint} by {swing:+.2f} and back, {cycles} times' for joint, swing, cycles in rows)
        still = f', but for the {" and ".join(self.motion.leaves)}' if self.motion.leaves else ''
        return f'{text}; {self.motion.duration:g} s of {moves} would{still}'

    def to_dict(self, torque_deviation: float | None = None) -> dict[str, Any]:
        """Return plain numbers; ``torque_deviation`` is the relative one of the torque constants."""
        mass, centre, inertia = self.deviations
        return {
            'link': self.link,
            'mass': self.mass,
            'mass_std': mass,
            **(
                {}
                if torque_deviation is None
                else {'mass_std_with_torque_constants': float(np.hypot(mass, torque_deviation * self.mass))}
            ),
            'centre_of_mass': self.centre_of_mass.tolist(),
            'centre_of_mass_std': centre.tolist(),
            'inertia': self.inertia.tolist(),
            'inertia_std': inertia.tolist(),
            'undetermined': list(self.undetermined),
            'motion': None if self.motion is None else self.motion.to_dict(),
            'parameters': {
                name: {
                    'value': float(self.inertial[k]),
                    'unconstrained': float(self.free[k]),
                    'std': float(self.std[k]),
                }
                for k, name in enumerate(INERTIAL_NAMES)
            },
            'rmse_without': self.rmse_without.tolist(),
            'rmse_with': self.rmse_with.tolist(),
        }


def _deviations(inertial: Array, covariance: Array, known: BoolArray) -> tuple[float, Array, Array]:
    """Return the standard deviations of mass, centre of mass and inertia about it, to first order."""

    def derived(pi: Array) -> Array:
        mass, centre, inertia = split_inertial_parameters(pi)
        return np.concatenate([[mass], centre, inertia.ravel()])

    steps = 1e-6 * np.array([1e-2] * 6 + [1e-1] * 3 + [1.0]) * max(float(inertial[9]), 1e-3)
    slope = numerical_slope(derived, inertial, steps)
    std = np.sqrt(np.maximum(np.einsum('ip,pq,iq->i', slope, covariance, slope), 0.0))
    std[(np.abs(slope[:, ~known]) > 1e-9).any(axis=1)] = np.inf
    return float(std[0]), std[1:4], std[4:].reshape(3, 3)


def _open(mass: float, deviations: tuple[float, Array, Array], enough: tuple[float, float, float]) -> tuple[str, ...]:
    least, place, radius = enough
    checks = {
        'mass': 2.0 * deviations[0] <= max(_KNOWN * mass, least),
        'centre of mass': 2.0 * float(deviations[1].max()) <= place,
        'inertia': 2.0 * float(np.diag(deviations[2]).max()) <= max(mass, least) * radius**2,
    }
    return tuple(name for name, known in checks.items() if not known)


def identify_payload(
    loaded: Dataset | Sequence[Dataset], model: RobotModel, arm: IdentificationResult
) -> PayloadResult:
    """Return the payload that the last link carried.

    The friction of each joint may have changed with it. What the arm's own parameters are not known by is part of the
    deviations, as if they were independent, which is on the safe side; wrong torque constants are not, they scale mass
    and inertia (:func:`drive_gains`).

    Parameters
    ----------
    loaded : Dataset or sequence of Dataset
        Runs with the payload, of any motion. Joints slower than 0.02 rad/s tell nothing.
    model : RobotModel
    arm : IdentificationResult
        From runs without it; frozen.

    Raises
    ------
    IdentificationError
        If there is no data, no joint moves, or the result belongs to another arm.
    """
    model = replace(model, drives=np.eye(model.n))  # a payload acts on the joints
    predictor = TorquePredictor(model, arm)
    model = replace(model, gravity=arm.gravity)  # the payload hangs as the arm does
    samples = evenly_weighted(predictor.in_arm_coordinates(loaded), model, arm.torque_bandwidth).coarse()
    samples = replace(samples, weight=(np.abs(samples.dq) > _SLOW).astype(float))
    if not samples.weight.any():
        raise IdentificationError(
            f'no joint moves faster than {_SLOW:g} rad/s in these runs: at rest, friction hides a payload; move the arm'
        )
    unloaded = samples.target - samples.filtered(predictor.torque(samples.q, samples.dq, samples.ddq))
    unfiltered = _payload_rows(model, samples)
    rest, rows = unloaded, samples.filtered(unfiltered)
    largest = max(float(np.abs(values).max()) for values in (rows, rest))
    if not largest < np.sqrt(LARGEST):
        raise IdentificationError(
            f'expected motion and torques of an arm in the runs with the payload, got numbers up to {largest:.3g}'
        )
    load = predictor.rigid_torque(samples.q, samples.dq, samples.ddq)
    friction = predictor.friction_torque(samples.dq, load, samples.q)
    # A joint that carries little, as the last one without a payload, may show any friction by load. Most gears lose
    # 10 % or less: the mean with a prior of such a deviation s is s^2 / (s^2 + std^2) of it.
    named = [k for k, name in enumerate(arm.friction_names) if name.startswith('load')]
    std = arm.friction_std[:, named].max(axis=1, initial=0.0)
    sure = _LOSS**2 / (_LOSS**2 + std**2)
    count = np.maximum(samples.weight.sum(axis=0), 1.0)
    precision = np.ones(samples.n)
    for _ in range(10):
        weight = samples.weight * precision
        matrix = np.einsum('Nnp,Nn,Nnq->pq', rows, weight, rows, optimize=True)
        vector = np.einsum('Nnp,Nn,Nn->p', rows, weight, rest, optimize=True)
        found = solve(matrix, vector, len(vector), None)
        solution = found.parameters
        residual = rest - rows @ solution
        # some friction grows with the load, which the payload adds to
        loaded_friction = predictor.friction_torque(samples.dq, load + unfiltered[..., :10] @ solution[:10], samples.q)
        rest = unloaded - samples.filtered((loaded_friction - friction) * sure)
        squares = np.sum(samples.weight * residual**2, axis=0) / count
        precision = 1.0 / np.maximum(squares, max(1e-12 * float(np.mean(rest**2)), 1e-300))
    moving = count / len(samples)  # the residual of a joint is judged while it moves alone
    # every parameter is common to all joints here, as base parameters are
    covariance = covariance_of_estimate(
        rows * samples.weight[..., None],
        residual * samples.weight / np.sqrt(moving),
        samples.run_labels,
        precision,
        found.inverse,
        rows.shape[2],
        1,
    )
    spread = np.sqrt(np.diag(covariance)[:10] / np.maximum(np.diag(found.inverse)[:10], 1e-300))
    known = found.determined[:10]
    correlation = float(np.median(spread[known])) ** 2 if known.any() else 1.0
    base = predictor.base.regressor(samples.q, samples.dq, samples.ddq)
    lever = found.inverse @ np.einsum('Nnp,Nn,Nnb->pb', rows, weight, samples.filtered(base), optimize=True)
    covariance = covariance + _of_the_arm(arm, lever)
    size, torque = arm_length(model), float(np.linalg.norm(samples.target) / np.sqrt(len(samples)))
    gravity = float(np.linalg.norm(model.gravity)) or abs(STANDARD_GRAVITY[2])
    enough = _FELT * torque / (gravity * size), _PLACE * size, _RADIUS * size
    inertial, constrained = _physical(matrix, vector, float(np.sum(weight * rest**2)), solution, size, enough)
    result = PayloadResult(
        link=model.link_names[-1],
        inertial=inertial,
        free=solution[:10],
        covariance=covariance[:10, :10],
        std=np.where(known, np.sqrt(np.maximum(np.diag(covariance)[:10], 0.0)), np.inf),
        rmse_without=np.sqrt(np.mean(unloaded**2, axis=0)),
        rmse_with=np.sqrt(np.mean((rest - rows @ constrained) ** 2, axis=0)),
        rmse_free=np.sqrt(np.mean((rest - rows @ solution) ** 2, axis=0)),
        enough=enough,
    )
    if not result.undetermined:
        return result
    # joints that did not move are taken to be as noisy as the usual one
    usual = float(np.median(precision[moving > 0.01])) if (moving > 0.01).any() else float(np.median(precision))
    noise = np.where(moving > 0.01, precision, usual)
    motion = _motion(model, samples, result, matrix / correlation, noise / correlation)
    return replace(result, motion=motion if len(motion.leaves) < len(result.undetermined) else None)


def _motion(
    model: RobotModel, samples: Samples, result: PayloadResult, matrix: Array, precision: Array
) -> PayloadMotion:
    """Return the motion with which most would be known, of the fewest joints, the last ones.

    It begins where the runs ended; ``matrix`` and ``precision`` count independent samples.
    """
    limits, start, n = model.limits, samples.q[-1], model.n
    rate = samples.runs[-1].rate
    best: PayloadMotion | None = None
    for moved in range(1, n + 1):
        at, cycles = np.arange(n - moved, n), _CYCLES + np.arange(moved) % 4
        fastest = np.pi * cycles / _SECONDS
        size = np.minimum(_SWING, 0.5 * np.minimum(limits.velocity[at] / fastest, limits.acceleration[at] / fastest**2))
        up, down = limits.upper[at] - start[at], start[at] - limits.lower[at]
        swing = np.where(up >= size, size, np.where(down >= size, -size, np.where(up > down, up, -down)))
        motion = PayloadMotion(
            joints=tuple(model.joint_names[k] for k in at),
            start=tuple(start[at].tolist()),
            swing=tuple(swing.tolist()),
            cycles=tuple(cycles.tolist()),
        )
        time, *moves = motion.sample(rate)
        q, dq, ddq = np.tile(start, (len(time), 1)), np.zeros((len(time), n)), np.zeros((len(time), n))
        q[:, at], dq[:, at], ddq[:, at] = moves
        planned = replace(samples, q=q, dq=dq, ddq=ddq)
        rows = _payload_rows(model, planned)
        weight = (np.abs(dq) > _SLOW) * precision
        found = solve(matrix + np.einsum('Nnp,Nn,Nnq->pq', rows, weight, rows), np.zeros(len(matrix)), 0, None)
        body = inertial_parameters(max(result.mass, result.enough[0]), np.zeros(3), np.zeros((3, 3)))
        deviations = _deviations(body, found.inverse[:10, :10], found.determined[:10])
        leaves = _open(result.mass, deviations, result.enough)
        if best is None or len(leaves) < len(best.leaves):
            best = replace(motion, leaves=leaves)
        if not leaves:
            break
    assert best is not None  # an arm has joints
    return best


def _payload_rows(model: RobotModel, samples: Samples) -> Array:
    """Return the columns of the last link's parameters, and of changes in friction, shape (N, n, 10 + 2 n)."""
    last = full_regressor(model, samples.q, samples.dq, samples.ddq)[:, :, -10:]
    own = friction_model('coulomb_viscous').columns(samples.dq, np.zeros((samples.n, 0)))
    spread = own[:, :, :, None] * np.eye(samples.n)[:, None, :]
    return np.concatenate([last, spread.reshape(len(samples.q), samples.n, -1)], axis=2)


def _of_the_arm(arm: IdentificationResult, lever: Array) -> Array:
    """Return the covariance of an estimate by what the arm itself is not known by; ``lever``, shape (p, b)."""
    return np.asarray((lever * np.where(np.isfinite(arm.base_std), arm.base_std, 0.0) ** 2) @ lever.T)


def _physical(
    matrix: Array, vector: Array, square: float, free: Array, size: float, enough: tuple[float, float, float]
) -> tuple[Array, Array]:
    """Return the physically consistent payload of an arm of some length [m], and all parameters with it."""
    rest = slice(10, len(vector))
    # friction has no bounds: it is eliminated from the normal equations first
    gain = np.linalg.lstsq(matrix[rest, rest], matrix[rest, :10], rcond=1e-12)[0]
    own = np.linalg.lstsq(matrix[rest, rest], vector[rest], rcond=1e-12)[0]
    small = matrix[:10, :10] - matrix[:10, rest] @ gain
    right = vector[:10] - matrix[:10, rest] @ own
    # only what the data leave open comes from this body, a ball where the payload seems to be, within an arm's length
    least, _, radius = enough
    mass = max(float(free[9]), least)
    centre = free[6:9] / mass
    centre *= min(1.0, size / max(float(np.linalg.norm(centre)), 1e-300))
    one = RobotModel(
        name='payload',
        joint_names=('carrier',),
        joint_types=('revolute',),
        placements=np.eye(4)[None],
        axes=np.array([[0.0, 0.0, 1.0]]),
        inertial=inertial_parameters(mass, centre, mass * radius**2 * np.eye(3))[None],
    )
    fit = physical_parameters(small, right, square - float(vector[rest] @ own), np.eye(10), one, described=True)
    inertial = fit.inertial[0]
    return inertial, np.concatenate([inertial, own - gain @ inertial])


def drive_gains(
    without: Dataset | Sequence[Dataset],
    loaded: Dataset | Sequence[Dataset],
    model: RobotModel,
    payload: Array,
    arm: IdentificationResult,
) -> tuple[Array, Array]:
    """Return the factor by which each effort, a joint's or a coupled motor's, must be multiplied, from a known payload.

    A wrong torque constant scales everything that is identified with it, which no motion of the arm
    alone reveals. The additional torque of a known payload does (Gautier and Briot, ICRA 2014): for
    joint j, over the loaded runs,

        k_j (tau_measured - tau_arm)_j = (Y_link pi_payload)_j + friction,

    with tau_arm the model identified from the same measured torques without the payload. What the payload's inertia
    adds is estimated with them: mass and centre have to be known, as by a scale and a ruler. What the arm's own
    parameters are not known by is part of the deviations, as of :func:`identify_payload`. Of coupled motors' efforts,
    both sides and the speeds of friction are those of the motors.

    Parameters
    ----------
    without, loaded : Dataset or sequence of Dataset
        Runs without and with the payload; the former only serves to check the arm's model.
    model : RobotModel
    payload : ndarray, shape (10,)
        Known parameters in the last link's frame; a wrong inertia does no harm.
    arm : IdentificationResult
        From runs without the payload, with the torques as measured.

    Returns
    -------
    gains, std : ndarray, shape (n,)
        Infinite deviation for a joint that the payload does not load.

    Raises
    ------
    IdentificationError
        If the arm's model does not explain its own runs.
    """
    model = replace(model, drives=np.eye(model.n))
    predictor = TorquePredictor(model, arm)
    model = replace(model, gravity=arm.gravity)  # the payload hangs as the arm does
    check, samples = (
        samples_of_datasets(predictor.in_arm_coordinates(each), model, IdentificationConfig())
        .with_bandwidth(arm.torque_bandwidth)
        .coarse()
        for each in (without, loaded)
    )
    misfit = check.target - check.filtered(predictor.torque(check.q, check.dq, check.ddq))
    if np.sum(misfit**2) > 0.25 * np.sum(check.target**2):
        raise IdentificationError(
            'the arm model leaves more than half of the torque of the runs without payload unexplained; identify it '
            'from these runs'
        )
    rest = samples.target - samples.filtered(predictor.torque(samples.q, samples.dq, samples.ddq))
    link = samples.filtered(full_regressor(model, samples.q, samples.dq, samples.ddq)[:, :, -10:])
    base = samples.filtered(predictor.base.regressor(samples.q, samples.dq, samples.ddq))
    setup = predictor.setup
    rest, target, added = (setup.efforts(torque) for torque in (rest, samples.target, link @ payload))
    # columns: the payload's inertia, and what the arm's own parameters may be off by
    turning, doubt = (np.swapaxes(setup.efforts(np.swapaxes(m, 1, 2)), 1, 2) for m in (link[:, :, :6], base))
    speed = samples.dq @ setup.torque  # that the efforts' power goes with: effort . speed = tau . dq
    own = samples.filtered(friction_model('coulomb_viscous').columns(speed, np.zeros((samples.n, 0))))
    # rest = (added + turning change) / k + friction: the measured torque has the noise and is the left side
    share, change, precision = np.ones(samples.n), np.zeros(6), np.ones(samples.n)
    count = np.maximum(samples.weight.sum(axis=0), 1e-12)
    for _ in range(10):
        told = np.concatenate([(added + turning @ change)[..., None], own], axis=2)
        spread = (told[:, :, None] * np.eye(samples.n)[:, :, None]).reshape(len(samples), samples.n, -1)
        rows = np.concatenate([turning * share[:, None], spread], axis=2)
        right, weight = rest + turning @ change * share, samples.weight * precision
        matrix = np.einsum('Nnp,Nn,Nnq->pq', rows, weight, rows, optimize=True)
        found = solve(matrix, np.einsum('Nnp,Nn,Nn->p', rows, weight, right, optimize=True), len(matrix), None)
        residual = right - rows @ found.parameters
        squares = np.sum(samples.weight * residual**2, axis=0) / count
        precision = 1.0 / np.maximum(squares, max(1e-12 * float(np.mean(rest**2)), 1e-300))
        change, first = found.parameters[:6], 6 + (1 + own.shape[2]) * np.arange(samples.n)
        share = np.where(found.parameters[first] != 0.0, found.parameters[first], 1.0)
    covariance = covariance_of_estimate(
        np.concatenate([rows[:, :, :6], told], axis=2) * np.sqrt(samples.weight)[..., None],
        residual * np.sqrt(samples.weight),
        samples.run_labels,
        precision,
        found.inverse,
        6,
        1,
    )
    lever = found.inverse @ np.einsum('Nnp,Nn,Nnb->pb', rows, weight, doubt, optimize=True)
    covariance = covariance + _of_the_arm(arm, lever)
    loaded_by = np.linalg.norm(added, axis=0) >= 1e-3 * np.maximum(np.linalg.norm(target, axis=0), 1e-12)
    known, gains = loaded_by & found.determined[first], 1.0 / share
    std = np.sqrt(np.maximum(np.diag(covariance)[first], 0.0)) * gains**2
    return np.where(known, gains, 1.0), np.where(known, std, np.inf)
