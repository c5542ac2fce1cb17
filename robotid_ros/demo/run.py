# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The demonstration: parked arm to validated model, over real ROS 2, with one command, and its tables."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data import ProcessingSettings, process_file
from robotid_ros.demo.processes import NodeGroup, isolated_environment, parameter_arguments
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
from robotid_ros.errors import ExcitationError, MissingDependencyError
from robotid_ros.excitation.design import load_excitation
from robotid_ros.files import write_text
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_config import configured_arm
from robotid_ros.progress import Progress
from robotid_ros.report import can_draw
from robotid_ros.report.design import write_design_page
from robotid_ros.report.parameters import relative_deviation
from robotid_ros.settings import Settings, setting
from robotid_ros.workflow import Identification, write_identification

WELL_EXCITED = 5.0  # relative standard deviation [%] below which a parameter counts as found
DEVIATIONS = 3.0  # standard deviations within which a found parameter agrees with the truth
_LARGEST = 8.0  # rad/s^2 or m/s^2
_TO_FULL_SPEED = 1.0 / 3.0  # s; no joint is asked to reach its speed limit sooner
# For each answer [s], several times what a slow and busy machine needs; a node that dies is reported at once.
DEADLINE = 600.0
SLOWDOWN = 10.0  # how much longer than planned a run may take
PATIENCE = 20.0  # how long the nodes wait for each other's messages [s]
# Properties of real arms that the identified model does not have, in typical amounts. benchmark/imperfect_arm.py adds
# one after the other.
TRAITS: dict[str, object] = {
    'breakaway_ratio': 0.35,
    'load_friction': 0.05,
    'torque_ripple': 0.005,
    'effort_delay': 0.004,
    'encoder_bits': 17,
    'geometry_error': 0.01,
    'deflection': 0.005,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterComparison:
    """True and found values of p parameters, and the standard deviations stated with those found; shape (p,)."""

    names: tuple[str, ...]
    true: Array
    found: Array
    std: Array

    @property
    def relative_std(self) -> Array:
        """100 std / |found|, shape (p,) [%]; infinite for a value of zero."""
        return relative_deviation(self.found, self.std)

    @property
    def well_excited(self) -> BoolArray:
        """Whether the run determines a parameter to better than 5 %, shape (p,)."""
        return np.asarray(self.relative_std < WELL_EXCITED)

    @property
    def deviations(self) -> Array:
        """(found - true) / std, shape (p,)."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.where(self.std > 0.0, (self.found - self.true) / self.std, np.inf)

    @property
    def agreeing(self) -> BoolArray:
        """Whether the truth lies within three standard deviations, shape (p,)."""
        return np.asarray(np.abs(self.deviations) <= DEVIATIONS)


def configuration_text(model: RobotModel, **design: object) -> str:
    """Return a robot configuration for a simulated arm, as YAML.

    Efforts are joint torques. A URDF has no acceleration limits: a joint may reach its largest speed in a third of a
    second, and 8 rad/s^2 at most. ``design`` holds settings of a design that belong to the arm's place: ground,
    link_radius.
    """
    given, fastest = model.limits.acceleration, model.limits.velocity
    largest = np.where(np.isfinite(given), given, np.round(np.minimum(_LARGEST, fastest / _TO_FULL_SPEED), 6))
    parameters = {
        'joints': list(model.joint_names),
        'effort': 'torque',
        'limits': {'acceleration': dict(zip(model.joint_names, largest.tolist(), strict=True))},
        **design,
    }
    note = f'# Made for a simulated {model.name} from its URDF; a real arm needs a configuration of its own.\n'
    return note + yaml.safe_dump({'/**': {'ros__parameters': parameters}}, sort_keys=False, width=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings(Settings):
    """What the demonstration does."""

    error = ExcitationError

    robot: str = setting('ur10e', 'name of a packaged arm, or a URDF file')
    config: Path = setting(Path(), 'robot configuration of the simulated arm')
    folder: Path = setting(Path(), 'where results go')
    period: float = setting(10.0, 'of the excitation', unit='s', range=(0.1, 1000.0))
    # The recorder leaves out the first period, in which the arm is not yet in a steady state.
    periods: int = setting(4, 'whole periods run for the fit, the first of them left out', range=(2, 1000))
    validation_periods: int = setting(3, 'the same for the validation', range=(2, 1000))
    seed: int = setting(0, 'of the simulated truth, the noise and the designs', range=(0, 2**31 - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The result with the metrics of both runs against the measured torque, and how far it is from the truth.

    ``friction_rmse``, shape (n,), is that of the found friction on the validation run [N m].
    """

    result: IdentificationResult
    comparison: ParameterComparison
    friction_rmse: Array
    written: tuple[Path, ...]


def run_demo(settings: DemoSettings, step: Progress) -> DemoOutcome:
    """Run the whole loop with real nodes in processes of their own.

    ``step`` is told the part done, 0 to 1, and what happens.

    Raises a RobotIdError if a node dies, refuses or does not answer; all nodes are ended first. Raises a
    MissingDependencyError if ROS or the simulator is not installed.
    """
    for module, package, extra in (('rclpy', 'ros-rclpy', 'ros'), ('mujoco', 'mujoco', 'sim')):
        if find_spec(module) is None:
            raise MissingDependencyError.of(package, extra, 'run the demonstration')
    config = RobotConfig.from_yaml(settings.config)
    model = configured_arm(arm_file(settings.robot), config)
    environment = isolated_environment()
    logs = settings.folder / 'logs'
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as hidden:
        truth_file = Path(hidden) / 'truth.yaml'  # the nodes must not find it
        with NodeGroup(environment, logs) as group:
            text, *recordings = _capture(settings, group, environment, truth_file, step)
        step(0.97, 'compare with the truth')
        truth = settings.folder / 'truth.yaml'
        write_text(truth, truth_file.read_text(encoding='utf-8'))
    return _evaluate(settings, model, config, IdentificationResult.from_yaml(text), recordings)


def _capture(
    settings: DemoSettings, group: NodeGroup, environment: Mapping[str, str], truth_file: Path, step: Progress
) -> tuple[str, Path, Path]:
    """Start the nodes, run both trajectories, identify after the first; return result and recordings."""
    from robotid_ros.nodes.loop_client import NODES, LoopClient

    domain = environment['ROS_DOMAIN_ID']
    step(0.0, f'start the nodes; to look on: ROS_DOMAIN_ID={domain} robotid watch --web')
    recordings = settings.folder / 'recordings'
    recordings.mkdir(exist_ok=True)
    # All nodes take their time from the arm: a busy machine makes the run longer, and changes nothing else.
    arm = {'robot': settings.robot, 'seed': settings.seed, 'truth_file': truth_file, 'publish_clock': True, **TRAITS}
    others: dict[str, dict[str, Any]] = {
        'excitation': {
            'period': settings.period,
            'seed': settings.seed,
            # Nothing can be damaged here: an unknown arm has no ground, and a machine that is busy for a moment is no
            # reason to stop.
            'start_anyway': ['unchecked_workspace', 'implausible_velocity'],
            'joint_state_timeout': PATIENCE,
            'controller_timeout': PATIENCE,
            'window_time': PATIENCE,
        },
        'recorder': {'output_folder': recordings, 'start_timeout': PATIENCE},
        'identification': {},
    }
    nodes = {'simulated_arm': arm, **{name: {**values, 'use_sim_time': True} for name, values in others.items()}}
    for name, values in nodes.items():
        group.start(name, [*parameter_arguments(values), '--params-file', str(settings.config)])
    client = LoopClient(group.check, int(domain), NODES, patience=DEADLINE)
    try:
        client.wait(lambda: bool(client.status_value('excitation', 'robot')), 'the robot description')
        training = _run_trajectory(client, settings, 'training', (0.04, 0.5), step)
        client.wait_for_average()
        step(0.52, 'identify')
        text = client.call('/identification/identify')
        validation = _run_trajectory(client, settings, 'validation', (0.6, 0.95), step)
        return text, training, validation
    finally:
        client.close()


def _run_trajectory(client: Any, settings: DemoSettings, name: str, share: tuple[float, float], step: Progress) -> Path:
    """Design, record and run one trajectory; return the folder of its recording."""
    begin, end = share
    periods = settings.periods if name == 'training' else settings.validation_periods
    kind = 'excitation' if name == 'training' else 'validation'
    step(begin, f'design the {name} trajectory')
    saved = str(settings.folder / f'{name}.yaml')
    client.set_parameters('excitation', {'run': kind, 'periods': periods, 'save_to': saved})
    client.call('/excitation/design')
    client.call('/recorder/start')
    ended = client.runs_ended()
    client.call('/excitation/start')

    def state(node: str) -> str:
        return client.status_value(node, 'state') or ''

    def finished() -> bool:
        whole = float(client.status_value('excitation', 'duration') or 0.0)
        if whole > 0.0:
            done = min(max(float(client.status_value('excitation', 'elapsed') or 0.0) / whole, 0.0), 1.0)
            phase = client.status_value('excitation', 'phase')
            step(begin + (end - begin) * done, f'{name} run: {phase}, {state("recorder")}')
        return client.run_is_over(ended) and state('recorder') in ('finished', 'failed')

    client.wait(finished, f'the end of the {name} run', DEADLINE + SLOWDOWN * periods * settings.period)
    client.require_healthy('excitation')
    client.require_healthy('recorder')
    return Path(client.call('/recorder/save')).parent


def _evaluate(
    settings: DemoSettings, model: RobotModel, config: RobotConfig, result: IdentificationResult, recordings: list[Path]
) -> DemoOutcome:
    """Judge the model by the validation run and by the truth, and write everything down."""
    from robotid_ros.simulation import read_truth

    folder = settings.folder
    truth = read_truth(folder / 'truth.yaml', model)
    processing = ProcessingSettings.for_robot(config)
    # The node was fitted to the averaged topic, whose torque is smoothed; both runs are judged as they were recorded.
    predictor = TorquePredictor(model, result)
    training, validation = (predictor.prepared(process_file(path, processing)[0])[0] for path in recordings)
    judged = {'training': training, 'validation': validation}
    found = Identification(
        model=model,
        result=replace(result, metrics={name: predictor.metrics(data) for name, data in judged.items()}),
        training=(training,),
        validation=(validation,),
    )
    base = base_parameters(truth.model, rotor_inertia=result.has_rotor_inertia, tolerance=DATA_TOLERANCE)
    comparison = ParameterComparison(
        names=result.base_names,
        true=base.map @ np.concatenate([truth.model.inertial.ravel(), truth.model.rotor_inertia]),
        found=result.base_values,
        std=result.base_std,
    )
    load = predictor.rigid_torque(validation.q, validation.dq, validation.ddq)
    missed = predictor.friction_torque(validation.dq, load) - truth.friction_torque(validation.dq, load)
    written = write_identification(folder, found, true_base=comparison.true, true_friction=truth.friction_torque)
    written += [folder / 'truth.yaml', folder / 'recordings']
    for name in judged if can_draw() else ():
        written.append(folder / f'{name}.html')
        design = load_excitation(folder / f'{name}.yaml')
        write_design_page(model, design, written[-1], folder=arm_file(settings.robot).resolve().parent)
    return DemoOutcome(
        result=found.result,
        comparison=comparison,
        friction_rmse=np.sqrt(np.mean(missed**2, axis=0)),
        written=tuple(written),
    )
