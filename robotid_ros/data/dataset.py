# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A processed dataset: aligned joint motion and torque, ready for identification; the signals before their filter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray, freeze_fields, given_away, require_names
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.signals.filtering import polynomial_filter, settling_samples, zero_phase_low_pass

_COLUMNS = ('time', 'q', 'dq', 'ddq', 'tau', 'tau_filtered')
_AT_ONCE = 1_000_000  # values that go through a filter together, to save memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """N samples of the motion and the torque of n joints.

    All of ``q, dq, ddq, tau_filtered`` went through the same zero-phase filter (or the same period
    averaging), so they are aligned; ``tau`` is the measured torque, unfiltered; every error is computed against it.

    Attributes
    ----------
    joint_names : tuple of str
    time : ndarray, shape (N,)
        Strictly increasing within a trajectory [s].
    q, dq, ddq : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2, or m, ...]
    tau : ndarray, shape (N, n)
        Measured torque as recorded [N m or N].
    tau_filtered : ndarray, shape (N, n)
        The same, filtered like the motion; equal to ``tau`` where nothing was filtered.
    rate : float
        Sampling rate [Hz].
    cutoff : float
        Bandwidth of the filter [Hz]; half the rate where nothing was filtered. Samples closer
        than 1/(2 cutoff) are correlated.
    noise_std : ndarray, shape (n,), or None
        Standard deviation of the noise of one sample of ``tau``, after averaging [N m]; known where periods repeat.
    periods : int
        Number of periods averaged into each sample; 1 for a plain recording.
    trajectory : ndarray of int, shape (N,)
        Which run a sample belongs to, 0-based and contiguous.
    sources : tuple of str
        A name for each trajectory.
    effort : tuple of str
        What the effort of each joint was in the recording: 'torque', 'current' or 'unknown', which was taken as torque;
        empty where the torque did not come from a recording.
    context : mapping
        What the recording says about itself, see :meth:`robotid_ros.data.context.Context.to_dict`.
    provenance : mapping
        Files, hashes, settings, counts; plain numbers, strings and lists.
    unfiltered : EvenRecording or None
        The signals before the filter, for another choice of its cutoff; None where the cutoff was asked for, or the
        samples are averages over periods.
    """

    joint_names: tuple[str, ...]
    time: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    rate: float
    cutoff: float
    tau_filtered: Array = field(default_factory=lambda: np.zeros(0))
    noise_std: Array | None = None
    periods: int = 1
    trajectory: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sources: tuple[str, ...] = ()
    effort: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    unfiltered: 'EvenRecording | None' = None

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joint_names))
        if np.size(self.tau_filtered) == 0:
            object.__setattr__(self, 'tau_filtered', self.tau)
        freeze_fields(self, DataError, {'time': (None,), **dict.fromkeys(_COLUMNS[1:], shape), 'noise_std': shape[1:]})
        labels = (
            np.zeros(shape[0], dtype=np.int64) if np.size(self.trajectory) == 0 else np.array(self.trajectory, np.int64)
        )
        if labels.shape != shape[:1]:
            raise DataError(f'trajectory: expected shape ({shape[0]},), got {labels.shape}')
        labels.flags.writeable = False
        object.__setattr__(self, 'trajectory', labels)
        if not (self.rate > 0.0 and self.cutoff > 0.0):
            raise DataError(f'rate and cutoff must be positive; got {self.rate:g} and {self.cutoff:g} Hz')
        count = int(labels.max()) + 1 if len(labels) else 0
        if not self.sources:
            object.__setattr__(self, 'sources', tuple(f'trajectory {k + 1}' for k in range(count)))
        if len(self.sources) != count:
            raise DataError(f'sources: expected {count} names, got {len(self.sources)}')

    def __len__(self) -> int:
        return len(self.time)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def select(self, mask: Array | IntArray) -> 'Dataset':
        """Return some samples, given by a boolean mask or increasing indices; labels are renumbered."""
        labels = self.trajectory[mask]
        kept, renumbered = np.unique(labels, return_inverse=True)
        return replace(
            self,
            **self._rows(mask),
            trajectory=renumbered.astype(np.int64),
            sources=tuple(self.sources[k] for k in kept),
            unfiltered=None,
        )

    def _rows(self, rows: Array | IntArray) -> dict[str, Any]:
        return {name: given_away(getattr(self, name)[rows]) for name in _COLUMNS}

    def of_joints(self, joints: tuple[str, ...]) -> 'Dataset':
        """Return the columns of some joints, in the order asked for; a DataError names one that is not there."""
        index = require_names(joints, self.joint_names, 'joint', 'the recording', DataError)
        return replace(
            self,
            joint_names=joints,
            **{name: getattr(self, name)[:, index] for name in _COLUMNS[1:]},
            noise_std=None if self.noise_std is None else self.noise_std[index],
            effort=tuple(self.effort[k] for k in index) if self.effort else (),
            unfiltered=None,
        )

    def excerpts(self, seconds: float, count: int) -> 'Dataset':
        """Return so many stretches of a longer recording, spread over it, of at most so many seconds together.

        Each is a run of its own, also of the signals before the filter.
        """
        if len(self) <= seconds * self.rate:
            return self
        edges = np.flatnonzero(np.diff(self.trajectory, prepend=-1, append=-1))
        parts = _stretches(edges, round(seconds * self.rate), count)
        runs = np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])
        rows = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        even = self.unfiltered
        return replace(
            self,
            **self._rows(rows),
            trajectory=runs,
            sources=tuple(self.sources[self.trajectory[part.start]] for part in parts),
            unfiltered=None if even is None else even.excerpts(seconds, count),
        )

    def low_passed(self, signal: Array, cutoff: float) -> Array:
        """Return a signal of all samples, shape (N, ...), through a zero-phase low-pass [Hz], run by run."""
        parts = [signal[self.trajectory == run] for run in np.unique(self.trajectory)]
        return np.concatenate([zero_phase_low_pass(part, self.rate, cutoff) for part in parts])

    def trajectories(self) -> 'list[Dataset]':
        """Return the runs, one dataset each."""
        return [self.select(self.trajectory == k) for k in range(len(self.sources))]


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """Return several datasets of the same joints as one; runs keep their identity.

    Rate and cutoff are the lowest of the parts; the noise is their root mean square where all
    know it.

    Raises
    ------
    DataError
        If there is none, or joints differ.
    """
    if not datasets:
        raise DataError('expected at least one dataset, got none')
    names = datasets[0].joint_names
    for other in datasets[1:]:
        if other.joint_names != names:
            raise DataError(f'datasets of different joints: {", ".join(names)} and {", ".join(other.joint_names)}')
    offsets = np.cumsum([0, *(len(d.sources) for d in datasets[:-1])])
    noise = [d.noise_std for d in datasets if d.noise_std is not None]
    columns: dict[str, Any] = {
        name: given_away(np.concatenate([getattr(d, name) for d in datasets])) for name in _COLUMNS
    }
    return Dataset(
        joint_names=names,
        **columns,
        rate=min(d.rate for d in datasets),
        cutoff=min(d.cutoff for d in datasets),
        noise_std=np.sqrt(np.mean(np.square(noise), axis=0)) if len(noise) == len(datasets) else None,
        periods=min(d.periods for d in datasets),
        trajectory=np.concatenate([d.trajectory + k for d, k in zip(datasets, offsets, strict=True)]),
        sources=tuple(source for d in datasets for source in d.sources),
        effort=datasets[0].effort if len({d.effort for d in datasets}) == 1 else ('unknown',) * len(names),
        context=datasets[0].context,
        provenance={'parts': [dict(d.provenance) for d in datasets]},
    )


def _stretches(edges: IntArray, length: int, count: int) -> list[slice]:
    """Return so many stretches of runs between edges, spread over all, of at most that many samples together.

    Of a stretch over the end of a run, the larger part is taken.
    """
    size, parts = length // count, []
    for start in np.linspace(edges[0], edges[-1] - size, count).astype(int).tolist():
        inside = np.clip(edges, start, start + size)
        longest = int(np.argmax(np.diff(inside)))
        parts.append(slice(int(inside[longest]), int(inside[longest + 1])))
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenRecording:
    """A recording that is not periodic, before any filter, so that a cutoff can be chosen."""

    runs: tuple[Recording, ...]  # stretches without gaps, evenly sampled; their efforts are torques [N m or N]
    rate: float  # sampling rate of all of them [Hz]
    differentiation: str = 'central'  # or 'savitzky-golay'
    # Seconds cut off at both ends of each run; None takes one period of the cutoff, as far as the filter carries the
    # influence of an end.
    trimmed: float | None = None

    @property
    def fastest(self) -> float:
        """Largest cutoff for the filter, a fifth below the Nyquist frequency [Hz]."""
        return 0.4 * self.rate

    def excerpts(self, seconds: float, count: int) -> 'EvenRecording':
        """Return so many stretches, spread over the runs, of so many seconds together; each is a run of its own."""
        edges = np.cumsum([0, *(len(run) for run in self.runs)])
        parts = _stretches(edges, round(seconds * self.rate), count)
        runs = []
        for part in parts:
            number = int(np.searchsorted(edges, part.start, side='right')) - 1
            runs.append(self.runs[number].slice(part.start - edges[number], part.stop - edges[number]))
        return replace(self, runs=tuple(runs))

    def filtered(self, cutoff: float, provenance: Mapping[str, Any] | None = None, every: int = 1) -> Dataset:
        """Return the dataset of one zero-phase low-pass over all signals.

        ``cutoff`` [Hz]; from half the rate on, nothing is filtered. ``every``: of so many samples, one is kept. Raises
        a DataError if no run is long enough to be filtered and trimmed.
        """
        edge = settling_samples(self.rate, cutoff) if self.trimmed is None else round(self.trimmed * self.rate)
        # A quartic through five samples is the central difference; half a period of the cutoff is the widest window
        # whose polynomial follows the filtered signal.
        window = 5 if self.differentiation == 'central' else max(7, int(0.5 * self.rate / cutoff) // 2 * 2 + 1)
        fewest = max(2 * edge + 32, window)
        parts = [self._one(run, cutoff, edge, window, every) for run in self.runs if len(run) >= fewest]
        if not parts:
            message = (
                f'no run is long enough: expected at least {fewest} samples without a gap at a cutoff of '
                f'{cutoff:.4g} Hz, the longest of {len(self.runs)} has {max(map(len, self.runs), default=0)}'
            )
            raise DataError(message, expected=fewest, found=max(map(len, self.runs), default=0))
        whole = parts[0] if len(parts) == 1 else concatenate(parts)
        return replace(whole, unfiltered=self, provenance=dict(provenance or {}), effort=())

    def _one(self, run: Recording, cutoff: float, edge: int, window: int, every: int) -> Dataset:
        assert run.effort is not None
        inner, n = slice(edge, len(run) - edge, every), len(run.joint_names)
        time = run.time[inner]
        q, dq, ddq, torque = (np.empty((len(time), n)) for _ in range(4))

        def smooth(values: Array) -> Array:
            return values if cutoff >= 0.5 * self.rate else zero_phase_low_pass(values, self.rate, cutoff)

        together = max(1, _AT_ONCE // len(run))
        for some in (slice(start, start + together) for start in range(0, n, together)):
            position = smooth(run.position[:, some])
            q[:, some] = position[inner]
            for order, rates in ((1, dq), (2, ddq)):
                derivative = polynomial_filter(position, window, 4, derivative=order, rate=self.rate)
                rates[:, some] = derivative[inner]
            torque[:, some] = smooth(run.effort[:, some])[inner]
        return Dataset(
            joint_names=run.joint_names,
            time=time,
            q=given_away(q),
            dq=given_away(dq),
            ddq=given_away(ddq),
            tau=run.effort[inner],
            tau_filtered=given_away(torque),
            rate=self.rate / every,
            cutoff=min(cutoff, 0.5 * self.rate),
        )
