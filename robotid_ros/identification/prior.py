# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Prior of the inertial parameters: those of the robot description, with an uncertainty."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import BaseParameters
from robotid_ros.identification.samples import ENOUGH, Samples
from robotid_ros.model.inertia import pseudo_inertia, pseudo_inertia_parameters
from robotid_ros.model.robot_model import RobotModel

if TYPE_CHECKING:  # which solves by equations that have a prior
    from robotid_ros.identification.stroke_friction import StrokeFriction

_FARTHEST = 10.0  # arm lengths, of what belongs to a plausible body
_MASS = 0.3  # relative deviation of a described mass: published descriptions of one arm differ by as much
_SIZE = 0.06  # arm lengths, least extent of a link: joints may meet in one point, bodies do not
_ROTOR = 0.12  # arm lengths, least radius at which a link's mass has the inertia of its rotor behind the gear
_INERTIA = np.sqrt([1.0, 0.5, 0.5, 1.0, 0.5, 1.0])  # of a tensor's deviations, so that no direction is another's better
_BALL = 0.01  # arm lengths, radius of the smallest body


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A normal distribution of the base parameters, with a weight.

        -2 log p(beta) = strength (beta - mean)^T precision (beta - mean)

    Attributes
    ----------
    mean : ndarray, shape (b,)
    precision : ndarray, shape (b, b)
    strength : float
        Weight; 1 for independent samples, 0 ignores the prior.
    friction : StrokeFriction, optional
        Friction parameters of a friction sweep, with their own information.
    own : ndarray, shape (n, k), optional
        Inverse variances of the linear friction parameters about zero; they count with the same strength.
    """

    mean: Array
    precision: Array
    strength: float = 1.0
    friction: 'StrokeFriction | None' = None
    own: Array | None = None

    @classmethod
    def of_groups(cls, grouping: Array, mean: Array, covariance: Array) -> 'Prior':
        """Return the prior of groups, covariance (b, b), of standard parameters, mean (p,), by their map (b, p)."""
        scale = 1.0 / np.sqrt(np.diag(covariance))
        inverse = np.linalg.inv(covariance * np.outer(scale, scale) + 1e-9 * np.eye(len(scale)))
        precision = inverse * np.outer(scale, scale)
        return cls(mean=grouping @ mean, precision=0.5 * (precision + precision.T))

    @classmethod
    def of_strokes(cls, friction: 'StrokeFriction', base: int) -> 'Prior':
        """Return a prior of the friction parameters only."""
        return cls(mean=np.zeros(base), precision=np.zeros((base, base)), strength=0.0, friction=friction)

    def add(self, matrix: Array, vector: Array) -> float:
        """Add it to normal equations, shapes (P, P) and (P,), in place; return what the sum of squares grows by."""
        b = len(self.mean)
        pull = self.strength * (self.precision @ self.mean)
        matrix[:b, :b] += self.strength * self.precision
        vector[:b] += pull
        if self.own is not None:
            place = np.arange(b, b + self.own.size)
            matrix[place, place] += self.strength * self.own.ravel()
        return float(self.mean @ pull) + (0.0 if self.friction is None else self.friction.add(matrix, vector, b))

    def share(self, inverse: Array) -> Array:
        """Return which share of each base parameter stems from the prior, shape (b,), for the inverse normal matrix."""
        b = len(self.mean)
        return np.asarray(np.clip(self.strength * np.diag(inverse[:b, :b] @ self.precision), 0.0, 1.0))

    def spread(self, inverse: Array, size: int, n: int) -> Array:
        """Return the covariance, shape (size, size), that the prior's own uncertainty gives the estimate.

        The estimate is pulled to the mean by inverse strength precision (mean - beta); with deviations of the mean
        of covariance precision^-1 that is strength^2 inverse precision inverse.

        Parameters
        ----------
        inverse : ndarray, shape (P, P)
            Inverse of the normal matrix of base and linear friction parameters.
        size : int
            Number of all parameters, shape parameters included.
        n : int
            Number of joints.
        """
        b = len(self.mean)
        pulled = self.strength**2 * inverse[:, :b] @ self.precision @ inverse[:b]
        if self.own is not None:
            pulled += self.strength**2 * (inverse[:, b:] * self.own.ravel()) @ inverse[b:]
        k, width = (len(inverse) - b) // n, (size - b) // n
        place = np.concatenate([np.arange(b), (b + np.arange(n)[:, None] * width + np.arange(k)).ravel()])
        result = np.zeros((size, size))
        result[np.ix_(place, place)] = pulled
        return result


def is_placeholder(model: RobotModel) -> bool:
    """Return whether the inertial parameters of a description are placeholders.

    That is so where there are none, or where all links have the same mass or the same inertia about the centre of
    mass, of two links both, as in files that were filled in for a simulator.
    """
    mass = model.inertial[:, 9]
    if (mass <= 0.0).all():
        return True
    known = model.inertial[mass > 0.0]
    centre = known[:, 6:9] / known[:, 9:]
    about = pseudo_inertia(known)[:, :3, :3] - known[:, 9, None, None] * np.einsum('ni,nj->nij', centre, centre)
    moments = np.sort(np.linalg.eigvalsh(about), axis=1)
    same_mass = bool(np.ptp(known[:, 9]) <= 1e-3 * known[:, 9].max())
    same_inertia = bool((np.ptp(moments, axis=0) <= 1e-3 * np.abs(moments).max()).all())
    if len(known) < 3:  # two links may have the same mass, or shape
        return len(known) == 2 and same_mass and same_inertia
    return same_mass or same_inertia


def arm_length(model: RobotModel) -> float:
    """Return the way from the first joint to the tip along all joints [m]; 1 where all of them meet in one point."""
    return float(_steps(model).sum()) or 1.0


def _ends(model: RobotModel) -> Array:
    """Return where each joint's next one is, and the last one's tip, in the joint's frame, shape (n, 3) [m]."""
    return np.concatenate([model.placements[1:, :3, 3], model.tip[None, :3, 3]])


def _steps(model: RobotModel) -> Array:
    """Return the way from each joint to the next, and from the last to the tip, shape (n,) [m]."""
    return np.asarray(np.linalg.norm(_ends(model), axis=1))


def standard_prior(model: RobotModel, *, rotor_inertia: bool) -> tuple[Array, Array]:
    """Return mean and standard deviation of an arm's standard parameters, shape (p,) each.

    A link of mass m and extent L, the larger of the distance to the next joint and of its centre of mass, has
    standard deviations of 0.3 m, 0.3 m L and 0.3 m L^2 of its mass, first moments and inertia; of an inertia that is
    described as larger, 0.3 of its own. Where the description has placeholders, these are m, m L and m L^2 about rods
    from joint to joint, with the mean mass for m, and the last link is as long as the others in the mean. Rotor
    inertias, which descriptions leave out, have a deviation of m L^2 of the link that they move, with L an eighth of
    the arm's length at least, and 0.3 of their own.
    """
    silent = is_placeholder(model)
    inertial = believable_prior(model)
    mass = np.maximum(inertial[:, 9], 0.0)
    if silent:
        mass = np.full(model.n, mass.mean())
    extent = np.maximum(_steps(model), _SIZE * arm_length(model))
    if silent:
        extent[-1] = max(float(extent.mean()), extent[-1])
    else:
        extent = np.maximum(extent, np.linalg.norm(inertial[:, 6:9], axis=1) / np.maximum(mass, 1e-300))
    share = 1.0 if silent else _MASS
    own = 0.0 if silent else 0.5 * np.sum(inertial[:, [0, 3, 5]], axis=1)  # m times a mean square of distances
    inertia = _INERTIA * np.maximum(mass * extent**2, own)[:, None]
    size = np.column_stack([inertia, *[mass * extent] * 3, mass])
    mean, deviation = (_rods(model, mass) if silent else inertial).ravel(), share * size.ravel()
    if rotor_inertia:
        rotor = np.maximum(model.rotor_inertia, 0.0)
        mean = np.concatenate([mean, rotor])
        reach = np.maximum(extent, _ROTOR * arm_length(model))  # of what a gear makes of a rotor
        deviation = np.concatenate([deviation, mass * reach**2 + _MASS * rotor])
    return mean, deviation


def _rods(model: RobotModel, mass: Array) -> Array:
    """Return the parameters, shape (n, 10), of rods of some masses, (n,), from each joint to the next."""
    result = np.zeros((model.n, 10))
    for k, (m, end) in enumerate(zip(mass, _ends(model), strict=True)):
        about = m * (end @ end * np.eye(3) - np.outer(end, end)) / 3.0
        result[k] = [*about[np.triu_indices(3)], *(0.5 * m * end), m]
    return result


def description_prior(model: RobotModel, base: BaseParameters, samples: Samples, *, rotor_inertia: bool) -> Prior:
    """Return the prior of an arm's base parameters.

    That of the standard parameters, see :func:`standard_prior`, in those combinations that the torque depends on. Where
    no mass is known, the links are as heavy as the torque needs.

    Parameters
    ----------
    model : RobotModel
    base : BaseParameters
    samples : Samples
        Motion and torque, at the motors.
    rotor_inertia : bool
        Whether rotor inertias are among the standard parameters.
    """
    mean, deviation = standard_prior(model, rotor_inertia=rotor_inertia)
    grouping = base.map[:, : len(mean)]
    covariance = (grouping * deviation**2) @ grouping.T
    if is_placeholder(model):
        some = samples.thinned(ENOUGH // 10)
        rows = base.regressor(some.q, some.dq, some.ddq)
        squares = covariance + np.outer(grouping @ mean, grouping @ mean)
        expected = float(np.sum(np.einsum('Nnb,bc,Nnc->n', rows, squares, rows, optimize=True)))
        size = float(np.linalg.norm(some.target) / np.sqrt(max(expected, 1e-300)))
        mean, covariance = size * mean, size**2 * covariance
    return Prior.of_groups(grouping, mean, covariance)


def believable_prior(model: RobotModel) -> Array:
    """Return the description's inertial parameters, corrected where they are not those of real bodies.

    A mass below 1 % of the mean, or of a body ten times as large as the arm, and second moments below those of a ball
    whose radius is a hundredth of the arm's length, are raised to that; without masses, links have 1 kg.

    Returns
    -------
    ndarray, shape (n, 10)
        With positive-definite pseudo-inertias.
    """
    inertial, length = np.array(model.inertial), arm_length(model)
    mean = float(np.mean(np.maximum(inertial[:, 9], 0.0)))
    result = np.empty_like(inertial)
    for k, pi in enumerate(inertial):
        least = max(0.01 * mean, float(np.abs(pi[:6]).max()) / (_FARTHEST * length) ** 2) or 1.0
        if pi[9] < least:
            pi = least * np.array([*(_SIZE * length) ** 2 * np.array([1, 0, 0, 1, 0, 1]), 0, 0, 0, 1])
        mass = pi[9]
        centre = pi[6:9] / mass
        centre = centre if np.linalg.norm(centre) < _FARTHEST * length else np.zeros(3)
        matrix = pseudo_inertia(np.concatenate([pi[:6], mass * centre, pi[9:]]))
        about = matrix[:3, :3] - mass * np.outer(centre, centre)
        values, vectors = np.linalg.eigh(about)
        floor = mass * 0.2 * (_BALL * length) ** 2
        about = (vectors * np.maximum(values, max(floor, 1e-3 * float(values.max())))) @ vectors.T
        matrix[:3, :3] = about + mass * np.outer(centre, centre)
        result[k] = pseudo_inertia_parameters(matrix)
    return result
