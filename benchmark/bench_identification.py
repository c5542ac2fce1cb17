"""Identification in figures: time from arrays to result, physical consistency, searches, error bars, a real arm.

    python benchmark/bench_identification.py [--trials 200] [--data FOLDER]

The figures of the first part are processor seconds on one core.

Anchors: FIGAROH builds its regressor alone at 58 000 samples/s; the bee colony's publication has a
match of 86.35 / 89.96 / 89.24 % on three joints; weighted least squares with 58 parameters leaves
4.06 3.73 2.19 1.08 0.64 1.84 N m on the second half of the UR10 recording, the published model
4.28 4.71 1.77 0.76 0.75 1.32 N m.
"""

import argparse
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import time
from importlib import resources
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from robotid_ros.data import Dataset, process_recording, read_recording
from robotid_ros.dynamics import base_parameters, inverse_dynamics, standard_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationConfig, Metrics, identify, torque_metrics
from robotid_ros.identification.bee_colony import BeeColony, bee_colony_friction, separable_friction
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.least_squares import least_squares, normal_equations
from robotid_ros.identification.physical import physical_parameters
from robotid_ros.identification.rigid import ModelRows
from robotid_ros.identification.samples import as_samples
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters

sys.path.insert(0, str(Path(__file__).parents[1] / 'test'))
from er16_helpers import er16, er16_data, er16_design, er16_truth

PUBLISHED = np.array([4.06, 3.73, 1.77, 0.76, 0.64, 1.32])


def seven_axes(rng: np.random.Generator) -> RobotModel:
    """Return an arm of seven axes with the joint pattern of an iiwa or a Panda, of random solid bodies."""
    alpha = [0.0, -np.pi / 2, np.pi / 2, np.pi / 2, -np.pi / 2, np.pi / 2, np.pi / 2]
    rows = [
        (alpha[k], 0.0825 * (k == 3) - 0.0825 * (k == 4), d, 0.0)
        for k, d in enumerate([0.33, 0, 0.32, 0, 0.38, 0, 0.1])
    ]
    arm = RobotModel.from_mdh(rows)
    masses = np.linspace(4.0, 1.0, 7)
    bodies = []
    for mass in masses:
        inertia = mass * 0.004 * (np.eye(3) + 0.2 * np.diag(rng.uniform(0.0, 1.0, 3)))
        bodies.append(inertial_parameters(mass, rng.uniform(-0.08, 0.08, 3), inertia))
    return arm.with_inertial(np.array(bodies), rotor_inertia=np.linspace(0.5, 0.05, 7))


def motion(n: int, samples: int, rate: float, rng: np.random.Generator, period: float = 20.0) -> tuple[np.ndarray, ...]:
    t = np.arange(samples) / rate
    w = 2.0 * np.pi / period * np.arange(1, 6)
    phase, size = rng.uniform(0, 2 * np.pi, (n, 5)), rng.uniform(0.3, 1.0, (n, 5)) / np.arange(1, 6)
    angle = t[:, None, None] * w + phase
    return (
        t,
        np.sum(size * np.sin(angle), axis=2),
        np.sum(size * w * np.cos(angle), axis=2),
        -np.sum(size * w * w * np.sin(angle), axis=2),
    )


def coloured(shape: tuple[int, int], scale: float, pole: float, rng: np.random.Generator) -> np.ndarray:
    """First-order coloured noise of a given standard deviation."""
    noise = lfilter([np.sqrt(1.0 - pole * pole)], [1.0, -pole], rng.normal(size=(shape[0] + 500, shape[1])), axis=0)
    return scale * noise[500:]


def make(arm: RobotModel, fields: tuple[np.ndarray, ...], torque: np.ndarray, rate: float) -> Dataset:
    t, q, dq, ddq = fields
    return Dataset(joint_names=arm.joint_names, time=t, q=q, dq=dq, ddq=ddq, tau=torque, rate=rate, cutoff=rate / 2)


def bench_speed() -> None:
    rng = np.random.default_rng(0)
    arm = seven_axes(rng)
    fields = motion(7, 100_000, 1000.0, rng)
    friction = 3.0 * np.sign(fields[2]) + 2.0 * fields[2]
    clean = inverse_dynamics(arm, *fields[1:]) + friction
    data = make(arm, fields, clean + coloured(clean.shape, 0.3, 0.9, rng), 1000.0)
    base = base_parameters(arm, rotor_inertia=True)
    base.regressor(*(x[:8] for x in fields[1:]))  # the kernel is built once per arm
    model = friction_model('coulomb_viscous+offset')
    shape = np.zeros((7, 0))
    begin = time.process_time()
    samples = as_samples([data], arm, standstill_speed=0.02, standstill_weight=0.01)
    channel = Channel.of(samples, None)
    rows = ModelRows(base, samples, channel)
    fit = least_squares(rows, model, shape, covariance=False)
    bare = time.process_time() - begin
    begin = time.process_time()
    fit = least_squares(ModelRows(base, samples, channel), model, shape)
    full = time.process_time() - begin
    count = len(base.independent) + 21
    print(f'7 axes, 100 000 samples, {count} parameters: WLS {bare:.2f} s, with covariance {full:.2f} s (reach 1 s)')
    matrix, vector, square = normal_equations(rows, fit, shape)
    begin = time.process_time()
    physical = physical_parameters(
        matrix, vector, square, base.map, arm.with_inertial(arm.inertial * 1.3), friction=model
    )
    seconds = time.process_time() - begin
    print(f'physically consistent: {seconds:.2f} s (reach 3), torque error {physical.error_ratio:.4f} (reach 1.02)')
    begin = time.process_time()
    config = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)
    identify(data, arm, config=config)
    print(f'identify, everything included: {time.process_time() - begin:.2f} s')


def bench_searches() -> None:
    rng = np.random.default_rng(1)
    model = friction_model('daemi_heimann')
    t = np.linspace(0.0, 20.0, 2000)
    velocity = np.stack([1.5 * np.sin(t), np.cos(1.3 * t), 0.8 * np.sin(0.7 * t) + 0.5 * np.cos(2.1 * t)], axis=1)
    true = np.array([[5.0, 3.0, 4.0, 8.0], [12.0, 6.0, -5.0, 15.0], [3.0, 2.0, 2.0, 5.0]])
    torque = model.torque(velocity, true) + rng.normal(0.0, 0.3, velocity.shape)
    direct = separable_friction(model, velocity, torque)
    print(f'separable least squares: {direct.evaluations} evaluations, {direct.seconds:.2f} s')
    for everything in (False, True):
        bees = bee_colony_friction(model, velocity, torque, rng, colony=BeeColony(), everything=everything)
        excess = 100.0 * (bees.cost / direct.cost - 1.0)
        what = 'all four parameters' if everything else 'the shape, linear ones solved'
        print(
            f'bee colony over {what}: {bees.evaluations} evaluations, {bees.seconds:.2f} s, cost +{excess.round(2)} %'
        )


def bench_coverage(trials: int) -> None:
    path = resources.files('robotid_ros') / 'robots' / 'ur10e.urdf'
    arm = RobotModel.from_urdf(str(path))
    base = base_parameters(arm, rotor_inertia=True)
    true = base.map @ standard_parameters(arm, rotor_inertia=True)
    config = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)
    for pole in (0.0, 0.9, 0.98):
        hits, count, white = 0, 0, 0
        for trial in range(trials):
            rng = np.random.default_rng(trial)
            fields = motion(6, 2000, 100.0, rng)
            level = np.array([8.0, 8.0, 5.0, 2.0, 2.0, 2.0])
            clean = inverse_dynamics(arm, *fields[1:]) + level * np.sign(fields[2])
            clean = clean + level * fields[2]
            data = make(arm, fields, clean + coloured(clean.shape, 1.0, pole, rng) * level * 0.1, 100.0)
            samples = as_samples([data], arm, standstill_speed=0.02, standstill_weight=0.01)
            channel = Channel.of(samples, None)
            model = friction_model(config.friction)
            fit = least_squares(ModelRows(base, samples, channel), model, np.zeros((6, 0)))
            parameters = np.concatenate([level[:, None], level[:, None], 0.0 * level[:, None]], axis=1)
            error = np.concatenate([fit.base_values, fit.friction_parameters.ravel()])
            error = error - np.concatenate([true, parameters.ravel()])
            hits += int((np.abs(error) < 1.96 * fit.std).sum())
            rows = ModelRows(base, samples, channel)
            matrix = normal_equations(rows, fit, np.zeros((6, 0)))[0]
            white += int((np.abs(error) < 1.96 * np.sqrt(np.diag(np.linalg.inv(matrix)))).sum())
            count += len(error)
        print(
            f'coverage of 95 % intervals, noise with a pole at {pole}: {100 * hits / count:.1f} % '
            f'(white-noise formula {100 * white / count:.1f} %), {trials} trials'
        )


def bench_er16() -> None:
    truth = er16_truth(0)
    print('ER-16-like arm, Daemi-Heimann friction, match in validation (published 86.35 / 89.96 / 89.24, reach 97 %):')
    cases = {
        '50 periods': ({}, {'periods': 50, 'effort_noise': 3e-3}),
        '4 periods of a third of the noise': ({}, {}),
        'the same with a rest in every period': ({'start_at_rest': True}, {}),
    }
    for text, (design, data) in cases.items():
        training, validation = (
            er16_data(truth, er16_design(seed, **design), number, **data) for number, seed in ((1, 1), (2, 11))
        )
        predicted = truth.torque(validation.q, validation.dq, validation.ddq)
        best = torque_metrics(validation.joint_names, validation.tau, predicted)
        print(f'  {text}: the true model {_match(best)}')
        for friction, estimator in (('daemi_heimann', 'wls'), ('daemi_heimann', 'bee-colony'), ('auto', 'wls')):
            result = identify(training, er16(), friction=friction, estimator=estimator, validation=validation)
            print(f'    friction {friction}, {estimator}: {_match(result.metrics["validation"])}')


def _match(metrics: Metrics) -> str:
    return ' / '.join(f'{value:.2f}' for value in metrics.match)


def bench_real(folder: Path) -> None:
    arm = RobotModel.from_urdf(folder / 'ur10.urdf')
    recording = read_recording(folder)
    half = len(recording) // 2
    training = process_recording(recording.slice(0, half))
    validation = process_recording(recording.slice(half, len(recording)))
    steps = {
        'weighted least squares, exact sign, every sample alike': {
            'friction': 'coulomb_viscous+offset',
            'torque_bandwidth': -1.0,
            'standstill_weight': 1.0,
        },
        'samples near standstill count less': {'friction': 'coulomb_viscous+offset', 'torque_bandwidth': -1.0},
        'load-dependent Coulomb friction': {'friction': 'coulomb_viscous+load+offset', 'torque_bandwidth': -1.0},
        'model through the torque channel, smooth sign where better': {'friction': 'coulomb_viscous+load+offset'},
        'defaults: speed terms and torque ripple where the data ask for them': {},
        'defaults, physically consistent': {'estimator': 'physical'},
    }
    print('UR10, first half to second half, N m per joint; best of what is published: ', PUBLISHED)
    for text, settings in steps.items():
        begin = time.perf_counter()
        result = identify(training, arm, validation=validation, config=IdentificationConfig(**settings))
        rmse = ' '.join(f'{value:.2f}' for value in result.metrics['validation'].rmse)
        print(f'  {rmse}  {text} ({time.perf_counter() - begin:.1f} s)')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--trials', type=int, default=200)
    parser.add_argument('--data', type=Path, default=Path(__file__).parents[2] / 'shared' / 'data' / 'ur10_exciting')
    options = parser.parse_args()
    bench_speed()
    bench_searches()
    bench_er16()
    bench_coverage(options.trials)
    if options.data.is_dir():
        bench_real(options.data)
    else:
        print(f'no recording in {options.data}; the real arm is left out')


if __name__ == '__main__':
    main()
