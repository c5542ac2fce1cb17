# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole loop over DDS: it finds the truth, and ends cleanly when a node dies."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_helpers import NodeProcess, wait_until

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytestmark = pytest.mark.ros

ROBOTS = Path(__file__).parents[2] / 'robotid_ros' / 'robots'
# Shorter than the demonstration's own; the arm and what is asked of the result are the same.
SHORT = {'periods': 2, 'validation_periods': 2}
# Shorter searches, fewer joint states, steps of the physics and ticks of the clock: a quarter of the processor time. In
# motion it goes five times as fast as the real one: the window has time to come, and the recorder to find the arm.
QUICK = """
/excitation:
  ros__parameters: {starts: 1, iterations: 30, start_delay: 6.0, settling_time: 5.0, knot_rate: 30.0}
/simulated_arm:
  ros__parameters: {publish_rate: 62.5, clock_rate: 25.0, physics_rate: 500.0, speed: 5.0}
"""
NODES = ('simulated_arm', 'excitation', 'recorder', 'identification')


def _children(pid: int) -> dict[int, str]:
    """Return the running child processes of a process, with their command lines."""
    found = {}
    for entry in Path('/proc').iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / 'stat').read_text()
            command = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
        except OSError:
            continue
        state, parent = stat.rpartition(')')[2].split()[:2]
        if int(parent) == pid and state != 'Z':
            found[int(entry.name)] = command
    return found


def _alive(pids: list[int]) -> list[int]:
    def state(pid: int) -> str:
        try:
            return (Path('/proc') / str(pid) / 'stat').read_text().rpartition(')')[2].split()[0]
        except OSError:
            return 'gone'

    return [pid for pid in pids if state(pid) not in ('gone', 'Z', 'X')]


@pytest.mark.slow
def test_the_loop_finds_the_truth(tmp_path: Path) -> None:
    from robotid_ros.demo.run import DemoSettings, run_demo
    from robotid_ros.report import can_draw

    config = tmp_path / 'ur10e.yaml'
    config.write_text((ROBOTS / 'ur10e.yaml').read_text(encoding='utf-8') + QUICK, encoding='utf-8')
    settings = DemoSettings(robot='ur10e', config=config, folder=tmp_path, **SHORT)
    outcome = run_demo(settings, lambda part, what: None)
    assert outcome.result.usable, outcome.result.reason
    measured = outcome.result.metrics['validation'].relative_error_total
    # An arm that is only what the model says leaves 2 %: one that has what real arms have must leave more.
    assert 2.5 <= measured <= 8.0, measured
    assert outcome.result.metrics['validation'].match.min() >= 85.0, outcome.result.metrics
    assert (outcome.friction_rmse < 4.0).all(), outcome.friction_rmse
    comparison = outcome.comparison
    assert comparison.well_excited.sum() >= 4
    # What the model cannot say counts in the deviations too: they hold, all together and one by one.
    assert np.sqrt(np.mean(comparison.deviations**2)) <= 1.8, comparison.deviations
    assert np.abs(comparison.deviations).max() <= 6.0, comparison.deviations
    written = yaml.safe_load((tmp_path / 'result.yaml').read_text(encoding='utf-8'))
    assert set(written['metrics']) == {'training', 'validation'}
    assert 500 < written['metrics']['validation']['samples'] <= 625  # a period of 10 s at 62.5 Hz
    pages = ('report.html', 'training.html', 'validation.html') if can_draw() else ()
    for name in ('calibrated.urdf', 'training.yaml', 'validation.yaml', *pages):
        assert (tmp_path / name).stat().st_size > 1000, name
    assert len(list((tmp_path / 'recordings').iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize('victim', [NODES[-1]])  # the last that is looked at
def test_killing_a_node_ends_the_demo_with_its_name(tmp_path: Path, victim: str) -> None:
    environment = {**os.environ, 'PYTHONUNBUFFERED': '1'}
    with NodeProcess(['-m', 'robotid_ros', 'demo', '--out', str(tmp_path), '--headless'], environment) as demo:
        logs = [tmp_path / 'logs' / f'{name}.log' for name in NODES]

        def all_spoke() -> bool:
            assert not demo.ended, demo.output
            return all(log.exists() and log.stat().st_size for log in logs)

        wait_until(all_spoke, 'words from every node')
        children = _children(demo.process.pid)
        pids = {name: pid for pid, text in children.items() for name in NODES if f'robotid_ros.nodes.{name}' in text}
        assert set(pids) == set(NODES)
        os.kill(pids[victim], signal.SIGKILL)
        assert demo.wait() == 1
        assert re.search(rf"robotid demo: the node '{victim}' was killed by SIGKILL; its last line: ", demo.lines[-1])
        assert 'Traceback' not in demo.output
        wait_until(lambda: not _alive(list(children)), 'the end of every child process')
    assert not (tmp_path / 'result.yaml').exists()


@pytest.mark.slow
def test_killing_the_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    environment = {**os.environ, 'PYTHONUNBUFFERED': '1'}
    with NodeProcess(['-m', 'robotid_ros', 'demo', '--out', str(tmp_path)], environment) as demo:
        logs = {name: tmp_path / 'logs' / f'{name}.log' for name in NODES}

        def simulating() -> bool:
            assert not demo.ended, demo.output
            return all(log.exists() for log in logs.values()) and 'simulating' in logs['simulated_arm'].read_text()

        wait_until(simulating, 'every node, and an arm that moves')
        children = list(_children(demo.process.pid))
        assert len(children) == len(NODES)
        demo.process.kill()
        demo.wait()
        wait_until(lambda: not _alive(children), 'the end of every child process')
