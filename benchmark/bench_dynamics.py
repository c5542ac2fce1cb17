"""Throughput and length of the generated dynamics, beside Pinocchio's loop in the same process.

    python benchmark/bench_dynamics.py

Medians of processor time, of runs taken in turn on one core. Without Pinocchio its rows and the ratios stay empty.
"""

import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / 'test'))

from dynamics_helpers import LWR4_MDH, PUMA560_MDH, UR10_DH, PinocchioArm, arm, motion

from robotid_ros.dynamics import base_parameters, full_regressor, inverse_dynamics, minimal_model
from robotid_ros.dynamics.compiler import find_compiler
from robotid_ros.dynamics.newton_euler import newton_euler
from robotid_ros.model import RobotModel

SAMPLES = 10_000
RUNS = 9
DRIVES = {'rotor_inertia': True, 'viscous': True, 'coulomb': True}


def medians(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return median processor seconds of each task; the tasks take turns, so that a busy machine treats all alike."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(RUNS):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def operations() -> None:
    """Print the operation counts."""
    print('operations of inverse dynamics with viscous and Coulomb friction and rotor inertia')
    arms = (
        ('UR10', RobotModel.from_dh(UR10_DH)),
        ('PUMA 560', RobotModel.from_mdh(PUMA560_MDH)),
        ('KUKA LWR4', RobotModel.from_mdh(LWR4_MDH)),
        ('Panda', arm('panda')),
        ('UR10e (URDF)', arm('ur10e')),
    )
    print(f'  {"":14}{"mul":>6}{"add":>6}{"sin,cos":>9}{"parameters":>12}{"coefficients":>14}')
    for name, robot in arms:
        model = minimal_model(robot, **DRIVES)
        counted = model.operations
        print(
            f'  {name:14}{counted.multiplications:6}{counted.additions:6}{counted.trigonometric:9}'
            f'{len(model.base.independent):12}{len(model.coefficient_map):14}'
        )
        if name == 'UR10':
            regressor = model.base.operations
            print(f'    its base regressor: {regressor.multiplications} mul, {regressor.additions} add')


def throughput() -> None:
    """Print samples a second of a UR10, 10 000 at once."""
    robot = arm('ur10')
    base, drives = base_parameters(robot), base_parameters(robot, **DRIVES)
    model = minimal_model(robot)
    q, dq, ddq = motion(robot.n, SAMPLES)
    rows, rows_drives = np.empty((SAMPLES, 6, len(base.names))), np.empty((SAMPLES, 6, len(drives.names)))
    torques = np.empty((SAMPLES, 6))
    weights = np.random.default_rng(0).normal(size=rows.shape)
    tasks: dict[str, Callable[[], object]] = {
        'inverse dynamics, numpy kernel': lambda: model.inverse_dynamics(q, dq, ddq, out=torques, compiled=False),
        'inverse dynamics, numpy recursion': lambda: newton_euler(robot, q, dq, ddq),
        'inverse dynamics, inverse_dynamics(model, ...)': lambda: inverse_dynamics(robot, q, dq, ddq),
        'base regressor, numpy kernel': lambda: base.regressor(q, dq, ddq, out=rows, compiled=False),
        'standard regressor, numpy recursion': lambda: full_regressor(robot, q, dq, ddq),
    }
    if find_compiler() is not None:
        tasks |= {
            'inverse dynamics, compiled': lambda: model.inverse_dynamics(q, dq, ddq, out=torques),
            'base regressor, compiled': lambda: base.regressor(q, dq, ddq, out=rows),
            'base regressor with friction and rotors, compiled': lambda: drives.regressor(q, dq, ddq, out=rows_drives),
            'gradient of the base regressor, compiled': lambda: base.regressor_vjp(q, dq, ddq, weights),
        }
    anchors: dict[str, str] = {}
    try:
        oracle = PinocchioArm(robot)
    except ImportError:
        pass
    else:
        pin, data = oracle.pin, oracle.data
        every = np.empty((SAMPLES, 6, 60))

        def rnea() -> None:
            for k in range(SAMPLES):
                torques[k] = pin.rnea(oracle.model, data, q[k], dq[k], ddq[k])

        def regressor() -> None:
            for k in range(SAMPLES):
                every[k] = pin.computeJointTorqueRegressor(oracle.model, data, q[k], dq[k], ddq[k])

        tasks |= {'pinocchio rnea, loop': rnea, 'pinocchio regressor, loop': regressor}
        anchors = {'inverse dynamics': 'pinocchio rnea, loop', 'regressor': 'pinocchio regressor, loop'}
    measured = medians(tasks)
    print(f'\nsamples a second, UR10, {SAMPLES} samples, one core, median of {RUNS} runs in turn, processor time')
    for name, seconds in sorted(measured.items(), key=lambda item: item[1]):
        key = next((k for k in anchors if k in name), None)
        ratio = f'{measured[anchors[key]] / seconds:8.1f} x' if key and 'pinocchio' not in name else ''
        print(f'  {name:52}{SAMPLES / seconds:14,.0f}{ratio}')
    if 'base regressor, compiled' in measured:
        ratio = measured['gradient of the base regressor, compiled'] / measured['base regressor, compiled']
        print(f'  gradient takes {ratio:.2f} times the forward pass')


def generation() -> None:
    """Print the time of generating and compiling, in fresh processes with an empty and a full cache."""
    program = (
        'import sys, time, warnings; warnings.simplefilter("ignore"); sys.path.insert(0, sys.argv[1])\n'
        'from dynamics_helpers import arm, motion\n'
        'from robotid_ros.dynamics import minimal_model\n'
        'robot = arm("ur10"); m = motion(6, 8); start = time.perf_counter()\n'
        'model = minimal_model(robot, rotor_inertia=True, viscous=True, coulomb=True)\n'
        'model.inverse_dynamics(*m); model.regressor(*m); print(time.perf_counter() - start)'
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, 'XDG_CACHE_HOME': cache}
        tests = str(Path(__file__).parents[1] / 'test')
        spent = []
        for _ in range(4):
            done = subprocess.run(
                [sys.executable, '-c', program, tests], env=environment, capture_output=True, text=True, check=True
            )
            spent.append(float(done.stdout))
    print(
        f'\ngenerate and compile a UR10 (torques and regressor): first {spent[0]:.2f} s, '
        f'then {min(spent[1:]) * 1e3:.0f} ms'
    )


if __name__ == '__main__':
    warnings.simplefilter('ignore')
    operations()
    throughput()
    generation()
