# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The program ``demo_run``: designs and runs an excitation on the simulated arm, then says how to identify.

It is a client of the nodes that ``demo.launch.py`` starts, and ends when the run is recorded.
"""

import signal
import sys
from collections.abc import Sequence
from functools import partial

import rclpy
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from robotid_ros.errors import RobotIdError
from robotid_ros.nodes.loop_client import LoopClient

__all__ = ['main']

NODES = ('excitation', 'recorder', 'identification')
PATIENCE = 600.0  # seconds for each step; a slow machine is no failure


class _InterruptedError(RobotIdError):
    """The program was told to end."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the demonstration's excitation once.

    Returns
    -------
    int
        0 once the run is recorded or after a signal, 1 if a node refused or the run was stopped, 2 for
        arguments that it does not have.
    """
    unknown = remove_ros_args(sys.argv if args is None else list(args))[1:]
    if unknown:
        print(f'demo_run takes no arguments but those of ROS, got: {" ".join(unknown)}', file=sys.stderr)
        return 2
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: told.append(got))

    def watch() -> None:
        if told:
            raise _InterruptedError('interrupted')

    client = LoopClient(watch, None, NODES)
    log = client.node.get_logger()
    try:
        _run(client)
    except _InterruptedError:
        return 0
    except RobotIdError as cause:
        log.error(f'the demonstration ended: {cause}')
        return 1
    finally:
        client.close()
    return 0


def _run(client: LoopClient) -> None:
    log = client.node.get_logger()
    for name in NODES:
        heard = partial(client.status.__contains__, name)
        client.wait(heard, f'a status of the node {name}', PATIENCE)
    client.wait(lambda: bool(client.status_value('excitation', 'robot')), 'the robot description', PATIENCE)
    graph = client.node
    client.wait(
        lambda: graph.count_publishers('joint_states') > 0 and graph.count_subscribers('joint_trajectory') > 0,
        'the simulated arm appearing',
        PATIENCE,
    )
    _require_alone(graph)
    log.info('designing the excitation')
    client.call('excitation/design', PATIENCE)
    _require_alone(graph)  # somebody may have come meanwhile
    log.info(client.call('excitation/start', PATIENCE))

    def state() -> str | None:
        if client.node.count_publishers('excitation/status') == 0:
            raise RobotIdError('the excitation node is gone')
        return client.status_value('excitation', 'state')

    client.wait(lambda: state() in ('finished', 'stopped'), 'the end of the run', float('inf'))
    client.require_healthy('excitation')
    if state() == 'stopped':
        log.info('the run was stopped; service excitation/start begins another one')
        return
    client.wait(lambda: client.status_value('recorder', 'state') in ('finished', 'failed'), 'its recording', PATIENCE)
    client.require_healthy('recorder')
    client.wait(
        lambda: client.status_value('identification', 'periods') == client.status_value('recorder', 'periods_averaged'),
        'the average of all periods',
        PATIENCE,
    )
    service = f'{client.node.get_namespace().rstrip("/")}/identification/identify'
    log.info(f'the run is recorded; identify with: ros2 service call {service} std_srvs/srv/Trigger')


def _require_alone(node: Node) -> None:
    """Raise unless the simulated arm alone can be moved: nobody watches a demonstration as they would a real arm."""
    for topic, ends in (
        ('joint_trajectory', node.get_subscriptions_info_by_topic),
        ('joint_states', node.get_publishers_info_by_topic),
    ):
        found = [f'{end.node_namespace.rstrip("/")}/{end.node_name}' for end in ends(topic)]
        found = sorted(name for name in found if not name.rpartition('/')[2].startswith('_'))  # ros2 topic echo
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
