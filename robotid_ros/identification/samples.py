# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Samples of datasets: the one form of the data that every estimator reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, require_names
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel
from robotid_ros.friction.terms import DISTANCES, sliding
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.signals.filtering import earlier, zero_phase_low_pass

ENOUGH = 4500  # samples that tell as much as all: by which models are compared; of what costs more for each, a part
CHUNK = 2048  # samples computed together, which stay in the processor's cache
EXCERPTS = 8  # stretches that a long recording is cut down to, spread over its whole duration
LEAST_RANGE = 0.1  # rad or m: a joint that moves less is taken to move so far, where a range is divided by or widened
_FILTERED = 0.45  # share of the sampling rate; a low-pass with a higher cutoff has no visible effect
_RESTING = 1e-4  # weight of a sample at rest beside one in motion; a joint that never moves still counts
_PER_PERIOD = 25.0  # samples kept in one period of the narrowest low-pass; more are redundant


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRun:
    """Samples that are contiguous in time, and the low-passes that their torque went through.

    Attributes
    ----------
    start, stop : int
        Its rows.
    rate : float
        [Hz]
    cutoff : float or None
        Of the zero-phase low-pass that motion and target went through [Hz]; None where they did not.
    bandwidth : float or None
        Of the torque signal itself, as its driver publishes it [Hz]; None where it is not limited.
    recording : int
        Which recording it is from.
    """

    start: int
    stop: int
    rate: float
    cutoff: float | None
    bandwidth: float | None
    recording: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def narrowest(self) -> float:
        """The lowest of cutoff, torque bandwidth and Nyquist frequency [Hz]."""
        return min(x for x in (self.cutoff, self.bandwidth, 0.5 * self.rate) if x is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """N samples of n joints, of one or more recordings; each run keeps its own rate and filters.

    Where drives are coupled, motion and torque are those of the motors, scaled to the joints.

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
    runs : tuple of SampledRun
        In order, without gaps or overlaps.
    slide : ndarray, shape (N, n, d), or None
        What friction has built up since the last reversal, over each of the distances of
        :data:`robotid_ros.friction.terms.DISTANCES`.
    slip : ndarray, shape (N, n), or None
        Velocity of which friction has the direction, where it lags behind ``dq`` [rad/s].
    rows : ndarray of int, shape (N,), or None
        Rows of all samples, where these are some of them; None for all.
    weighed : ndarray of bool, shape (n,), or None
        Joints whose gravity is one constant, a slide's weight: an offset cannot be told from it and is taken for it,
        since it is what holds the arm.
    """

    q: Array
    dq: Array
    ddq: Array
    target: Array
    measured: Array
    weight: Array
    runs: tuple[SampledRun, ...]
    slide: Array | None = None
    slip: Array | None = None
    rows: IntArray | None = None
    weighed: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.q)

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def run_labels(self) -> IntArray:
        """Number of the run that each sample is from, shape (N,)."""
        return np.repeat(np.arange(len(self.runs)), [len(run) for run in self.runs])

    @property
    def recordings(self) -> IntArray:
        """Number of the recording that each sample is from, shape (N,)."""
        return np.repeat([run.recording for run in self.runs], [len(run) for run in self.runs])

    @property
    def independent_per_sample(self) -> float:
        """Independent samples of a signal of the torque's bandwidth, per sample: 2 f / rate, over all runs."""
        return float(sum(len(run) * min(1.0, 2.0 * run.narrowest / run.rate) for run in self.runs) / len(self))

    @property
    def open(self) -> bool:
        """Whether no low-pass stands between the model's torque and the target."""
        return all(run.narrowest >= _FILTERED * run.rate for run in self.runs)

    def with_bandwidth(self, bandwidth: float | None) -> 'Samples':
        """Return the same samples with a torque signal of this bandwidth [Hz], or an unlimited one."""
        return replace(self, runs=tuple(replace(run, bandwidth=bandwidth) for run in self.runs))

    def in_motion(self) -> 'Samples':
        """Return the same samples, of which those at rest hardly count: there an exact sign is noise."""
        return replace(self, weight=np.where(self.weight < 1.0, _RESTING, self.weight))

    def sliding(self, friction: FrictionModel | None, whole: 'Samples | None' = None) -> 'Samples':
        """Return the same samples with the past that a friction model looks back to; None for none.

        The friction of each has its own past, which is that of ``whole``, all the samples that these were taken from;
        by default these are all.
        """
        lag = 0.0 if friction is None else friction.lag
        distance = None if friction is None else friction.presliding
        whole = self if whole is None else whole
        rows = slice(None) if self.rows is None or whole is self else self.rows
        q, dq = (whole._earlier(whole.q, lag), whole._earlier(whole.dq, lag)[rows]) if lag else (whole.q, None)
        slide = None
        if distance is not None:
            runs = [(run.start, run.stop) for run in whole.runs]
            # Shares of a friction, and more than all other signals together: half of the digits are enough.
            slide = sliding(q, np.outer(distance, DISTANCES), runs, rows).astype(np.float32)
        return replace(self, slide=slide, slip=dq)

    def _earlier(self, values: Array, time: float) -> Array:
        """Return what values, shape (N, n), were that many seconds before."""
        return np.concatenate([earlier(values[run.start : run.stop], time * run.rate) for run in self.runs])

    def friction_columns(self, friction: FrictionModel, shape: Array, load: Array | None = None) -> Array:
        """Return the torque per unit of each linear friction parameter along the samples, shape (N, n, k)."""
        columns = friction.columns(self.dq, shape, load, self.q, self.slide, self.slip)
        if self.weighed is not None and self.weighed.any() and 'offset' in friction.linear_names:
            columns[:, self.weighed, friction.linear_names.index('offset')] = 0.0
        return columns

    def filtered(self, values: Array) -> Array:
        """Return model values, shape (N, ...), filtered like ``target``: by the torque's bandwidth and the cutoff."""
        return self.passed(values)[0]

    def recorded(self, values: Array) -> Array:
        """Return model values, shape (N, ...), filtered like ``measured``: by the torque's bandwidth only."""
        return self._passed(values, [run.bandwidth for run in self.runs])

    def passed(self, values: Array) -> tuple[Array, Array]:
        """Return model values, shape (N, ...), filtered like ``target`` and like ``measured``."""
        recorded = self.recorded(values)
        return self._passed(recorded, [run.cutoff for run in self.runs]), recorded

    def _passed(self, values: Array, cutoffs: list[float | None]) -> Array:
        # Runs of one length and rate go through their filters together.
        alike: dict[tuple[int, float, float], list[SampledRun]] = {}
        for run, cutoff in zip(self.runs, cutoffs, strict=True):
            if cutoff is not None and cutoff < _FILTERED * run.rate and len(run) > 1:
                alike.setdefault((len(run), run.rate, cutoff), []).append(run)
        if not alike:
            return np.asarray(values)
        flat = np.asarray(values).reshape(len(values), -1)
        whole = sum(len(run) for runs in alike.values() for run in runs) == len(flat)
        result = np.zeros_like(flat) if whole else flat.copy()
        # Nearly half of a regressor is zero: a joint carries none of the links before it.
        seen = np.flatnonzero(flat.any(axis=0))
        for (length, rate, cutoff), runs in alike.items():
            rows: slice | IntArray = slice(runs[0].start, runs[-1].stop)
            if runs[-1].stop - runs[0].start > len(runs) * length:  # others lie between them
                rows = np.concatenate([np.arange(run.start, run.stop) for run in runs])
            columns = flat[rows].T[seen].reshape(len(seen), len(runs), length)
            smooth = zero_phase_low_pass(columns, rate, cutoff, axis=2).reshape(len(seen), len(runs) * length).T
            result[rows if isinstance(rows, slice) else rows[:, None], seen] = smooth
        return result.reshape(values.shape)

    def pieces(self, longest: int) -> Iterator['Samples']:
        """Yield the samples run by run, runs longer than that many samples cut into pieces."""
        for run in self.runs:
            count = max(1, -(-len(run) // longest))
            edges = np.linspace(run.start, run.stop, count + 1).astype(int).tolist()
            for start, stop in pairwise(edges):
                yield self._of([(run, slice(start, stop), 1)])

    def excerpts(self, at_most: int) -> 'Samples':
        """Return at most that many samples, in stretches spread over all of them; each stretch is a run of its own."""
        if len(self) <= at_most:
            return self
        parts = []
        for run in self.runs:
            count = max(1, round(EXCERPTS * len(run) / len(self)))
            length = min(max(int(at_most * len(run) / len(self)) // count, 2), len(run))
            starts = np.unique(np.linspace(run.start, run.stop - length, count).astype(int)).tolist()
            ends = [*starts[1:], run.stop]
            parts += [(run, slice(a, min(a + length, b)), 1) for a, b in zip(starts, ends, strict=True) if b > a]
        return self._of(parts)

    def thinned(self, at_most: int) -> 'Samples':
        """Return every k-th sample, so that at most about that many are left."""
        step = max(1, -(-len(self) // at_most))
        return self if step == 1 else self._of([(run, slice(run.start, run.stop), step) for run in self.runs])

    def coarse(self, per_period: float = _PER_PERIOD) -> 'Samples':
        """Return ``per_period`` samples for each period of the narrowest low-pass, where the run has more."""
        steps = [redundant(run.rate, run.narrowest, per_period) for run in self.runs]
        if max(steps) == 1:
            return self
        return self._of([(run, slice(run.start, run.stop), step) for run, step in zip(self.runs, steps, strict=True)])

    def _of(self, parts: list[tuple[SampledRun, slice, int]]) -> 'Samples':
        rows = np.concatenate([np.arange(part.start, part.stop, step) for _, part, step in parts])
        runs, start = [], 0
        for run, part, step in parts:
            stop = start + len(range(part.start, part.stop, step))
            runs.append(replace(run, start=start, stop=stop, rate=run.rate / step))
            start = stop
        names = ('q', 'dq', 'ddq', 'target', 'measured', 'weight', 'slide', 'slip')
        arrays = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {name: None if values is None else values[rows] for name, values in arrays.items()}
        return replace(self, runs=tuple(runs), rows=rows if self.rows is None else self.rows[rows], **taken)


def redundant(rate: float, cutoff: float, per_period: float = _PER_PERIOD) -> int:
    """Return of how many samples at a rate [Hz] one is enough behind a low-pass [Hz]."""
    return 1 if cutoff >= _FILTERED * rate else max(1, int(rate / (per_period * cutoff)))


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
    """Return datasets as samples in the model's joint order, at the motors where drives are coupled.

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
    if sum(len(dataset) for dataset in datasets) == 0:
        raise IdentificationError('expected samples to identify from; the datasets are empty')
    columns = [joint_columns(dataset, model) for dataset in datasets]
    as_they_are = len(datasets) == 1 and columns[0] == list(range(datasets[0].n))  # an hour of them is large

    def stacked(name: str) -> Array:
        if as_they_are:
            return np.asarray(getattr(datasets[0], name))
        return np.concatenate([getattr(d, name)[:, where] for d, where in zip(datasets, columns, strict=True)])

    runs: list[SampledRun] = []
    for number, dataset in enumerate(datasets):
        offset = runs[-1].stop if runs else 0
        edges = np.flatnonzero(np.diff(dataset.trajectory, prepend=-1, append=-1)).tolist()
        runs += [
            SampledRun(
                start=offset + start,
                stop=offset + stop,
                rate=dataset.rate,
                cutoff=dataset.cutoff if dataset.cutoff < _FILTERED * dataset.rate else None,
                bandwidth=None,
                recording=number,
            )
            for start, stop in pairwise(edges)
        ]
    moved, forced = model.drives.T, np.linalg.inv(model.drives)  # of rows: q_motor = C q, tau_motor = C^-T tau

    def at_motors(name: str) -> Array:
        values = stacked(name)
        return values @ (forced if name.startswith('tau') else moved) if model.has_coupled_drives else values

    dq = at_motors('dq')
    weight = np.ones_like(dq)
    if standstill_speed > 0.0:
        np.abs(dq, out=weight)
        weight /= standstill_speed * np.maximum(weight.max(axis=0), 1e-9)
        np.minimum(weight, 1.0, out=weight)
        weight *= (1.0 - standstill_weight) * weight
        weight += standstill_weight
    return Samples(
        q=at_motors('q'),
        dq=dq,
        ddq=at_motors('ddq'),
        target=at_motors('tau_filtered'),
        measured=at_motors('tau'),
        weight=weight,
        runs=tuple(runs),
    )


def samples_of_datasets(datasets: Sequence[Dataset], model: RobotModel, config: IdentificationConfig) -> Samples:
    """Return datasets as samples, weighted at rest as configured."""
    return as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )


def listed(datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
    """Return one dataset or several as a list."""
    return [datasets] if isinstance(datasets, Dataset) else list(datasets)


def evenly_weighted(datasets: Sequence[Dataset], model: RobotModel, bandwidth: float | None) -> Samples:
    """Return datasets as samples to judge by: each counts the same, and the torque has a bandwidth [Hz] or none."""
    return as_samples(datasets, model, standstill_speed=0.0, standstill_weight=1.0).with_bandwidth(bandwidth)
