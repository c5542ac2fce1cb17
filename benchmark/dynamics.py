# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Speed and length of the generated dynamics, beside Pinocchio in Python and C++ and beside CasADi's generated C.

Medians of processor time on one core, each after a run that does not count; the tasks of one interpreter take turns.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from dynamics_helpers import LWR4_MDH, PUMA560_MDH, UR10_DH, PinocchioArm, arm, motion, random_inertial

from benchmark import anchor
from benchmark.row import Row
from benchmark.timing import measure, processor_seconds
from robotid_ros.dynamics import BaseParameters, base_parameters, full_regressor, inverse_dynamics, minimal_model
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters

SAMPLES = 10_000
DRIVES: dict[str, Any] = {'rotor_inertia': True, 'viscous': True, 'coulomb': True}
OPENSYMORO = 'OpenSYMORO (Khalil et al., IEEE/ASME AIM 2014), customised Newton-Euler with base parameters'


def operations(quick: bool) -> Iterator[Row]:
    """Count the operations of inverse dynamics with friction and rotor inertia; sines and cosines apart."""
    sympybotics = 'counted earlier; SymPyBotics 456 and 356'
    arms: tuple[tuple[str, RobotModel, Any, tuple[float | None, ...], str], ...] = (
        ('UR10 (DH geometry)', RobotModel.from_dh(UR10_DH), (320, 262), (275, 255), sympybotics),
        ('PUMA 560', RobotModel.from_mdh(PUMA560_MDH), (319, 258), (285, 262), 'counted earlier'),
        ('KUKA LWR4, 7 axes', RobotModel.from_mdh(LWR4_MDH), ((), ()), (None, None), ''),
        ('Panda, 7 axes (URDF)', arm('panda'), ((), ()), (None, None), ''),
    )
    for name, robot, others, highest, source in arms:
        model = minimal_model(robot, **DRIVES)
        for k, kind in enumerate(('multiplications', 'additions')):
            yield Row(
                what=f'{kind} of inverse dynamics, {name}',
                values=model.operations[k],
                anchor=OPENSYMORO if source else '',
                theirs=others[k],
                source=source,
                high=highest[k],
                note=f'{len(model.base.independent)} base parameters; sines and cosines apart',
            )


def throughput(quick: bool) -> Iterator[Row]:
    """Time batches of a UR10 into memory that is given, and beside one C++ loop that stores its results as well."""
    robot, runs = arm('ur10'), 3 if quick else 9
    sizes = (1000, 10_000, 100_000) if quick else (1000, 10_000, 100_000, 1_000_000)
    at = motion(robot.n, sizes[-1])
    torques, rows = (
        np.zeros((sizes[-1], 6)),
        np.zeros((sizes[-1], 6, 60)),
    )  # touched once: what is timed is not the kernel
    tasks: dict[str, Callable[[], object]] = {}
    for count in sizes:
        given, repeats = tuple(x[:count] for x in at), max(1, sizes[-1] // count)
        tasks[f'torque {count}'] = _repeated(inverse_dynamics, robot, given, torques[:count], repeats)
        tasks[f'regressor {count}'] = _repeated(full_regressor, robot, given, rows[:count], repeats)
    spent = measure(tasks, runs)
    times = {name: timing.processor / sizes[-1] for name, timing in spent.items()}
    text = f'median processor time of {runs} runs'
    for what, key in (('inverse_dynamics', 'torque'), ('full_regressor, 60 columns', 'regressor')):
        each = [times[f'{key} {count}'] for count in sizes]
        yield Row(
            what=f'{what}, UR10: largest over smallest time per sample, {sizes[0]} to {sizes[-1]} samples, out= given',
            unit='x',
            values=max(each) / min(each),
            high=1.2,
            runs=text,
            note='ns: ' + ', '.join(f'{1e9 * value:.0f}' for value in each),
        )
    speed = _in_one_program()
    for what, key, theirs, bar in (
        ('inverse_dynamics', 'torque', 'pinocchio', 10.0),
        ('full_regressor, 60 columns', 'regressor', 'regressor', 3.0),
    ):
        yield Row(
            what=f'{what}, UR10, {sizes[-1]} samples, out= given, per sample',
            unit='ns',
            values=1e9 * times[f'{key} {sizes[-1]}'],
            spread=spent[f'{key} {sizes[-1]}'].spread,
            anchor=f'C++ Pinocchio {speed["version"]}, -O3, a loop that stores its results',
            theirs=speed[theirs],
            times=bar,
            runs=f'{text}; theirs 1000 states, median of 200 rounds',
        )


def _repeated(
    function: Callable[..., np.ndarray], robot: RobotModel, at: tuple[np.ndarray, ...], out: np.ndarray, repeats: int
) -> Callable[[], None]:
    def task() -> None:
        for _ in range(repeats):
            function(robot, *at, out=out)

    return task


@lru_cache(maxsize=1)
def _in_one_program() -> dict[str, Any]:
    """Return ns per call for a UR10 of C++ Pinocchio, of its generated code and of ours."""
    robot = arm('ur10')
    model = minimal_model(robot)
    code = {
        'header': model.c_header('robotid_', name='robotid.h'),
        'source': model.c_source('robotid_', header='robotid.h'),
    }
    speed = anchor.run('pinocchio_speed.per_call', **_bodies(robot), **code, patience=1800.0)
    if speed['error'] > 1e-9:
        raise AssertionError(f'not the same arm: torques differ by {speed["error"]} N m')
    return speed


def _bodies(robot: RobotModel) -> dict[str, np.ndarray]:
    mass, com, inertia = split_inertial_parameters(robot.inertial)
    bodies = {'mass': mass, 'com': com, 'inertia': inertia, 'gravity': robot.gravity}
    return {**bodies, 'placements': robot.placements, 'axes': robot.axes}


def one_sample(quick: bool) -> Iterator[Row]:
    """Time single samples from Python, beside Pinocchio's in the same process."""
    robot, calls, runs = arm('ur10'), 100, 30 if quick else 200
    at = motion(robot.n, 1)
    model, peer = minimal_model(robot), PinocchioArm(robot)
    place = tuple(x[0] for x in at)
    tasks: dict[str, Callable[[], object]] = {
        'inverse_dynamics(model, ...)': lambda: inverse_dynamics(robot, *at),
        'minimal_model(model).inverse_dynamics': lambda: model.inverse_dynamics(*at),
        'full_regressor(model, ...)': lambda: full_regressor(robot, *at),
        'rnea': lambda: peer.pin.rnea(peer.model, peer.data, *place),
        'computeJointTorqueRegressor': lambda: peer.pin.computeJointTorqueRegressor(peer.model, peer.data, *place),
    }
    for task in tasks.values():  # the second call of a minimal model compiles
        task()
    spent = measure({name: partial(_repeat, task, calls) for name, task in tasks.items()}, runs)
    name = f'Pinocchio {peer.pin.__version__} from Python'
    # At most 3, 2 and 7 us where Pinocchio takes 2.45 and 6.6 us.
    for what, other, times in (
        ('inverse_dynamics(model, ...)', 'rnea', 2.45 / 3.0),
        ('minimal_model(model).inverse_dynamics', 'rnea', 2.45 / 2.0),
        ('full_regressor(model, ...)', 'computeJointTorqueRegressor', 6.6 / 7.0),
    ):
        yield Row(
            what=f'{what}, one sample from Python, UR10',
            unit='us',
            values=1e6 * spent[what].processor / calls,
            anchor=f'{name}, {other}',
            theirs=1e6 * spent[other].processor / calls,
            spread=spent[what].spread,
            their_spread=spent[other].spread,
            times=times,
            runs=f'median processor time of {runs} rounds of {calls} calls that take turns',
        )


def generated_code(quick: bool) -> Iterator[Row]:
    """Time one call of generated C in one program with what others generate and with Pinocchio's C++."""
    for name in ('ur10', 'panda', 'iiwa14'):
        robot = arm(name)
        speed = anchor.run('casadi_speed.per_call', **_bodies(robot), source=minimal_model(robot).c_source('robotid_'))
        if speed['error'] > 1e-9:
            raise AssertionError(f'not the same arm: torques differ by {speed["error"]} N m')
        for what, key in (('numbers folded in', 'folded'), ('coefficients as an argument', 'robotid')):
            yield Row(
                what=f'generated C, one call, {name}, {what}',
                unit='ns',
                values=speed[key],
                anchor=f'C from CasADi {speed["version"]}, textbook recursion in SX, numbers folded in, -O3',
                theirs=speed['casadi'],
                times=1.0 / 0.7,
                runs='median processor time of 301 rounds of 1000 states that take turns, in one program',
            )
    speed = _in_one_program()
    anchors = {f'C++ Pinocchio {speed["version"]}, rnea, -O3, output preallocated': speed['pinocchio']}
    if speed['generated'] > 0.0:
        anchors[f'C that Pinocchio {speed["version"]} generates through CasADi, -O3'] = speed['generated']
    for name, value in anchors.items():
        yield Row(
            what='generated C, one call, ur10, coefficients as an argument',
            unit='ns',
            values=speed['robotid'],
            anchor=name,
            theirs=value,
            times=1.0,
            runs='median of 200 rounds of 1000 states, in one program',
        )


def _repeat(task: Callable[[], object], calls: int) -> None:
    for _ in range(calls):
        task()


def scale(quick: bool) -> Iterator[Row]:
    """Fit the order of growth with the number of joints and of samples."""
    rng, runs = np.random.default_rng(0), 3 if quick else 9
    sizes = (6, 7, 12, 20)
    arms = [RobotModel.from_mdh(rng.uniform(-1.5, 1.5, (n, 4)), inertial=random_inertial(n, rng)) for n in sizes]
    samples = [motion(n, 2000) for n in sizes]
    tasks: dict[str, Callable[[], object]] = {}
    for n, robot, at in zip(sizes, arms, samples, strict=True):
        tasks[f'inverse_dynamics {n}'] = partial(inverse_dynamics, robot, *at)
        tasks[f'full_regressor {n}'] = partial(full_regressor, robot, *at)
        tasks[f'base_parameters {n}'] = partial(base_parameters, robot)
    spent = measure(tasks, runs)
    for what, high in (('inverse_dynamics', 1.2), ('full_regressor', 3.0), ('base_parameters', 3.0)):
        each = [spent[f'{what} {n}'].processor for n in sizes]
        yield Row(
            what=f'growth of {what} with 6, 7, 12 and 20 joints: exponent',
            values=np.polyfit(np.log(sizes), np.log(each), 1)[0],
            high=high,
            runs=f'random arms, 2000 samples, median processor time of {runs} runs',
            note='ms: ' + ', '.join(f'{1e3 * value:.2f}' for value in each),
        )
    robot, lengths = arm('ur10'), (10, 60, 600) if quick else (10, 60, 600, 3600)
    at = motion(6, 100 * lengths[-1])
    base = base_parameters(robot, **DRIVES, offset=True)
    spent = measure({str(k): partial(_normal_equations, base, [x[: 100 * k] for x in at]) for k in lengths}, 3)
    each = [spent[str(k)].processor for k in lengths]
    yield Row(
        what=f'growth of the normal equations with 10 s to {lengths[-1]} s at 100 Hz, in blocks: exponent',
        values=np.polyfit(np.log(lengths), np.log(each), 1)[0],
        high=1.1,
        runs='UR10, 58 columns, median processor time of 3 runs',
        note='ms: ' + ', '.join(f'{1e3 * value:.1f}' for value in each) + '; memory as for 1000 samples',
    )


def _normal_equations(base: BaseParameters, at: Sequence[np.ndarray]) -> np.ndarray:
    rows = np.empty((1000, base.model.n, len(base.independent)))
    total = np.zeros((rows.shape[2], rows.shape[2]))
    for first in range(0, len(at[0]), 1000):
        stacked = base.regressor(*(x[first : first + 1000] for x in at), out=rows).reshape(-1, rows.shape[2])
        total += stacked.T @ stacked
    return total


def gradient(quick: bool) -> Iterator[Row]:
    """Compare the reverse derivative of a scalar of the regressor with the forward pass and with differences."""
    robot, runs, few = arm('ur10'), 3 if quick else 9, 50
    base = base_parameters(robot)
    at = np.array(motion(robot.n, SAMPLES))
    rng = np.random.default_rng(0)
    out = np.empty((SAMPLES, 6, len(base.names)))
    weights = rng.normal(size=out.shape)
    tasks = {'forward': lambda: base.regressor(*at, out=out), 'gradient': lambda: base.regressor_vjp(*at, weights)}
    times = measure(tasks, runs)
    yield Row(
        what='gradient of a scalar of the base regressor, in forward passes',
        unit='x',
        values=times['gradient'].processor / times['forward'].processor,
        high=6.0,
        runs=f'{SAMPLES} samples, median processor time of {runs} runs',
    )
    part, step = at[:, :few], 0.02
    exact = np.zeros_like(part)
    for which in np.ndindex(3, robot.n):
        for k, factor in {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}.items():
            for sign in (1.0, -1.0):
                moved = part.copy()
                moved[which[0], :, which[1]] += sign * k * step
                scalar = np.einsum('kij,kij->k', base.regressor(*moved), weights[:few])
                exact[which[0], :, which[1]] += sign * factor * scalar / step
    found = np.array(base.regressor_vjp(*part, weights[:few]))
    yield Row(
        what='relative error of that gradient',
        values=np.abs(found - exact).max() / np.abs(exact).max(),
        anchor='differences of eighth order, which have an error of their own',
        high=1e-9,
        runs=f'{few} samples, largest component',
    )


def generation(quick: bool) -> Iterator[Row]:
    """Time generating and compiling in fresh processes, with an empty and a full cache."""
    program = (
        'import time, warnings; warnings.simplefilter("ignore")\n'
        'import benchmark\n'
        'from dynamics_helpers import arm, motion\n'
        'from robotid_ros.dynamics import minimal_model\n'
        'robot = arm("ur10"); m = motion(6, 8); wall = time.perf_counter()\n'
        'model = minimal_model(robot, rotor_inertia=True, viscous=True, coulomb=True)\n'
        'model.inverse_dynamics(*m); model.regressor(*m); print(time.perf_counter() - wall)'
    )
    spent, repeats, before = [], 1 if quick else 3, processor_seconds()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            settings = {'cwd': Path(__file__).parents[1], 'env': {**os.environ, 'XDG_CACHE_HOME': cache}, 'text': True}
            spent += [float(subprocess.check_output([sys.executable, '-c', program], **settings)) for _ in range(4)]
    processor = (processor_seconds() - before) / repeats
    yield Row(
        what='generate and compile the minimal model of a UR10, torques and regressor',
        unit='s',
        values=np.median(spent[::4]),
        high=5.0,
        runs=f'median wall time of {repeats} runs',
        note=f'{processor:.1f} s of processor time, with the compiler and three later uses with their imports',
    )
    yield Row(
        what='the same from the cache, in a new process',
        unit='s',
        values=np.median([wall for k, wall in enumerate(spent) if k % 4]),
        high=0.05,
        runs=f'median wall time of {3 * repeats} runs',
    )


CASES = (one_sample, generated_code, throughput, operations, gradient, generation, scale)
