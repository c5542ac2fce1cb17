"""Free-floating identification: condition numbers, mass error, wrong priors, times.

python benchmark/bench_free_floating.py [--runs 50] [--seeds 3]
"""

import argparse
import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import time

import numpy as np

from robotid_ros.free_floating import (
    SensorNoise,
    control_trajectory,
    design_excitation,
    identify_target,
    predicted_conditions,
    read_mission,
    simulate,
    study_priors,
)
from robotid_ros.free_floating.criteria import CRITERIA, SI_BOUND
from robotid_ros.free_floating.design import last_body_motion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--runs', type=int, default=50, help='noisy measurements per trajectory')
    parser.add_argument('--seeds', type=int, default=3, help='designs per criterion')
    options = parser.parse_args()
    mission = read_mission()
    robot = mission.true_robot
    settings = {'start': mission.start, 'limits': mission.limits, 'base_frequency': 1.0 / mission.period}

    print(f'bounds: SI {SI_BOUND:.4f}, scaled 1')
    print(f'{"trajectory":<14}{"seed":>5}{"SI":>10}{"scaled":>10}{"evaluations":>13}{"CPU [s]":>9}{"wall [s]":>9}')
    trajectories = {'control': control_trajectory(mission.start, float(mission.limits.velocity.min()))}
    si, scaled = predicted_conditions(robot, trajectories['control'])
    print(f'{"control":<14}{"":>5}{si:>10.2f}{scaled:>10.3f}')
    for criterion in CRITERIA:
        for seed in range(options.seeds):
            spent = time.process_time()
            design = design_excitation(robot, criterion=criterion, rng=np.random.default_rng(seed), **settings)
            spent = time.process_time() - spent
            trajectories.setdefault(criterion, design.trajectory)
            print(
                f'{criterion:<14}{seed:>5}{design.condition_si:>10.4f}{design.condition_scaled:>10.4f}'
                f'{design.evaluations:>13}{spent:>9.2f}{design.seconds:>9.2f}'
            )

    print(f'\nmass error [%] with 1e-4 on base twist and joint rates, {options.runs} runs of 241 samples')
    print(f'{"trajectory":<14}{"estimator":<12}{"rms":>10}{"95 %":>10}{"worst":>10}{"noise-free":>12}')
    for name, trajectory in trajectories.items():
        measured = simulate(robot, trajectory, mission.sample_times(trajectory))
        noisy = [measured.with_noise(SensorNoise(), np.random.default_rng(k)) for k in range(options.runs)]
        for estimator in ('ordinary', 'weighted'):
            masses = [identify_target(robot, data, estimator=estimator).body.mass for data in noisy]
            errors = 100.0 * np.abs(np.array(masses) / robot.body.mass - 1.0)
            exact = identify_target(robot, measured, estimator=estimator)
            recovery = np.abs(exact.unknowns / robot.body.unknowns - 1.0).max()
            print(
                f'{name:<14}{estimator:<12}{np.sqrt(np.mean(errors**2)):>10.4f}{np.quantile(errors, 0.95):>10.4f}'
                f'{errors.max():>10.4f}{recovery:>12.1e}'
            )

    print('\nprior half off in: condition number of the criterion, expected and true (worst of the seeds)')
    for criterion in ('scaled', 'si'):
        worst: dict[str, tuple[float, float]] = {}
        for seed in range(options.seeds):
            for case in study_priors(robot, criteria=[criterion], seed=seed, **settings):
                pair = (
                    (case.expected_scaled, case.true_scaled)
                    if criterion == 'scaled'
                    else (case.expected_si, case.true_si)
                )
                worst[case.prior] = max(worst.get(case.prior, pair), pair, key=lambda both: both[1])
        for prior, (expected, true) in worst.items():
            print(f'{criterion:<8}{prior:<16}{expected:>10.3f}{true:>10.3f}')

    t = np.arange(120) / 12.0
    q, dq = trajectories['scaled'].position(t), trajectories['scaled'].velocity(t)
    model = robot.model
    began = time.process_time()
    for _ in range(100):
        motion, pull_back = last_body_motion(model, q, dq)
        pull_back(motion)
    print(
        '\nmotion of the last body and its reverse derivative, 120 samples: '
        f'{10 * (time.process_time() - began):.2f} ms'
    )
    began = time.process_time()
    simulate(robot, trajectories['scaled'], mission.sample_times(trajectories['scaled']))
    print(f'simulation of 10 s to 1e-12: {1e3 * (time.process_time() - began):.0f} ms')


if __name__ == '__main__':
    main()
