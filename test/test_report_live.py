# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The live page in a real browser, beside the real nodes, each in a process of its own."""

import http.client
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from report_helpers import UR10E, Chromium, find_chromium
from ros_helpers import NodeProcess, ros_environment, wait_until

pytest.importorskip('tornado', reason='the web extra is not installed')
pytest.importorskip('plotly', reason='the web extra is not installed')

from robotid_ros.errors import DataError
from robotid_ros.report.live import LiveServer

WATCH = ['-m', 'robotid_ros.cli', 'watch', '--web', '--port', '0', '--interval', '0.1']


def _request(address: str, method: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address.removeprefix('http://').rstrip('/'), timeout=20.0)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def _never() -> 'Future[str]':
    raise AssertionError('nobody asked for a stop')


def test_the_server_has_one_route_that_does_something_and_asks_where_it_comes_from() -> None:
    pressed: list[int] = []

    def stop() -> 'Future[str]':
        pressed.append(1)
        answer: Future[str] = Future()
        answer.set_result('the arm is brought to rest')
        return answer

    server = LiveServer(stop, lambda: None, port=0)
    try:
        assert re.match(r'http://127\.0\.0\.1:\d+/$', server.address)
        status, page = _request(server.address, 'GET', '/')
        assert status == 200
        assert b'Stop the arm' in page
        assert _request(server.address, 'POST', '/stop')[0] == 403  # as a page of another origin would
        assert pressed == []
        status, answer = _request(server.address, 'POST', '/stop', {'X-Robotid': 'stop'})
        assert (status, answer) == (200, b'{"answer": "the arm is brought to rest"}')
        assert pressed == [1]
        for method, path in (('GET', '/stop'), ('POST', '/'), ('POST', '/start'), ('GET', '/../setup.py')):
            assert _request(server.address, method, path)[0] in (404, 405)
        port = int(server.address.rstrip('/').rpartition(':')[2])
        with pytest.raises(DataError, match='give another --port'):
            LiveServer(_never, lambda: None, port=port)
    finally:
        server.close()


@pytest.fixture(scope='module')
def browser() -> Iterator[Chromium]:
    chromium = Chromium(find_chromium())
    try:
        yield chromium
    finally:
        chromium.close()


def _open(browser: Chromium, watch: NodeProcess) -> None:
    watch.wait_for_line('in a browser')
    browser.go(re.search(r'http://\S+', watch.output)[0], 1000)  # type: ignore[index]
    browser.evaluate('robotid.ready.then(() => 1)')


def _text(browser: Chromium, selector: str) -> str:
    return str(browser.evaluate(f"(document.querySelector('{selector}') || {{textContent: ''}}).textContent"))


@pytest.mark.ros
def test_the_stop_button_stops_a_moving_arm(browser: Chromium, tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    pytest.importorskip('trimesh', reason='the plot extra is not installed')
    from excitation_user import JOINTS, NODE, User, arguments
    from test_report_design import _design

    from robotid_ros.excitation import save_excitation
    from robotid_ros.model import RobotModel

    environment = ros_environment()
    save_excitation(_design(RobotModel.from_urdf(UR10E)), tmp_path / 'motion.yaml')
    arm = [str(Path(__file__).parent / 'excitation_fake_arm.py'), ','.join(JOINTS)]
    node = [*NODE, *arguments(trajectory=tmp_path / 'motion.yaml', urdf_file=UR10E, periods=20, position_scaling=1.0)]
    with (
        NodeProcess(node, environment) as excitation,
        NodeProcess(arm, environment) as arm_process,
        NodeProcess(WATCH, environment) as watch,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            arm_process.wait_for_line('ready')
            _open(browser, watch)
            user.until(lambda: user.call('/excitation/start').success, 'a start', deadline=30.0)
            user.until(lambda: user.report()['velocity'] > 0.05, 'it moves')
            wait_until(lambda: 'period' in _text(browser, '.node[data-name="excitation"]'), 'the page shows the phase')
            wait_until(lambda: bool(browser.evaluate("document.getElementById('progress').value > 0")), 'the progress')
            browser.evaluate("document.getElementById('stop').click()")
            wait_until(lambda: 'brought to rest' in _text(browser, '#answer'), 'the answer')
            user.until_state('stopped')
            assert 'stopped on request' in (user.text or '')
            report = user.report()
            assert report['velocity'] < 1e-9
            assert report['refused'] == []
            wait_until(lambda: 'stopped' in _text(browser, '.node[data-name="excitation"]'), 'the page shows the end')
            assert 'silent' in str(
                browser.evaluate('document.querySelector(\'.node[data-name="recorder"]\').className')
            )
            assert browser.errors() == []
            excitation.signal(signal.SIGINT)
            excitation.wait()
            browser.evaluate("document.getElementById('stop').click()")
            wait_until(lambda: 'no excitation node' in _text(browser, '#answer'), 'it says that nobody is there')
        finally:
            user.close()
        watch.signal(signal.SIGINT)
        assert watch.wait() == 0, watch.output
        assert 'Traceback' not in watch.output


@pytest.mark.ros
def test_torque_and_convergence_of_a_real_identification_are_drawn(browser: Chromium) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String
    from test_identification_node import TWO_LINKS, Client, averaged, motion_with_torque

    environment = ros_environment()
    node = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'tip_link:=tool']
    node += ['-p', 'friction:=coulomb_viscous+offset', '-p', 'monitor_rate:=200.0']
    with NodeProcess(node, environment), NodeProcess(WATCH, environment) as watch:
        client = Client(environment)
        try:
            _open(browser, watch)
            client.description.publish(String(data=TWO_LINKS))
            client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
            for run in (1, 2):
                client.averaged.publish(averaged(run, 10.0 * run))
                client.until(lambda run=run: client.status.get('recordings') == str(run), 'a recording')
                wait_until(
                    lambda run=run: browser.evaluate("document.getElementById('convergence').data[0].x.length") == run,
                    'the convergence is drawn',
                )
            shown = browser.evaluate("document.getElementById('convergence').data.map(t => [...t.y])")
            assert shown[0][-1] == pytest.approx(float(client.status['relative_error']), rel=1e-6)
            assert client.call('identify').success
            (time, q, dq, _), torque = motion_with_torque(4)
            rows = iter(range(len(time)))

            def step() -> bool:
                k = next(rows)
                state = JointState(name=['shoulder', 'elbow'], position=q[k], velocity=dq[k], effort=torque[k].tolist())
                state.header.stamp.sec, fraction = divmod(round(time[k] * 1e9), 1_000_000_000)
                state.header.stamp.nanosec = fraction
                client.states.publish(state)
                live = 'const c = document.querySelector(".live"); return c && c.data ? c.data[0].x.length : 0;'
                return k % 20 == 19 and int(browser.evaluate(f'(() => {{ {live} }})()')) > 40

            client.until(step, 'torque is drawn')
            curves = browser.evaluate("[...document.querySelectorAll('.live')].map(e => e.data.map(t => [...t.y]))")
            for joint in curves:
                measured, predicted = (np.array(values) for values in joint)
                assert np.abs(measured - predicted).mean() < 0.1 * np.abs(measured).max()
                assert np.abs(measured).max() > 0.05
            assert 'explained' in _text(browser, '#torque .panel-title span')
            assert browser.errors() == []
        finally:
            client.close()
        watch.signal(signal.SIGINT)
        assert watch.wait() == 0, watch.output
