# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``~/identify`` and ``~/cancel`` of the pose recorder and the floating recorder: a node whose work ends when told."""

import signal
from pathlib import Path

import pytest
from ros_helpers import CALLS_AND_WAITS, NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

from excitation_user import User  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

NODE = """
import sys, time
from functools import partial
from pathlib import Path
from rclpy.node import Node
from robotid_ros.errors import DataError
from robotid_ros.nodes.messages import LATCHED
from robotid_ros.nodes.status import Status, serve_identify
from robotid_ros.nodes.runtime import BackgroundWorker, run_node, steady_timer

class Recorder(Node):
    def __init__(self):
        super().__init__('excitation')  # whose status the user of these tests follows
        self.status = Status(self, LATCHED)
        self.worker = BackgroundWorker(self)
        serve_identify(self, self.status, partial(self.worker.run, work), DataError)
        steady_timer(self, 0.5, self.status.publish)

    def close(self):
        self.worker.close()

def work(progress):
    while not Path(sys.argv[1]).exists():
        progress(0.25, 'waiting for the file')
        time.sleep(0.01)
    return 'answer: 1', 'done', True

sys.exit(run_node(Recorder, []))
"""


@pytest.fixture
def user(tmp_path: Path):
    environment = ros_environment()
    with NodeProcess(['-c', NODE, str(tmp_path / 'go')], environment) as node:
        user = User(int(environment['ROS_DOMAIN_ID']))
        yield user, environment, tmp_path / 'go'
        user.close()
        node.signal(signal.SIGINT)
        assert node.wait() == 0, node.output
        assert 'Traceback' not in node.output


def test_cancel_ends_what_is_under_way_and_says_so_to_who_asked(user) -> None:
    user, _, go = user
    assert user.call('/excitation/cancel').message == 'nothing is under way'
    client = user.node.create_client(Trigger, '/excitation/identify')
    user.until(client.service_is_ready, 'the service')
    answer = client.call_async(Trigger.Request())
    user.until(lambda: user.value('share') == '0.25' or answer.done(), 'progress')
    assert user.value('step') == 'waiting for the file'
    assert float(user.value('remaining')) > 0.0
    refused = user.call('/excitation/identify')
    assert not refused.success
    assert refused.message == 'the identification is under way; ~/cancel ends it'
    assert 'is being given up; the recordings stay' in user.call('/excitation/cancel').message
    user.until(answer.done, 'an answer')
    assert not answer.result().success
    assert 'given up on request' in answer.result().message
    go.touch()
    user.until(lambda: user.value('share') is None, 'nothing goes on')
    assert user.call('/excitation/identify').message == 'answer: 1'


def test_a_client_that_is_killed_changes_nothing_and_the_result_stands_on_its_topic(user) -> None:
    user, environment, go = user
    with NodeProcess(['-c', CALLS_AND_WAITS, '/excitation/identify'], environment) as caller:
        user.until(lambda: user.value('share') == '0.25', 'progress')
        caller.signal(signal.SIGKILL)
        caller.wait()
    go.touch()
    user.until(lambda: user.text == 'done', 'the end')
    found = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    user.node.create_subscription(String, '/excitation/result', found.append, latched)
    user.until(lambda: found, 'the result, for whoever comes later')
    assert found[0].data == 'answer: 1'
