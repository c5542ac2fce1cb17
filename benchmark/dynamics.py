# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Throughput and length of the generated dynamics, beside Pinocchio's and FIGAROH's loops.

python -m benchmark.dynamics [--quick]

Medians of processor time on one core, each after a run that does not count; the tasks of one interpreter take turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmark import anchor
from benchmark.area import Options, main
from benchmark.arms import ARMS, LWR4_MDH, PUMA560_MDH, ROOT, UR10_DH, arm, motion
from benchmark.row import Anchor, Bar, Row
from benchmark.timing import Timing, children_seconds, measure, seconds
from robotid_ros.dynamics import BaseParameters, base_parameters, full_regressor, inverse_dynamics, minimal_model
from robotid_ros.dynamics.codegen.compiler import find_compiler
from robotid_ros.dynamics.newton_euler import newton_euler
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters

AREA = 'dynamics'
SAMPLES = 10_000
DRIVES: dict[str, Any] = {'rotor_inertia': True, 'viscous': True, 'coulomb': True}
OPENSYMORO = 'OpenSYMORO (Khalil et al., IEEE/ASME AIM 2014), customised Newton-Euler with base parameters'


def operations(options: Options) -> Iterator[Row]:
    """Count the operations of inverse dynamics with friction and rotor inertia; sines and cosines apart."""
    arms = (
        (
            'UR10 (DH geometry)',
            RobotModel.from_dh(UR10_DH),
            Anchor(name=OPENSYMORO, values=(320, 262), source='counted earlier; SymPyBotics 456 and 356'),
            (275, 255),
        ),
        (
            'PUMA 560',
            RobotModel.from_mdh(PUMA560_MDH),
            Anchor(name=OPENSYMORO, values=(319, 258), source='counted earlier'),
            (285, 262),
        ),
        ('KUKA LWR4, 7 axes', RobotModel.from_mdh(LWR4_MDH), None, None),
        ('Panda, 7 axes (URDF)', arm('panda'), None, None),
    )
    for name, robot, other, bars in arms:
        model = minimal_model(robot, **DRIVES)
        counted = model.operations
        own = counted.multiplications, counted.additions
        for k, kind in enumerate(('multiplications', 'additions')):
            yield Row(
                area=AREA,
                what=f'{kind} of inverse dynamics, {name}',
                values=(own[k],),
                anchor=None
                if other is None
                else Anchor(name=other.name, values=(other.values[k],), source=other.source),
                bar=None if bars is None else Bar(high=bars[k]),
                note=f'{counted.trigonometric} sines and cosines, {len(model.base.independent)} base parameters',
            )


def throughput(options: Options) -> Iterator[Row]:
    """Compare samples a second of a UR10, 10 000 at once."""
    robot, runs = arm('ur10'), options.runs(9, 3)
    q, dq, ddq = motion(robot.n, SAMPLES)
    times = _own_times(robot, (q, dq, ddq), runs)
    arrays = {'q': q, 'dq': dq, 'ddq': ddq}
    urdf = ARMS['ur10'].read_text(encoding='utf-8')
    pinocchio = anchor.run('pinocchio_loop.throughput', arrays, urdf=urdf, runs=runs)
    error = np.abs(pinocchio.arrays['torque'] - newton_euler(robot, q, dq, ddq)).max()
    if error > 1e-9:
        raise AssertionError(f'not the same arm: torques differ by {error} N m')
    figaroh = anchor.run(
        'figaroh_identification.regressor', arrays, urdf=urdf, runs=max(1, runs // 3), base=1000,
        friction=True, rotor_inertia=True, offset=True,
    )  # fmt: skip
    note = f'{SAMPLES} samples, median processor time of {runs} runs'
    name = f'Pinocchio {pinocchio.values["version"]}'
    rnea = Anchor(name=f'{name}, rnea in a loop', values=_rate(pinocchio.values['rnea']['processor']))
    loop = Anchor(
        name=f'{name}, computeJointTorqueRegressor in a loop, preallocated',
        values=_rate(pinocchio.values['regressor']['processor']),
    )
    built = Anchor(
        name=f'FIGAROH {figaroh.values["version"]}, build_regressor_basic with friction, rotor inertia, offset',
        values=_rate(figaroh.values['regressor']['processor']),
    )
    # Like for like first: what Pinocchio's functions return, the 60 standard columns and the described torque.
    table: tuple[tuple[str, str, Anchor, Bar | None], ...] = (
        ('60 standard columns, full_regressor', 'standard compiled', loop, Bar(low=5.0, of='ratio')),
        ('60 standard columns, numpy alone', 'standard numpy', loop, None),
        ('inverse_dynamics', 'torque', rnea, Bar(low=10.0, of='ratio')),
        ('inverse_dynamics, numpy alone', 'torque numpy', rnea, None),
        ('another thing: the 36 base columns', 'base compiled', loop, Bar(low=10.0, of='ratio')),
        ('another thing: base columns with friction, rotor inertia, offset', 'drives compiled', built, None),
        ('another thing: the minimal model of this arm', 'minimal compiled', rnea, Bar(low=10.0, of='ratio')),
    )
    for what, key, other, bar in table:
        if key in times:
            yield Row(
                area=AREA,
                what=f'{what}, UR10',
                unit='samples/s',
                values=_rate(times[key].processor),
                better='higher',
                anchor=other,
                bar=bar,
                runs=note,
            )
        else:
            yield Row(area=AREA, what=f'{what}, UR10', anchor=other, bar=bar, note='there is no C compiler')
    base = seconds(lambda: base_parameters(robot, **DRIVES, offset=True), runs)
    yield Row(
        area=AREA,
        what='base parameters with friction, rotor inertia, offset, UR10',
        unit='s',
        values=(base.processor,),
        anchor=Anchor(
            name=f'FIGAROH {figaroh.values["version"]}, regressor of 1000 samples and QR',
            values=(figaroh.values['base']['processor'],),
        ),
        runs=f'median processor time of {runs} runs',
        note=f'rank {len(base_parameters(robot, **DRIVES, offset=True).independent)}, '
        f'FIGAROH {figaroh.values["rank"]}; ours without a cache, but for the generated code',
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
    os.environ['ROBOTID_NO_COMPILER'] = '1'
    try:
        return task()
    finally:
        del os.environ['ROBOTID_NO_COMPILER']


def one_sample(options: Options) -> Iterator[Row]:
    """Time single samples: from Python, and in one C++ program against Pinocchio and its code generation."""
    robot, calls = arm('ur10'), 2000
    at = motion(robot.n, 1)
    model = minimal_model(robot)

    def microseconds(task: Callable[[], object]) -> float:
        return 1e6 * seconds(lambda: [task() for _ in range(calls)], options.runs(9, 3)).processor / calls

    pinocchio = anchor.run(
        'pinocchio_loop.throughput',
        {name: np.repeat(x, calls, axis=0) for name, x in zip(('q', 'dq', 'ddq'), at, strict=True)},
        urdf=ARMS['ur10'].read_text(encoding='utf-8'),
        runs=options.runs(9, 3),
    )
    loop = Anchor(
        name=f'Pinocchio {pinocchio.values["version"]}, rnea from Python',
        values=(1e6 * pinocchio.values['rnea']['processor'] / calls,),
    )
    tasks = (
        ('inverse_dynamics(model, one sample)', lambda: inverse_dynamics(robot, *at), Bar(high=20.0)),
        ('minimal_model(...).inverse_dynamics, one sample', lambda: model.inverse_dynamics(*at), Bar(high=2.0)),
    )
    for what, task, bar in tasks:
        task()
        yield Row(
            area=AREA, what=f'{what}, UR10', unit='us', values=(microseconds(task),), anchor=loop, bar=bar,
            runs=f'{calls} calls, median processor time',
        )  # fmt: skip
    mass, com, inertia = split_inertial_parameters(robot.inertial)
    speed = anchor.run(
        'pinocchio_speed.per_call',
        {
            'placements': robot.placements, 'axes': robot.axes, 'mass': mass, 'com': com, 'inertia': inertia,
            'gravity': robot.gravity,
        },
        header=model.c_header('robotid_', name='robotid.h'),
        source=model.c_source('robotid_', header='robotid.h'),
        seconds=1800.0,
    )  # fmt: skip
    if speed.values['error'] > 1e-9:
        raise AssertionError(f'not the same arm: torques differ by {speed.values["error"]} N m')
    version, own = speed.values['version'], (1e-3 * speed.values['robotid'],)
    anchors = {f'C++ Pinocchio {version}, rnea, -O3, one thread': speed.values['pinocchio']}
    if speed.values['generated'] > 0.0:
        anchors[f'C that Pinocchio {version} generates through CasADi, -O3'] = speed.values['generated']
    for name, value in anchors.items():
        yield Row(
            area=AREA, what='generated C, one call, UR10', unit='us', values=own,
            anchor=Anchor(name=name, values=(1e-3 * value,)), bar=Bar(low=1.0, of='ratio'),
            runs='median of 200 rounds of 1000 states, in one program', better='lower',
        )  # fmt: skip


def _rate(spent: float) -> tuple[float]:
    return (SAMPLES / spent,)


def gradient(options: Options) -> Iterator[Row]:
    """Compare the reverse derivative of a scalar of the regressor with the forward pass and with differences."""
    robot, runs = arm('ur10'), options.runs(9, 3)
    base = base_parameters(robot)
    at = motion(robot.n, SAMPLES)
    out = np.empty((SAMPLES, 6, len(base.names)))
    weights = np.random.default_rng(0).normal(size=out.shape)
    times = measure(
        {
            'forward': lambda: base.regressor(*at, out=out),
            'gradient': lambda: base.regressor_vjp(*at, weights),
        },
        runs,
    )
    differences = 2 * 3 * robot.n  # forward passes of central differences
    yield Row(
        area=AREA,
        what='gradient of a scalar of the base regressor, in forward passes',
        unit='x',
        values=(times['gradient'].processor / times['forward'].processor,),
        anchor=Anchor(name='central differences with respect to q, dq, ddq', values=(differences,), source='counted'),
        bar=Bar(high=6.0),
        runs=f'{SAMPLES} samples, median processor time of {runs} runs',
    )
    few = tuple(part[:50] for part in at)
    found = np.stack(base.regressor_vjp(*few, weights[:50]))
    exact = np.stack([_richardson(base, few, weights[:50], k) for k in range(3)])
    yield Row(
        area=AREA,
        what='relative error of that gradient',
        values=(float(np.abs(found - exact).max() / np.abs(exact).max()),),
        anchor=Anchor(name='differences of eighth order, which have an error of their own', source='measured'),
        bar=Bar(high=1e-9),
        runs='50 samples, largest component',
    )


def _richardson(
    base: BaseParameters, at: tuple[np.ndarray, np.ndarray, np.ndarray], weights: np.ndarray, which: int
) -> np.ndarray:
    """Return the derivative with respect to one of q, dq, ddq by differences of eighth order."""
    stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    result = np.zeros_like(at[which])
    step = 0.02
    for j in range(result.shape[1]):
        for k, factor in stencil.items():
            for sign in (1.0, -1.0):
                moved = [part.copy() for part in at]
                moved[which][:, j] += sign * k * step
                scalar = np.einsum('kij,kij->k', base.regressor(*moved), weights)
                result[:, j] += sign * factor * scalar / step
    return result


def generation(options: Options) -> Iterator[Row]:
    """Time generating and compiling in fresh processes, with an empty and a full cache."""
    program = (
        'import sys, time, warnings; warnings.simplefilter("ignore"); sys.path.insert(0, sys.argv[1])\n'
        'from dynamics_helpers import arm, motion\n'
        'from robotid_ros.dynamics import minimal_model\n'
        'robot = arm("ur10"); m = motion(6, 8); wall = time.perf_counter()\n'
        'model = minimal_model(robot, rotor_inertia=True, viscous=True, coulomb=True)\n'
        'model.inverse_dynamics(*m); model.regressor(*m); print(time.perf_counter() - wall)'
    )
    repeats = options.runs(3)
    first, later = [], []
    before = children_seconds()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, 'XDG_CACHE_HOME': cache}
            spent = [
                float(
                    subprocess.run(
                        [sys.executable, '-c', program, str(ROOT / 'test')],
                        env=environment, capture_output=True, text=True, check=True,
                    ).stdout
                )
                for _ in range(4)
            ]  # fmt: skip
        first.append(spent[0])
        later += spent[1:]
    yield Row(
        area=AREA,
        what='generate and compile the minimal model of a UR10, torques and regressor',
        unit='s',
        values=(statistics.median(first),),
        bar=Bar(high=5.0, strict=True),
        runs=f'median wall time of {len(first)} runs',
        note=f'{(children_seconds() - before) / repeats:.1f} s of processor time, with the compiler and three '
        'later uses with their imports',
    )
    yield Row(
        area=AREA,
        what='the same from the cache, in a new process',
        unit='s',
        values=(statistics.median(later),),
        bar=Bar(high=0.05, strict=True),
        runs=f'median wall time of {len(later)} runs',
    )


CASES = (throughput, one_sample, operations, gradient, generation)

if __name__ == '__main__':
    main(AREA, CASES, __doc__)
