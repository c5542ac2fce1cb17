# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Throughput and length of the generated dynamics, beside Pinocchio's and FIGAROH's loops.

Medians of processor time on one core, each after a run that does not count; the tasks of one interpreter take turns.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from dynamics_helpers import ARMS, LWR4_MDH, PUMA560_MDH, UR10_DH, arm, motion, without_compiler

from benchmark import anchor
from benchmark.row import Row
from benchmark.timing import Timing, measure, processor_seconds, seconds
from robotid_ros.dynamics import base_parameters, full_regressor, inverse_dynamics, minimal_model
from robotid_ros.dynamics.codegen.compiler import find_compiler
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
        counted = model.operations
        for k, kind in enumerate(('multiplications', 'additions')):
            yield Row(
                what=f'{kind} of inverse dynamics, {name}',
                values=getattr(counted, kind),
                anchor=OPENSYMORO if source else '',
                theirs=others[k],
                source=source,
                high=highest[k],
                note=f'{counted.trigonometric} sines and cosines, {len(model.base.independent)} base parameters',
            )


def throughput(quick: bool) -> Iterator[Row]:
    """Compare samples a second of a UR10, 10 000 at once."""
    robot, runs = arm('ur10'), 3 if quick else 9
    q, dq, ddq = motion(robot.n, SAMPLES)
    times = _own_times(robot, (q, dq, ddq), runs)
    given = {'q': q, 'dq': dq, 'ddq': ddq, 'urdf': ARMS['ur10'].read_text(encoding='utf-8')}
    pinocchio = anchor.run('pinocchio_loop.throughput', **given, runs=runs)
    error = np.abs(pinocchio['torque'] - inverse_dynamics(robot, q, dq, ddq, rotor_inertia=False)).max()
    if error > 1e-9:
        raise AssertionError(f'not the same arm: torques differ by {error} N m')
    figaroh = anchor.run('figaroh_identification.regressor', **given, runs=max(1, runs // 3))
    rnea = f'{pinocchio["name"]}, rnea in a loop', pinocchio['rnea']
    loop = f'{pinocchio["name"]}, computeJointTorqueRegressor in a loop, preallocated', pinocchio['regressor']
    built = f'{figaroh["name"]}, build_regressor_basic with friction, rotor inertia, offset', figaroh['regressor']
    # Like for like first: what Pinocchio's functions return, the 60 standard columns and the described torque.
    for what, key, (name, spent), bar in (
        ('60 standard columns, full_regressor', 'standard compiled', loop, 5.0),
        ('60 standard columns, numpy alone', 'standard numpy', loop, None),
        ('inverse_dynamics', 'torque', rnea, 10.0),
        ('inverse_dynamics, numpy alone', 'torque numpy', rnea, None),
        ('another thing: the 36 base columns', 'base compiled', loop, None),
        ('another thing: base columns with friction, rotor inertia, offset', 'drives compiled', built, None),
        ('another thing: the minimal model of this arm', 'minimal compiled', rnea, None),
    ):
        yield Row(
            what=f'{what}, UR10',
            unit='samples/s',
            values=SAMPLES / times[key].processor if key in times else (),
            better='higher',
            anchor=name,
            theirs=SAMPLES / spent,
            times=bar,
            runs=f'{SAMPLES} samples, median processor time of {runs} runs',
            note='' if key in times else 'there is no C compiler',
        )
    base = seconds(lambda: base_parameters(robot, **DRIVES, offset=True), runs)
    yield Row(
        what='base parameters with friction, rotor inertia, offset, UR10',
        unit='s',
        values=base.processor,
        anchor=f'{figaroh["name"]}, regressor of 1000 samples and QR',
        theirs=figaroh['base'],
        runs=f'median processor time of {runs} runs',
        note=f'rank {len(base_parameters(robot, **DRIVES, offset=True).independent)}, FIGAROH {figaroh["rank"]}; '
        'ours without a cache, but for the generated code',
    )


def _own_times(robot: RobotModel, at: tuple[np.ndarray, np.ndarray, np.ndarray], runs: int) -> dict[str, Timing]:
    base, drives = base_parameters(robot), base_parameters(robot, **DRIVES, offset=True)
    model = minimal_model(robot)
    rows, rows_drives = np.empty((SAMPLES, 6, len(base.names))), np.empty((SAMPLES, 6, len(drives.names)))
    torques = np.empty((SAMPLES, 6))
    tasks: dict[str, Callable[[], object]] = {
        'torque numpy': lambda: _in_numpy(lambda: inverse_dynamics(robot, *at)),
        'standard numpy': lambda: _in_numpy(lambda: full_regressor(robot, *at)),
    }
    if find_compiler() is not None:
        tasks |= {
            'torque': lambda: inverse_dynamics(robot, *at),
            'standard compiled': lambda: full_regressor(robot, *at),
            'base compiled': lambda: base.regressor(*at, out=rows),
            'drives compiled': lambda: drives.regressor(*at, out=rows_drives),
            'minimal compiled': lambda: model.inverse_dynamics(*at, out=torques),
        }
    return measure(tasks, runs)


def _in_numpy(task: Callable[[], object]) -> object:
    with without_compiler():
        return task()


def one_sample(quick: bool) -> Iterator[Row]:
    """Time single samples: from Python, and in one C++ program against Pinocchio and its code generation."""
    robot, calls, runs = arm('ur10'), 2000, 3 if quick else 9
    at = motion(robot.n, 1)
    model = minimal_model(robot)
    many = {name: np.repeat(x, calls, axis=0) for name, x in zip(('q', 'dq', 'ddq'), at, strict=True)}
    urdf = ARMS['ur10'].read_text(encoding='utf-8')
    pinocchio = anchor.run('pinocchio_loop.throughput', **many, urdf=urdf, runs=runs)
    own: dict[str, tuple[Callable[[], object], float]] = {
        'inverse_dynamics(model, one sample)': (lambda: inverse_dynamics(robot, *at), 20.0),
        'minimal_model(...).inverse_dynamics, one sample': (lambda: model.inverse_dynamics(*at), 2.0),
    }
    for what, (task, high) in own.items():
        spent = seconds(lambda: _repeat(task, calls), runs)  # noqa: B023 (called at once)
        yield Row(
            what=f'{what}, UR10',
            unit='us',
            values=1e6 * spent.processor / calls,
            anchor=f'{pinocchio["name"]}, rnea from Python',
            theirs=1e6 * pinocchio['rnea'] / calls,
            high=high,
            runs=f'{calls} calls, median processor time',
        )
    mass, com, inertia = split_inertial_parameters(robot.inertial)
    bodies = {'mass': mass, 'com': com, 'inertia': inertia, 'gravity': robot.gravity}
    code = {
        'header': model.c_header('robotid_', name='robotid.h'),
        'source': model.c_source('robotid_', header='robotid.h'),
    }
    place = {'placements': robot.placements, 'axes': robot.axes}
    speed = anchor.run('pinocchio_speed.per_call', **bodies, **code, **place, patience=1800.0)
    if speed['error'] > 1e-9:
        raise AssertionError(f'not the same arm: torques differ by {speed["error"]} N m')
    anchors = {f'C++ Pinocchio {speed["version"]}, rnea, -O3, one thread': speed['pinocchio']}
    if speed['generated'] > 0.0:
        anchors[f'C that Pinocchio {speed["version"]} generates through CasADi, -O3'] = speed['generated']
    for name, value in anchors.items():
        yield Row(
            what='generated C, one call, UR10',
            unit='us',
            values=1e-3 * speed['robotid'],
            anchor=name,
            theirs=1e-3 * value,
            times=1.0,
            runs='median of 200 rounds of 1000 states, in one program',
        )


def _repeat(task: Callable[[], object], calls: int) -> None:
    for _ in range(calls):
        task()


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
        anchor='central differences with respect to q, dq, ddq',
        theirs=2 * 3 * robot.n,
        source='counted',
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


CASES = (throughput, one_sample, operations, gradient, generation)
