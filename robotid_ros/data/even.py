# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Evenly sampled runs of a recording, and the dataset that one zero-phase filter makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.errors import DataError
from robotid_ros.signals.filtering import settling_samples, zero_phase_low_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stretch of a recording without gaps, evenly sampled and not filtered.

    Attributes
    ----------
    time : ndarray, shape (N,)
        [s]
    position, torque : ndarray, shape (N, n)
        [rad or m], [N m or N]
    """

    time: Array
    position: Array
    torque: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, 'time', frozen_array(self.time, 'time', (None,), DataError))
        shape = (len(self.time), np.shape(self.position)[-1])
        for name in ('position', 'torque'):
            object.__setattr__(self, name, frozen_array(getattr(self, name), name, shape, DataError))

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenRecording:
    """A recording that is not periodic, before any filter, so that a cutoff can be chosen.

    Attributes
    ----------
    joint_names : tuple of str
    runs : tuple of Run
    rate : float
        Sampling rate of all runs [Hz].
    differentiation : {'central', 'savitzky-golay'}
    trimmed : float or None
        Seconds cut off at both ends of each run; None takes one period of the cutoff, as far as the filter
        carries the influence of an end.
    effort, context
        Of the dataset, see :class:`~robotid_ros.data.dataset.Dataset`.
    """

    joint_names: tuple[str, ...]
    runs: tuple[Run, ...]
    rate: float
    differentiation: str = 'central'
    trimmed: float | None = None
    effort: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fastest(self) -> float:
        """Largest cutoff for the filter, a fifth below the Nyquist frequency [Hz]."""
        return 0.4 * self.rate

    def filtered(self, cutoff: float, provenance: Mapping[str, Any] | None = None) -> Dataset:
        """Return the dataset of one zero-phase low-pass over all signals.

        Parameters
        ----------
        cutoff : float
            [Hz]; from half the rate on, nothing is filtered.
        provenance : mapping, optional

        Raises
        ------
        DataError
            If no run is long enough to be filtered and trimmed.
        """
        edge = settling_samples(self.rate, cutoff) if self.trimmed is None else round(self.trimmed * self.rate)
        # A quartic through five samples is the central difference; half a period of the cutoff is the widest window
        # whose polynomial follows the filtered signal.
        window = 5 if self.differentiation == 'central' else max(7, int(0.5 * self.rate / cutoff) // 2 * 2 + 1)
        fewest = max(2 * edge + 32, window)
        parts = [self._one(run, cutoff, edge, window) for run in self.runs if len(run) >= fewest]
        if not parts:
            raise DataError(
                f'no run is long enough: expected at least {fewest} samples without a gap at a cutoff of '
                f'{cutoff:.4g} Hz, the longest of {len(self.runs)} has {max(len(run) for run in self.runs)}'
            )
        joined = concatenate(parts)
        return replace(
            joined, unfiltered=self, provenance=dict(provenance or {}), effort=self.effort, context=self.context
        )

    def _one(self, run: Run, cutoff: float, edge: int, window: int) -> Dataset:
        from scipy.signal import savgol_filter  # not at the top: see robotid_ros.signals.filtering

        n = len(self.joint_names)
        signals = np.concatenate([run.position, run.torque], axis=1)
        smooth = signals if cutoff >= 0.5 * self.rate else zero_phase_low_pass(signals, self.rate, cutoff)
        q = smooth[:, :n]
        dq, ddq = (savgol_filter(q, window, 4, deriv=order, delta=1.0 / self.rate, axis=0) for order in (1, 2))
        inner = slice(edge, len(run) - edge)
        return Dataset(
            joint_names=self.joint_names,
            time=run.time[inner],
            q=q[inner],
            dq=dq[inner],
            ddq=ddq[inner],
            tau=run.torque[inner],
            tau_filtered=smooth[inner, n:],
            rate=self.rate,
            cutoff=min(cutoff, 0.5 * self.rate),
        )
