// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

#pragma once

#if __has_include(<urdf/model.hpp>)
#include <urdf/model.hpp>
#else  // before Kilted
#include <urdf/model.h>
#endif

#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "inverse_dynamics.hpp"

namespace @NAME@
{

// In the order of all arrays of inverse_dynamics.hpp.
inline const std::array<std::string, JOINTS> joint_names = {@JOINTS@};
// The link in which the joints' axes are given, at zero; empty where the arm was not described by a URDF.
inline const std::string base = @BASE@;
constexpr double directions[JOINTS][3] = {@DIRECTIONS@};
constexpr double points[JOINTS][3] = {@POINTS@};
constexpr bool sliding[JOINTS] = {@SLIDING@};

// Returns nothing, or by what a robot description differs from the arm that was identified. Its joint axes may be
// off by so much [m, and rad], which allows for the calibrated lengths of the same arm.
inline std::string difference(const std::string & robot_description, double tolerance)
{
  if (base.empty()) {
    return "";
  }
  urdf::Model model;
  if (!model.initString(robot_description)) {
    return "robot_description: expected a URDF";
  }
  if (!model.getLink(base)) {
    return "robot_description has no link " + base + ", the base of the identified arm";
  }
  for (std::size_t i = 0; i < JOINTS; ++i) {
    urdf::JointConstSharedPtr joint = model.getJoint(joint_names[i]);
    if (!joint) {
      return "robot_description has no joint " + joint_names[i];
    }
    if ((joint->type == urdf::Joint::PRISMATIC) != sliding[i]) {
      return "joint " + joint_names[i] + " of robot_description is of another kind than that of the identified arm";
    }
    urdf::Vector3 axis = joint->axis, point(0.0, 0.0, 0.0);
    for (std::string link; joint; joint = link == base ? nullptr : model.getLink(link)->parent_joint) {
      const urdf::Pose & place = joint->parent_to_joint_origin_transform;
      axis = place.rotation * axis;
      point = place.rotation * point + place.position;
      link = joint->parent_link_name;
    }
    const double length = std::sqrt(axis.x * axis.x + axis.y * axis.y + axis.z * axis.z);
    const double d[3] = {axis.x / length, axis.y / length, axis.z / length};
    const double gap[3] = {points[i][0] - point.x, points[i][1] - point.y, points[i][2] - point.z};
    double along = 0.0, turn = 0.0, off = 0.0;
    for (int k = 0; k < 3; ++k) {
      along += gap[k] * d[k];
    }
    for (int k = 0; k < 3; ++k) {  // from the identified joint to the axis of this one: joints may slide along it
      turn += std::pow(d[k] - directions[i][k], 2);
      off += sliding[i] ? 0.0 : std::pow(gap[k] - along * d[k], 2);
    }
    turn = std::sqrt(turn);
    off = std::sqrt(off);
    if (!(turn <= tolerance) || !(off <= tolerance)) {
      char by[64];
      std::snprintf(by, sizeof by, "%.4f m and %.4f rad off", off, turn);
      return "the axis of joint " + joint_names[i] + " of robot_description is " + by + ": identify this arm anew, "
             "or start it with the description that it was identified with";
    }
  }
  return "";
}

}  // namespace @NAME@
