# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Gram matrices of a linear torque model, group by group, by which any of its fits is judged on states it has not seen.

A fit minimises the error against the filtered torque; it is judged by the torque as recorded. A linear model needs only
a small Gram matrix of each group, so that weights, priors and bounds are tried without another pass over the samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import Information, gather, joint_precision, quick_solve
from robotid_ros.identification.judge import Score
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples

_REWEIGHINGS = 20
_SETTLED = 1e-3  # relative change of the joints' weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Gram matrices of a linear model in groups of states.

    Attributes
    ----------
    fit : tuple of Information
        Rows and torque out of the low-passes, group by group.
    judge : tuple of Information
        Rows as the torque as recorded would show them, and that torque.
    """

    fit: tuple[Information, ...]
    judge: tuple[Information, ...]

    @classmethod
    def of(cls, samples: Samples, label: IntArray, rigid: Array, own: Array) -> 'Bench':
        """Return the Gram matrices of base regressors (N, n, b) and friction columns (N, n, k) before any filter."""
        (rigid, rigid_recorded), (own, own_recorded) = samples.passed(rigid), samples.passed(own)
        return cls.of_rows(samples, label, rigid, own, rigid_recorded, own_recorded)

    @classmethod
    def of_rows(
        cls, samples: Samples, label: IntArray, rigid: Array, own: Array, rigid_recorded: Array, own_recorded: Array
    ) -> 'Bench':
        """Return the Gram matrices of rows that are filtered already."""
        held, weight = [np.flatnonzero(label == k) for k in np.unique(label)], samples.weight
        return cls(
            fit=tuple(gather(rigid[rows], own[rows], samples.target[rows], weight[rows]) for rows in held),
            judge=tuple(
                gather(rigid_recorded[rows], own_recorded[rows], samples.measured[rows], weight[rows]) for rows in held
            ),
        )

    @property
    def total(self) -> Information:
        """Of all groups together, to fit by."""
        return total(self.fit)

    def without(self, solve: Callable[[Information], Array]) -> Array:
        """Return the parameters (B, P) of a solver, from the Gram matrices of all groups but each one in turn."""
        if len(self.fit) == 1:
            return solve(self.fit[0])[None]
        return np.array([solve(total([*self.fit[:k], *self.fit[k + 1 :]])) for k in range(len(self.fit))])

    def score(self, solve: Callable[[Information], Array]) -> Score:
        """Return the held-out errors of a solver, from the Gram matrices of all other groups to parameters (P,)."""
        squares = [judge.residual_squares(x) for judge, x in zip(self.judge, self.without(solve), strict=True)]
        return Score(squares=np.array(squares), count=np.array([judge.count for judge in self.judge]))

    def linear(
        self, friction: FrictionModel | None, prior: Prior | None = None, *, equal: bool = False
    ) -> tuple[Score, Array, Array]:
        """Return the score of weighted least squares, its parameters (P,) on all groups, and the joints' weights (n,).

        Parameters
        ----------
        friction : FrictionModel or None
            Keeps the friction dissipative; None leaves it free.
        prior : Prior, optional
        equal : bool
            All joints count alike; by default by their inverse variance, over all groups.
        """
        whole = self.total
        precision = np.ones(whole.n)
        for _ in range(0 if equal else _REWEIGHINGS):
            updated = joint_precision(whole, solved(whole, precision, friction, prior))
            settled = np.abs(np.log(updated / precision)).max() < _SETTLED
            precision = updated
            if settled:
                break
        return (
            self.score(lambda info: solved(info, precision, friction, prior)),
            solved(whole, precision, friction, prior),
            precision,
        )


def solved(info: Information, precision: Array, friction: FrictionModel | None, prior: Prior | None = None) -> Array:
    """Return the parameters (P,) that fit some Gram matrices best, with given weights of the joints."""
    matrix, vector = info.normal(precision)
    if prior is not None:
        prior.add(matrix, vector)
    return quick_solve(matrix, vector, info.base, friction)


def total(parts: Sequence[Information]) -> Information:
    """Return the Gram matrices of several groups together."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result
