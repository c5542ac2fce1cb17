# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The URDF of any arm, made ready for Gazebo and ros2_control.

Element names and meanings: gz_ros2_control's documentation and source, branches jazzy and rolling.
"""

from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.simulation.start_position import start_position

__all__ = ['gazebo_description']

# gz_ros2_control turns a position error into a velocity: this part of it per control period. Its
# default of 0.1 lags ten periods behind; at 1 the arm would be where it should one period later,
# but any contact or limit would make it ring.
_POSITION_GAIN = 0.5


def gazebo_description(
    description: str, controllers: str, *, namespace: str = '', initial_position: Array | None = None
) -> str:
    """Return a URDF with what Gazebo and ros2_control need added at its end.

    The arm is fixed to the world; every moving joint of the chain takes position commands and
    shows position, velocity and effort through ``gz_ros2_control/GazeboSimSystem``; the plugin
    ``gz_ros2_control-system`` loads the controllers.

    Parameters
    ----------
    description : str
        Text of the URDF, kept as it is.
    controllers : str
        File with the controllers' parameters.
    namespace : str
        Of the controller manager and the controllers; empty for none.
    initial_position : ndarray, shape (n,), optional
        Where the arm starts [rad or m]; zero, or the nearest clear of the limits, by default.

    Returns
    -------
    str

    Raises
    ------
    ModelError
        If the URDF is not a serial arm, or has a ``<ros2_control>`` already.
    """
    model = RobotModel.from_urdf(description)
    tree = ElementTree.fromstring(description.encode('utf-8'))
    if tree.find('ros2_control') is not None:
        raise ModelError(
            'the URDF has a <ros2_control> element already: launch it with its own package, or give a URDF without'
        )
    start = start_position(model)
    if initial_position is not None:
        start = frozen_array(initial_position, 'initial_position', (model.n,), ModelError)
    body, closing, rest = description.rpartition('</robot>')
    return body + _world(tree) + _control(model, start) + _plugin(controllers, namespace) + closing + rest


def _world(tree: ElementTree.Element) -> str:
    """Return the joint that fixes the root to the world, unless the root is the world."""
    children = {joint.find('child').get('link') for joint in tree.findall('joint')}  # type: ignore[union-attr]
    root = next(link.get('name', '') for link in tree.findall('link') if link.get('name') not in children)
    if root == 'world':
        return ''
    return f"""
  <link name="world"/>
  <joint name="world_to_{escape(root)}" type="fixed">
    <parent link="world"/>
    <child link={quoteattr(root)}/>
  </joint>
"""


def _control(model: RobotModel, start: Array) -> str:
    joints = ''.join(
        f"""
    <joint name={quoteattr(name)}>
      <command_interface name="position"/>
      <state_interface name="position"><param name="initial_value">{float(value)!r}</param></state_interface>
      <state_interface name="velocity"/>
      <state_interface name="effort"/>
    </joint>"""
        for name, value in zip(model.joint_names, start, strict=True)
    )
    return f"""
  <ros2_control name={quoteattr(model.name)} type="system">
    <hardware>
      <plugin>gz_ros2_control/GazeboSimSystem</plugin>
    </hardware>{joints}
  </ros2_control>
"""


def _plugin(controllers: str, namespace: str) -> str:
    place = f'\n      <ros><namespace>/{escape(namespace.strip("/"))}</namespace></ros>' if namespace.strip('/') else ''
    return f"""
  <gazebo>
    <plugin filename="gz_ros2_control-system" name="gz_ros2_control::GazeboSimROS2ControlPlugin">
      <parameters>{escape(controllers)}</parameters>
      <position_proportional_gain>{_POSITION_GAIN}</position_proportional_gain>{place}
    </plugin>
  </gazebo>
"""
