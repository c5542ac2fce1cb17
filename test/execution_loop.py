# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The loop of the fault bench, on a planar arm of three joints."""

import sys
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from excitation_helpers import limits, planar_arm

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmark.fault_loop import BOOT, EPOCH, STEP
from benchmark.fault_loop import Loop as AnyLoop
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.run import RunConfig, plan_run
from robotid_ros.execution.supervisor import State

MODEL = planar_arm(3, limits=limits(3, 2.6, 2.5, 8.0))
CHECK = reference_check(MODEL, ExcitationConfig())
TRAJECTORY = FourierTrajectory(
    a=np.array([[0.9, -0.45], [0.5, -0.25], [1.0, -0.5]]),
    b=np.array([[0.6, 0.0], [-0.7, 0.2], [0.2, 0.1]]),
    offset=np.array([0.1, -0.2, 0.3]),
    base_frequency=0.25,
)


def new_plan(trajectory=TRAJECTORY, **settings):
    config = RunConfig(**{'periods': 2, 'settling_time': 0.3, 'ramp_velocity': 1.5, **settings})
    return plan_run(np.zeros(3), trajectory, CHECK, config)


PLAN = new_plan()
BLEND_PLAN = new_plan(trajectory_replacement='blend')


HOOKS = ('shown', 'lose', 'told', 'blocked')
KEPT = 0.5  # s between the moments at which a run without a fault is kept


@dataclass
class Loop(AnyLoop):
    """The plan is that of the planar arm, for the controller that there is.

    Until something goes wrong, all runs of one controller are the same: they begin with a copy of the first that came
    there. ``since`` is when the hooks begin to change anything, where there are any: nobody else knows.
    """

    plan: object = None
    since: float = -np.inf

    def __post_init__(self):
        self.plan = self.plan or (BLEND_PLAN if self.blend else PLAN)
        super().__post_init__()

    def begin(self):
        healthy = {
            name: getattr(self, name) for name in ('blend', 'cycle', 'from_command', 'feedback', 'noise', 'simulated')
        }
        usual = all(getattr(self, field.name) == field.default for field in fields(self) if field.name in HOOKS)
        same = self.parts is None and not self.lose_first and self.plan is (BLEND_PLAN if self.blend else PLAN)
        same = same and (self.latency, self.allowed_latency) == (AnyLoop.latency, AnyLoop.allowed_latency)
        same = same and self.config == WatchdogConfig()
        until = min(self.at, self.request, np.inf if usual else self.since)
        steps = int((until + 0.5 - STEP) / KEPT) if np.isfinite(until) else 0
        if same and steps > 0:
            self.take_over(on_its_way(steps, **healthy))
        else:
            super().begin()

    def take_over(self, other):
        """Go on where another run is, which stays as it is."""
        own = {field.name for field in fields(self)}
        state = {name: value for name, value in vars(other).items() if name not in own}
        shared = (
            (other, self),
            *((part, part) for part in (self.plan, self.plan.windows, self.plan.reference, self.model)),
        )
        histories = [(value, list(value)) for value in (other.track, other.led, other.arrivals, other.orders)]
        vars(self).update(deepcopy(state, {id(part): copy for part, copy in (*shared, *histories)}))


@cache
def on_its_way(steps, **healthy):
    """Return a run without a fault that is not at its end yet."""
    run = Loop(**healthy)
    if steps > 1:
        run.take_over(on_its_way(steps - 1, **healthy))
    else:
        run.begin()
    run.go_on(steps * KEPT - 0.5)
    return run


def assert_within_limits(loop, since):
    velocity, acceleration = loop.peaks(since)
    limit = loop.model.limits
    assert (velocity <= limit.velocity * 1.01).all(), (velocity, loop.reason)
    assert (acceleration <= limit.acceleration * 1.1).all(), (acceleration, loop.reason)
    assert loop.final_speed() < 1e-3, (loop.final_speed(), loop.reason)


__all__ = ['BOOT', 'CHECK', 'EPOCH', 'MODEL', 'PLAN', 'STEP', 'Loop', 'State', 'assert_within_limits']
