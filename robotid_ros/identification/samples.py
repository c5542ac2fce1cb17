# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Datasets brought into the one form that every estimator reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, IntArray, require_names
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.errors import IdentificationError
from robotid_ros.model.robot_model import RobotModel

__all__ = ['Samples', 'as_samples', 'joint_columns', 'require_moving']

_EXCERPTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """N samples of n joints.

    Attributes
    ----------
    q, dq, ddq : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2]
    target : ndarray, shape (N, n)
        Torque to fit, filtered like the motion [N m].
    measured : ndarray, shape (N, n)
        Torque as recorded [N m].
    weight : ndarray, shape (N, n)
        Weight of each sample, 1 for a full one.
    trajectory : ndarray of int, shape (N,)
    rate : float
        [Hz]
    cutoff : float
        Bandwidth of target and motion [Hz].
    filtered : bool
        Whether target and motion went through a low-pass of that bandwidth.
    """

    q: Array
    dq: Array
    ddq: Array
    target: Array
    measured: Array
    weight: Array
    trajectory: IntArray
    rate: float
    cutoff: float
    filtered: bool = False

    def __len__(self) -> int:
        return len(self.q)

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    def weighted(self, weight: Array) -> 'Samples':
        """Return the same samples with other weights, shape (N, n)."""
        return replace(self, weight=weight)

    def select(self, rows: 'slice | IntArray | Array') -> 'Samples':
        """Return some samples."""
        arrays = ('q', 'dq', 'ddq', 'target', 'measured', 'weight', 'trajectory')
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def excerpts(self, at_most: int) -> 'Samples':
        """Return stretches from all over the samples, each as a run of its own, at most that many samples in all."""
        if len(self) <= at_most:
            return self
        length = at_most // _EXCERPTS
        starts = np.linspace(0, len(self) - length, _EXCERPTS).astype(np.int64)
        rows = np.unique(starts[:, None] + np.arange(length))
        part = self.select(rows)
        fresh = (np.diff(rows, prepend=rows[0]) > 1) | (np.diff(part.trajectory, prepend=part.trajectory[0]) != 0)
        return replace(part, trajectory=np.cumsum(fresh).astype(np.int64))

    def thinned(self, at_most: int) -> 'Samples':
        """Return every k-th sample, so that at most that many are left."""
        step = max(1, -(-len(self) // at_most))
        if step == 1:
            return self
        return replace(self.select(slice(None, None, step)), rate=self.rate / step)


def joint_columns(dataset: Dataset, model: RobotModel) -> list[int]:
    """Return which column of the dataset belongs to each joint of the model.

    Raises
    ------
    IdentificationError
        If a joint of the model is not in the dataset.
    """
    return require_names(model.joint_names, dataset.joint_names, 'joint', 'the data', IdentificationError)


def as_samples(
    datasets: Sequence[Dataset], model: RobotModel, *, standstill_speed: float, standstill_weight: float
) -> Samples:
    """Return datasets as samples in the model's joint order.

    Friction is indeterminate at rest: between -fc and +fc, whatever balances the load. Samples near
    standstill are therefore weighted down,

        w = w0 + (1 - w0) min(1, (|v| / v0)^2),  v0 = standstill_speed max|v|

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel
        Names the joints to take, which may be some of the datasets'.
    standstill_speed : float
        v0 as a share of each joint's largest speed.
    standstill_weight : float
        w0, the weight at rest.

    Raises
    ------
    IdentificationError
        If there is no dataset or no sample, or a joint is missing.
    """
    if not datasets:
        raise IdentificationError('expected at least one dataset to identify from, got none')
    data = concatenate(list(datasets))
    if len(data) == 0:
        raise IdentificationError('expected samples to identify from; the datasets are empty')
    columns = joint_columns(data, model)
    dq = data.dq[:, columns]
    fastest = np.maximum(np.abs(dq).max(axis=0), 1e-9)
    share = np.minimum(1.0, (np.abs(dq) / (standstill_speed * fastest)) ** 2) if standstill_speed > 0.0 else 1.0
    return Samples(
        q=data.q[:, columns],
        dq=dq,
        ddq=data.ddq[:, columns],
        target=data.tau_filtered[:, columns],
        measured=data.tau[:, columns],
        weight=standstill_weight + (1.0 - standstill_weight) * share * np.ones_like(dq),
        trajectory=data.trajectory,
        rate=data.rate,
        cutoff=data.cutoff,
        filtered=data.cutoff < 0.45 * data.rate,
    )


def require_moving(samples: Samples, model: RobotModel, unknowns: int) -> None:
    """Refuse data that cannot tell anything.

    Raises
    ------
    IdentificationError
        If there are fewer equations than unknowns, or nothing moves.
    """
    equations = len(samples) * samples.n
    if equations < unknowns:
        raise IdentificationError(
            f'{len(samples)} samples of {samples.n} joints give {equations} equations for {unknowns} parameters; '
            'record a longer trajectory'
        )
    if not (np.ptp(samples.q, axis=0) > 1e-6).any():
        raise IdentificationError(
            f'no joint moves in the data ({", ".join(model.joint_names)}); record an exciting trajectory'
        )
