# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Topics of an arm found in the ROS graph: who publishes its joint states, who takes trajectories.

Drivers rename their controllers between releases, and republish joint states at lower rates. The configured topics are
taken where they work; otherwise those found in the graph are taken, with a remark.
"""

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from sensor_msgs.msg import JointState

from robotid_ros.errors import DataError
from robotid_ros.nodes.loop_client import ALWAYS, LoopClient
from robotid_ros.nodes.messages import joint_state_values, newest

_LISTEN = 1.0
"""How long joint states are counted once the first has come [s]: five of them at the slowest driver's 5 Hz."""
_FASTER = 2.0
"""A topic is taken instead of the configured one if it is this many times as fast."""


def find_topics(
    joints: Sequence[str], joint_states: str, trajectory: str, patience: float = 5.0
) -> tuple[str, str, list[str]]:
    """Return the topics of an arm that work: those given, or what the graph has in their place.

    The names are fully qualified; an arm has ``patience`` seconds to appear. Beside the topics on which it is heard and
    commanded are remarks: what differs from the topics given, or is missing.
    """
    client = LoopClient(lambda: None, None, (), 'robotid_discovery')
    try:
        heard = _listen(client, joints, patience)
        takers = [
            name
            for name, kinds in client.node.get_topic_names_and_types()
            if 'trajectory_msgs/msg/JointTrajectory' in kinds
            and name.endswith('/joint_trajectory')
            and client.node.count_subscribers(name)
        ]
    finally:
        client.close()
    states, remark = _choose_states(joint_states, heard)
    taker, other = _choose_trajectory(trajectory, takers)
    return states, taker, list(filter(None, (remark, other)))


def _listen(client: LoopClient, joints: Sequence[str], patience: float) -> dict[str, tuple[float, bool]]:
    """Return the rate [Hz] of every topic with the joint states of an arm, and whether it has efforts."""
    seen: dict[str, list[float]] = {}
    efforts: dict[str, bool] = {}
    followed: set[str] = set()

    def keep(topic: str, message: JointState) -> None:
        try:
            _, _, effort = joint_state_values(message, joints)
        except DataError:
            return
        seen.setdefault(topic, []).append(time.monotonic())
        efforts[topic] = effort is not None and bool(np.isfinite(effort).all() and effort.any())

    begun = time.monotonic()

    def enough() -> bool:
        for name, kinds in client.node.get_topic_names_and_types():
            if 'sensor_msgs/msg/JointState' in kinds and name not in followed:
                followed.add(name)
                client.node.create_subscription(JointState, name, partial(keep, name), newest(100))
        first = min((times[0] for times in seen.values()), default=None)
        return time.monotonic() >= (begun + patience if first is None else first + _LISTEN)

    client.wait(enough, 'joint states', ALWAYS)
    return {
        topic: (
            (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0.0,
            efforts[topic],
        )
        for topic, times in seen.items()
    }


def _choose_states(given: str, heard: dict[str, tuple[float, bool]]) -> tuple[str, str]:
    def words(name: str) -> str:
        rate, effort = heard[name]
        return f'{name} ({rate:.0f} Hz, {"with" if effort else "without"} effort)'

    if not heard:
        return given, f'no joint states of this arm are published; expected them on {given}: start the driver'
    others = [name for name in heard if name != given]
    if given not in heard:
        others = [name for name in others if heard[name][1]] or others
    else:
        rate, effort = heard[given]
        others = [name for name in others if heard[name][1] > effort or heard[name][0] > _FASTER * rate]
        others = [name for name in others if heard[name][1] >= effort]
        if not others:
            return given, '' if effort else f'the joint states on {given} have no effort: nothing can be identified'
    if len(others) == 1:  # of several, one may be another arm's
        instead = words(given) if given in heard else f'{given}, where there are none'
        return others[0], f'joint states are taken from {words(others[0])} instead of {instead}'
    listed = ', '.join(map(words, sorted(others)))
    return given, f'joint states are taken from {given}; there are also {listed}: choose with joint_states_topic:='


def _choose_trajectory(given: str, takers: Sequence[str]) -> tuple[str, str]:
    if given in takers:
        return given, ''
    # Only a controller beside the configured one: another namespace may be another arm's.
    beside = [name for name in takers if name.split('/')[:-2] == given.split('/')[:-2]]
    if len(beside) == 1:
        return beside[0], f'trajectories go to {beside[0]}: no controller listens to {given}'
    if takers:
        return (
            given,
            f'no controller listens to {given}; these do: {", ".join(sorted(takers))}: choose with controller:=',
        )
    return given, f'no controller listens to {given} yet: start it before excitation/start'
