# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The real excitation node beside a simulated arm or a real controller manager, and faults injected into the run."""

import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from benchmark.faults import arm, clearance, robot_file
from benchmark.random_faults import too_fast
from robotid_ros.demo.processes import die_with_parent, isolated_environment
from robotid_ros.excitation import save_excitation
from robotid_ros.excitation.preparation import arm_check
from robotid_ros.execution.stopping_room import stoppable_design
from robotid_ros.model.packaged import arm_file
from robotid_ros.nodes.loop_client import introduce

_CONTROLLER = 'joint_trajectory_controller'
_PATIENCE = 60.0
_STILL_FOR = 0.4
_MOVES = 0.02
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def _controller_manager() -> Path | None:
    """Return the folder with the executables of ros2_control's controller manager, where it is installed."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(':'):
        folder = Path(prefix) / 'lib' / 'controller_manager'
        if (folder / 'ros2_control_node').exists():
            return folder
    return None


def _mock_description(start: dict[str, float]) -> str:
    """Return the packaged arm with mock hardware, whose joints do at once what they are told."""
    joints = ''.join(
        f'<joint name="{name}"><command_interface name="position"/><state_interface name="position">'
        f'<param name="initial_value">{value}</param></state_interface><state_interface name="velocity"/></joint>'
        for name, value in start.items()
    )
    hardware = (
        '<ros2_control name="mock" type="system"><hardware><plugin>mock_components/GenericSystem</plugin>'
        f'<param name="calculate_dynamics">true</param></hardware>{joints}</ros2_control></robot>'
    )
    return arm_file('ur10e').read_text(encoding='utf-8').rstrip().removesuffix('</robot>') + hardware


@dataclass
class Seen:
    """What the bench saw since the fault."""

    position: list[tuple[float, list[float]]] = field(default_factory=list)
    reference: list[tuple[float, list[float]]] = field(default_factory=list)


class Stack:
    """A controller, the excitation node, and between them a relay of the joint states that can lie."""

    def __init__(
        self, controller: str, interface: str, folder: Path, robot: Path, settings: Sequence[str] = ()
    ) -> None:
        self.controller, self.interface, self.folder, self.settings = controller, interface, folder, settings
        self.robot = str(robot)
        self.model, config, _ = arm(robot)
        self.check = arm_check(self.model, config)  # what every stop has to keep
        self.joints = list(self.model.joint_names)
        design = stoppable_design(self.model, config)
        self.file = folder / 'excitation.yaml'
        save_excitation(design, self.file)
        self.start = design.trajectory.position([0.0])[0]
        self.environment = isolated_environment()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.context = rclpy.Context()
        self.context.init(domain_id=int(self.environment['ROS_DOMAIN_ID']))
        self.node = rclpy.create_node('fault_bench', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        real = controller == 'real'
        self.topic = f'/{_CONTROLLER}/joint_trajectory' if real else '/joint_trajectory'
        self.lie: Callable[[JointState], JointState | None] = lambda message: message
        self.statuses: list[DiagnosticStatus] = []
        self.seen = Seen()
        self._kept: list[Any] = []
        best = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.shown = self.node.create_publisher(JointState, '/shown', 10)
        self.scaling = self.node.create_publisher(Float64, '/speed_scaling', 10)
        self.percent, self._closed = 100.0, threading.Event()
        # By itself: it is watched, and the relay has its hands full where other programs take the processor.
        self._teller = threading.Thread(target=self._tell_scaling, daemon=True)
        self._teller.start()
        self.node.create_subscription(JointState, '/joint_states', self._relay, best)
        self.node.create_subscription(DiagnosticStatus, '/excitation/status', self.statuses.append, _LATCHED)
        if real:
            from control_msgs.msg import JointTrajectoryControllerState

            self.node.create_subscription(
                JointTrajectoryControllerState, f'/{_CONTROLLER}/controller_state', self._on_state, best
            )
            self._start_real()
        else:
            self._launch(
                'arm', [sys.executable, '-m', 'robotid_ros.nodes.simulated_arm', '--ros-args', '--params-file',
                        self.robot, '-p', 'robot:=ur10e',
                        '-p', f'initial_position:={self.start.tolist()}', '-p', 'publish_rate:=250.0'],
            )  # fmt: skip
        self.start_recorder()
        self.start_node()

    def _tell_scaling(self) -> None:
        while not self._closed.wait(0.05):
            self.scaling.publish(Float64(data=self.percent))

    def _launch(self, name: str, command: list[str]) -> None:
        with open(self.folder / f'{name}.log', 'ab') as log:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    def _start_real(self) -> None:
        folder = _controller_manager()
        assert folder is not None
        description = _mock_description(dict(zip(self.joints, self.start.tolist(), strict=True)))
        publisher = self.node.create_publisher(String, '/robot_description', _LATCHED)
        publisher.publish(String(data=description))
        self._kept.append(publisher)
        names = ', '.join(self.joints)
        parameters = self.folder / 'controllers.yaml'
        parameters.write_text(
            '/**/controller_manager:\n  ros__parameters:\n    update_rate: 500\n'
            '    joint_state_broadcaster: {type: joint_state_broadcaster/JointStateBroadcaster}\n'
            f'    {_CONTROLLER}: {{type: {_CONTROLLER}/JointTrajectoryController}}\n'
            f'/**/{_CONTROLLER}:\n  ros__parameters:\n    joints: [{names}]\n    command_interfaces: [position]\n'
            '    state_interfaces: [position, velocity]\n' + ''.join(f'    {setting}\n' for setting in self.settings),
            encoding='utf-8',
        )
        self._launch('manager', [str(folder / 'ros2_control_node'), '--ros-args', '--params-file', str(parameters)])
        self._launch(
            'spawner',
            [sys.executable, str(folder / 'spawner'), 'joint_state_broadcaster', _CONTROLLER, '--param-file',
             str(parameters), '--controller-manager-timeout', '60'],
        )  # fmt: skip
        self.until(lambda: self.processes['spawner'].poll() is not None, 'the controllers are there')

    def start_node(self, name: str = 'excitation') -> None:
        """Start the excitation node."""
        settings = {
            'trajectory': str(self.file),
            'urdf_file': str(arm_file('ur10e')),
            'controller_interface': self.interface,
            'speed_scaling_topic': '/speed_scaling',
            'periods': 20,
            'ramp_velocity': 1.0,
            'start_anyway': '[no_effort]',
        }
        arguments = [word for key, value in settings.items() for word in ('-p', f'{key}:={value}')]
        self._launch(
            name,
            [sys.executable, '-m', 'robotid_ros.nodes.excitation', '--ros-args', '--params-file',
             self.robot, *arguments, '-r', 'joint_states:=/shown', '-r',
             f'joint_trajectory:={self.topic}'],
        )  # fmt: skip

    def start_recorder(self) -> None:
        """Start a recorder, which records each run."""
        self._launch(
            'recorder',
            [sys.executable, '-m', 'robotid_ros.nodes.recorder', '--ros-args', '--params-file',
             self.robot, '-p', f'urdf_file:={arm_file("ur10e")}', '-p',
             f'output_folder:={self.folder / "recordings"}', '-p', 'effort:=unknown', '-r', 'joint_states:=/shown'],
        )  # fmt: skip

    # -- what is seen -------------------------------------------------------------------------------

    def _relay(self, message: JointState) -> None:
        try:
            order = [message.name.index(name) for name in self.joints]
        except ValueError:
            return
        self.seen.position.append((time.monotonic(), [message.position[k] for k in order]))
        shown = self.lie(message)
        if shown is not None:
            self.shown.publish(shown)

    def _on_state(self, message: Any) -> None:
        if not message.reference.positions:
            return
        order = [message.joint_names.index(name) for name in self.joints]
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.seen.reference.append((stamp, [message.reference.positions[k] for k in order]))

    @property
    def text(self) -> str:
        return self.statuses[-1].message if self.statuses else ''

    def value(self, key: str) -> str:
        values = self.statuses[-1].values if self.statuses else ()
        return next((str(item.value) for item in values if item.key == key), '')

    def until(self, condition: Callable[[], bool], what: str, patience: float = _PATIENCE) -> None:
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f'{what}: not within {patience} s; last status: {self.text}')
            self.executor.spin_once(timeout_sec=0.02)

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.01)

    def call(self, service: str, kind: Any = Trigger, request: Any = None, patience: float = 30.0) -> Any:
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f'{service} is there')
        introduce(self.node, service, lambda known: self.until(known, f'{service} knows this client'))
        future = client.call_async(kind.Request() if request is None else request)
        self.until(future.done, f'{service} answers', patience)
        self.node.destroy_client(client)
        return future.result()

    def set(self, node: str, **values: Any) -> Any:
        request = SetParameters.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        return self.call(f'{node}/set_parameters', SetParameters, request)

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self.processes.values():
            try:
                process.wait(timeout=8.0)
            except subprocess.TimeoutExpired:
                process.kill()
        self._closed.set()
        self._teller.join()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


# -- the faults ------------------------------------------------------------------------------------------


def _changed(stack: Stack, joint: int, change: Callable[[JointState, int], None]) -> Callable[[JointState], JointState]:
    def lie(message: JointState) -> JointState:
        change(message, message.name.index(stack.joints[joint]))
        return message

    return lie


def _lies(rng: np.random.Generator, stack: Stack) -> dict[str, Callable[[], object]]:
    """Return faults by name: what injects each."""
    began = time.monotonic

    def position(size: float, joint: int = 1) -> Callable[[], object]:
        def change(message: JointState, k: int) -> None:
            message.position[k] += size

        return lambda: setattr(stack, 'lie', _changed(stack, joint, change))

    def velocity(value: float) -> Callable[[], object]:
        def change(message: JointState, k: int) -> None:
            message.velocity[k] = value

        return lambda: setattr(stack, 'lie', _changed(stack, 1, change))

    def drift(rate: float, joint: int = 1) -> Callable[[], object]:
        def inject() -> None:
            begun = began()

            def change(message: JointState, k: int) -> None:
                message.position[k] += rate * (began() - begun)

            stack.lie = _changed(stack, joint, change)

        return inject

    def missing() -> None:
        def lie(message: JointState) -> JointState:
            return JointState(header=message.header, name=message.name[1:], position=message.position[1:])

        stack.lie = lie

    def stamps(by: float) -> Callable[[], object]:
        def lie(message: JointState) -> JointState:
            message.header.stamp.sec += round(by)
            return message

        return lambda: setattr(stack, 'lie', lie)

    def slow() -> None:
        last = [0.0]

        def lie(message: JointState) -> JointState | None:
            if began() - last[0] < 0.33:
                return None
            last[0] = began()
            return message

        stack.lie = lie

    def silent() -> None:
        stack.lie = lambda message: None

    def other_publisher() -> None:
        stack._kept.append(stack.node.create_publisher(JointTrajectory, stack.topic, 10))

    def other_client() -> None:
        from control_msgs.action import FollowJointTrajectory

        name = stack.topic.rpartition('/')[0] + '/follow_joint_trajectory'
        stack._kept.append(ActionClient(stack.node, FollowJointTrajectory, name))

    def deactivate() -> None:
        if stack.controller == 'real':
            from controller_manager_msgs.srv import SwitchController

            stack.call(
                '/controller_manager/switch_controller', SwitchController,
                SwitchController.Request(deactivate_controllers=[_CONTROLLER], strictness=2),
            )  # fmt: skip
        else:
            stack.set('/simulated_arm', controller_active=False)

    faults: dict[str, Callable[[], object]] = {
        'excitation/stop': lambda: stack.call('/excitation/stop'),
        'joint states stop coming': silent,
        'a position is not a number': position(math.nan),
        'a velocity is not a number': velocity(math.nan),
        'a position jumps by 0.5 rad': position(0.5),
        'a position jumps by 2 pi': position(2.0 * math.pi),
        'a position jumps by 1e300': position(1e300),
        'a joint drifts at 0.3 rad/s': drift(0.3),
        'a joint is missing': missing,
        'stamps 1 s ahead': stamps(1.0),
        'stamps 1 s back': stamps(-1.0),
        'joint states at 3 Hz': slow,
        'use_sim_time is set': lambda: stack.set('/excitation', use_sim_time=True),
        'speed scaling told as 60 %': lambda: setattr(stack, 'percent', 60.0),
        'another publisher': other_publisher,
        **({'another client of the action': other_client} if find_spec('control_msgs') else {}),
        'the controller is deactivated': deactivate,
        'the recorder is told to stop': lambda: stack.call('/recorder/stop'),
        'the recorder is killed': lambda: stack.processes['recorder'].kill(),
        'SIGINT to the node': lambda: stack.processes['excitation'].send_signal(signal.SIGINT),
        'SIGKILL of the node': lambda: stack.processes['excitation'].kill(),
    }
    for k in range(12):
        size, joint = float(10.0 ** rng.uniform(-3.0, 6.0)), int(rng.integers(6))
        kind = ('jumps', 'drifts')[int(rng.integers(2))]
        make = (position if kind == 'jumps' else drift)(size, joint)
        faults[f'random {k + 1}: joint {joint + 1} {kind} by {size:.2g}'] = make
    return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one fault, in words; ``reference`` is that of the controller: its acceleration and step."""

    fault: str
    decided: str = ''
    rest: str = ''
    way: str = ''
    reference: tuple[str, str] = ('', '')
    clear: str = ''
    status: str = ''

    @property
    def failed(self) -> bool:
        """Whether the fault never came, or the arm broke a limit of place."""
        return not self.way or self.clear.startswith('-')

    def __str__(self) -> str:
        acceleration, step = self.reference
        reference = f'{acceleration} of the limit, step {step} mrad' if acceleration else ''
        clear, status = (f'{self.clear}', f'`{self.status}`') if self.way else ('', '')
        units = [f'{value} {unit}' if value and value != 'goes on' else value for value, unit in
                 ((self.decided, 's'), (self.rest, 's'), (self.way, 'rad'))]  # fmt: skip
        return f'| {self.fault} | {" | ".join(units)} | {reference} | {clear} | {status} |'


def _row(stack: Stack, name: str, inject: Callable[[], object], rng: np.random.Generator, again: int = 3) -> Row:
    """Run one fault and return its row of the table."""
    stack.until(lambda: bool(stack.seen.position), 'joint states')
    answer = None
    for _ in range(5):
        answer = stack.call('/excitation/start', patience=90.0)
        if answer.success:
            break
        stack.wait(1.0)
    assert answer is not None
    if not answer.success:
        return Row(fault=f'{name}: not started: {answer.message}')
    stack.until(lambda: stack.value('phase').startswith('period') or stack.value('state') == 'stopped', 'the period')
    stack.wait(float(rng.uniform(0.5, _PERIODS)))
    if stack.value('state') != 'running':
        said = stack.text
        _recover(stack, '')
        if again:
            return _row(stack, f'{name} (again: {said})', inject, rng, again=again - 1)
        return Row(fault=f'{name}: ended before the fault: {said}')
    stack.seen = Seen()
    begun = time.monotonic()
    clock = time.time()
    inject()
    stopped: float | None = None
    look = begun + 2.5  # not at every message: that would keep the relay from its work
    while time.monotonic() < begun + 9.0:
        stack.executor.spin_once(timeout_sec=0.01)
        if stopped is None and (stack.value('state') in ('stopping', 'stopped') or 'stop' in stack.text):
            stopped = time.monotonic() - begun
        if time.monotonic() > look:
            look += 0.3
            if _last_motion(stack) < time.monotonic() - _STILL_FOR - 0.6:
                break
    goes_on = (
        stack.value('state') == 'running'
        and 'excitation' in stack.processes
        and stack.processes['excitation'].poll() is None
    )
    rest = 'goes on' if goes_on else f'{max(_last_motion(stack) - begun, 0.0):.2f}'
    places = np.array([row[1] for row in stack.seen.position])
    way = float(np.abs(places[-1] - places[0]).max())
    reference = _acceleration(stack, clock)
    clear = clearance(stack.check, places[::5])
    text = stack.text
    _recover(stack, name)
    said = stack.text if stack.text.startswith('stopped') else text
    told = '' if stopped is None else f'{stopped:.2f}'
    return Row(
        fault=name, decided=told, rest=rest, way=f'{way:.2f}', reference=reference, clear=f'{clear:+.3f}', status=said
    )


_PERIODS = 3.0


def _last_motion(stack: Stack) -> float:
    rows = stack.seen.position
    if len(rows) < 20:
        return time.monotonic()
    times, places = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    grid = np.arange(times[0], times[-1], 0.02)
    on_grid = np.array([np.interp(grid, times, column) for column in places.T]).T
    moving = np.flatnonzero((np.abs(np.diff(on_grid, axis=0)) > 0.02 * _MOVES + 2e-4).any(axis=1))
    return float(grid[moving[-1] + 1]) if len(moving) else float(times[0])


def _acceleration(stack: Stack, begun: float) -> tuple[str, str]:
    """Return the largest acceleration of the controller's reference over 20 ms, and the largest step of a cycle."""
    rows = [row for row in stack.seen.reference if row[0] >= begun]
    if len(rows) < 50:
        return '', ''
    times, places = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    keep = np.concatenate([[True], np.diff(times) > 1e-4])
    times, places = times[keep], places[keep]
    rate = np.diff(places, axis=0) / np.diff(times)[:, None]
    steps = np.abs(np.diff(rate, axis=0)) * np.median(np.diff(times))
    step = float(steps.max())
    # Divided differences of samples 20 ms apart, or more where cycles were missed: each is the acceleration at a moment
    # in between. A path laid straight through a gap would have all of the gap's turn at its ends.
    apart = [0]
    for k, instant in enumerate(times):
        if instant - times[apart[-1]] > 0.02 - 1e-3:
            apart.append(k)
    times, places = times[apart], places[apart]
    spans = np.diff(times)
    speed = np.diff(places, axis=0) / spans[:, None]
    bend = np.abs(np.diff(speed, axis=0)) / (0.5 * (spans[1:] + spans[:-1]))[:, None]
    limit = stack.check.limits.acceleration
    fast = too_fast(stack.check.limits, places[1:], speed)
    told = '' if fast < 0.1 else f' ({100.0 * fast:.0f} % of its limit too fast)'
    return f'{float((bend / limit).max()):.2f}', f'{1e3 * step:.1f}{told}'


def _recover(stack: Stack, name: str) -> None:
    """Take the fault away and bring the node back to where it can start."""
    stack.lie, stack.percent = (lambda message: message), 100.0
    for each in stack._kept[:]:
        if isinstance(each, ActionClient):
            each.destroy()
            stack._kept.remove(each)
        elif getattr(each, 'topic_name', '') == stack.topic:
            stack.node.destroy_publisher(each)
            stack._kept.remove(each)
    if 'deactivated' in name:
        if stack.controller == 'real':
            from controller_manager_msgs.srv import SwitchController

            request = SwitchController.Request(activate_controllers=[_CONTROLLER], strictness=2)
            stack.call('/controller_manager/switch_controller', SwitchController, request)
        else:
            stack.set('/simulated_arm', controller_active=True)
    if 'use_sim_time' in name:
        stack.set('/excitation', use_sim_time=False)
    if name.startswith('the recorder is killed'):  # a row begun again has more to its name
        stack.processes['recorder'].wait(timeout=20.0)
        stack.start_recorder()
    if name.startswith('SIG'):
        stack.processes['excitation'].wait(timeout=20.0)
        stack.wait(1.0)
        stack.statuses.clear()
        stack.start_node()
        return
    try:
        stack.until(lambda: stack.value('state') in ('stopped', 'finished', 'ready'), 'the end of the run', 10.0)
    except TimeoutError:
        stack.processes['excitation'].kill()
        stack.processes['excitation'].wait()
        stack.wait(3.0)
        stack.statuses.clear()
        stack.start_node()


def missing() -> list[str]:
    """Return what the real controller needs and this environment has not."""
    lacks = [] if _controller_manager() else ['controller_manager (ros2_control)']
    if _version() is None:
        lacks.append('joint_trajectory_controller (ros2_controllers)')
    return lacks + [f'{name} (for its {why})' for name, why in _MESSAGES.items() if find_spec(name) is None]


_MESSAGES = {'control_msgs': 'action and state', 'controller_manager_msgs': 'deactivation'}


def _version() -> str | None:
    """Return the version of joint_trajectory_controller, where it is installed."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(':'):
        manifest = Path(prefix) / 'share' / _CONTROLLER / 'package.xml'
        if manifest.is_file():
            return ElementTree.parse(manifest).findtext('version')
    return None


def run_all(
    controllers: list[str] | None,
    interfaces: list[str],
    only: str,
    seed: int,
    robot: Path | None = None,
    settings: Sequence[str] = (),
) -> int:
    """Run all faults on the controllers that are found, print a table for each, and return how many rows failed.

    What is missing for the real one is said; where it was asked for, that counts as a failure.
    """
    wrong = 0
    for controller in controllers or ['simulated', 'real']:
        if controller == 'real' and missing():
            print(
                f'the real controller needs what is not here: {", ".join(missing())}; install it (sudo apt install '
                'ros-$ROS_DISTRO-ros2-control ros-$ROS_DISTRO-ros2-controllers) and source that ROS'
            )
            wrong += controllers is not None
            continue
        found: dict[str, dict[str, Row]] = {}
        for interface in interfaces:
            if interface == 'action' and find_spec('control_msgs') is None:
                print('no control_msgs: the action is not in this environment')
                continue
            rows = found.setdefault(interface, {})
            folder = Path(tempfile.mkdtemp(prefix='faults-'))
            print(f'\n{controller}, {interface}; load {os.getloadavg()[0]:.1f}; logs in {folder}\n')
            print('| fault | stopping after | rest after | way | reference | clear by | status |')
            print('|---|---|---|---|---|---|---|', flush=True)
            stack = Stack(controller, interface, folder, robot or robot_file(falling=False), settings)
            try:
                rng = np.random.default_rng(seed)
                for name, inject in _lies(rng, stack).items():
                    if only in name:
                        try:
                            rows[name] = _row(stack, name, inject, rng)
                            print(rows[name], flush=True)
                            wrong += rows[name].failed
                        except (TimeoutError, AssertionError, RuntimeError) as cause:
                            wrong += 1
                            print(f'| {name} | failed: {cause} | | | | | |', flush=True)
            finally:
                stack.close()
        if found:
            version = _version() if controller == 'real' else 'simulated'
            print(f'\n{side_by_side(found, f"{version}")}', flush=True)
    return wrong


def side_by_side(found: dict[str, dict[str, Row]], version: str) -> str:
    """Return the table of the manual: what both interfaces of one controller made of each fault."""
    heads = [f'{version}, {interface}' for interface in found]
    lines = [
        f'| fault | decided [s] | way [rad] | {" | ".join(heads)} | status |',
        '|---' * (4 + len(heads)) + '|',
    ]
    for name in dict.fromkeys(name for rows in found.values() for name in rows):
        own = [rows.get(name, Row(fault=name)) for rows in found.values()]
        cells = [', '.join(filter(None, (row.rest, *row.reference))) for row in own]
        first = next(row for row in own if row.fault)
        lines.append(f'| {name} | {first.decided} | {first.way} | {" | ".join(cells)} | `{first.status}` |')
    return '\n'.join(lines)
