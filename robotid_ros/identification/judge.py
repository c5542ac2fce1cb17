# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The judge of what is said about an arm and its recording: torque error in states that a fit has not seen.

All samples, of all recordings together, are grouped by where they are in the arm's state space of positions and
velocities (k-means). Each group in turn is held out. The same motion, repeated later or in another recording, falls
into the same groups, so that it never stands on both sides.

The score is the logarithm of the held-out error,

    L = (1/4) mean_j log E_j + (1/4) log(sum_j E_j),

E_j the mean square of joint j: half of it counts the joints alike, half by their torque. The rule is: a challenger
takes the incumbent's place if L falls by more than one standard error of that fall over the groups (Breiman et al.,
Classification and Regression Trees, 1984, section 3.4.3); where it is the best of many, by the quantile that corrects
for their number. What contradicts a description has to be worth a part of the error, too.

A fit minimises the error against the filtered torque; it is judged by the torque as recorded. To be fitted, a linear
model needs only a small Gram matrix of each group, so that weights, priors and bounds are tried without another pass
over the samples. A :class:`Decision` tells what was chosen, and the error of everything it was compared with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import Information, gather, reweighted, solved
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of several possibilities, and its error on data that it was not fitted to.

    Attributes
    ----------
    name : str
    error : ndarray, shape (n,)
        Root-mean-square torque error of each joint against the torque as recorded [N m].
    """

    name: str
    error: Array

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'name': self.name, 'error': [float(f'{x:.6g}') for x in self.error]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An automatic choice with its alternatives.

    Attributes
    ----------
    subject : str
        What was chosen: 'cutoff', 'friction', ...
    chosen : str
    alternatives : tuple of Alternative
        Empty where there was nothing to compare.
    """

    subject: str
    chosen: str
    alternatives: tuple[Alternative, ...] = ()

    def __str__(self) -> str:
        return f'{self.subject}: {self.chosen}'

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            'subject': self.subject,
            'chosen': self.chosen,
            'alternatives': [each.to_dict() for each in self.alternatives],
        }


_CHANCE = 0.16  # of a gain by chance that is taken for one: that of one standard error
DOUBTFUL = 0.1  # fall of L, a tenth of the error, below which a description is not contradicted
WORTH = float(np.log(1.2))  # fall of L: a wrong set-up costs more than a fifth of the error, chance on real arms less
_VELOCITY = 0.5  # weight of velocity beside position: the torque's larger part depends on position
GROUPS = 10  # of states
_SLIGHT = 0.1  # of the largest spread of a joint: less counts as so much, so that noise of a parked joint is no motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Held-out squared torque errors of one candidate, group by group.

    Attributes
    ----------
    squares : ndarray, shape (B, n)
        Weighted sum of squared errors, in units of the torque squared.
    count : ndarray, shape (B, n)
        Sum of the weights.
    """

    squares: Array
    count: Array

    @classmethod
    def of_errors(cls, error: Array, label: IntArray, weight: Array | None = None) -> 'Score':
        """Return the score of torque errors, shape (N, n), in groups that they were not fitted to."""
        weight = np.ones_like(error) if weight is None else weight
        member = (label == np.unique(label)[:, None]).astype(float)
        return cls(squares=member @ (weight * error**2), count=member @ weight)

    @property
    def rmse(self) -> Array:
        """Root mean square of each joint, shape (n,), in the unit of the torque."""
        return np.asarray(np.sqrt(self.squares.sum(axis=0) / np.maximum(self.count.sum(axis=0), 1e-300)))

    @property
    def value(self) -> float:
        """The score L; less is better."""
        return float(_score(self.squares.sum(axis=0), self.count.sum(axis=0)))

    def of_joint(self, joint: int) -> 'Score':
        """Return the score of one joint alone."""
        return Score(squares=self.squares[:, joint, None], count=self.count[:, joint, None])

    def without(self, group: int) -> 'Score':
        """Return the score of all groups but one."""
        return Score(squares=np.delete(self.squares, group, axis=0), count=np.delete(self.count, group, axis=0))

    def joints_contradicted_by(self, new: 'Score') -> BoolArray:
        """Return in which joints a challenger with an effect that nobody described takes the place, shape (n,)."""
        return np.array([self.of_joint(j).contradicted_by(new.of_joint(j)) for j in range(self.squares.shape[1])])

    def gain(self, new: 'Score') -> tuple[float, float]:
        """Return by how much L falls with a challenger, and the standard error of that.

        The fall is the lesser of that of all samples together and of the mean over the groups: neither one group nor
        the many small ones alone make a gain.
        """
        falls = _score(self.squares, self.count) - _score(new.squares, new.count)
        error = float(falls.std(ddof=1)) / np.sqrt(len(falls)) if len(falls) > 1 else np.inf
        return min(self.value - new.value, float(falls.mean())), error

    def loses_to(self, new: 'Score', of: int = 1) -> bool:
        """Return whether a challenger takes the place: the rule.

        The best of many challengers gains something by chance alone, for which the quantile is Bonferroni's.

        Parameters
        ----------
        new : Score
        of : int
            How many challengers it is the best of.
        """
        from scipy.special import stdtrit  # not at the top: see robotid_ros.signals.filtering

        gain, error = self.gain(new)
        return bool(gain > error * float(stdtrit(max(len(self.count) - 1, 1), 1.0 - _CHANCE / of)))

    def contradicted_by(self, new: 'Score', of: int = 1, worth: float = DOUBTFUL) -> bool:
        """Return whether a challenger that says something else about the arm than its description takes the place.

        That is the rule, and a fall of L by more than ``worth``: a smaller one is not worth a contradiction.
        """
        return self.loses_to(new, of) and self.gain(new)[0] > worth


def _score(squares: Array, count: Array) -> Array:
    mean = np.maximum(squares, 1e-300) / np.maximum(count, 1e-300)
    return np.asarray(0.25 * np.log(mean).mean(axis=-1) + 0.25 * np.log(mean.sum(axis=-1)))


def groups(samples: Samples, count: int = GROUPS) -> IntArray:
    """Return the group of states that each sample belongs to, shape (N,), from 0.

    Parameters
    ----------
    samples : Samples
    count : int
        Of groups; there are fewer where states are few.

    Notes
    -----
    k-means from centres along the widest axis, so that equal samples give equal groups. Positions and velocities count
    in units of each joint's spread.
    """

    def scaled(values: Array) -> Array:
        spread = np.std(values, axis=0)
        return np.asarray(
            (values - values.mean(axis=0)) / np.maximum(spread, max(_SLIGHT * float(spread.max()), 1e-12))
        )

    states = np.concatenate([scaled(samples.q), _VELOCITY * scaled(samples.dq)], axis=1)
    axis = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)[2][0]
    order = np.argsort(states @ axis, kind='stable')
    centres = states[order[(2 * np.arange(count) + 1) * len(order) // (2 * count)]]
    label = np.zeros(len(states), dtype=np.intp)
    # By hand, since the import of scipy.cluster takes longer than all groups of an identification; most states settle.
    for _ in range(GROUPS):
        label = np.argmin(np.sum(centres**2, axis=1) - 2.0 * states @ centres.T, axis=1)
        members = [states[label == k] for k in range(len(centres))]
        centres = np.array([own.mean(axis=0) if len(own) else old for own, old in zip(members, centres, strict=True)])
    return np.asarray(np.unique(label, return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A linear model in groups of states: what to fit it by, and how to judge it.

    Attributes
    ----------
    fit : tuple of Information
        Rows and torque out of the low-passes, group by group.
    judge : callable
        From the parameters (B, P) that all groups but each one gave to their errors there: rows as the torque as
        recorded would show them, against that torque.
    """

    fit: tuple[Information, ...]
    judge: Callable[[Array], Score]

    @classmethod
    def of(cls, samples: Samples, label: IntArray, rigid: Array, own: Array) -> 'Bench':
        """Return the bench of base regressors (N, n, b) and friction columns (N, n, k) before any filter."""
        rigid, own = rigid.astype(np.float32), own.astype(np.float32)  # filters take half the time; torque has 4 digits
        return cls.of_rows(samples, label, samples.passed(rigid), samples.passed(own))

    @classmethod
    def of_rows(
        cls, samples: Samples, label: IntArray, rigid: tuple[Array, Array], own: tuple[Array, Array]
    ) -> 'Bench':
        """Return the bench of rows that are filtered already, as :meth:`Samples.passed` returns them."""
        (rigid_filtered, rigid_recorded), (own_filtered, own_recorded) = rigid, own
        held, weight = [np.flatnonzero(label == k) for k in np.unique(label)], samples.weight

        def judge(values: Array) -> Score:
            error = samples.measured - predicted_by_others(label, rigid_recorded, own_recorded, values)
            return Score.of_errors(error, label, weight)

        fit = (gather(rigid_filtered[k], own_filtered[k], samples.target[k], weight[k]) for k in held)
        return cls(fit=tuple(fit), judge=judge)

    @classmethod
    def of_parts(cls, parts: Sequence[Information]) -> 'Bench':
        """Return the bench of Gram matrices, group by group, that are to be fitted and judged alike."""

        def judge(values: Array) -> Score:
            squares = [part.residual_squares(x) for part, x in zip(parts, values, strict=True)]
            return Score(squares=np.array(squares), count=np.array([part.count for part in parts]))

        return cls(fit=tuple(parts), judge=judge)

    @property
    def total(self) -> Information:
        """Of all groups together, to fit by."""
        return Information.total(self.fit)

    def without(self, solve: Callable[[Information], Array]) -> Array:
        """Return the parameters (B, P) of a solver, from the Gram matrices of all groups but each one in turn."""
        if len(self.fit) == 1:
            return solve(self.fit[0])[None]
        return np.array([solve(Information.total([*self.fit[:k], *self.fit[k + 1 :]])) for k in range(len(self.fit))])

    def score(self, solve: Callable[[Information], Array]) -> Score:
        """Return the held-out errors of a solver, from the Gram matrices of all other groups to parameters (P,)."""
        found, told = self.judge(self.without(solve)), ~self.total.silent
        # What has no torque is predicted best by no bodies at all.
        return Score(squares=found.squares * told, count=found.count * told)

    def linear(
        self, friction: FrictionModel | None, prior: Prior | None = None, *, equal: bool = False
    ) -> tuple[Score, Array]:
        """Return the score of weighted least squares, and the joints' weights (n,).

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
        if not equal:
            precision = reweighted(whole, friction, precision, prior)
        return self.score(lambda info: solved(info, precision, friction, prior)), precision


def predicted_by_others(label: IntArray, rigid: Array, own: Array, values: Array) -> Array:
    """Return the torque of each sample by what all groups but its own gave, shape (N, n) [N m].

    Parameters
    ----------
    label : ndarray of int, shape (N,)
        Group of each sample.
    rigid, own : ndarray, shape (N, n, b), (N, n, k)
    values : ndarray, shape (B, b + n k)
    """
    n, b = rigid.shape[1:]
    friction = values[:, b:].reshape(len(values), n, -1)
    torque = np.einsum('Nnk,Nnk->Nn', own, friction[label])
    for group, some in enumerate(values):
        rows = np.flatnonzero(label == group)
        torque[rows] += (rigid[rows].reshape(-1, b) @ some[:b]).reshape(-1, n)
    return np.asarray(torque)
