# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The fault bench: ``python -m benchmark.faults``.

Faults are drawn at random for the law of stopping on a simulated controller (``--random``), and injected into the real
excitation node beside the simulated arm, and beside a real controller manager with mock hardware where ros2_control is
installed in the environment (``--nodes``). Each row says how long the arm took to rest, how far it went after the
fault, what its reference did, how near it came to the ground and itself, and what the status said.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml

from benchmark.fault_loop import STEP, Loop
from benchmark.random_faults import JOINT_BOUNDS, Outcome, draw, run_fault
from benchmark.recordings import pairs
from robotid_ros.arrays import Array
from robotid_ros.demo.processes import die_with_parent
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.motion import Motion
from robotid_ros.excitation.preparation import arm_check, reference_check
from robotid_ros.excitation.reference import ReferenceCheck
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.run import RunConfig, RunPlan, plan_run
from robotid_ros.execution.stopping_room import stoppable_design
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_config import RobotConfig, configured_arm

_PERIOD = 3.0
_SLOPE, _OFFSET = 5.0, 0.3
"""Of velocity limits that fall towards the joint limits, |dq| <= sqrt(slope * distance) - offset [rad/s^2, rad/s]."""


def robot_file(*, falling: bool) -> Path:
    """Return the robot configuration of the packaged UR10e, or a copy whose velocity limits fall as an FR3's do."""
    own = arm_file('ur10e').with_suffix('.yaml')
    if not falling:
        return own
    content = yaml.safe_load(own.read_text(encoding='utf-8'))
    limits = content['/**']['ros__parameters']['limits']
    limits |= {'velocity_slope': _SLOPE, 'velocity_offset': _OFFSET}
    limits |= {'velocity_lower_end': dict(limits['lower']), 'velocity_upper_end': dict(limits['upper'])}
    copy = Path(tempfile.mkdtemp(prefix='faults-')) / 'falling.yaml'
    copy.write_text(yaml.safe_dump(content), encoding='utf-8')
    return copy


def arm(robot: Path | None = None) -> tuple[Any, ExcitationConfig, ReferenceCheck]:
    """Return the packaged UR10e over its ground with the settings of a short design, or the arm of a case."""
    if robot is not None and robot.is_dir():
        return _arm_of_case(robot)
    content = RobotConfig.from_yaml(robot_file(falling=False) if robot is None else robot)
    model = configured_arm(str(arm_file('ur10e')), content)
    config = ExcitationConfig(
        **{**content.design, 'period': _PERIOD, 'harmonics': 4, 'starts': 1, 'iterations': 40},
        velocity_scaling=0.9,
        acceleration_scaling=0.9,
    )
    full = replace(config, velocity_scaling=1.0, acceleration_scaling=1.0)
    return model, config, reference_check(model, full)


def _arm_of_case(folder: Path) -> tuple[Any, ExcitationConfig, ReferenceCheck]:
    """Return the arm of a case, ``python -m benchmark.cases``, with an acceleration limit and a period by its name."""
    rng = np.random.default_rng(sum(map(ord, folder.name)))
    model, limit, period = next(pairs(folder, 1)).model, float(10.0 ** rng.uniform(0.3, 1.3)), float(rng.uniform(2, 8))
    full = ExcitationConfig(period=period, harmonics=4, starts=1, iterations=40, acceleration_limit=limit)
    return model, replace(full, velocity_scaling=0.9, acceleration_scaling=0.9), reference_check(model, full)


def clearance(check: ReferenceCheck, positions: Array) -> float:
    """Return by how much positions keep the bounds of limits and workspace at least; negative where one is broken."""
    still = np.zeros_like(positions)
    motion = Motion(check.model, (positions, still, still, still))
    worst = np.inf
    for constraint in check.constraints:
        spatial = [bound.quantity.split()[0] not in JOINT_BOUNDS for bound in constraint.bounds]
        if any(spatial):
            scale = np.array([bound.scale for bound in constraint.bounds])[spatial]
            worst = min(worst, float((-constraint.evaluate(motion)[0][:, spatial] * scale).min()))
    return worst


def kept_trajectory(name: str) -> FourierTrajectory:
    """Return an excitation of the packaged UR10e that is the same on every processor, so that a seed is one case."""
    kept = yaml.safe_load(Path(__file__).with_name('fault_runs.yaml').read_text(encoding='utf-8'))
    return FourierTrajectory.from_dict(kept[name])


# -- faults drawn at random ------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _plans(robot: Path | None) -> tuple[RunPlan, RunPlan]:
    """Return the run of one design for a controller that replaces trajectories at once, and for one that blends."""
    model, config, check = arm(robot)
    trajectory = kept_trajectory('random_faults') if robot is None else stoppable_design(model, config).trajectory
    start = trajectory.position([0.0])[0]
    run = RunConfig(periods=3, settling_time=0.3, ramp_velocity=1.0)
    immediate, blend = (
        plan_run(start, trajectory, check, replace(run, trajectory_replacement=k), arm_check(model, config))
        for k in ('immediate', 'blend')
    )
    return immediate, blend


def random_faults(
    count: int, seed: int, robot: Path | None = None, *, pair: bool = False, only: str = ''
) -> list[Outcome]:
    """Run faults drawn at random on the packaged UR10e, or on another arm, and print what became of each kind.

    Of the seeds from ``seed`` on, those run whose fault has ``only`` in its name.
    """
    plans = _plans(robot)
    outcomes: list[Outcome] = []
    for k in range(seed, seed + count):
        rng, mode = np.random.default_rng(k), k % 3
        plan: RunPlan = plans[mode == 2]
        latency = float(rng.uniform(0.002, 0.05))
        fault = draw(rng, plan, pair=pair)
        if only not in fault.name:
            continue
        outcome = run_fault(fault, plan, blend=mode == 2, cycle=STEP, from_command=mode == 1, latency=latency)
        outcomes.append(outcome)
        if outcome.wrong:
            drawn = '; '.join(
                f'{each.name}, {each.size:.3g} of joint {each.joint + 1} at {each.at:.2f} s'
                for each in (outcome.fault, outcome.fault.later)
                if each is not None
            )
            print(
                f'seed {k}: {drawn}: {outcome.wrong} ({outcome.text})',
                flush=True,
            )
    print(
        '| fault | runs | stopped | braking, most | way, most | acceleration, most | own step | clear, least | wrong |'
    )
    print('|---|---|---|---|---|---|---|---|---|')
    for name in sorted({outcome.fault.name for outcome in outcomes}):
        rows = [outcome for outcome in outcomes if outcome.fault.name == name]
        stopped = [row for row in rows if np.isfinite(row.reaction)]
        print(
            f'| {name} | {len(rows)} | {len(stopped)} | '
            f'{max((row.rest - row.reaction for row in stopped), default=0.0):.2f} s | '
            f'{max((row.way for row in stopped), default=0.0):.2f} rad | '
            f'{max((row.acceleration for row in stopped), default=0.0):.2f} of the limit | '
            f'{1e3 * max(row.step for row in rows):.0f} mrad | {-max(row.excess for row in rows):.3f} | '
            f'{sum(bool(row.wrong) for row in rows)} |'
        )
    took = np.quantile([row.took for row in outcomes if row.took] or [0.0], [0.5, 0.99, 1.0])
    print(
        f'processor time of a stop: median {1e3 * took[0]:.1f}, 99 % {1e3 * took[1]:.1f}, most {1e3 * took[2]:.1f} ms'
    )
    return outcomes


# -- an arm that meets a wall ----------------------------------------------------------------------------

_HARD = 0.2
"""Part of the effort limit that counts as pressing hard."""
_LEFT = 0.15
"""Part of the effort limit that may be left after the stop without a word."""
_TOUCHES = 0.2
"""A wall is met at this speed at least [rad/s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """What became of one wall.

    ``stopped``: time from the touch to the stop, ``hard``: of pressing hard [s]. ``after``: the torque on the wall at
    the end, as a part of the effort limit. ``room``: what the stop left of limits of place, negative where it broke one
    [m, rad]. ``stopped`` and ``room`` are infinite where the arm was not stopped.
    """

    joint: str
    stopped: float
    hard: float
    after: float
    room: float
    reason: str


@lru_cache(maxsize=1)
def _wall_plans() -> tuple[RunPlan, ...]:
    """Return runs of two excitations, for a controller that replaces trajectories at once and for one that blends."""
    model, config, check = arm()
    run = RunConfig(periods=3, settling_time=0.3, ramp_velocity=1.0)
    plans = []
    for name in ('random_faults', 'wall'):
        trajectory = kept_trajectory(name)
        start = trajectory.position([0.0])[0]
        plans += [
            plan_run(start, trajectory, check, replace(run, trajectory_replacement=k), arm_check(model, config))
            for k in ('immediate', 'blend')
        ]
    return tuple(plans)


def press(seed: int, tolerance: float) -> Press | None:
    """Return what becomes of a joint of the packaged UR10e that meets a wall; None where it meets none.

    Excitation, controller, joint, moment, the stiffness of the wall (1e3 to 2e4 N m/rad), the bandwidth of the position
    controller (10 to 30 Hz) and how long a message is on its way (2 to 50 ms) are drawn. With a ``tolerance`` of 0
    nobody watches the efforts.
    """
    from robotid_ros.simulation import Plant, Sensors, nominal_truth
    from robotid_ros.simulation.plant import Wall

    rng, plans = np.random.default_rng(seed), _wall_plans()
    which = int(rng.integers(len(plans)))
    plan = plans[which]
    model = plan.windows.check.model
    joint, stiffness = int(rng.integers(model.n)), float(10.0 ** rng.uniform(3.0, 4.3))
    truth = nominal_truth(model)
    plant = Plant(truth, model, rate=500.0, bandwidth=float(rng.uniform(10.0, 30.0)))
    sensors = Sensors.typical(model, truth.drive_gain)

    def wall(loop: Loop) -> None:
        place, speed = float(loop.position[joint]), float(loop.velocity[joint])
        if plant.wall is None and abs(speed) > _TOUCHES:
            side, damping = float(np.sign(speed)), 0.01 * stiffness
            plant.wall = Wall(joint=joint, position=place, side=side, stiffness=stiffness, damping=damping)

    loop = Loop(
        plan=plan,
        parts=SimpleNamespace(plant=plant, sensors=sensors, sensor_rng=rng),
        fault=wall,
        at=plan.begin + float(rng.uniform(0.2, 2.8)) * plan.motion.duration,
        latency=float(rng.uniform(0.002, 0.05)),
        blend=which % 2 == 1,
        cycle=STEP,
        feedback=True,
        config=WatchdogConfig(push_tolerance=tolerance),
    ).run()
    pressed, limit = np.array(loop.pressed), float(model.limits.effort[joint])
    if not len(pressed) or not pressed[:, 1].any():
        return None
    track = np.array(loop.track)
    after = track[track[:, 0] >= loop.stopped_at, 1:]
    return Press(
        joint=model.joint_names[joint],
        stopped=loop.stopped_at - float(pressed[pressed[:, 1] != 0.0][0, 0]),
        hard=float((np.abs(pressed[:, 1]) > _HARD * limit).sum()) * STEP,
        after=float(np.abs(pressed[-20:, 1]).mean()) / limit,
        room=clearance(plan.checks[-1], after) if len(after) else np.inf,
        reason=loop.reason,
    )


def walls(count: int, seed: int) -> int:
    """Let joints of the packaged UR10e meet walls, without the watch of efforts and with it; print the table.

    Return how many of those watched still press, or broke a limit of place in their stop.
    """
    drawn = [(press(k, 0.0), press(k, 1.0)) for k in range(seed, seed + count)]
    pairs = [(without, watched) for without, watched in drawn if without is not None and watched is not None]

    def quantiles(name: str, side: int, form: str, factor: float) -> str:
        values = factor * np.array([getattr(pair[side], name) for pair in pairs])
        return ', '.join(format(each, form) for each in np.quantile(values, [0.5, 0.9, 1.0], method='inverted_cdf'))

    print('| median, 90 %, most | without the watch | with it |\n|---|---|---|')
    for name, what, form, unit, factor in (
        ('stopped', 'from the touch to the stop', '.2f', 's', 1.0),
        ('hard', f'more than {100 * _HARD:.0f} % of the effort limit on the wall', '.2f', 's', 1.0),
        ('after', 'torque on the wall afterwards', '.0f', '% of the effort limit', 100.0),
        ('room', 'beyond half of the clearance, or a position limit', '.3f', 'm or rad', -1.0),
    ):
        print(f'| {what} | ' + ' | '.join(f'{quantiles(name, k, form, factor)} {unit}' for k in (0, 1)) + ' |')
    wrong = 0
    for k, (_, watched) in enumerate(drawn):
        if watched is not None and (watched.after > _LEFT or watched.room < 0.0):
            print(f'seed {seed + k}: {watched}')
            wrong += 1
    print(f'{len(pairs)} walls, {wrong} wrong')
    return wrong


def main() -> int:
    """Read the command line and run what it asks for."""
    parser = argparse.ArgumentParser(prog='python -m benchmark.faults', description=__doc__.split('\n')[0])
    parser.add_argument('--random', type=int, default=1000, metavar='N', help='faults drawn at random, without ROS')
    parser.add_argument('--case', type=Path, help='of another arm: a folder of python -m benchmark.cases')
    parser.add_argument('--pairs', action='store_true', help='two such faults a run, the second in the stop too')
    parser.add_argument('--seed', type=int, default=0, help='of the first one')
    parser.add_argument(
        '--wall', type=int, default=0, metavar='N', help='N joints against walls too, with and without the watch'
    )
    parser.add_argument('--nodes', action='store_true', help='the real node too, beside each controller that is found')
    parser.add_argument('--controller', nargs='+', help='simulated, or real: only these')
    parser.add_argument('--interface', nargs='+', default=['topic', 'action'], help='topic, action')
    parser.add_argument('--load', type=int, default=0, metavar='N', help='busy processes beside')
    parser.add_argument('--only', default='', help='only faults with this in their names')
    parser.add_argument('--falling', action='store_true', help='velocity limits that fall towards the joint limits')
    parser.add_argument(
        '--set', nargs='+', default=[], metavar='"NAME: VALUE"', help="the real controller's parameters"
    )
    options = parser.parse_args()
    if options.case is not None and (options.nodes or options.falling or not (options.case / 'pairs.csv').is_file()):
        parser.error('--case takes a folder of python -m benchmark.cases, without --nodes and --falling')
    with busy(options.load):
        return run(options)


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep processes busy meanwhile."""
    loops = [
        subprocess.Popen([sys.executable, '-c', 'while True: pass'], preexec_fn=die_with_parent, start_new_session=True)
        for _ in range(number)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(options: argparse.Namespace) -> int:
    """Run what is asked for; 1 if something happened that must not."""
    wrong, robot = 0, robot_file(falling=True) if options.falling else options.case
    if options.random:
        outcomes = random_faults(options.random, options.seed, robot, pair=options.pairs, only=options.only)
        wrong += sum(bool(outcome.wrong) for outcome in outcomes)
    if options.wall:
        wrong += walls(options.wall, options.seed)
    if options.nodes:
        bench = import_module('benchmark.fault_stack')
        wrong += bench.run_all(
            options.controller,
            options.interface,
            options.only,
            options.seed,
            robot or robot_file(falling=False),
            options.set,
        )
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
