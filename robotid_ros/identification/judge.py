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
for their number.
"""

from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.identification.samples import Samples

_CHANCE = 0.16  # of a gain by chance that is taken for one: that of one standard error
_WORTH = 0.1  # fall of L, a tenth of the error, below which a description is not contradicted
_VELOCITY = 0.5  # weight of velocity beside position: the torque's larger part depends on position
GROUPS = 10  # in which what is a fact about all states is judged: set-up, signals, friction
REGIONS = 4  # in which parameters are judged: larger ones, where the arm has not been
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

    def joints_lose_to(self, new: 'Score') -> BoolArray:
        """Return in which joints a challenger predicts better, shape (n,): the rule, joint by joint.

        Some do so by chance; those taken together have to take the place.
        """
        return np.array([self.of_joint(j).loses_to(new.of_joint(j)) for j in range(self.squares.shape[1])])

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

    def contradicted_by(self, new: 'Score', of: int = 1, worth: float = _WORTH) -> bool:
        """Return whether a challenger that says something else about the arm than its description takes the place.

        That is the rule, and a fall of L by more than ``worth``: a smaller one is not worth a contradiction.
        """
        return self.loses_to(new, of) and self.gain(new)[0] > worth


def _score(squares: Array, count: Array) -> Array:
    mean = np.maximum(squares, 1e-300) / np.maximum(count, 1e-300)
    return np.asarray(0.25 * np.log(mean).mean(axis=-1) + 0.25 * np.log(mean.sum(axis=-1)))


def groups(samples: Samples, count: int) -> IntArray:
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
    from scipy.cluster.vq import kmeans2  # not at the top: see robotid_ros.signals.filtering

    def scaled(values: Array) -> Array:
        spread = np.std(values, axis=0)
        return np.asarray(
            (values - values.mean(axis=0)) / np.maximum(spread, max(_SLIGHT * float(spread.max()), 1e-12))
        )

    states = np.concatenate([scaled(samples.q), _VELOCITY * scaled(samples.dq)], axis=1)
    axis = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)[2][0]
    order = np.argsort(states @ axis, kind='stable')
    centres = states[order[(2 * np.arange(count) + 1) * len(order) // (2 * count)]]
    with catch_warnings():
        simplefilter('ignore', UserWarning)  # a group may stay empty
        label = kmeans2(states, centres, minit='matrix')[1]
    return np.asarray(np.unique(label, return_inverse=True)[1].reshape(-1))
