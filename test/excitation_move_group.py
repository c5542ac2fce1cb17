# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Serves a planning scene as MoveIt's move_group does: ``get_planning_scene``. Run as a process of its own.

The arguments say what is in it (box, nothing, plane, or elsewhere: a box in a frame that nobody knows) and where, as
``X,Y,Z``.
"""

import sys
from contextlib import suppress

import rclpy
from geometry_msgs.msg import Pose
from moveit_msgs.msg import CollisionObject
from moveit_msgs.srv import GetPlanningScene
from rclpy.executors import ExternalShutdownException
from shape_msgs.msg import Plane, SolidPrimitive


def fill(scene, kind, place):
    thing = CollisionObject(id='thing', operation=CollisionObject.ADD)
    thing.header.frame_id = 'nowhere' if kind == 'elsewhere' else 'base_link'
    thing.pose.position.x, thing.pose.position.y, thing.pose.position.z = place
    thing.pose.orientation.w = 1.0
    if kind == 'plane':
        thing.planes, thing.plane_poses = [Plane(coef=[0.0, 0.0, 1.0, 0.0])], [Pose()]
    else:
        thing.primitives = [SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.2, 0.2, 0.2])]
        thing.primitive_poses = [Pose()]
    if kind != 'nothing':
        scene.name, scene.world.collision_objects = 'tested', [thing]


def main():
    rclpy.init()
    node = rclpy.create_node('move_group')
    kind, place = sys.argv[1], [float(x) for x in sys.argv[2].split(',')]

    def answer(request, response):
        assert request.components.components & request.components.WORLD_OBJECT_GEOMETRY
        fill(response.scene, kind, place)
        return response

    node.create_service(GetPlanningScene, 'get_planning_scene', answer)
    print('ready', flush=True)
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == '__main__':
    main()
