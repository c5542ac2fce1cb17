# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.
"""The search for the set-up of a recording: where it disagrees with its description, told by the torque.

A recording may be of an arm on a wall; a joint may count against its description; efforts may have the other sign;
positions may be those of motors behind a coupling. Each of these is a hypothesis about one and the same linear model,

    T tau = Y(P q + z; g) x + D^T friction(D (P q + z)),

with the gravity g, matrices P and T from recorded to described coordinates, a zero z, and the drives D over the
joints. The standard parameters x have a normal prior: the description's, or that of any links of its size. A hypothesis
costs no parameters (but for the direction of gravity, a payload, and factors between efforts), so that all are compared
by their posterior at its maximum on a part of the samples; the best challenges what holds so far before the judge
(:mod:`robotid_ros.identification.judge`). What wins holds, and the search goes on from there, until nothing wins.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.dataset import Dataset
from robotid_ros.identification.config import AT_REST
from robotid_ros.identification.evidence import Evidence
from robotid_ros.identification.information import ROUNDING
from robotid_ros.identification.judge import DOUBTFUL, WORTH, Alternative, Decision, Score, groups
from robotid_ros.identification.samples import ENOUGH, Samples, evenly_weighted
from robotid_ros.identification.setup import (
    LEAST_FACTOR,
    LEAST_TILT,
    RATIO_BOUNDS,
    Finding,
    SetUp,
    along_axes,
    count_reversed,
    coupled,
    coupling_of,
    couplings,
    exchanges,
    joints_left,
    mounted,
    position_units,
    reversals,
    reversed_alike,
    whole,
    zeros,
)
from robotid_ros.identification.verdict import moved
from robotid_ros.model.robot_model import STANDARD_GRAVITY, RobotModel

_FEW = 250  # samples by which hypotheses are ranked before the judge
_ROUGH = 2  # passes of the joints' weights by which all hypotheses are compared
_LIKELY = 6  # of which the cost is taken to its end
_FINALISTS = 3  # brought before the judge in one round
_UNEXPLAINED = 0.25  # of the torque's variation, which a signed torque that gravity keeps positive does not leave
_SLIGHT = 0.01  # fall of L between two findings: as good as none
_UNUSUAL = float(np.log(100.0))  # of a finding beside the posterior, one in a hundred: what adds nothing does not join
_TURNS = 10  # reversals of all joints through which efforts that never change their sign have none
_TOUCHES, _OVERSHOOT = 0.05, 0.2  # of an effort: how near to zero a magnitude comes; what interpolation adds at a kink
_CUTS = 20  # moments in each recording at which its load may change


def find_setup(
    datasets: Sequence[Dataset], described: RobotModel, *, units_only: bool = False
) -> tuple[SetUp, Decision]:
    """Return the set-up of some recordings and what was compared, see :func:`find_setups`."""
    setups, decision = find_setups(datasets, described, units_only=units_only)
    return setups[-1], decision


def find_setups(
    datasets: Sequence[Dataset], described: RobotModel, *, units_only: bool = False
) -> tuple[list[SetUp], Decision]:
    """Return the set-up of some recordings after all on the way to it, and what was compared.

    Parameters
    ----------
    datasets : sequence of Dataset
        As recorded.
    described : RobotModel
        Gravity and drives as the description and the configuration have them.
    units_only : bool
        Whether to ask only for the units of positions and efforts, which spoil the estimates that take a recording as
        it is.

    Returns
    -------
    setups : list of SetUp
        The first is as described; each has one finding more. Where efforts have several units, torques are in one that
        is unknown: the factors are known only up to a common one.
    decision : Decision
        With every set-up that came before the judge, and its held-out error against the filtered torque.
    """
    samples = evenly_weighted(datasets, replace(described, drives=np.eye(described.n)), None)
    moving = np.maximum(np.abs(samples.dq).max(axis=0), 1e-9)
    samples = replace(samples, weight=np.where(np.abs(samples.dq) > AT_REST * moving, 1.0, 0.05))
    judged = samples.coarse(10.0).thinned(ENOUGH // 3)
    if not judged.target.any():
        nothing = Decision(subject='set-up', chosen='as described: there is no torque to compare with')
        return [SetUp.as_described(described)], nothing
    setup, search = SetUp.as_described(described), _Search.of(judged, described)
    setups, held = [setup], search.score(setup)
    moments = _moments(datasets, judged)
    for _ in range(described.n + 1):  # at most one finding a joint, and the mount
        search.doubts.clear()  # they are about what holds
        changed = None if units_only else _change(setup, search, held, moments)
        if units_only:
            challenger = search.challenger(search.ranked(position_units(setup, described)), setup, held)
        else:
            challenger = search.best_described(setup, held)
        if not any(each.kind == 'units' for each in setup.findings):
            found = (challenger, search.in_several_units(setup, held))
            challenger = min(filter(None, found), key=lambda pair: pair[1].value + search.price(pair[0]), default=None)
        if changed is not None and (challenger is None or changed[1].value < challenger[1].value):
            setups.append(changed[0])
            break
        if challenger is None:
            break
        setup, held = challenger
        setups.append(setup)
    setup = setups[-1]
    if setup.gravity.any() and any(each.kind == 'gravity' for each in setup.findings[:-1]):  # before what came after
        setups[-1] = mounted(setup, whole(search.test.tilted(setup).gravity), described.gravity)
    unsigned = None if units_only else _without_sign(samples, described)
    if unsigned is not None and not search.explains(setup, held):
        setups = [setups[0], replace(setups[0], findings=(unsigned,))]
    chosen = str(setups[-1])
    if not setups[-1].lost:
        setups[-1] = replace(setups[-1], doubt=search.doubt(setups[-1]))
    return setups, Decision(subject='set-up', chosen=chosen, alternatives=tuple(search.tried))


class _Search:
    """What ranks hypotheses, what judges them, and what came before the judge."""

    @classmethod
    def of(cls, samples: Samples, described: RobotModel) -> '_Search':
        """Return the search by some samples; the hypotheses are ranked by a few of them."""
        screen, test = Evidence(samples.thinned(_FEW), described), Evidence(samples, described)
        return cls(screen, test, groups(samples))

    def __init__(self, screen: Evidence, test: Evidence, label: IntArray) -> None:
        self.screen, self.test, self.label = screen, test, label
        self.tried: list[Alternative] = []
        self.doubts: list[tuple[float, Finding]] = []

    def score(self, setup: SetUp, added: Array | None = None, *, free: bool = False) -> Score:
        """Return the held-out errors of a set-up, and keep them as an alternative."""
        found = self.test.score(setup, self.label, added, free=free)
        if added is None and not free:
            self.tried.append(Alternative(name=str(setup), error=found.rmse))
        return found

    def explains(self, setup: SetUp, held: Score) -> bool:
        """Return whether a set-up with a score explains the torque's variation, be it with friction that drives."""
        left = min(np.linalg.norm(each.rmse) for each in (held, self.score(setup, free=True)))
        return bool(left <= _UNEXPLAINED * np.sqrt(np.sum(np.var(self.test.samples.target, axis=0))))

    def ranked(self, candidates: Iterable[SetUp]) -> list[tuple[float, SetUp]]:
        """Return candidates with their costs, the least first.

        A joint whose torque is one number throughout has no motor: what gives it a share of another's torque is none.
        Only of the likely ones the joints' weights are found to their end; the costs of the rest are too large.
        """
        torque = self.test.samples.target
        told = np.ptp(torque, axis=0) > np.sqrt(ROUNDING) * np.abs(torque).max(axis=0)
        possible = (each for each in candidates if not each.torque[np.ix_(~told, told)].any())
        rough = sorted(((self.screen.cost(each, passes=_ROUGH), each) for each in possible), key=lambda pair: pair[0])
        likely = [(self.screen.cost(each), each) for _, each in rough[:_LIKELY]]
        return [*sorted(likely, key=lambda pair: pair[0]), *rough[_LIKELY:]]

    def best_described(self, setup: SetUp, held: Score) -> tuple[SetUp, Score] | None:
        """Return the set-up that takes the place of what holds, of those that turn or exchange what was recorded."""
        several = [
            found for kind in ('axis', 'torque') if (found := _several_reversed(setup, self.screen, kind)) is not None
        ]
        candidates = [*self.ranked(_neighbours(setup, self.screen)), *several]
        best = self.challenger(sorted(candidates, key=lambda pair: pair[0]), setup, held)
        # Apart from the others: so many would take the places of all before the judge.
        exchanged = self.challenger(self.ranked(exchanges(setup, self.test.described)), setup, held)
        if exchanged is not None and (best is None or best[1].contradicted_by(exchanged[1], 1, WORTH)):
            best = exchanged
        if best is not None and best[0].findings[-1].kind == 'gravity':
            # A direction bends to whatever else is wrong: a reversed joint and a mount may explain far more together.
            elsewhere = (
                each for turned in reversals(setup, self.test.described) for each in _mounts(turned, self.screen)
            )
            better = self.challenger(self.ranked(elsewhere), setup, held)
            if better is not None and best[1].contradicted_by(better[1], 1, WORTH):
                best = better
        return best

    def in_several_units(self, setup: SetUp, held: Score) -> tuple[SetUp, Score] | None:
        """Return the set-up in which each effort has a unit of its own, where it takes the place of what holds.

        Factors that hardly differ leave a doubt: a constant may be a little wrong.
        """
        found = self.challenger([(0.0, self.test.in_several_units(setup))], setup, held)
        if found is None:
            return None
        sizes = np.linalg.norm(found[0].torque, axis=0)
        if sizes.max() > LEAST_FACTOR * sizes.min():
            return found
        self.doubts.append((WORTH, found[0].findings[-1]))
        return None

    def challenger(
        self, candidates: Sequence[tuple[float, SetUp]], setup: SetUp, held: Score
    ) -> tuple[SetUp, Score] | None:
        """Return the best of some candidates, in the order of their costs, where it takes the place of what holds."""
        screen = self.screen
        least = screen.cost(setup)
        finalists: list[tuple[SetUp, Score]] = []
        for _, each in candidates[:_FINALISTS]:
            likely = [one for one in _with_ratio(setup, each, screen) or [each] if screen.cost(one) < least]
            scored = [(one, self.score(one)) for one in likely]
            other = len(scored) > 1 and scored[0][1].contradicted_by(scored[1][1], 1, _SLIGHT)
            finalists += scored[1:] if other else scored[:1]
        if not finalists:
            return None
        least_error = min((error for _, error in finalists), key=lambda error: error.value)
        # Of those that explain as much, the most probable one.
        as_good = [pair for pair in finalists if not pair[1].contradicted_by(least_error, 1, _SLIGHT)]
        best, least_error = min(as_good, key=lambda pair: screen.cost(pair[0]) + _UNUSUAL * count_reversed(pair[0]))
        known = setup.findings
        alike_in_kind = sum(each.findings[-1].kind == best.findings[-1].kind for _, each in candidates)
        # Friction that drives a joint explains a reversed torque as well, and in both: which needs stranger bodies?
        if screen.cost(best, free=True) > screen.cost(setup, free=True):
            return None
        # On some arms two faults look alike: a last joint's torque and position, a zero beside a parallel axis.
        named = {one.about for one in best.findings}
        alike = [
            '; '.join(one.text for one in each.findings if one not in known)
            for each, found in finalists
            if {one.about for one in each.findings} != named
            and count_reversed(each) <= count_reversed(best)  # fewer explain as much
            and not found.contradicted_by(least_error, 1, _SLIGHT)
        ]
        if alike:
            text = (
                f'{best.findings[-1].text}; or else, which this motion does not tell apart, {", or else ".join(alike)}'
            )
            best = replace(best, findings=(*best.findings[:-1], replace(best.findings[-1], text=text)))
        # Hypotheses count within their kind, since all kinds are as likely. Bodies that the description excludes may
        # explain states left out nearly as well: how strange they are counts too.
        fall, sure = held.gain(least_error)[0], held.loses_to(least_error, alike_in_kind)
        fall -= self.price(best)
        added = max(len(best.findings) - len(known), 1)
        bodies = screen.strangeness(setup) - screen.strangeness(best)
        if bodies > added * _UNUSUAL and held.loses_to(least_error):
            fall, sure = fall + bodies / screen.independent, True
        return (best, least_error) if sure and self.takes(fall / added, best.findings[-1]) else None

    def price(self, setup: SetUp) -> float:
        """Return the fall of L that a set-up has to be worth for what its last finding was free to choose."""
        return _free(setup) * _UNUSUAL / self.screen.independent

    def takes(self, fall: float, finding: Finding) -> bool:
        """Return whether a fall of L is worth a finding; one that is not, and could be, is kept as a doubt."""
        if DOUBTFUL < fall <= WORTH:
            self.doubts.append((fall, finding))
        return fall > WORTH

    def doubt(self, setup: SetUp) -> Finding | None:
        """Return what contradicts the set-up that holds, but not by enough: something else than what was found."""
        found = {each.about for each in setup.findings}
        others = [pair for pair in self.doubts if pair[1].about not in found]
        return max(others, key=lambda pair: pair[0])[1] if others else None


def _free(setup: SetUp) -> int:
    """Return how many numbers the last finding was free to choose: a factor of each joint's effort but one."""
    return len(setup.zero) - 1 if setup.findings[-1].kind == 'units' else 0


def _neighbours(setup: SetUp, test: Evidence) -> Iterator[SetUp]:
    """Yield every set-up that is one hypothesis away."""
    yield from position_units(setup, test.described)
    yield from _mounts(setup, test)
    yield from reversals(setup, test.described)
    yield from zeros(setup, test.described)
    yield from couplings(setup, test.described)


def _mounts(setup: SetUp, test: Evidence) -> Iterator[SetUp]:
    described = test.described.gravity
    found = any(each.kind == 'gravity' for each in setup.findings)
    if not setup.gravity.any():
        if not found:
            yield from (mounted(setup, axis, described) for axis in along_axes(np.array(STANDARD_GRAVITY)))
        return
    size, axes = float(np.linalg.norm(setup.gravity)), along_axes(setup.gravity)
    if not found:
        yield mounted(setup, np.zeros(3), described)
        directions = [axis for axis in axes if axis @ setup.gravity < 0.99 * size**2]
        yield from (mounted(setup, axis, described) for axis in directions)
        start = min(directions, key=lambda axis: test.cost(replace(setup, gravity=axis)))
        starts = [setup.gravity, start]
    else:
        starts = [setup.gravity]
    for gravity in starts:
        free = test.tilted(replace(setup, gravity=gravity)).gravity
        if max(free @ axis for axis in (setup.gravity, *axes)) < np.cos(LEAST_TILT) * size**2:
            yield mounted(setup, free, described)


def _several_reversed(setup: SetUp, screen: Evidence, kind: str) -> tuple[float, SetUp] | None:
    """Return the most probable set of joints that are reversed alike, with its cost, or None where no two are.

    A description may turn several axes the other way than the driver, and each of them alone makes it worse. From all
    joints or the best pair on, joints join or leave as long as that is more probable.
    """
    free, tried = joints_left(setup, screen.described), dict[frozenset[int], tuple[float, SetUp]]()

    def unusual(joints: frozenset[int]) -> float:
        return _UNUSUAL * (1 if len(joints) == len(free) else len(joints))  # all of them are one convention

    def cost(joints: frozenset[int]) -> float:
        if joints not in tried:
            found = reversed_alike(setup, screen.described, kind, sorted(joints))
            tried[joints] = screen.cost(found, passes=_ROUGH) + unusual(joints), found
        return tried[joints][0]

    best, likely = frozenset[int](), [frozenset(free), *(frozenset(pair) for pair in combinations(free, 2))]
    while likely and cost(better := min(likely, key=cost)) < cost(best):
        best, likely = better, [better ^ {j} for j in free]
    found = tried[best][1]
    return (screen.cost(found) + unusual(best), found) if len(best) > 1 else None


def _with_ratio(setup: SetUp, found: SetUp, screen: Evidence) -> list[SetUp]:
    """Return a coupling with a ratio of 1 or -1 and with the most probable one; nothing for what is none."""
    from scipy.optimize import minimize_scalar  # not at the top: see robotid_ros.signals.filtering

    coupling = coupling_of(setup, found, screen.described)
    if coupling is None:
        return []
    k, number, ratio = coupling

    def at(size: float) -> SetUp:
        return coupled(setup, screen.described, k, np.sign(ratio) * size)[number]

    best = minimize_scalar(lambda size: screen.cost(at(size)), bounds=RATIO_BOUNDS, method='bounded').x
    return [at(1.0), at(float(f'{best:.3g}'))]


def _without_sign(samples: Samples, model: RobotModel) -> Finding | None:
    """Return the finding that efforts have no sign: none is negative, although every joint turns round.

    A parked joint whose effort has both signs shows that the driver tells them.
    """
    turns = (np.diff(np.sign(samples.dq), axis=0) != 0.0).sum(axis=0)
    moving = moved(samples.q) & (turns > 0)
    size = np.maximum(np.sqrt(np.mean(samples.measured**2, axis=0)), 1e-300)
    reached = np.stack([(sign * samples.measured).min(axis=0) / size for sign in (1.0, -1.0)])
    least = np.where(reached > -_OVERSHOOT, reached, np.inf).min(axis=0)
    # None passes zero, and some comes near it: a load that keeps its sign stays away, as does friction that jumps.
    if turns[moving].sum() < _TURNS or not (np.isfinite(least).all() and least[moving].min() < _TOUCHES):
        return None
    text = (
        'the efforts are magnitudes without sign: none of any joint changes its sign, through '
        f'{int(turns[moving].sum())} reversals'
    )
    remedy = 'record a signed effort or current; from magnitudes nothing can be identified'
    return Finding(kind='magnitude', joints=model.joint_names, text=text, remedy=remedy, undone=False)


def _moments(datasets: Sequence[Dataset], samples: Samples) -> list[tuple[int, float, str]]:
    """Return where a change may have happened: sample, seconds from the start of the recording, its name."""
    found = []
    for number, dataset in enumerate(datasets):
        rows = np.flatnonzero(samples.recordings == number)
        name = dataset.sources[0] if dataset.sources else f'recording {number + 1}'
        shares = np.arange(0 if number else 1, _CUTS) / _CUTS
        times = dataset.time[(shares * len(dataset)).astype(int)]
        moments = rows[(shares * len(rows)).astype(int)]
        found += [(k, seconds, name) for k, seconds in zip(moments.tolist(), times.tolist(), strict=True)]
    return found


def _change(
    setup: SetUp,
    search: _Search,
    held: Score,
    moments: Sequence[tuple[int, float, str]],
) -> tuple[SetUp, Score] | None:
    """Return the set-up with the finding that the last link carries something else from some moment on."""
    if not moments:
        return None
    test = search.test
    cost, costs = test.of_change(setup, [moment for moment, _, _ in moments])
    moment, seconds, name = moments[int(np.argmin(costs))]
    score = search.score(setup, (np.arange(len(test.samples)) >= moment).astype(float))
    sure = min(costs) <= cost and held.loses_to(score, len(costs))
    text = (
        f'the load of the arm changed half way: from about {seconds:.3g} s of {name} on the last link carries '
        'something else, a payload for example'
    )
    remedy = 'identify the recordings before and after the change separately, or find the payload with robotid payload'
    found = setup.found('change', test.described.joint_names[-1:], text, remedy, undone=False)
    return (found, score) if sure and search.takes(held.gain(score)[0], found.findings[-1]) else None
