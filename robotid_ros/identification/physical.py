# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Physically consistent standard parameters: each link has the parameters of a real body.

A link's parameters belong to a real body exactly when its pseudo-inertia J(pi), a linear function
of them, is positive definite (Wensing, Kim and Slotine, 2018). Minimised is

    1/2 sum_j p_j |tau_j - A_j x|^2 + gamma sum_i D(J_i, J_i0),
    D(J, J0) = tr(J0^-1 J) - log det(J0^-1 J) - 4,

with the log-det Bregman divergence towards the description's values J_i0, which does not depend on
the frame the link is described in (Lee, Wensing and Park, IEEE T-RO 36 (2020), eq. 21). The problem
is convex, and the divergence is its own barrier: Newton's method stays inside. Only the normal matrix
enters, so the time does not depend on the number of samples.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import ITERATIONS, solve
from robotid_ros.identification.prior import believable_prior
from robotid_ros.model.inertia import pseudo_inertia
from robotid_ros.model.robot_model import RobotModel

_UNITS = pseudo_inertia(np.eye(10))  # J = sum_k pi_k _UNITS[k]
_TO_PI = _UNITS.reshape(10, 16).T  # the derivative by pi from that by vec J
_STEP = 0.1  # factor between two values of gamma
_LEAST_USUAL = 1e-3  # smallest x0 of what must be positive, of the value that alone would make the whole torque
_RISE = 1e-4  # of the misfit, which the largest gamma may cause: as near to the best as a semidefinite program
_SIGNIFICANT = 9.0  # rise of the misfit beside a prior, three deviations: with less, noise makes bodies of 100 kg


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalFit:
    """Physically consistent parameters.

    Attributes
    ----------
    inertial : ndarray, shape (n, 10)
    rotor_inertia : ndarray, shape (n,)
        Not negative.
    linear : ndarray, shape (n, k)
        Linear friction parameters, dissipative.
    error_ratio : float
        Weighted torque error over that of the unconstrained minimum.
    """

    inertial: Array
    rotor_inertia: Array
    linear: Array
    error_ratio: float

    def standard(self, *, rotor_inertia: bool) -> Array:
        """Return the standard parameters in the order of the regressor's columns, with or without rotor inertia."""
        flat = self.inertial.ravel()
        return np.concatenate([flat, self.rotor_inertia]) if rotor_inertia else flat


class _Objective:
    """Quadratic misfit, divergence, and x / x0 - log(x / x0) of what must be positive: rotor inertia and friction.

    A logarithm alone drives what the data leave open to infinity: Coulomb friction and offset of a joint that turns
    one way only.
    """

    def __init__(
        self,
        matrix: Array,
        vector: Array,
        grouping: Array,
        prior: Array,
        rotor_inertia: Array,
        friction: FrictionModel | None,
        fitted: Array,
        square: float,
    ) -> None:
        self.links, self.square = len(prior), square
        b, p = grouping.shape
        own = len(vector) - b
        change = np.zeros((len(vector), p + own))
        change[:b, :p] = grouping
        positive = np.zeros(p + own, dtype=bool)
        positive[10 * self.links : p] = True
        if friction is not None and own:
            count = own // len(friction.linear_names)
            change[b:, p:] = np.kron(np.eye(count), friction.generators)
            positive[p:] = np.tile(~np.array(friction.signed), count)
        self.change, self.positive, self.p = change, np.flatnonzero(positive), p
        self.start = np.zeros(p + own)
        self.start[: 10 * self.links] = prior.ravel()
        # As large as the links' own second moments, and as the friction of the unconstrained fit.
        moments = np.maximum(rotor_inertia, prior[:, [0, 3, 5]].sum(axis=1))
        self.start[10 * self.links : p] = moments[: p - 10 * self.links]
        self.start[p:] = np.linalg.lstsq(change[b:, p:], fitted, rcond=None)[0]
        self.matrix = change.T @ matrix @ change
        self.vector = change.T @ vector
        own = np.diag(self.matrix)[self.positive]
        least = _LEAST_USUAL * np.sqrt(square / np.where(own > 0.0, own, square))
        self.usual = self.start[self.positive] = np.maximum(self.start[self.positive], least)
        self.prior = pseudo_inertia(prior)
        self.prior_inverse = np.linalg.inv(self.prior)
        self.gradient_prior = self.prior_inverse.reshape(-1, 16) @ _TO_PI

    def misfit(self, x: Array) -> float:
        """Return the weighted sum of squared errors."""
        return float(x @ self.matrix @ x - 2.0 * self.vector @ x + self.square)

    def value(self, x: Array, gamma: float, barrier: float) -> float:
        pi = x[: 10 * self.links].reshape(-1, 10)
        if (x[self.positive] <= 0.0).any():
            return np.inf
        try:
            roots = np.linalg.cholesky(pseudo_inertia(pi))
        except np.linalg.LinAlgError:  # of no body
            return np.inf
        logdet = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2))
        divergence = np.sum(self.gradient_prior * pi) - np.sum(logdet)
        share = x[self.positive] / self.usual
        walls = np.sum(share - np.log(share))
        return float(0.5 * x @ self.matrix @ x - self.vector @ x + gamma * divergence + barrier * walls)

    def newton(self, x: Array, gamma: float, barrier: float) -> tuple[Array, float]:
        """Return the Newton direction and the decrement."""
        pi = x[: 10 * self.links].reshape(-1, 10)
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(pi)))
        inverse = root.transpose(0, 2, 1) @ root
        gradient = self.matrix @ x - self.vector
        hessian = self.matrix.copy()
        curvature = (inverse[:, None] @ _UNITS @ inverse[:, None]).reshape(-1, 10, 16) @ _TO_PI
        gradient[: 10 * self.links] += gamma * (self.gradient_prior - inverse.reshape(-1, 16) @ _TO_PI).ravel()
        for i in range(self.links):
            rows = slice(10 * i, 10 * i + 10)
            hessian[rows, rows] += gamma * curvature[i]
        gradient[self.positive] += barrier * (1.0 / self.usual - 1.0 / x[self.positive])
        hessian[self.positive, self.positive] += barrier / x[self.positive] ** 2
        scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-30 * float(np.diag(hessian).max())))
        scaled = hessian * np.outer(scale, scale)
        diagonal = np.diag_indices_from(scaled)
        for jitter in (1e-14, 1e-12, 1e-10, 1e-8):  # round-off may hide directions that only the prior determines
            scaled[diagonal] += jitter
            with suppress(LinAlgError):
                step = -scale * cho_solve(cho_factor(scaled), scale * gradient)
                return step, float(-gradient @ step)
        step = -gradient * scale**2
        return step, float(-gradient @ step)

    def minimise(self, x: Array, gamma: float, barrier: float, limit: int) -> Array:
        """Return the minimum by damped Newton steps, from a strictly feasible x."""
        value = self.value(x, gamma, barrier)
        for _ in range(limit):
            step, decrement = self.newton(x, gamma, barrier)
            if decrement < 1e-4 * gamma + 1e-13 * abs(value):  # far below the effect of gamma itself
                return x
            length = 1.0
            while length > 1e-12:
                trial = self.value(x + length * step, gamma, barrier)
                if trial <= value - 0.1 * length * decrement:
                    break
                length *= 0.5
            else:
                return x
            x, value = x + length * step, trial
        return x


def physical_parameters(
    matrix: Array,
    vector: Array,
    square: float,
    grouping: Array,
    model: RobotModel,
    *,
    friction: FrictionModel | None = None,
    regularisation: float | None = None,
    described: bool = False,
) -> PhysicalFit:
    """Return the physically consistent parameters that explain the torques best.

    Parameters
    ----------
    matrix, vector : ndarray, shape (P, P), (P,)
        Weighted normal equations of ``[base, friction]`` parameters, in units of the
        log-likelihood: precision times samples that count as independent.
    square : float
        Weighted sum of squared torques, so that x^T matrix x - 2 vector^T x + square is the cost.
    grouping : ndarray, shape (b, p)
        Base parameters from standard ones, inertial columns and rotor inertias.
    model : RobotModel
    friction : FrictionModel, optional
        Model of the parameters after the base; None if there are none.
    regularisation : float, optional
        gamma; by default the largest that raises the torque error by no more than 0.005 % over the
        best physically consistent one, so that the description decides only what the data leave
        open, however wrong it is.
    described : bool
        The equations hold a prior already; the divergence then weighs as much as one observation, where that raises
        the misfit by no more than three standard deviations.
    """
    free = solve(matrix, vector, len(vector), None).parameters
    bounded = solve(matrix, vector, len(grouping), friction).parameters[len(grouping) :]
    square = max(square, 1e-12)
    prior = believable_prior(model)
    objective = _Objective(matrix, vector, grouping, prior, model.rotor_inertia, friction, bounded, square)
    least = max(float(square - vector @ free), 1e-12 * square)
    x = objective.start
    misfits: list[tuple[float, float, Array]] = []
    scale = max(least, 1e-9 * square)
    gamma = square
    while regularisation is None or gamma > regularisation:
        x = objective.minimise(x, gamma, min(gamma, 1e-6 * scale), ITERATIONS)
        misfits.append((gamma, objective.misfit(x), x))
        if regularisation is None and 8.0 * model.n * gamma < _RISE * max(misfits[-1][1], scale):
            break  # a barrier of 4 n logarithms is at most 4 n gamma above the minimum
        gamma *= _STEP
    if regularisation is not None:
        weight = max(regularisation, 1e-12)
        x = objective.minimise(x, weight, weight * 1e-3, 100)
    else:
        best = max(min(misfit for _, misfit, _ in misfits), 1e-9 * square)  # less is round-off
        allowed, most = best * (1.0 + _RISE), np.inf
        if described:
            allowed, most = max(allowed, best + _SIGNIFICANT), 1.0
        light = [entry for entry in misfits if entry[0] <= most] or misfits[-1:]
        _, _, x = next((entry for entry in light if entry[1] <= allowed), light[-1])
    solution = objective.change @ x
    n = model.n
    b = grouping.shape[0]
    return PhysicalFit(
        inertial=x[: 10 * n].reshape(n, 10),
        rotor_inertia=x[10 * n : objective.p] if objective.p > 10 * n else np.zeros(n),
        linear=solution[b:].reshape(n, -1) if len(vector) > b else np.zeros((n, 0)),
        error_ratio=float(np.sqrt(max(objective.misfit(x), 0.0) / least)),
    )
