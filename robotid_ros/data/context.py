# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What a recording says about itself: the arm, the meaning of its signals, the motion that was planned."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import robotid_ros
from robotid_ros.data.bag import DESCRIPTION, FIRST, STRING, Bag, opened
from robotid_ros.data.messages import CdrReader, JointStateDecoder
from robotid_ros.data.recording import signal_columns
from robotid_ros.data.reference import PeriodicReference, decode_reference
from robotid_ros.data.storage import stored_context
from robotid_ros.errors import DataError
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.reading import parse_yaml, refusing
from robotid_ros.tables import header_of

SCHEMAS = {'robot_configuration': 'robotid_ros/robot_configuration', 'plan': 'robotid_ros/plan'}
"""Topics, by the end of their names, on which std_msgs/String holds YAML, and the schema it names."""
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known of a recording besides its signals; empty where nothing says it.

    The ``plan`` is the motion that was planned: ``purpose``, and its ``excitation`` as its file holds it.
    """

    description: str = ''  # the arm as URDF
    robot: Mapping[str, Any] = field(default_factory=dict)  # the robot configuration, as its file holds it
    plan: Mapping[str, Any] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)  # where each part was found in a bag
    reference: PeriodicReference | None = None  # the first that was announced in a bag; not kept in files
    joints: tuple[str, ...] = ()  # recorded, by the beginning of the file; not kept in files

    @property
    def purpose(self) -> str:
        """What the motion was for: 'excitation', 'validation', 'friction_sweep', or '' where nothing says it."""
        if self.reference is not None:
            return 'friction_sweep' if self.reference.sweep else self.reference.purpose or 'excitation'
        return str(self.plan.get('purpose', ''))

    @property
    def _excitation(self) -> Mapping[str, Any]:
        excitation = self.plan.get('excitation')
        return excitation if isinstance(excitation, Mapping) else {}

    @property
    def period(self) -> float | None:
        """Period of the planned motion [s]."""
        period = self._excitation.get('period')
        return float(period) if isinstance(period, int | float) and period > 0.0 else None

    @property
    def seeds(self) -> set[int]:
        """Seed of the planned motion's design; empty where nothing says it."""
        seed = self._excitation.get('seed')
        return {seed} if isinstance(seed, int) else set()

    def configuration(self) -> RobotConfig | None:
        """Return the robot configuration, None where nothing says it; a RobotIdError says why it cannot be used."""
        with refusing(self.topics.get('robot_configuration', 'the robot configuration'), DataError):
            return RobotConfig.from_dict(self.robot) if self.robot else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {'description': self.description, 'robot': dict(self.robot), 'plan': dict(self.plan)}


def message_text(schema: str, content: Mapping[str, Any]) -> str:
    """Return YAML of one of :data:`SCHEMAS` as it goes out on its topic."""
    head = {'schema': schema, 'version': VERSION, 'robotid_ros': robotid_ros.__version__}
    return str(yaml.safe_dump({**head, **content}, sort_keys=False, default_flow_style=None, width=110))


def read_context(path: str | Path | Bag, topic: str | None = None, joints: Collection[str] = ()) -> Context:
    """Return what a recording or a dataset says about itself.

    Of several arms in a bag, the one in the namespace of the joint states ``topic`` counts, or of those that
    :meth:`Bag.choose` finds for the ``joints``. Raises a DataError where the file cannot be read, or says something
    that cannot be understood.
    """
    bag = opened(path)
    if isinstance(bag, Path):
        if bag.suffix == '.npz':
            return Context(**stored_context(bag))
        if bag.suffix not in ('.csv', '.txt') or not bag.is_file():
            return Context()
        with refusing(str(bag), DataError, file=str(bag)):
            names, _, _ = header_of(bag, DataError)
        return Context(joints=tuple(joint for signal, joint in signal_columns(names)[1] if signal == 'position'))
    states = bag.choose(topic, joints=joints)
    values: dict[str, Any] = {}
    topics = {'joint_states': states}
    for part in (DESCRIPTION, *SCHEMAS):
        name = bag.beside(states, part, STRING)
        for message in bag.first(name):
            with refusing(f'{bag.path}: {name}', DataError):
                topics[part], values[part] = name, CdrReader(message).string()
            if part in SCHEMAS:
                values[part] = _content(values[part], SCHEMAS[part], f'{bag.path}: {name}')
    decoder = JointStateDecoder()
    decoder.decode(bag.first(states, FIRST))
    announced = bag.first(bag.reference_topic(states))
    return Context(
        description=values.get(DESCRIPTION, ''),
        robot=values.get('robot_configuration', {}),
        plan=values.get('plan', {}),
        topics=topics,
        reference=decode_reference(announced[0]) if announced else None,
        joints=decoder.joints,
    )


def _content(text: str, schema: str, what: str) -> dict[str, Any]:
    """Return what a text of a schema holds; a topic of the same name that somebody else fills is none of it."""
    if schema not in text:
        return {}
    with refusing(what, DataError):
        content = parse_yaml(text)
    if not isinstance(content, dict) or content.get('schema') != schema:
        return {}
    if content.get('version') != VERSION:
        message = f'{what}: expected version {VERSION} of {schema}, got {content.get("version")!r:.20}'
        raise DataError(message, name=schema, expected=VERSION, found=content.get('version'))
    return {key: value for key, value in content.items() if key not in ('schema', 'version', 'robotid_ros')}
