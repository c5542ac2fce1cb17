# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters of the simulated arm, and the arm, sensors and follower they describe."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description
from robotid_ros.model.robot_config import RobotConfig, configured_arm
from robotid_ros.settings import Settings, setting
from robotid_ros.simulation import (
    LAWS,
    ArmTruth,
    Drive,
    Plant,
    Sensors,
    effort_scale,
    nominal_truth,
    perturb,
    prior_friction,
    start_position,
)
from robotid_ros.simulation.controller import SimulatedController
from robotid_ros.simulation.plant import FloatingPlant

if TYPE_CHECKING:
    from robotid_ros.free_floating import SensorNoise

_DEFAULT_ROBOT = 'ur10e'
_fixed = partial(setting, read_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedArmConfig(Settings):
    """Everything about the simulated arm that can be set; all of it before the start."""

    error = ModelError

    robot: str = _fixed(
        '', f"URDF file, or the name of a packaged one; empty for the robot configuration's, or {_DEFAULT_ROBOT}"
    )
    tip: str = _fixed('', 'link at the end of the chain; empty for the last one')
    mission: str = _fixed(
        '',
        "mission file of a free-floating robot, or 'iiwa14_space.yaml', the packaged one: its arm, as described and "
        'without friction, moves on its free base with the true target; empty for an arm on the ground',
    )
    initial_position: tuple[float, ...] = _fixed(
        (), 'where the arm starts; empty for zero, or the nearest clear of the limits', unit='rad or m'
    )
    physics_rate: float = _fixed(1000.0, 'steps of the physics', unit='Hz', range=(100.0, 20000.0))
    publish_rate: float = _fixed(500.0, 'joint states; a divisor of physics_rate', unit='Hz', range=(1.0, 20000.0))
    bandwidth: float = _fixed(30.0, 'of the position controller', unit='Hz', range=(0.5, 1000.0))
    trajectory_replacement: str = _fixed(
        'immediate',
        'how a new trajectory replaces a running one: at once, or blended as the newest controllers do',
        choices=('immediate', 'blend'),
    )
    interpolate_from: str = _fixed(
        'measured',
        'where the way to the first point of a new trajectory begins: at the measured state, or at the last command '
        '(interpolate_from_desired_state)',
        choices=('measured', 'commanded'),
    )
    enforce_limits: bool = _fixed(
        False, "clamp commands to the velocity limits, as ros2_control's enforce_command_limits does"
    )
    effort_content: str = _fixed(
        'torque',
        "what the effort of the joint states holds, unless the robot configuration's effort says it: joint torque "
        '[N m] or motor current [A]',
        choices=('torque', 'current'),
    )
    inertial_perturbation: float = _fixed(
        0.1, 'how far masses and inertias are drawn from those of the URDF, relative', range=(0.0, 0.3)
    )
    friction_perturbation: float = _fixed(
        0.2, 'how far friction and rotor inertias are drawn from those of the URDF, relative', range=(0.0, 0.9)
    )
    friction_law: str = _fixed('coulomb_viscous', 'of the joints, in a typical amount', choices=LAWS)
    breakaway_ratio: float = _fixed(
        0.0, "Stribeck's excess of the breakaway over the Coulomb friction, relative", range=(0.0, 5.0)
    )
    geometry_error: float = _fixed(
        0.0, 'how far link lengths are drawn from those of the URDF, relative', range=(0.0, 0.1)
    )
    load_friction: float = _fixed(0.0, 'friction per torque that a joint carries', range=(0.0, 1.0))
    torque_ripple: float = _fixed(
        0.0,
        'amplitude of a ripple of 100 waves a turn (or metre), as a fraction of the effort limits',
        range=(0.0, 1.0),
    )
    deflection: float = _fixed(
        0.0, 'of a joint between motor and link at its effort limit', unit='rad or m', range=(0.0, 0.1)
    )
    effort_delay: float = _fixed(
        0.0, 'of the effort behind the position, in whole joint states', unit='s', range=(0.0, 0.1)
    )
    encoder_bits: int = _fixed(19, 'encoder steps per turn (or metre) as a power of 2; 0: exact', range=(0, 32))
    position_noise: float = _fixed(2e-5, 'standard deviation', unit='rad or m', range=(0.0, 0.1))
    velocity_noise: float = _fixed(1e-3, 'standard deviation', unit='rad/s or m/s', range=(0.0, 1.0))
    effort_noise: float = _fixed(3e-3, 'standard deviation, as a fraction of the effort limits', range=(0.0, 1.0))
    torque_noise: float = _fixed(
        1e-3,
        'disturbance at the joints that the effort does not show: standard deviation, as a fraction of the '
        'effort limits',
        range=(0.0, 1.0),
    )
    seed: int = _fixed(0, 'of the perturbation and of the noise', range=(0, 2**31 - 1))
    truth_file: str = _fixed('', 'where to write the true parameters (YAML); empty for nowhere')
    speed: float = _fixed(
        1.0,
        'simulated seconds per second; with publish_clock only while the arm follows a trajectory',
        range=(0.01, 100.0),
    )
    publish_clock: bool = _fixed(False, 'publish the simulated time on /clock')
    clock_rate: float = _fixed(100.0, 'of /clock, in simulated time', unit='Hz', range=(1.0, 1000.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFaults(Settings):
    """Faults of the simulated controller and of what is around the arm; they can be set while it runs."""

    error = ModelError

    controller_active: bool = setting(
        True, 'an inactive controller ignores trajectories, and the arm keeps its last command'
    )
    controller_speed: float = setting(
        100.0, 'speed scaling of the controller, which it does not announce', unit='%', range=(0.0, 100.0)
    )
    controller_path_tolerance: float = setting(
        0.0,
        'how far a joint may be from its reference before the controller holds it where it is; 0: any distance',
        unit='rad or m',
        range=(0.0, 10.0),
    )
    message_delay: float = setting(0.0, 'of every trajectory on its way', unit='s', range=(0.0, 5.0))
    wall_joint: str = setting('', 'joint that runs into a wall; empty for none')
    wall_position: float = setting(0.0, 'where the wall begins', unit='rad or m')


class SimulatedArmParts:
    """What the node drives: the arm that the parameters describe, with the text of its URDF, sensors and controller.

    A robot configuration gives joints, limits, torque constants, gear ratios and the meaning of effort. A ModelError
    says which parameter, or what of the URDF, cannot be used. ``shows_current``, shape (n,), marks the joints whose
    effort holds the motor current; ``steps`` are those of the physics for each joint state.
    """

    def __init__(self, config: SimulatedArmConfig, robot: RobotConfig | None) -> None:
        self.steps = round(config.physics_rate / config.publish_rate)
        if self.steps < 1 or abs(self.steps * config.publish_rate - config.physics_rate) > 1e-9 * config.physics_rate:
            raise ModelError(
                f"parameter 'publish_rate': expected a divisor of physics_rate ({config.physics_rate:g} Hz), "
                f'got {config.publish_rate:g} Hz'
            )
        # Truth and noise have streams of their own: the arm stays the same whatever is measured.
        truth_rng, torque_rng, self.sensor_rng = (
            np.random.default_rng(seed) for seed in np.random.SeedSequence(config.seed).spawn(3)
        )
        self.plant: Plant | FloatingPlant
        self.base_noise: SensorNoise | None = None
        noise, given = (config.position_noise, config.velocity_noise), config.initial_position
        rates = {'rate': config.physics_rate, 'bandwidth': config.bandwidth}
        if config.mission:
            from robotid_ros.free_floating import read_mission  # late: few robots float

            mission = read_mission(config.mission)
            model, self.base_noise = mission.true_robot.model, mission.noise
            self.sensor_rng = np.random.default_rng(config.seed)
            noise = mission.noise.joint_position, mission.noise.joint_velocity
            given = given or tuple(mission.start.tolist())
            self.truth, self.plant = nominal_truth(model), FloatingPlant(model, **rates)
            description, effort_content = mission.robot.arm.source, dict.fromkeys(model.joint_names, 'torque')
        else:
            wanted = config.robot or (robot.urdf if robot is not None else None) or _DEFAULT_ROBOT
            model = configured_arm(arm_description(wanted), robot, tip=config.tip)
            self.truth = _drawn(config, model, robot, truth_rng)
            torque_noise = config.torque_noise * effort_scale(model)
            self.plant = Plant(self.truth, model, torque_noise=torque_noise, rng=torque_rng, **rates)
            description, effort_content = model.source, dict(robot.effort) if robot is not None else {}
        self.description = description or ''
        start = _initial_position(given, model)
        self.sensors = Sensors.typical(
            model,
            self.truth.drive_gain,
            encoder_bits=config.encoder_bits,
            position_noise=noise[0],
            velocity_noise=noise[1],
            effort_noise=config.effort_noise,
        )
        self.controller = SimulatedController(
            model.joint_names,
            start,
            blend=config.trajectory_replacement == 'blend',
            cycle=1.0 / config.publish_rate,
            from_command=config.interpolate_from == 'commanded',
            velocity_limits=model.limits.velocity if config.enforce_limits else None,
        )
        shown = [effort_content.get(name, config.effort_content) == 'current' for name in model.joint_names]
        self.shows_current = np.array(shown)
        still = np.zeros((1, model.n))
        self.plant.reset(self.of_links((start[None], still, still))[0])

    def of_links(self, reference: tuple[Array, Array, Array]) -> Array:
        """Return where the links are when the motors follow a reference, each part of shape (N, n) [rad or m].

        The plant leads links and a real controller motors. They stand off by the torque over the stiffness of the
        joint, here the torque of the description without friction: what is left is about a milliradian.
        """
        compliance = self.truth.drive.compliance
        if not compliance.any():
            return reference[0]
        from robotid_ros.dynamics import inverse_dynamics  # late: it brings a compiler, and few arms give way

        links: Array = reference[0] - compliance * inverse_dynamics(self.plant.nominal, *reference)
        return links


def _drawn(
    config: SimulatedArmConfig, model: RobotModel, robot: RobotConfig | None, rng: np.random.Generator
) -> ArmTruth:
    """Return the true arm that the parameters draw from a description."""
    constants = robot.torque_constants if robot is not None else {}
    given = np.array([constants.get(name, np.nan) for name in model.joint_names])
    truth = perturb(
        model,
        rng,
        config.inertial_perturbation,
        friction_scale=config.friction_perturbation,
        breakaway_ratio=config.breakaway_ratio,
        geometry_error=config.geometry_error,
        friction=prior_friction(model, config.friction_law),
        torque_constant=None if np.isnan(given).any() else given,
    )
    effort = effort_scale(model)
    drive = Drive(
        load_friction=np.full(model.n, config.load_friction),
        ripple=config.torque_ripple * effort,
        compliance=config.deflection / effort,
        delay=round(config.effort_delay * config.publish_rate) / config.publish_rate,
    )
    return replace(truth, drive=drive, provenance={**truth.provenance, 'seed': config.seed})


def _initial_position(given: tuple[float, ...], model: RobotModel) -> Array:
    lower, upper = model.limits.lower, model.limits.upper
    if not given:
        return start_position(model)
    if len(given) != model.n:
        raise ModelError(f"parameter 'initial_position': expected {model.n} numbers, got {len(given)}")
    start = np.array(given)
    outside = np.flatnonzero(~((start >= lower) & (start <= upper)))
    if len(outside) > 0:
        k = int(outside[0])
        raise ModelError(
            f"parameter 'initial_position': joint '{model.joint_names[k]}' is limited to "
            f'{lower[k]:g} to {upper[k]:g}, got {start[k]:g}'
        )
    return start
