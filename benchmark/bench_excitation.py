"""Condition numbers of optimised excitations, what they cost, and whether any limit is broken.

    python benchmark/bench_excitation.py [--plot FOLDER]

UR10e: 58 base parameters (40 inertial ones with rotor inertia, viscous and Coulomb friction,
offset), 16 s, 5 harmonics, URDF limits and 8 rad/s^2. Anchors, measured on two cores: FIGAROH
1.0.2 with cubic splines 81.7 (19.5) after 460 s, other seeds failing; a published UR10e experiment
of 30 s: 94. Panda: 16 s, 5 harmonics, its published acceleration limits. ER-16: first three
joints, 0.04 Hz, limits of the thesis the method comes from; its masses are not published, so
torque limits are left out.

Violations are counted on a grid of 10 kHz: joint limits from the series themselves, torques from
inverse dynamics and the prior friction.
"""

import argparse
import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib.externals.loky import get_reusable_executor

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.excitation.plots import plot_excitation
from robotid_ros.model import JointLimits, RobotModel

ROOT = Path(__file__).parents[1]


def ur10e() -> RobotModel:
    model = RobotModel.from_urdf(ROOT / 'robotid_ros' / 'robots' / 'ur10e.urdf')
    return replace(model, limits=model.limits.overridden(acceleration=np.full(6, 8.0)))


def panda() -> RobotModel:
    model = RobotModel.from_urdf(ROOT / 'test' / 'robots' / 'panda.urdf')
    published = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
    return replace(model, limits=model.limits.overridden(acceleration=published[: model.n]))


def er16() -> RobotModel:
    inf = np.full(3, np.inf)
    limits = JointLimits(
        lower=np.deg2rad([-180.0, -60.0, -170.0]),
        upper=np.deg2rad([180.0, 60.0, 80.0]),
        velocity=np.deg2rad([145.0, 105.0, 170.0]),
        acceleration=np.deg2rad([50.0, 40.0, 65.0]),
        jerk=inf,
        effort=inf,
    )
    rows = [(np.pi, 0.0, 0.0, 0.0), (np.pi / 2, 0.16, 0.0, -np.pi / 2), (0.0, 0.68, 0.0, 0.0)]
    return RobotModel.from_mdh(rows, name='ER-16', limits=limits)


def processor_seconds() -> float:
    """Return processor time of this process and of those it started and that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def violations(model: RobotModel, trajectory: FourierTrajectory) -> int:
    """Return how many limits are broken anywhere on a grid of 10 kHz."""
    limits, count = model.limits, 0
    times = trajectory.sample_times(10_000.0)
    for part in np.array_split(times, max(1, len(times) // 5000)):
        q, dq, ddq = trajectory.evaluate(part)
        tau = inverse_dynamics(model, q, dq, ddq) + model.damping * dq + model.friction * np.sign(dq)
        broken = [
            q < limits.lower,
            q > limits.upper,
            np.abs(dq) > limits.velocity,
            np.abs(ddq) > limits.acceleration,
            np.abs(tau) > limits.effort,
        ]
        count += int(np.sum(broken))
    return count


def row(name: str, model: RobotModel, config: ExcitationConfig, folder: Path | None) -> None:
    """Design, check and print one line."""
    processor, wall = processor_seconds(), time.perf_counter()
    design = optimize_excitation(model, config)
    wall = time.perf_counter() - wall
    if config.jobs != 1:  # the time of other processes is known once they have ended
        get_reusable_executor().shutdown(wait=True)
    processor = processor_seconds() - processor
    found = design.excitation
    print(
        f'{name:28}{design.base_parameters:6}{found.condition:10.2f}{found.condition_scaled:9.2f}{processor:9.1f}'
        f'{wall:9.1f}{violations(model, design.trajectory):12}',
        flush=True,
    )
    if folder is not None:
        plot_excitation(model, design, folder / f'{name.replace(" ", "-").replace(",", "")}.png')


def main() -> None:
    parser = argparse.ArgumentParser(description='benchmark of the excitation design')
    parser.add_argument('--plot', type=Path, metavar='FOLDER', help='draw every trajectory into this folder')
    folder = parser.parse_args().plot
    print(f'{"":28}{"base":>6}{"cond SI":>10}{"scaled":>9}{"CPU [s]":>9}{"wall [s]":>9}{"violations":>12}')
    sixteen = ExcitationConfig(period=16.0)
    arm = ur10e()
    row('UR10e seed 0, one start', arm, replace(sixteen, starts=1), folder)
    for seed in range(5):
        row(f'UR10e seed {seed}', arm, replace(sixteen, seed=seed), folder)
    row('UR10e seed 0, anywhere', arm, replace(sixteen, start_at_rest=False), folder)
    row('UR10e seed 0, capsules', arm, replace(sixteen, link_radius=0.05, ground=True), folder)
    row('UR10e, two processes', arm, replace(sixteen, jobs=2, starts=16), folder)
    row('Panda', panda(), sixteen, folder)
    row('ER-16, 0.04 Hz', er16(), ExcitationConfig(period=25.0, offset=False), folder)
    row('ER-16, 0.04 Hz, inertial', er16(), ExcitationConfig(
        period=25.0, offset=False, rotor_inertia=False, viscous=False, coulomb=False), folder)  # fmt: skip


if __name__ == '__main__':
    main()
