# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Filters and delays of the signals, chosen by held-out torque.

Three choices, each over a small grid, beside plain friction (Coulomb, viscous, offset; weighted least squares) or one
that was chosen:

- the cutoff of the zero-phase low-pass over motion and torque, one for all recordings;
- the delay of the torque behind the motion, one for all recordings;
- the bandwidth of the torque signal. A drive, or the driver that publishes its current, often passes the torque
  through a low-pass of its own, so that the step of Coulomb friction at a reversal comes out as a ramp. A linear
  model still holds once the same filter is applied to its columns (the parallel filtering of Gautier 1997).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import DataError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.bench import Bench
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.judge import GROUPS, Score, groups
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples
from robotid_ros.signals.filtering import motion_band

PLAIN = 'coulomb_viscous+offset'
_CUTOFFS = (3.0, 4.5, 7.0, 10.0, 15.0, 22.0, 33.0)  # times the motion's band, from a strong filter to a weak one
_USUAL = 7.0  # times the motion's band
_FASTEST_CUTOFF = 0.4  # of the sampling rate
_SAMPLES = 2500
_SLOWEST = 1.6  # times the motion's band: a lower bandwidth hides errors of the model
_FASTEST = 25.0  # Hz; a higher bandwidth hardly changes the torque at a reversal
_BANDWIDTHS = 8
_DELAYS = (0.005, 0.01, 0.02, 0.04)  # s, either way; the search ends where the error rises again
_REFINEMENTS = 3  # by a parabola through the best delay and its neighbours
_PER_UNKNOWN = 20  # equations; with fewer, a recording fits any delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The friction beside which signals are judged: plain, with an exact sign, or a chosen one.

    Attributes
    ----------
    base : BaseParameters
        Of the rigid body.
    friction : FrictionModel
    shape : ndarray, shape (n, s)
        Its shape parameters.
    """

    base: BaseRegressor
    friction: FrictionModel
    shape: Array

    @classmethod
    def plain(cls, base: BaseRegressor, n: int) -> 'Beside':
        """Return plain friction with an exact sign for ``n`` joints."""
        return cls(base=base, friction=friction_model(PLAIN), shape=np.zeros((n, 0)))

    def past(self, samples: Samples) -> Samples:
        """Return samples with what friction has of its past, before any are left out."""
        return samples.sliding(self.friction.presliding)

    def score(self, samples: Samples, label: IntArray, bandwidths: Sequence[float | None] = ()) -> list[Score]:
        """Return the errors in groups that were held out, once, or for each of some bandwidths [Hz]."""
        rigid, load = self.base.regressor(samples.q, samples.dq, samples.ddq), None
        if self.friction.needs_load:
            fit = least_squares(Rows(self.base, samples), self.friction, self.shape, covariance=False)
            load = rigid @ fit.base_values
        own = samples.friction_columns(self.friction, self.shape, load)
        every = [samples.with_bandwidth(each) for each in bandwidths] if bandwidths else [samples]
        return [Bench.of(each, label, rigid, own).linear(self.friction)[0] for each in every]


def _band(velocity: Array, rate: float) -> float:
    """Return the band of the motion [Hz]; where the rate does not allow the usual cutoff, noise hides the band.

    The cutoffs that are tried then end at the highest that the rate allows.
    """
    band, fastest = motion_band(velocity, rate), _FASTEST_CUTOFF * rate
    return band if _USUAL * band <= fastest else fastest / _CUTOFFS[-1]


def with_cutoff(datasets: Sequence[Dataset], cutoff: float, trimmed: float | None = None) -> list[Dataset]:
    """Return datasets filtered anew, as far as each one's rate and length allow; the rest as they are.

    Parameters
    ----------
    datasets : sequence of Dataset
    cutoff : float
        [Hz]
    trimmed : float, optional
        Seconds cut off at both ends of each run; by default one period of the cutoff.
    """
    result = []
    for dataset in datasets:
        even = dataset.unfiltered
        if even is not None:
            with suppress(DataError):  # every run is too short for so slow a filter
                chosen = even if trimmed is None else replace(even, trimmed=trimmed)
                new = chosen.filtered(min(cutoff, even.fastest), dataset.provenance)
                new = replace(new, effort=dataset.effort, context=dataset.context)
                if len(new.sources) == len(dataset.sources):  # no run was too short
                    new = replace(new, sources=dataset.sources)
                dataset = new if trimmed is None else replace(new, unfiltered=even)
        result.append(dataset)
    return result


def choose_cutoff(
    datasets: Sequence[Dataset], base: BaseRegressor, samples_of: Callable[[Sequence[Dataset]], Samples]
) -> tuple[list[Dataset], Decision | None]:
    """Return datasets filtered with the cutoff whose model predicts held-out torque best, and the choice.

    Parameters
    ----------
    datasets : sequence of Dataset
        Those with ``unfiltered`` signals take part; where there are none, nothing is chosen.
    base : BaseRegressor
    samples_of : callable
        From datasets to samples.
    """
    free = [dataset for dataset in datasets if dataset.unfiltered is not None]
    if not free:
        return list(datasets), None
    band = float(np.median([_band(dataset.dq, dataset.rate) for dataset in free]))
    fastest = max(dataset.unfiltered.fastest for dataset in free if dataset.unfiltered is not None)
    grid = sorted({min(share * band, fastest) for share in _CUTOFFS})
    # All candidates are judged by the same samples: those that the slowest filter leaves, where enough are left.
    shortest = min(max(len(run) for run in d.unfiltered.runs) / d.rate for d in free if d.unfiltered is not None)
    trimmed = min(1.0 / grid[0], shortest / 6.0)
    usual = int(np.argmin([abs(np.log(cutoff / (_USUAL * band))) for cutoff in grid]))
    ready = [samples_of(with_cutoff(datasets, cutoff, trimmed)).thinned(_SAMPLES) for cutoff in grid]
    ready = [each if len(each) == len(ready[usual]) else ready[usual] for each in ready]  # too short for a slow filter
    label = groups(ready[usual], GROUPS)
    beside = Beside.plain(base, ready[usual].n)
    tried = [(cutoff, beside.score(each, label)[0]) for cutoff, each in zip(grid, ready, strict=True)]
    best = int(np.argmin([score.value for _, score in tried]))
    best = best if tried[usual][1].loses_to(tried[best][1], len(grid) - 1) else usual
    decision = Decision(
        subject='cutoff',
        chosen=f'{grid[best]:.3g} Hz',
        alternatives=tuple(Alternative(name=f'{cutoff:.3g} Hz', error=errors.rmse) for cutoff, errors in tried),
    )
    return with_cutoff(datasets, grid[best]), decision


def _shifted(dataset: Dataset, delay: float, trimmed: float | None = None) -> Dataset:
    """Return a dataset with its motion shifted by the delay of its torque [s], and so much cut off at both ends [s]."""
    step = delay * dataset.rate
    edge = int(np.ceil(abs(step if trimmed is None else trimmed * dataset.rate))) + 1
    keep = np.zeros(len(dataset), dtype=bool)
    moved = {name: np.array(getattr(dataset, name)) for name in ('q', 'dq', 'ddq')}
    for label in range(len(dataset.sources)):
        rows = np.flatnonzero(dataset.trajectory == label)
        keep[rows[edge : len(rows) - edge]] = True
        at = np.arange(len(rows)) - step
        for name, values in moved.items():
            source = getattr(dataset, name)[rows]
            for j in range(dataset.n):
                values[rows, j] = np.interp(at, np.arange(len(rows)), source[:, j])
    return replace(dataset, q=moved['q'], dq=moved['dq'], ddq=moved['ddq']).select(keep)


def shifted_alike(datasets: Sequence[Dataset], delay: float) -> list[Dataset]:
    """Return datasets with their motion shifted by a delay [s], of the same samples for any delay that is tried."""
    return [_shifted(dataset, delay, _DELAYS[-1] + 0.5 / dataset.rate) for dataset in datasets]


def _vertex(tried: dict[float, Score], best: float) -> float | None:
    """Return the delay [s] of least error between those tried, to a tenth of a millisecond.

    The squared error of a smooth torque is a parabola in the delay; this is the vertex of the one through the best
    and its neighbours. None where there is no neighbour on one side.
    """
    delays = sorted(tried)
    k = delays.index(best)
    if not 0 < k < len(delays) - 1:
        return None
    x = np.array(delays[k - 1 : k + 2]) - best
    y = [
        float(np.mean((tried[delay].rmse / np.maximum(tried[best].rmse, 1e-300)) ** 2))
        for delay in delays[k - 1 : k + 2]
    ]
    curvature, slope, _ = np.polyfit(x, y, 2)
    vertex = round(best - 0.5 * slope / curvature, 4) if curvature > 0.0 else best
    return vertex if delays[k - 1] < vertex < delays[k + 1] and vertex not in tried else None


def choose_delay(
    datasets: Sequence[Dataset], beside: Beside, samples_of: Callable[[Sequence[Dataset]], Samples]
) -> tuple[float, Decision]:
    """Return the delay of the torque [s], one for all recordings, where held-out torque confirms it, and the choice.

    Parameters
    ----------
    datasets : sequence of Dataset
    beside : Beside
    samples_of : callable
        From datasets to samples.
    """
    subject = 'delay of the torque'
    still = shifted_alike(datasets, 0.0)
    n = still[0].n
    if sum(map(len, still)) * n < _PER_UNKNOWN * (len(beside.base.names) + 3 * n):
        return 0.0, Decision(subject=subject, chosen='none: too few samples to tell')
    label = groups(samples_of(still).thinned(_SAMPLES), GROUPS)

    def errors(delay: float) -> Score:
        return beside.score(beside.past(samples_of(shifted_alike(datasets, delay))).thinned(_SAMPLES), label)[0]

    none = errors(0.0)
    tried = {0.0: none}
    sign = min((_DELAYS[0], -_DELAYS[0]), key=lambda delay: tried.setdefault(delay, errors(delay)).value)
    if tried[sign].value < none.value:
        for delay in (np.sign(sign) * step for step in _DELAYS[1:]):
            tried[delay] = errors(delay)
            if tried[delay].value > min(other.value for other in tried.values()):
                break
    best = min(tried, key=lambda delay: tried[delay].value)
    for _ in range(_REFINEMENTS):
        finer = _vertex(tried, best)
        if finer is None:
            break
        tried[finer] = errors(finer)
        best = min(tried, key=lambda delay: tried[delay].value)
    confirmed = best != 0.0 and none.contradicted_by(tried[best], len(tried) - 1)
    chosen = best if confirmed else 0.0
    decision = Decision(
        subject=subject,
        chosen='none' if chosen == 0.0 else f'{1e3 * chosen:.3g} ms',
        alternatives=tuple(
            Alternative(name=f'{1e3 * delay:.3g} ms', error=found.rmse) for delay, found in sorted(tried.items())
        ),
    )
    return float(chosen), decision


def like_training(datasets: Sequence[Dataset], cutoff: float | None, delay: float) -> list[Dataset]:
    """Return recordings filtered like the training, with the delay of its torque taken out.

    Parameters
    ----------
    datasets : sequence of Dataset
    cutoff : float or None
        Of the training [Hz]; None leaves the filters as they are.
    delay : float
        Of the training [s]: what is judged fits nothing to its own torque.
    """
    listed = list(datasets) if cutoff is None else with_cutoff(datasets, cutoff)
    return listed if delay == 0.0 else [_shifted(dataset, delay) for dataset in listed]


def choose_bandwidth(beside: Beside, samples: Samples) -> tuple[float | None, Decision]:
    """Return the bandwidth of the torque signal [Hz], or None where held-out torque shows none, and the choice.

    Parameters
    ----------
    beside : Beside
    samples : Samples
        With an unlimited torque.
    """
    longest = max(samples.runs, key=len)
    band = _band(samples.dq[longest.start : longest.stop], longest.rate)
    slowest = max(_SLOWEST * band, 0.2)
    fastest = min(_FASTEST, *(0.2 * run.rate for run in samples.runs))
    if fastest <= 1.2 * slowest:
        return None, Decision(subject='torque bandwidth', chosen='not limited')
    part = beside.past(samples).coarse(8.0).excerpts(4000)
    grid = np.geomspace(slowest, fastest, _BANDWIDTHS).tolist()
    none, *found = beside.score(part, groups(part, GROUPS), [None, *grid])
    tried = list(zip(grid, found, strict=True))
    scores = np.array([found.value for _, found in tried])
    best = int(np.argmin(scores))
    bandwidth: float | None = None
    if best < len(grid) - 1 and none.loses_to(tried[best][1], len(grid)):
        bandwidth = grid[best]
        if best > 0:
            below, here, above = scores[best - 1 : best + 2]
            shift = 0.5 * (below - above) / (below - 2.0 * here + above)
            bandwidth = float(np.exp(np.log(grid[best]) + shift * np.log(grid[1] / grid[0])))
    decision = Decision(
        subject='torque bandwidth',
        chosen='not limited' if bandwidth is None else f'{bandwidth:.3g} Hz',
        alternatives=(
            Alternative(name='not limited', error=none.rmse),
            *(Alternative(name=f'{value:.3g} Hz', error=found.rmse) for value, found in tried),
        ),
    )
    return bandwidth, decision
