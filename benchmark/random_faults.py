# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Faults drawn at random: kind, moment, joint, size over nine orders of magnitude, and the controller they meet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from benchmark.fault_loop import STEP, Loop, shown_rows
from robotid_ros.arrays import Array
from robotid_ros.excitation.motion import Motion
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.supervisor import State
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.simulation.controller import CommandPoint

_TAKEOVER = 3
"""Samples about a takeover that count as the controller's own step."""
JOINT_BOUNDS = ('torque', 'velocity', 'acceleration', 'jerk')
"""Bounds that are not of a place."""
_STILL = 0.02
"""Speed below which an arm rests [rad/s or m/s]."""


@dataclass
class Fault:
    """One fault: what it is called, when it begins [s], the fields of the loop that it sets; one joint of so many.

    ``until`` is when it does not move the arm itself any more [s], ``later`` the second one of two.
    """

    name: str
    at: float
    size: float
    joint: int
    joints: int
    settings: dict[str, Any] = field(default_factory=dict)
    until: float = -np.inf
    later: 'Fault | None' = None

    def then(self, other: 'Fault') -> 'Fault':
        """Return the fault that is this one and a later one."""
        both = self, other
        told, blocked, lose = ([each.settings[key] for each in both if key in each.settings] for key in
                               ('told', 'blocked', 'lose'))  # fmt: skip
        changes = [(each.at, each.settings['fault']) for each in both if 'fault' in each.settings]
        shows = [each.settings['shown'] for each in both if 'shown' in each.settings]

        def change(loop: Loop) -> None:
            for at, own in changes:
                if loop.now >= at:
                    own(loop)

        settings: dict[str, Any] = {
            'fault': change,
            'request': min(each.settings.get('request', np.inf) for each in both),
            'told': lambda loop, desired: reduce(lambda value, own: own(loop, value), told, desired),
            'blocked': lambda position: reduce(lambda value, own: own(value), blocked, position),
            'lose': lambda order, now: any(own(order, now) for own in lose),
            **{key: any(each.settings.get(key, False) for each in both) for key in ('feedback', 'shared')},
        }
        if shows:
            settings['shown'] = lambda loop, *state: reduce(
                lambda rows, own: [new for row in rows for new in shown_rows(own(loop, *row))],
                shows,
                [(*state, loop.clock)],
            )
        return Fault(
            name=self.name, at=self.at, size=self.size, joint=self.joint, joints=self.joints, settings=settings,
            until=max(self.until, other.until), later=other,
        )  # fmt: skip


@dataclass
class Outcome:
    """What became of one fault.

    ``reaction`` and ``rest`` are times from the fault to the stop and to the last motion [s], ``way`` the largest way
    of a joint after it [rad or m], ``acceleration`` the largest of the reference relative to the limits, without the
    steps of the controller itself, of which ``step`` is the largest [rad or m], ``excess`` the largest normalised
    excess over position limits and clearances, ``fast`` that over velocity limits, ``wrong`` what must not happen.
    """

    fault: Fault
    state: State
    reaction: float
    rest: float
    way: float
    acceleration: float
    step: float
    excess: float
    fast: float
    took: float
    text: str
    wrong: str


def draw(rng: np.random.Generator, plan: RunPlan, *, pair: bool = False) -> Fault:
    """Return a random fault of a run, or a pair: the second comes up to three seconds later, in the stop too."""
    name = str(rng.choice(sorted(_KINDS)))
    at = float(rng.uniform(-0.4, plan.reference.duration - 0.2))
    size = float(10.0 ** rng.uniform(-3.0, 6.0)) * float(rng.choice([-1.0, 1.0]))
    n = len(plan.joint_names)
    fault = Fault(name=name, at=at, size=size, joint=int(rng.integers(n)), joints=n)
    fault.settings = _KINDS[name](rng, fault)
    if pair:
        second = draw(rng, plan)
        later = at + float(10.0 ** rng.uniform(-2.0, 0.5))
        second = Fault(name=second.name, at=later, size=size, joint=second.joint, joints=n)
        second.size = float(10.0 ** rng.uniform(-3.0, 6.0)) * float(rng.choice([-1.0, 1.0]))
        second.settings = _KINDS[second.name](rng, second)
        return fault.then(second)
    return fault


# What joint states show: functions of the loop and of position, velocity, effort.


def _shown(fault: Fault, change: Callable[[Loop, Array, Array, Any, Any], Any]) -> dict[str, Any]:
    def shown(loop: Loop, position: Array, velocity: Array, effort: Any, *stamps: Any) -> Any:
        (stamp,) = stamps or (loop.clock,)
        vanished = velocity is None or stamp is None or len(position) < loop.model.n
        if loop.now < fault.at or vanished:  # by a fault before, which leaves nothing to change
            return position, velocity, effort, stamp
        return change(loop, position.copy(), velocity.copy(), effort, stamp)

    return {'shown': shown}


def _off(which: int, *, growing: bool = False) -> Callable[[np.random.Generator, Fault], dict[str, Any]]:
    """Return the fault that a position (0) or velocity (1) is shown too large, by ever more where it grows."""

    def drawn(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
        def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
            (q, v)[which][fault.joint] += fault.size * (loop.now - fault.at if growing else 1.0)
            return q, v, e, t

        return _shown(fault, change)

    return drawn


def _spikes(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    share = rng.uniform(0.01, 1.0)

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        if rng.uniform() < share:
            q[fault.joint] += fault.size * rng.standard_normal()
        return q, v, e, t

    return _shown(fault, change)


def _not_finite(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    share, value, which = rng.uniform(0.01, 1.0), rng.choice([np.nan, np.inf, 1e300]), rng.integers(2)

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        if rng.uniform() < share:
            (q, v)[which][fault.joint] = value
        return q, v, e, t

    return _shown(fault, change)


def _stuck(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    everything, kept = rng.integers(2), {}

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        kept.setdefault('q', q.copy())
        kept.setdefault('v', v.copy() * rng.integers(2))
        if everything:
            return kept['q'], kept['v'], e, t
        q[fault.joint], v[fault.joint] = kept['q'][fault.joint], kept['v'][fault.joint]
        return q, v, e, t

    return _shown(fault, change)


def _silent(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    lasts = rng.choice([0.1, 0.3, 0.7, np.inf])
    return _shown(fault, lambda loop, q, v, e, t: None if loop.now < fault.at + lasts else (q, v, e, t))


def _slow(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    every = int(10.0 ** rng.uniform(0.3, 1.8))
    count = {'n': 0}

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        count['n'] += 1
        return (q, v, e, t) if count['n'] % every == 0 else None

    return _shown(fault, change)


def _stamps(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    return _shown(fault, lambda loop, q, v, e, t: (q, v, e, t + fault.size))


def _no_stamps(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    return _shown(fault, lambda loop, q, v, e, t: (q, v, e, None))


def _clock(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    def set_clock(loop: Loop) -> None:
        loop.clock_error = fault.size

    return {'fault': set_clock, 'shared': bool(rng.integers(2))}


def _sim_time(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    def change(loop: Loop) -> None:
        loop.simulated, loop.clock_error = True, -loop.now - 1000.0

    return {'fault': change}


def _scaling(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    scaling = float(rng.choice([0.0, rng.uniform(0.0, 1.0), 1.0 - 10.0 ** rng.uniform(-3.0, 0.0)]))

    def change(loop: Loop) -> None:
        loop.controller.speed_scaling = scaling

    fault.size = scaling
    return {'fault': change, 'feedback': bool(rng.integers(2))}


def _other(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    takes, moved = float(rng.uniform(0.3, 2.5)), rng.normal(0.0, 0.3)
    done: list[bool] = []

    def change(loop: Loop) -> None:
        if done:
            return
        done.append(True)
        way = moved * rng.standard_normal(len(loop.position))
        goal = loop.position + way
        zero = np.zeros(len(goal)).tolist()
        needs = float(np.sqrt(6.0 * np.abs(way) / loop.plan.windows.check.limits.acceleration).max())
        if rng.integers(2) and loop.controller.active:  # else it appears, and does nothing
            loop.controller.command(
                loop.model.joint_names, None, [CommandPoint(max(takes, needs), goal.tolist(), zero, zero)], loop.now,
                (loop.position, loop.velocity),
            )  # fmt: skip
            loop.other_leads = True
        loop.supervisor.report('/other can command the arm too now', foreign=True)

    return {'fault': change}


def _inactive(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    lasts = float(10.0 ** rng.uniform(-2.0, 1.0))

    def change(loop: Loop) -> None:
        loop.controller.set_active(loop.now > fault.at + lasts)

    return {'fault': change}


def _lost(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    lasts = float(rng.uniform(0.05, 1.0))
    asked = bool(rng.integers(2))
    return {
        'lose': lambda order, now: fault.at <= now < fault.at + lasts,
        'request': fault.at + 0.5 * lasts if asked else np.inf,
    }


def _late(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    latency = float(rng.uniform(0.02, 0.1))

    def change(loop: Loop) -> None:
        loop.latency = latency

    fault.size = latency
    return {'fault': change, 'request': fault.at + float(rng.uniform(0.0, 1.0))}


def _blocked(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    held: dict[str, float] = {}
    settings: dict[str, Any] = {}

    def change(loop: Loop) -> None:
        held.setdefault('place', float(loop.position[fault.joint]))
        held.setdefault('side', float(np.sign(loop.velocity[fault.joint])) or 1.0)

    def blocked(position: Array) -> Array:
        if not held:
            return position
        position = position.copy()
        position[fault.joint] = held['side'] * min(held['side'] * position[fault.joint], held['side'] * held['place'])
        return position

    settings.update(fault=change, blocked=blocked)
    return settings


def _request(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    return {'request': fault.at}


def _swapped(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    order = rng.permutation(fault.joints)

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        names = order[order < len(q)]
        return q[names], v[names], e, t

    return _shown(fault, change)


def _out_of_order(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Messages of up to some time ago, with their own stamps, or with the present one: repeated, late or shuffled."""
    back, restamped, share = int(10.0 ** rng.uniform(0.0, 2.0)), bool(rng.integers(2)), rng.uniform(0.05, 1.0)
    kept: list[tuple[Array, Array, Any, float]] = []

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        kept.append((q, v, e, t))
        if rng.uniform() > share:
            return q, v, e, t
        old = kept[max(0, len(kept) - 1 - int(rng.integers(back + 1)))]
        return (*old[:3], t) if restamped else old

    return _shown(fault, change)


def _no_velocity(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    return _shown(fault, lambda loop, q, v, e, t: (q, None, e, t))


def _clock_again(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """The clock jumps once more while the arm is stopped for the first jump, or for a request."""
    again, asked = float(10.0 ** rng.uniform(-2.0, 5.0) * rng.choice([-1.0, 1.0])), bool(rng.integers(2))

    def change(loop: Loop) -> None:
        first = 0.0 if asked else fault.size
        loop.clock_error = first + (again if loop.now > fault.at + 0.15 else 0.0)

    return {'fault': change, 'request': fault.at if asked else np.inf, 'shared': bool(rng.integers(2))}


def _scaling_and_back(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    scaling, lasts = float(rng.choice([0.0, rng.uniform(0.0, 1.0)])), float(10.0 ** rng.uniform(-1.5, 0.5))

    def change(loop: Loop) -> None:
        loop.controller.speed_scaling = scaling if loop.now < fault.at + lasts else 1.0

    fault.size = scaling
    return {'fault': change, 'feedback': bool(rng.integers(2))}


def _noise(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    size = abs(fault.size)

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        return q + 1e-3 * size * rng.standard_normal(len(q)), v + size * 1e-3 * rng.standard_normal(len(v)), e, t

    return _shown(fault, change)


def _stamps_stand(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Stamps that stand still, or are of a coarse clock."""
    step = float(rng.choice([np.inf, 10.0 ** rng.uniform(-2.0, 1.0)]))
    since = 1000.0 + fault.at

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        return q, v, e, since if np.isinf(step) else since + np.floor((t - since) / step) * step

    return _shown(fault, change)


def _stamps_jitter(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    size = float(10.0 ** rng.uniform(-4.0, 1.0))
    return _shown(fault, lambda loop, q, v, e, t: (q, v, e, t + size * rng.standard_normal()))


def _clock_rate(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """A clock that stands still, goes slower, faster or backwards for a while, and is set right then, or is not."""
    rate, lasts = float(rng.choice([0.0, rng.uniform(-1.0, 3.0)])), float(10.0 ** rng.uniform(-1.5, 1.0))
    right = bool(rng.integers(2))

    def change(loop: Loop) -> None:
        ago = loop.now - fault.at
        loop.clock_error = (rate - 1.0) * min(ago, lasts) if ago < lasts or not right else 0.0

    fault.size = rate
    return {'fault': change, 'shared': bool(rng.integers(2))}


def _coarse(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    step = float(10.0 ** rng.uniform(-4.0, 0.5))
    which = rng.integers(3)  # positions, velocities, both

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        q, v = (w if which == 1 - k else np.round(w / step) * step for k, w in enumerate((q, v)))
        return q, v, e, t

    fault.size = step
    return _shown(fault, change)


def _factor(which: int) -> Callable[[np.random.Generator, Fault], dict[str, Any]]:
    """Return the fault that positions (0) or velocities (1) are told in another unit, or with another sign."""

    def drawn(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
        factor = float(rng.choice([-1.0, 0.0, 180.0 / np.pi, np.pi / 180.0, 10.0 ** rng.uniform(-1.0, 1.0)]))
        joints = rng.uniform(size=fault.joints) < rng.uniform(0.1, 1.0)

        def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
            (q, v)[which][joints[: len(q)]] *= factor
            return q, v, e, t

        fault.size = factor
        return _shown(fault, change)

    return drawn


def _twice(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """A joint shows the readings of another one, as where a name comes twice."""
    other = int(rng.integers(fault.joints))

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        q[fault.joint], v[fault.joint] = q[other % len(q)], v[other % len(q)]
        return q, v, e, t

    return _shown(fault, change)


def _two_publishers(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Another arm's joint states come in between: one at rest, or one that moves as this one elsewhere."""
    away, share = 10.0 ** rng.uniform(-3.0, 0.5) * rng.standard_normal(fault.joints), rng.uniform(0.05, 1.0)
    rests, place = bool(rng.integers(2)), {}

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        place.setdefault('q', q + away[: len(q)])
        if rng.uniform() > share:
            return q, v, e, t
        other = (place['q'], 0.0 * v, e, t) if rests else (q + away[: len(q)], v, e, t)
        return [(q, v, e, t), other]

    return _shown(fault, change)


def _bursts(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Joint states that come several at once, in their order or not, and none in between."""
    every, mixed = int(10.0 ** rng.uniform(0.3, 2.0)), bool(rng.integers(2))
    kept: list[Any] = []

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        kept.append((q, v, e, t))
        if len(kept) < every:
            return None
        told = [kept[k] for k in (rng.permutation(len(kept)) if mixed else range(len(kept)))]
        kept.clear()
        return told

    return _shown(fault, change)


def _ever_later(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Joint states that are under way for ever longer, with their own stamps or with those of their arrival."""
    growth, restamped = float(10.0 ** rng.uniform(-2.0, 0.0)), bool(rng.integers(2))
    kept: list[Any] = []

    def change(loop: Loop, q: Array, v: Array, e: Any, t: Any) -> Any:
        kept.append((q, v, e, t))
        old = kept[int(len(kept) / (1.0 + growth))]
        return (*old[:3], t) if restamped else old

    fault.size = growth
    return _shown(fault, change)


def _starved(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """The node has no processor now and then, and finds all joint states that came meanwhile."""
    lasts, often = float(10.0 ** rng.uniform(-1.5, 0.5)), float(10.0 ** rng.uniform(-0.5, 1.0))
    due = {'next': fault.at}

    def change(loop: Loop) -> None:
        if loop.now >= due['next']:
            loop.starved, due['next'] = loop.now + lasts, loop.now + lasts + often

    fault.size = lasts
    return {'fault': change, 'request': fault.at if rng.integers(2) else np.inf}


def _overtaking(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Messages to the controller are under way for a random time each."""
    most = float(rng.uniform(0.02, 0.1))

    def change(loop: Loop) -> None:
        loop.latency = rng.uniform(0.0, most)

    fault.size = most
    return {'fault': change, 'request': fault.at + float(rng.uniform(0.0, 1.0))}


def _controller_lies(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    def told(loop: Loop, desired: Array) -> Array:
        desired = desired.copy()
        desired[fault.joint] += fault.size if loop.now >= fault.at else 0.0
        return desired

    return {'told': told, 'feedback': True}


def _driven(
    rng: np.random.Generator, fault: Fault, follow: Callable[[Loop, float, float, float], float]
) -> dict[str, Any]:
    """Return the fault of a drive: where its joint gets to, by the loop, time since, where it was and is led."""
    here: dict[str, Any] = {}

    def begin(loop: Loop) -> None:
        here.update(loop=loop, was=here.get('was', float(loop.position[fault.joint])))

    def blocked(position: Array) -> Array:
        if not here:
            return position
        position, loop = position.copy(), here['loop']
        here['was'] = follow(loop, loop.now - fault.at, here['was'], float(position[fault.joint]))
        position[fault.joint] = here['was']
        return position

    return {'fault': begin, 'blocked': blocked, 'feedback': bool(rng.integers(2))}


def _weak(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """A drive that gets no faster than a part of what it may; none at all: it does not follow its controller."""
    part = fault.size = float(rng.choice([0.0, rng.uniform(0.0, 0.8)]))

    def follow(loop: Loop, ago: float, was: float, led: float) -> float:
        most = part * float(loop.model.limits.velocity[fault.joint]) * STEP
        return was + float(np.clip(led - was, -most, most))

    return _driven(rng, fault, follow)


def _lags(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """A drive that follows ever more softly, by up to 0.1 s."""
    growth = fault.size = float(10.0 ** rng.uniform(-2.0, 0.0))

    def follow(loop: Loop, ago: float, was: float, led: float) -> float:
        return was + (led - was) * STEP / (STEP + min(growth * ago, 0.1))

    return _driven(rng, fault, follow)


def _pushed(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    """Somebody pushes a joint off its reference, and lets it go, with half of what its drive may at most."""
    size = fault.size = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2.0, 0.0))
    lasts = float(np.pi * np.sqrt(2.0 * abs(size) / 4.0) * 10.0 ** rng.uniform(0.0, 0.5))
    fault.until = fault.at + lasts

    def follow(loop: Loop, ago: float, was: float, led: float) -> float:
        return led + size * float(np.sin(np.pi * min(max(ago / lasts, 0.0), 1.0)) ** 2)

    return _driven(rng, fault, follow)


def _dead(rng: np.random.Generator, fault: Fault) -> dict[str, Any]:
    def change(loop: Loop) -> None:
        loop.killed = min(loop.killed, loop.now)

    return {'fault': change}


_KINDS: dict[str, Callable[[np.random.Generator, Fault], dict[str, Any]]] = {
    'a position jumps': _off(0),
    'positions spike': _spikes,
    'not finite': _not_finite,
    'a velocity lies': _off(1),
    'a position drifts': _off(0, growing=True),
    'joint states are stuck': _stuck,
    'joint states are silent': _silent,
    'joint states are slow': _slow,
    'stamps are off': _stamps,
    'no stamps': _no_stamps,
    'the clock jumps': _clock,
    'use_sim_time is set': _sim_time,
    'speed scaling': _scaling,
    'another commander': _other,
    'the controller is inactive': _inactive,
    'messages are lost': _lost,
    'messages are late': _late,
    'a joint is blocked': _blocked,
    'a stop is asked for': _request,
    'noise': _noise,
    'joints are swapped': _swapped,
    'messages are out of order': _out_of_order,
    'velocities vanish': _no_velocity,
    'the clock jumps again': _clock_again,
    'speed scaling, and back': _scaling_and_back,
    'the node is killed': _dead,
    'stamps stand still': _stamps_stand,
    'stamps jitter': _stamps_jitter,
    'the clock goes wrong': _clock_rate,
    'readings are coarse': _coarse,
    'positions in another unit': _factor(0),
    'velocities in another unit': _factor(1),
    'a joint shows another': _twice,
    'two publishers': _two_publishers,
    'joint states in bursts': _bursts,
    'joint states ever later': _ever_later,
    'the node is starved': _starved,
    'messages overtake': _overtaking,
    'the controller lies': _controller_lies,
    'a drive is weak': _weak,
    'a drive gets soft': _lags,
    'a joint is pushed': _pushed,
}


def run_fault(fault: Fault, plan: RunPlan, **controller: Any) -> Outcome:
    """Run a plan with a fault, on a controller (``blend``, ``from_command``), and judge it."""
    loop = Loop(**{'plan': plan, 'at': fault.at, **controller, **fault.settings})
    loop.run()
    supervisor, check = loop.supervisor, plan.windows.check
    track = np.array(loop.track)
    since = fault.at if np.isfinite(min(loop.stopped_at, loop.killed)) else track[-1, 0]
    after = track[:, 0] >= min(since, track[-20, 0])
    limits = check.limits
    led = np.array(loop.led)
    acceleration = np.diff(led, n=2, axis=0) / STEP**2
    own = np.array(loop.others[2:])  # what another commander leads it to is not the node's doing
    for moment in loop.arrivals:
        k = int(np.searchsorted(track[:, 0], moment - 1e-9))
        own[max(k - _TAKEOVER, 0) : k + _TAKEOVER] = True
    taken = min((moment for moment in loop.arrivals if moment >= loop.stopped_at), default=loop.stopped_at)
    begun = np.arange(len(acceleration)) + 2 >= np.searchsorted(track[:, 0], min(taken, track[-1, 0]))
    fastest, hardest = _taken_over(loop, fault)
    relative = np.abs(acceleration) / np.maximum(limits.acceleration, hardest[2:])
    free = relative[begun & ~own]
    speeds = np.diff(led, axis=0)[1:][begun & ~own] / STEP
    steps = np.abs(np.diff(led, n=2, axis=0))[own & begun]
    # While somebody pushes a joint, only where it is led to is the node's doing.
    places = np.where(track[:, :1] < fault.until, led, track[:, 1:])
    # Nor is that somebody pushes it out of its limits: a stop may end where the arm is.
    pushed = [
        k for k in np.searchsorted(track[:, 0], loop.arrivals) if fault.at <= track[max(k - 1, 0), 0] < fault.until
    ]
    given = max((_excess(plan, track[k - 1 : k, 1:]) for k in pushed if k), default=0.0)
    excess = _excess(plan, places[after]) - max(given, 0.0)
    last = loop.last_motion(_STILL)
    outcome = Outcome(
        fault=fault,
        state=supervisor.state,
        reaction=loop.stopped_at - fault.at,
        rest=last - fault.at,
        way=loop.way(fault.at) if np.isfinite(loop.stopped_at) else np.nan,
        acceleration=float(free.max(initial=0.0)),
        step=float(steps.max(initial=0.0)),
        excess=excess,
        fast=too_fast(limits, led[2:][begun & ~own], speeds, fastest[2:][begun & ~own]),
        took=max(loop.took, default=0.0),
        text=supervisor.reason,
        wrong='',
    )
    outcome.wrong = _wrong(loop, outcome, last)
    return outcome


def _taken_over(loop: Loop, fault: Fault) -> tuple[Array, Array]:
    """Return the speeds and accelerations that nobody could have kept from the node's stops, shape (K, n) each.

    A quintic begins at the speed, and where the controller leads on at the acceleration, to which another commander, or
    somebody who pushes, has brought the arm before it was taken over: the best stop has them too.
    """
    track, led = np.array(loop.track), np.array(loop.led)
    fastest, hardest = np.zeros((2, *led.shape))
    measured = not (loop.blend or loop.from_command)
    for moment in loop.arrivals:
        k = int(np.searchsorted(track[:, 0], moment - 1e-9))
        if k < 3 or not (loop.others[k - 1] or (measured and fault.at <= moment < fault.until)):
            continue
        places = (track[:, 1:] if measured else led)[k - 3 : k]
        fastest[k:] = np.maximum(fastest[k:], np.abs(places[2] - places[1]) / STEP)
        if not measured:
            hardest[k:] = np.maximum(hardest[k:], np.abs(np.diff(places, n=2, axis=0)[0]) / STEP**2)
    return fastest, hardest


def too_fast(limits: JointLimits, positions: Array, velocities: Array, given: float | Array = 0.0) -> float:
    """Return by which part of its limit a velocity exceeds what is allowed at its position, at most; shape (K, n).

    What was ``given``, shape (K, n), counts as allowed [rad/s or m/s].
    """
    allowed = np.maximum(limits.allowed('velocity', positions, velocities), given)
    return float(((np.abs(velocities) - allowed) / limits.velocity).max(initial=-1.0))


def _excess(plan: RunPlan, positions: Array) -> float:
    """Return the largest normalised excess of positions over position limits and clearances."""
    check = plan.checks[-1]  # a stop may take half of the clearance
    still = np.zeros_like(positions[::4])
    rows = [np.array(positions[::4]), still, still]
    motion = Motion(check.model, (rows[0], still, still, still))
    worst = -np.inf
    for constraint in check.constraints:
        kinds = [bound.quantity.split()[0] not in JOINT_BOUNDS for bound in constraint.bounds]
        if any(kinds):
            worst = max(worst, float(constraint.evaluate(motion)[0][:, kinds].max()))
    return worst


def _longest(plan: RunPlan) -> float:
    """Return how long a stop may take from the largest speeds of a run [s]: the bound of docs/stopping.md."""
    reference = plan.reference
    fastest = np.abs(reference.evaluate(np.linspace(0.0, reference.duration, 2000))[1]).max(axis=0)
    return float(max(1.0, 3.0 / np.sqrt(2.0) * (fastest / (0.95 * plan.windows.check.limits.acceleration)).max()))


def _wrong(loop: Loop, outcome: Outcome, last: float) -> str:
    """Return what must not have happened."""
    supervisor, plan = loop.supervisor, loop.plan
    if np.isfinite(loop.killed):
        moved = 0.0 if loop.other_leads else last - loop.killed  # whom nobody stops any more
        return '' if moved < 2.0 + plan.windows.longest_stop else f'moves for {moved:.2f} s'
    if supervisor.state is State.RUNNING:
        return 'neither ended nor stopped'
    if supervisor.state is State.RESTED and last > loop.rested_at:
        return 'rest was claimed while the arm moved'
    if not np.isfinite(loop.stopped_at):
        end = plan.reference.evaluate([plan.reference.duration])[0][0]
        away = float(np.abs(loop.position - end).max())
        return '' if away < 0.25 else f'success was claimed {away:.2f} off the end'
    braked = loop.controller_time(max(loop.last_stop, outcome.fault.until), last)
    if braked > 0.3 + _longest(plan):
        return f'rest {braked:.2f} s after the last stop'
    if outcome.acceleration > 1.1:
        return f'acceleration {outcome.acceleration:.2f} times its limit'
    if outcome.fast > 0.1:
        return f'a velocity is {100.0 * outcome.fast:.0f} % of its limit over what is allowed there'
    if outcome.excess > 0.0 and not supervisor.breaks:
        return f'a limit of place was broken by {outcome.excess:.3f}, and nothing was said'
    return ''
