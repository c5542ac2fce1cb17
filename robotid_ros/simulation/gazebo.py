# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Any arm made ready for Gazebo and ros2_control: its URDF, its controllers, and the rates and gravity of a world.

Element names and meanings: gz_ros2_control's documentation and source, branches jazzy and rolling.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import yaml

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.urdf_edit import quoted
from robotid_ros.reading import refusing
from robotid_ros.simulation.simulated_run import start_position


def gazebo_description(
    description: str, controllers: str, *, namespace: str = '', initial_position: Array | None = None
) -> str:
    """Return a URDF with what Gazebo and ros2_control need added at its end.

    The arm is fixed to the world; every moving joint of the chain takes position or velocity
    commands and shows position, velocity and effort through ``gz_ros2_control/GazeboSimSystem``; the plugin
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
    children = {joint.find('child').get('link') for joint in tree.findall('joint')}  # type: ignore[union-attr]
    root = next(link.get('name', '') for link in tree.findall('link') if link.get('name') not in children)
    fixed = f"""
  <link name="world"/>
  <joint name="world_to_{escape(root)}" type="fixed">
    <parent link="world"/>
    <child link={quoted(root)}/>
  </joint>
"""
    joints = ''.join(
        f"""
    <joint name={quoted(name)}>
      <command_interface name="position"/>
      <command_interface name="velocity"/>
      <state_interface name="position"><param name="initial_value">{float(value)!r}</param></state_interface>
      <state_interface name="velocity"/>
      <state_interface name="effort"/>
    </joint>"""
        for name, value in zip(model.joint_names, start, strict=True)
    )
    control = f"""
  <ros2_control name={quoted(model.name)} type="system">
    <hardware>
      <plugin>gz_ros2_control/GazeboSimSystem</plugin>
    </hardware>{joints}
  </ros2_control>
"""
    place = namespace.strip('/')
    place = f'\n      <ros><namespace>/{escape(place)}</namespace></ros>' if place else ''
    plugin = f"""
  <gazebo>
    <plugin filename="gz_ros2_control-system" name="gz_ros2_control::GazeboSimROS2ControlPlugin">
      <parameters>{escape(controllers)}</parameters>{place}
    </plugin>
  </gazebo>
"""
    body, closing, rest = description.rpartition('</robot>')
    return body + ('' if root == 'world' else fixed) + control + plugin + closing + rest


def gazebo_controllers(template: str, joints: Sequence[str], rate: float) -> str:
    """Return the controllers' parameters of an arm, as YAML.

    Control has to run at every step of the physics: the effort that a slower controller sees carries no
    inertial torque.

    Parameters
    ----------
    template : str
        The parameters of another arm, as ``config/gazebo_controllers.yaml`` has them.
    joints : sequence of str
    rate : float
        Of the physics [Hz].

    Raises
    ------
    ModelError
        If the rate is not a whole number, which the controller manager asks for.
    """
    if abs(rate - round(rate)) > 1e-6 * rate:
        raise ModelError(f'the physics runs at {rate:g} Hz; controllers need a whole number: change max_step_size')
    content = yaml.safe_load(template)
    for node, values in content.items():
        parameters = values['ros__parameters']
        if node.endswith('controller_manager'):
            parameters['update_rate'] = round(rate)
        if 'joints' in parameters:
            parameters['joints'] = list(joints)
        if 'gains' in parameters:
            shown = next(iter(parameters['gains'].values()))
            parameters['gains'] = {joint: dict(shown) for joint in joints}  # no YAML aliases, which rcl refuses
    return yaml.safe_dump(content, sort_keys=False)


def world_physics(path: str | Path) -> tuple[tuple[float, float, float], float]:
    """Return the gravity [m/s^2] and the rate of the physics [Hz] of a world file (SDF).

    Raises
    ------
    ModelError
        If the file cannot be read.

    Notes
    -----
    What the file leaves out has the defaults of the SDF specification: 9.8 m/s^2 and steps of 1 ms.
    """
    with refusing(f"world file '{path}'", ModelError, file=str(path)):
        world = ElementTree.parse(path).getroot().find('world')
        if world is None:
            raise ModelError(f"world file '{path}': expected an <sdf> with a <world>")
        gravity = [float(word) for word in world.findtext('gravity', '0 0 -9.8').split()]
        step = float(world.findtext('physics/max_step_size', '0.001'))
        if len(gravity) != 3 or not step > 0.0:
            raise ModelError(f"world file '{path}': expected three numbers of gravity and a positive step")
    return (gravity[0], gravity[1], gravity[2]), 1.0 / step
