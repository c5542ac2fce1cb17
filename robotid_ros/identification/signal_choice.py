# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is a fact about the signals, one for all recordings, and confirmed by torque that was held out:

- the delay of the torque behind the motion, as it shows where friction does not turn. At a reversal friction may turn
  late for another reason: behind a flexible gear, the link reverses after the motor. A delay that reversals alone show
  would turn viscous friction into inertia, and inertia into negative viscous friction;
- the lag of friction, which is that;
- the bandwidth of the torque signal. A drive, or the driver that publishes its current, often passes the torque
  through a low-pass of its own, so that the step of Coulomb friction at a reversal comes out as a ramp. A linear
  model still holds once the same filter is applied to its columns (the parallel filtering of Gautier 1997).

They are looked for beside the terms that the fit has: friction that builds up after a reversal looks like a torque that
is late or slow. The cutoff of the zero-phase low-pass over motion and torque follows from the band of the motion.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import DataError
from robotid_ros.identification.judge import Alternative, Bench, Decision, Score, groups
from robotid_ros.identification.samples import Samples, redundant
from robotid_ros.identification.terms import Terms
from robotid_ros.signals.filtering import earlier, motion_band

_USUAL = 15.0  # times the motion's band: of the cutoff
_HALVINGS = 4  # of the usual cutoff, that are tried: down to the band of the motion
_SLOWEST_BANDWIDTH = 0.2  # Hz
_SLOWEST = 1.6  # times the motion's band: a lower bandwidth hides errors of the model
_FASTEST = 25.0  # Hz; a higher bandwidth hardly changes the torque at a reversal
_BANDWIDTHS = 7
_DELAYS = (0.005, 0.01, 0.02, 0.04)  # s, either way; each is twice the one before
_REFINEMENTS = 2  # of the best bandwidth and delay
_SETTLED = 0.1  # of a joint's largest speed: below it, friction may be turning
_PER_UNKNOWN = 20  # equations; with fewer, a recording fits any delay


def usual_cutoff(datasets: Sequence[Dataset]) -> float | None:
    """Return fifteen times the motion's band [Hz], at most as fast as recordings allow; None without a filter."""
    free = [dataset for dataset in datasets if dataset.unfiltered is not None]
    if not free:
        return None
    fastest = max(dataset.unfiltered.fastest for dataset in free if dataset.unfiltered is not None)
    usual = [_USUAL * motion_band(each.dq, each.rate) for each in free]
    # So fast a motion is noise that hides the motion's band.
    some = [cutoff if cutoff <= 0.4 * each.rate else 0.1 * each.rate for cutoff, each in zip(usual, free, strict=True)]
    return min(float(np.median(some)), fastest)


def with_cutoff(
    datasets: Sequence[Dataset], cutoff: float | None, trimmed: float | None = None, *, thinned: bool = False
) -> list[Dataset]:
    """Return datasets filtered anew, as far as each one's rate and length allow; the rest as they are.

    Parameters
    ----------
    datasets : sequence of Dataset
    cutoff : float or None
        [Hz]; None leaves the filters as they are.
    trimmed : float, optional
        Seconds cut off at both ends of each run; by default one period of the cutoff.
    thinned : bool
        Leave out samples that the cutoff makes redundant, see :meth:`Samples.coarse`.
    """
    result = []
    for dataset in datasets:
        even = dataset.unfiltered
        if even is not None and cutoff is not None:
            with suppress(DataError):  # every run is too short for so slow a filter
                chosen = even if trimmed is None else replace(even, trimmed=trimmed)
                lower = min(cutoff, even.fastest)
                new = chosen.filtered(lower, dataset.provenance, redundant(even.rate, lower) if thinned else 1)
                new = replace(new, effort=dataset.effort, context=dataset.context)
                if len(new.sources) == len(dataset.sources):  # no run was too short
                    new = replace(new, sources=dataset.sources)
                dataset = new if trimmed is None else replace(new, unfiltered=even)
        result.append(dataset)
    return result


def choose_cutoff(
    datasets: Sequence[Dataset], usual: float, terms: Terms, samples_of: Callable[[Sequence[Dataset]], Samples]
) -> tuple[float, Decision]:
    """Return the fastest cutoff [Hz] that does not lose to the one of least held-out error, and the choice.

    Noise of positions that grows with the frequency makes a slower one better, and a motion that has most of its
    acceleration at high frequencies the usual one.
    """
    free = [each.unfiltered for each in datasets if each.unfiltered is not None]
    longest = min(max(map(len, each.runs)) / each.rate for each in free)
    some = [cutoff for cutoff in usual * 0.5 ** np.arange(_HALVINGS + 1) if 6.0 / cutoff < longest] or [usual]
    # All are judged by the same samples: those that the slowest filter leaves, where enough are left.
    trimmed = min(1.0 / some[-1], longest / 6.0)
    ready = [samples_of(with_cutoff(datasets, float(cutoff), trimmed)) for cutoff in some]
    alike = [k for k, each in enumerate(ready) if len(each) == len(ready[0])]
    label, some = groups(ready[0]), [some[k] for k in alike]
    scores = [terms.score(ready[k], label) for k in alike]
    best = min(scores, key=lambda score: score.value)
    holds = (k for k, score in enumerate(scores) if not score.loses_to(best, max(len(scores) - 1, 1)))
    chosen = float(some[next(holds)])
    return chosen, Decision(
        subject='cutoff',
        chosen=f'{chosen:.3g} Hz',
        alternatives=tuple(
            Alternative(name=f'{cutoff:.3g} Hz', error=score.rmse) for cutoff, score in zip(some, scores, strict=True)
        ),
    )


def _shifted(dataset: Dataset, delay: float, trimmed: float | None = None) -> Dataset:
    """Return a dataset with its motion shifted by the delay of its torque [s], and so much cut off at both ends [s]."""
    step = delay * dataset.rate
    edge = int(np.ceil(abs(step if trimmed is None else trimmed * dataset.rate))) + 1
    keep = np.zeros(len(dataset), dtype=bool)
    moved = {name: np.array(getattr(dataset, name)) for name in ('q', 'dq', 'ddq')}
    for label in range(len(dataset.sources)):
        rows = np.flatnonzero(dataset.trajectory == label)
        keep[rows[edge : len(rows) - edge]] = True
        for name, values in moved.items():
            values[rows] = earlier(getattr(dataset, name)[rows], step)
    return replace(dataset, q=moved['q'], dq=moved['dq'], ddq=moved['ddq']).select(keep)


def _vertex(tried: dict[float, Score], best: float) -> list[float]:
    """Return the delay [s] of least error between those tried, to a tenth of a millisecond.

    The squared error of a smooth torque is a parabola in the delay; this is the vertex of the one through the best
    and its neighbours. Nothing where there is no neighbour on one side.
    """
    delays = sorted(tried)
    k = delays.index(best)
    if not 0 < k < len(delays) - 1:
        return []
    x = np.array(delays[k - 1 : k + 2]) - best
    y = [
        float(np.mean((tried[delay].rmse / np.maximum(tried[best].rmse, 1e-300)) ** 2))
        for delay in delays[k - 1 : k + 2]
    ]
    curvature, slope, _ = np.polyfit(x, y, 2)
    vertex = round(best - 0.5 * slope / curvature, 4) if curvature > 0.0 else best
    return [vertex] if delays[k - 1] < vertex < delays[k + 1] and vertex not in tried else []


def _between(tried: dict[float, Score], best: float) -> list[float]:
    """Return constants [s] between the best and its neighbours: the error of a step has no parabola."""
    constants = sorted(tried)
    k = constants.index(best)
    sides = (*constants[max(k - 1, 0) : k], *constants[k + 1 : k + 2]) if best else ()
    return [float(np.sqrt(best * each)) or 0.5 * best for each in sides]


def choose_delay(
    datasets: Sequence[Dataset], terms: Terms, samples_of: Callable[[Sequence[Dataset]], Samples]
) -> tuple[float, Decision]:
    """Return the delay of the torque [s], one for all recordings, where held-out torque confirms it, and the choice.

    Parameters
    ----------
    datasets : sequence of Dataset
    terms : Terms
    samples_of : callable
        From datasets to the samples to compare by, with the terms' past.
    """

    def search(last: float) -> tuple[float, Decision, bool]:
        def shifted(delay: float) -> list[Dataset]:  # of the same samples for any delay
            return [_shifted(dataset, delay, last + 0.5 / dataset.rate) for dataset in datasets]

        still = shifted(0.0)
        label, tried = groups(samples_of(still)), dict[float, float]()

        def errors(delay: float) -> Score:
            moved = samples_of(shifted(delay))
            speed = np.abs(moved.dq) / np.maximum(np.abs(moved.dq).max(axis=0), 1e-9)
            score = terms.score(replace(moved, weight=moved.weight * (speed > _SETTLED)), label)
            tried[delay] = score.value
            return score

        enough, first = _enough(terms, sum(each.q.size for each in still)), (_DELAYS[0], -_DELAYS[0])
        found, decision = _constant('delay of the torque', enough, errors, first, _vertex, last=last)
        best = min(tried, key=tried.__getitem__, default=0.0)
        return found, decision, abs(best) == last

    found, decision, ended = search(_DELAYS[-1])
    shortest, longest = min(np.bincount(each.trajectory).min() / each.rate for each in datasets), _DELAYS[-1]
    # A torque path may be four times as slow, in runs that are at least twenty times as long.
    while longest < 4.0 * _DELAYS[-1] and 40.0 * longest <= shortest:
        longest *= 2.0
    if ended and longest > _DELAYS[-1]:  # which leaves out more at the ends of runs
        found, decision, _ = search(longest)
    return found, decision


def choose_lag(terms: Terms, few: Samples, samples: Samples) -> tuple[float, Decision]:
    """Return how long after the recorded motion friction turns [s], where held-out torque confirms it, and the choice.

    Parameters
    ----------
    terms : Terms
    few : Samples
        To compare by, of all ``samples``, with the delay of the torque taken out.
    """
    label = groups(few)
    plain = terms.base.regressor(few.q, few.dq, few.ddq)
    rigid = few.passed(plain)

    def errors(lag: float) -> Score:
        late = terms.late(lag)
        past = few.sliding(late.friction, samples)
        return late.judged(Bench.of_rows(past, label, rigid, past.passed(late.own(past, plain))), past)[0]

    return _constant('lag of friction', _enough(terms, samples.q.size), errors, _DELAYS, _between)


def choose_bandwidth(terms: Terms, samples: Samples) -> tuple[float | None, Decision]:
    """Return the bandwidth of the torque signal [Hz], or None where held-out torque shows none, and the choice.

    Parameters
    ----------
    terms : Terms
    samples : Samples
        To compare by: with an unlimited torque, and with the terms' past.
    """
    longest = max(samples.runs, key=len)
    band = motion_band(samples.dq[longest.start : longest.stop], longest.rate)
    slowest = max(_SLOWEST * band, _SLOWEST_BANDWIDTH)
    fastest = min(_FASTEST, *(0.2 * run.rate for run in samples.runs))
    if fastest <= 1.2 * slowest:  # so slowly sampled a torque does not show it
        return None, Decision(subject='torque bandwidth', chosen='not limited')
    label, rigid = groups(samples), terms.base.regressor(samples.q, samples.dq, samples.ddq)
    own = terms.own(samples, rigid)

    def frequency(constant: float) -> float | None:
        return 0.5 / (np.pi * constant) if constant else None

    def errors(constant: float) -> Score:
        each = samples.with_bandwidth(frequency(constant))
        return terms.judged(Bench.of(each, label, rigid, own), each)[0]

    def said(constant: float) -> str:
        return f'{frequency(constant):.3g} Hz' if constant else 'not limited'

    grid = (0.5 / (np.pi * np.geomspace(fastest, slowest, _BANDWIDTHS))).tolist()
    found, decision = _constant(
        'torque bandwidth', _enough(terms, samples.q.size), errors, grid, _between, said, last=0.0, seldom=True
    )
    return frequency(found), decision


def _enough(terms: Terms, equations: int) -> bool:
    """Return whether a recording has so many equations that it does not fit any time constant."""
    return equations >= _PER_UNKNOWN * (len(terms.base.names) + 3 * len(terms.shape))


def _milliseconds(time: float) -> str:
    return f'{1e3 * time:.3g} ms' if time else 'none'


def _constant(
    subject: str,
    enough: bool,
    errors: Callable[[float], Score],
    first: Sequence[float],
    finer: Callable[[dict[float, Score], float], list[float]],
    said: Callable[[float], str] = _milliseconds,
    *,
    last: float = _DELAYS[-1],
    seldom: bool = False,
) -> tuple[float, Decision]:
    """Return the time constant [s] of least held-out error, where one predicts better than 0, and the choice.

    The ``first`` are tried in any case: what a lag explains may look worse at a short one than without. Beyond them it
    is doubled up to the ``last``, where a minimum is none; 0 for neither. What is ``seldom`` there, as is a torque that
    comes early, has to be worth a contradiction.
    """
    if not enough:
        return 0.0, Decision(subject=subject, chosen=f'{said(0.0)}: too few samples to tell')
    tried = {constant: errors(constant) for constant in (0.0, *first)}

    def best() -> float:
        return min(tried, key=lambda constant: tried[constant].value)

    while best() and best() in (min(tried), max(tried)) and abs(best()) < last:
        tried[2.0 * best()] = errors(2.0 * best())
    for _ in range(_REFINEMENTS):
        tried.update({constant: errors(constant) for constant in finer(tried, best())})
    chosen, none = best(), tried[0.0]
    # A torque path is hardly ever early.
    better = none.loses_to if chosen >= 0.0 and not seldom else none.contradicted_by
    taken = better(tried[chosen], len(tried) - 1)
    told = said(chosen if taken else 0.0)
    if abs(chosen) == last:  # what falls to the end of the search has no minimum there
        told = said(0.0) + f': there is no minimum up to {said(last)}, where the error is least' * (
            taken and last > 0.0
        )
        taken = False
    chosen = chosen if taken else 0.0
    alternatives = (Alternative(name=said(each), error=found.rmse) for each, found in sorted(tried.items()))
    return float(chosen), Decision(subject=subject, chosen=told, alternatives=tuple(alternatives))


def like_training(
    datasets: Sequence[Dataset], cutoff: float | None, delay: float, *, thinned: bool = False
) -> list[Dataset]:
    """Return recordings filtered like the training, with the delay of its torque taken out.

    Parameters
    ----------
    datasets : sequence of Dataset
    cutoff : float or None
        Of the training [Hz]; None leaves the filters as they are.
    delay : float
        Of the training [s]: what is judged fits nothing to its own torque.
    thinned : bool
        Leave out samples that the cutoff makes redundant.
    """
    listed = with_cutoff(datasets, cutoff, thinned=thinned)
    return listed if delay == 0.0 else [_shifted(dataset, delay) for dataset in listed]
