# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What an arm costs that is not what the model of an identification says: one imperfection after the other.

The demonstration's arm has all of these at once. Here the physics engine moves a UR10e whose bodies differ from the
description by 10 %; each row adds one trait of real arms to those before it. The defaults
identify it from three periods of 10 s and predict another trajectory; beside them stands plain weighted least squares
with Coulomb and viscous friction on the same recordings. The last case puts identified arms into the simulator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmark.arms import limited
from benchmark.row import Row
from robotid_ros.data import ProcessingSettings, Recording, process_recording
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.export.replay import READY, replay
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.model import RobotModel
from robotid_ros.simulation import ArmTruth, Drive, Plant, Sensors, effort_scale, perturb, simulate_trajectory

PERIOD, PERIODS = 10.0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What an arm has beside rigid bodies, Coulomb and viscous friction; no trait means the ideal arm."""

    noise: float = 0.003  # of the effort, as a fraction of the effort limits
    encoder_bits: int = 0  # steps of a turn as a power of two; 0: exact
    breakaway: float = 0.0  # excess over the Coulomb friction, falling off with the speed (Stribeck), relative
    load_share: float = 0.0  # friction for each N m that a joint carries
    ripple: float = 0.0  # amplitude of 100 waves a turn in the torque, as a fraction of the effort limits
    delay: float = 0.0  # of the effort behind the position [s]
    geometry: float = 0.0  # largest error of the link lengths, relative
    # Of the joints, between the motor, which is measured, and the link: a multiple of the effort limits [1/rad].
    stiffness: float = np.inf


STEPS = (
    ('torque noise of 0.3 % of the effort limits', {}),
    ('encoders of 17 bits', {'encoder_bits': 17}),
    ('breakaway 35 % above Coulomb friction, Stribeck', {'breakaway': 0.35}),
    ('friction of 5 % of the load', {'load_share': 0.05}),
    ('torque ripple of 0.5 % of the effort limits', {'ripple': 0.005}),
    ('effort 4 ms late', {'delay': 0.004}),
    ('link lengths wrong by up to 1 %', {'geometry': 0.01}),
    ('flexible joints, 5 mrad at the effort limits', {'stiffness': 200.0}),
)


def true_arm(model: RobotModel, traits: Traits) -> ArmTruth:
    """Return the arm that the physics engine moves."""
    rng = np.random.default_rng(3)
    truth = perturb(model, rng, 0.1, breakaway_ratio=traits.breakaway, geometry_error=traits.geometry)
    effort = model.limits.effort
    drive = Drive(
        load_friction=np.full(model.n, traits.load_share),
        ripple=traits.ripple * effort,
        compliance=1.0 / (traits.stiffness * effort),
        delay=traits.delay,
    )
    return replace(truth, drive=drive)


def recorded(
    plant: Plant, traits: Traits, trajectory: FourierTrajectory, rng: np.random.Generator, periods: int = PERIODS
) -> Recording:
    """Let the arm follow a trajectory and return what its encoders and drives show, without velocities."""
    time = np.arange(0.0, periods * PERIOD + 0.01, 0.02)
    sensors = Sensors.typical(
        plant.truth.model,
        plant.truth.drive_gain,
        encoder_bits=traits.encoder_bits,
        position_noise=0.0,
        velocity_noise=0.0,
        effort_noise=traits.noise,
    )
    run = simulate_trajectory(plant, time, *trajectory.evaluate(time), sensors=sensors, rng=rng)
    return replace(run.recording, velocity=None)


def one_after_the_other(quick: bool) -> Iterator[Row]:
    """Identify the arm with each trait added to those before."""
    model = limited('ur10e')
    design = ExcitationConfig(period=PERIOD, starts=1, iterations=60, start_at_rest=True)
    trajectories = [optimize_excitation(model, replace(design, seed=seed)).trajectory for seed in (1, 11)]
    traits, steps = Traits(), (STEPS[0], STEPS[-1]) if quick else STEPS
    plain = IdentificationConfig(friction='coulomb_viscous+offset', estimator='wls')
    for number, (name, change) in enumerate(steps):
        traits = replace(traits, **change)
        rng = np.random.default_rng(7)
        plant, settings = Plant(true_arm(model, traits), model), ProcessingSettings(period=PERIOD)
        training, validation = (
            process_recording(recorded(plant, traits, each, rng), settings) for each in trajectories
        )
        found, other = (identify(training, model, validation=validation, config=config) for config in (None, plain))
        error, beside = (result.metrics['validation'].relative_error_total for result in (found, other))
        yield Row(
            what=f'torque error on another trajectory: {"and " if number else ""}{name}',
            unit='%',
            values=error,
            anchor='plain weighted least squares, Coulomb and viscous friction',
            theirs=beside,
            runs='one run, defaults, UR10e in MuJoCo',
            note=f'friction chosen: {found.friction.name}; {"usable" if found.usable else "not usable"}',
        )


def replayed(quick: bool) -> Iterator[Row]:
    """Identify arms that are not as described; replay another motion with both, driven by a noisy torque."""
    for name in ('ur10e',) if quick else ('ur10e', 'panda', 'xarm7'):
        described = limited(name)
        # Rotors as heavy as drives of such torque have them, geared down; a URDF has none.
        rotors = described.with_inertial(described.inertial, rotor_inertia=0.003 * effort_scale(described))
        plant = Plant(perturb(rotors, np.random.default_rng(3), 0.1, breakaway_ratio=0.2), described)
        datasets = []
        for seed, periods in ((1, PERIODS), (11, 1)):
            design = ExcitationConfig(period=PERIOD, starts=1, iterations=60, seed=seed, start_at_rest=True)
            trajectory = optimize_excitation(described, design).trajectory
            rng = np.random.default_rng(seed)
            datasets.append(process_recording(recorded(plant, Traits(encoder_bits=17), trajectory, rng, periods)))
        found = replay(described, identify(datasets[0], described), datasets[1])
        joints = ' '.join(f'{value:.2g}' for value in found.identified.relative)
        yield Row(
            what=f'{name} replayed in MuJoCo: motion missed in windows of {found.window:g} s',
            unit='%',
            values=found.identified.relative_total,
            high=READY,
            runs='identified from 30 s, replayed on 10 s of another excitation',
            note=f'bodies 10 % off, rotors and Stribeck friction that the description lacks; joint by joint {joints}',
        )


CASES = (one_after_the_other, replayed)
