# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``chain``: friction sweeps, excitations, validation and identification, one after the other.

It is a client of the other nodes and calls their services as a user would, so that every check of theirs holds. It runs
when its service ``~/start`` is called, or at once with the parameter ``start_at_once``, and publishes its step on
``~/status``. With ``run`` it tours poses and calibrates, or moves a free-floating robot and identifies its target. To
stop the arm, call ``excitation/stop``; the chain ends there. With ``trajectories`` above one it goes on where it was:
recordings that the identification node has, of this chain or of the recorder's folder, are not run again.
"""

import itertools
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from robotid_ros.errors import ExcitationError, RobotIdError
from robotid_ros.identification import IdentificationResult
from robotid_ros.nodes.loop_client import ALWAYS, NODES, LoopClient
from robotid_ros.nodes.messages import LATCHED, node_names
from robotid_ros.nodes.parameters import declare_parameters, read_parameters
from robotid_ros.nodes.runtime import serve
from robotid_ros.nodes.status import Status
from robotid_ros.settings import Settings, setting

RECORDERS = {'poses': 'pose_recorder', 'free_floating': 'floating_recorder'}
"""Runs that are measured, and identified from, by a node of their own."""
_LAST_ROWS = 20.0
"""How long measurements may be on their way after a tour of poses [s]: a pose may be without one."""
PATIENCE = 600.0  # seconds for each answer: a slow machine takes long, and that is not a failure
_LEAST_TO_SELECT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainConfig(Settings):
    """What the chain consists of."""

    error = ExcitationError

    start_at_once: bool = setting(
        False, 'Run at once, and end; false: wait for the service ~/start, again after each run', read_only=True
    )
    run: str = setting(
        'excitation',
        'What is run and identified: dynamics and friction, the geometry by a tour of poses, or the target of a '
        'free-floating robot; the others need their own recorder',
        choices=('excitation', *RECORDERS),
    )
    trajectories: int = setting(
        1,
        'Excitations to run, each with a seed of its own; above one, the recordings that the identification has count',
        range=(1, 1000),
    )
    friction_sweep: bool = setting(True, 'Run a friction sweep before each excitation')
    validation: bool = setting(True, 'Run a second trajectory to judge the result by')
    trajectory: str = setting('', 'Excitation YAML to run; empty: the excitation node designs one')
    simulated: bool = setting(
        False, 'Move nothing unless a node simulated_arm alone takes the trajectories', read_only=True
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code.

    It is 0 after a signal, or once the chain that was to start at once is through; 1 if a node refused or the run was
    stopped on that way; 2 for arguments that cannot be used.
    """
    unknown = remove_ros_args(sys.argv if args is None else list(args))[1:]
    if unknown:
        print(f'chain takes no arguments but those of ROS, got: {" ".join(unknown)}', file=sys.stderr)
        return 2
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: told.append(got))

    def watch() -> None:
        if told:
            raise KeyboardInterrupt

    client = LoopClient(watch, None, (*NODES, *RECORDERS.values()), 'chain', PATIENCE)
    try:
        return _Chain(client).run()
    except KeyboardInterrupt:
        return 0
    except RobotIdError as refusal:
        print(str(refusal), file=sys.stderr)
        return 2
    finally:
        client.close()


class _Chain:
    """The steps, and where they are."""

    def __init__(self, client: LoopClient) -> None:
        self.client, self.node = client, client.node
        self.config = declare_parameters(self.node, ChainConfig)
        self.seeds: set[int] = set()  # of the excitations that it has run
        self.step, self.ended = '', 0  # what goes on, and how often it has ended: a client may sleep through it
        self.status = Status(self.node, LATCHED, lambda: {'step': self.step or 'none', 'ended': self.ended})
        self.wanted = self.config.start_at_once
        serve(self.node, start=self._start)
        self._tell('', 'waiting for ~/start')

    async def _start(self) -> str:
        if self.step or self.wanted:
            raise ExcitationError(f'the chain is under way: {self.step or "about to start"}')
        self.wanted = True
        return f'started: {", ".join(self._steps())}; to stop the arm, call excitation/stop'

    def _steps(self) -> list[str]:
        config = read_parameters(self.node, ChainConfig)
        if config.run in RECORDERS:
            return [config.run, 'identify']
        runs = [*(['friction_sweep'] if config.friction_sweep else []), 'excitation']
        runs = runs if config.trajectories == 1 else [f'{config.trajectories} x ({", ".join(runs)})']
        return [*runs, *(['validation'] if config.validation else []), 'identify']

    def _tell(self, step: str, text: str, level: bytes = DiagnosticStatus.OK) -> None:
        self.step = step
        self.status.set(level, text)

    def _finish(self, text: str, level: bytes = DiagnosticStatus.OK) -> None:
        self.wanted, self.ended = False, self.ended + 1
        self._tell('', text, level)

    def run(self) -> int:
        """Run the chain whenever it is asked for; once where it starts at once."""
        while True:
            self.client.wait(lambda: self.wanted, 'a call of ~/start', ALWAYS)
            code = 0
            try:
                self._run()
            except RobotIdError as cause:
                self._finish(f'the chain ended early: {cause}', DiagnosticStatus.ERROR)
                code = 1
            if self.config.start_at_once:
                return code

    def _run(self) -> None:
        client, config = self.client, read_parameters(self.node, ChainConfig)
        self.step = 'wait'
        for name in ('excitation', RECORDERS[config.run]) if config.run in RECORDERS else NODES:
            client.wait(partial(client.status.__contains__, name), f'a status of the node {name}')
        client.wait(lambda: bool(client.status_value('excitation', 'robot')), 'the robot description')
        if config.simulated:
            graph = self.node
            client.wait(
                lambda: graph.count_publishers('joint_states') and graph.count_subscribers('joint_trajectory'),
                'the simulated arm appearing',
            )
        if config.run in RECORDERS:
            self._measure(config, RECORDERS[config.run])
            return
        client.wait(lambda: client.status_value('identification', 'folders_read') == 'True', 'its folders')
        several, seed = config.trajectories > 1, self._checked(config)
        done = self._count('recordings') if several else 0
        self.seeds = self.seeds if done else set()
        # Two runs of one reference tell no more than one: a seed is taken once, also after a pause or a restart.
        seeds = (each for each in itertools.count(seed) if each not in self._seeds_run())
        try:
            for k in range(done, config.trajectories):
                if config.friction_sweep and not (several and self._count('friction_sweeps') > k):
                    self._motion('friction_sweep', config, 'friction_sweeps')
                if several:
                    client.set_parameters('excitation', {'seed': next(seeds)})
                self._motion('excitation', config, 'recordings')
                self.seeds |= {int(client.parameters('excitation', ('seed',))['seed'])}
        finally:
            if several:
                client.set_parameters('excitation', {'seed': seed})
        if config.validation:
            self._motion('validation', config, 'validation_recordings')
        self._tell('identify', 'identifying')
        result = IdentificationResult.from_yaml(client.call('identification/identify', ALWAYS))
        written = client.status_value('identification', 'written')
        errors = ', '.join(f'{kind} {each.relative_error_total:.2f} %' for kind, each in result.metrics.items())
        verdict = f'usable{": " if result.reason else ""}' if result.usable else 'NOT usable: '
        text = f'identified, {verdict}{result.reason}; torque unexplained: {errors}; friction {result.friction.name}'
        self._finish(f'{text}{f"; written to {written}" if written else ""}')

    def _seeds_run(self) -> set[int]:
        told = self.client.status_value('identification', 'seeds') or ''
        return self.seeds | set(map(int, told.split()))

    def _checked(self, config: ChainConfig) -> int:
        """Say how long they take; refuse, before anything moves, what could not end well; return the first seed."""
        client = self.client
        run = client.parameters('excitation', ('seed', 'period', 'periods'))
        asked = client.parameters('identification', ('select', 'torque_threshold'))
        if config.trajectories > 1 and config.trajectory:
            raise ExcitationError(
                f'{config.trajectories} excitations cannot all run {config.trajectory}: two runs of one reference '
                'never stand in two sets; leave trajectory empty, and each is designed with a seed of its own'
            )
        if asked['select'] and config.trajectories < _LEAST_TO_SELECT:
            raise ExcitationError(
                f'the selection (select) needs {_LEAST_TO_SELECT} trajectories, to train, validate and test on '
                f'different ones: set trajectories to {_LEAST_TO_SELECT} or more, or select to false'
            )
        if asked['select'] and not asked['torque_threshold']:
            raise ExcitationError('the selection (select) decides by torque thresholds: set torque_threshold')
        left = config.trajectories - (self._count('recordings') if config.trajectories > 1 else 0)
        seconds = max(left, 0) * run['period'] * run['periods']
        sweeps = ', and a friction sweep before each' if config.friction_sweep else ''
        self._tell('wait', f'{max(left, 0)} excitations to run: {seconds:.0f} s, their ways to the start{sweeps}')
        return int(run['seed'])

    def _measure(self, config: ChainConfig, recorder: str) -> None:
        """Run a motion that another recorder measures, and identify from it."""
        client, poses = self.client, config.run == 'poses'
        if poses and not client.parameters(recorder, ('automatic',))['automatic']:
            raise ExcitationError('the pose recorder measures on request only: set its parameter automatic to true')
        self._design(config.run, config)
        if not poses:
            client.call(f'{recorder}/start')
        before = int(client.status_value(recorder, 'rows') or 0)
        try:
            stopped = self._moved(config.run)
        finally:
            if not poses:
                client.call(f'{recorder}/stop')
        if stopped:
            raise RobotIdError(f'the run of {config.run} was stopped')
        if poses:
            wanted = before + int(client.status_value('excitation', 'poses') or 0)
            until = time.monotonic() + _LAST_ROWS
            client.wait(
                lambda: int(client.status_value(recorder, 'rows') or 0) >= wanted or time.monotonic() > until,
                'the last measurements',
            )
        self._tell('identify', 'identifying')
        answered = client.status_value(recorder, 'identifications')
        client.call(f'{recorder}/identify', ALWAYS)
        client.wait(lambda: client.status_value(recorder, 'identifications') != answered, 'its status')
        self._finish(f'{client.status[recorder].message}; the result is on {recorder}/result')

    def _design(self, kind: str, config: ChainConfig) -> None:
        """Let the excitation node have a motion."""
        client = self.client
        if config.simulated:
            _require_alone(self.node)
        self._tell(kind, f'{kind}: designing')
        trajectory = config.trajectory if kind in ('excitation', 'free_floating') else ''
        client.set_parameters('excitation', {'run': kind, 'trajectory': trajectory})
        if not trajectory:
            client.call('excitation/design', ALWAYS)
        if config.simulated:
            _require_alone(self.node)  # another node may have appeared during the design

    def _motion(self, kind: str, config: ChainConfig, counted: str) -> None:
        """Design, run and record one motion, until the identification node has it."""
        client = self.client
        self._design(kind, config)
        before, asked = self._count(counted), self._count('stops_asked')
        if self._moved(kind) and self._count('stops_asked') <= asked:  # a user's, or a fault
            raise RobotIdError(f'the {kind} was stopped')
        client.wait(lambda: client.status_value('recorder', 'state') in ('finished', 'failed'), 'its recording')
        client.require_healthy('recorder')
        client.wait(lambda: self._count(counted) > before, 'the recording reaching the identification')
        if kind == 'excitation':
            client.wait_for_average()

    def _count(self, name: str) -> int:
        return int(self.client.status_value('identification', name) or 0)

    def _moved(self, kind: str) -> bool:
        """Start the run, wait until the arm rests after it, and return whether it was stopped."""
        client, before = self.client, self.client.runs_ended()

        def ended() -> bool:
            if self.node.count_publishers('excitation/status') == 0:
                raise RobotIdError('the excitation node is gone')
            return client.run_is_over(before)

        self._tell(kind, f'{kind}: {client.call("excitation/start", ALWAYS)}')
        client.wait(ended, 'the end of the run', ALWAYS)
        client.require_healthy('excitation')
        return client.status_value('excitation', 'state') == 'stopped'


def _require_alone(node: Node) -> None:
    """Raise unless only the simulated arm can be moved: nobody may be watching a real one."""
    for topic, ends in (
        ('joint_trajectory', node.get_subscriptions_info_by_topic),
        ('joint_states', node.get_publishers_info_by_topic),
    ):
        names = node_names(ends(topic))
        found = sorted(name for name in names if not name.rpartition('/')[2].startswith('_'))  # ros2 topic echo
        if found != [f'{node.get_namespace().rstrip("/")}/simulated_arm']:
            raise RobotIdError(
                f"{node.resolve_topic_name(topic)} should be the simulated arm's alone, but is used by "
                f'{", ".join(found) or "nobody"}; nothing was moved: choose a namespace or a ROS_DOMAIN_ID that no '
                'other arm is in'
            )


if __name__ == '__main__':
    code = main()
    rclpy.try_shutdown()
    sys.exit(code)
