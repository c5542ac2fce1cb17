"""Accuracy and speed of the kinematic calibration on simulated arms.

    python benchmark/bench_calibration.py [--seeds 12]

Accuracy: root mean square distance at held-out poses without noise, over several arms with about
2 mm of error, measured with 0.1 mm of noise per coordinate; beside it the averaging of 3x23
systems that the method's original text describes, and the limit sigma sqrt(p / N).
Speed: processor time of one calibration, everything from the placement of the frame to the result.
"""

import argparse
import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import time

import numpy as np

from robotid_ros.calibration import CalibrationResult, MeasuredPoints, calibrate
from robotid_ros.calibration.chain import chain_of_dh
from robotid_ros.calibration.example import SimulatedArm, example_arm, example_table
from robotid_ros.calibration.pose_selection import select_poses
from robotid_ros.calibration.problem import Problem, State

NOISE = 1e-4


def rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def averaged(arm: SimulatedArm, points: MeasuredPoints, held_out: MeasuredPoints, result: CalibrationResult) -> float:
    """Held-out error of the mean of every pose's own minimum-norm solution, iterated; known base and target."""
    chain = chain_of_dh(arm.nominal)
    problem = Problem.of(points, chain, result.terms)
    tools = arm.tool[None].copy()
    values = np.array(chain.nominal)
    for _ in range(10):
        state = State(frames=np.eye(4)[None], tools=tools, geometry=values, coefficients=np.zeros(0))
        residual, jacobian = problem.linearise(state)
        columns = jacobian[:, :3, problem.blocks[2]]
        values = values + np.mean(
            [np.linalg.lstsq(j, r[:3], rcond=1e-6)[0] for j, r in zip(columns, residual, strict=True)], axis=0
        )
    state = State(frames=np.eye(4)[None], tools=tools, geometry=values, coefficients=np.zeros(0))
    left = Problem.of(held_out, chain, result.terms).residual(state)
    return float(np.sqrt(np.mean(np.square(left).sum(axis=1))))


def bench_accuracy(seeds: int) -> None:
    print(f'held-out rms [mm], {seeds} arms, noise {1e3 * NOISE} mm per coordinate')
    print(f'{"poses":>6} {"frame":<8} {"before":>8} {"averaging":>10} {"random":>8} {"selected":>9} {"limit":>7}')
    for count in (30, 100):
        for frame in ('known', 'unknown'):
            chosen = select_poses(example_table(), count, frame=frame, target=np.array([0.06, -0.04, 0.11])).q
            rows: dict[str, list[float]] = {'before': [], 'averaging': [], 'random': [], 'selected': []}
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                arm = example_arm(rng, known_frame=frame == 'known')
                held_out = arm.measure(arm.configurations(300, rng), rng, noise=0.0)
                for name, q in (('random', arm.configurations(count, rng)), ('selected', chosen)):
                    points = arm.measure(q, rng, noise=NOISE)
                    result = calibrate(arm.nominal, points, frame=frame, held_out=held_out, folds=0)
                    rows[name].append(result.held_out.after.rms)
                rows['before'].append(result.held_out.before.rms)
                if frame == 'known':
                    rows['averaging'].append(averaged(arm, points, held_out, result))
            limit = NOISE * np.sqrt(result.identifiable / count)
            means = {name: f'{1e3 * rms(values):.3f}' if values else '-' for name, values in rows.items()}
            print(
                f'{count:>6} {frame:<8} {means["before"]:>8} {means["averaging"]:>10} {means["random"]:>8} '
                f'{means["selected"]:>9} {1e3 * limit:>7.3f}'
            )


def bench_speed() -> None:
    print('\nprocessor time of calibrate() [s]: median of 7')
    print(f'{"poses":>6} {"measured":<10} {"parameters":>10} {"fit":>7} {"with terms and cross-validation":>32}')
    for count in (100, 1000):
        for full_pose in (False, True):
            rng = np.random.default_rng(0)
            arm = example_arm(rng)
            points = arm.measure(arm.configurations(count, rng), rng, angle_noise=1e-4 if full_pose else None)
            times = []
            for folds in (0, 5):
                runs = []
                for _ in range(7):
                    begun = time.process_time()
                    result = calibrate(arm.nominal, points, folds=folds)
                    runs.append(time.process_time() - begun)
                    assert result.converged
                times.append(float(np.median(runs)))
            kind = 'poses' if full_pose else 'positions'
            print(f'{count:>6} {kind:<10} {result.identifiable:>10} {times[0]:>7.3f} {times[1]:>32.3f}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=12)
    options = parser.parse_args()
    bench_accuracy(options.seeds)
    bench_speed()
