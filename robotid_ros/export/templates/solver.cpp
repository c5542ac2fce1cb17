// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

// The identified arm as a plugin of inverse_dynamics_solver. Torques that depend on the position alone, of springs and
// offsets, are in the gravity vector; friction that grows with load is that of an arm without load, since the interface
// gives friction the velocities only.

#include <stdexcept>
#include <string>
#include <tuple>

#include "description.hpp"
#include "inverse_dynamics.hpp"
#include "inverse_dynamics_solver/inverse_dynamics_solver.h"
#include "pluginlib/class_list_macros.hpp"

namespace @NAME@
{

class Solver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters = nullptr,
    const std::string & space = "", const std::string & robot_description = "") override
  {
    std::string description = robot_description;
    double tolerance = 0.01;
    if (parameters) {
      rclcpp::Parameter found;
      if (description.empty() && parameters->get_parameter("robot_description", found)) {
        description = found.as_string();
      }
      if (parameters->get_parameter(space.empty() ? "description_tolerance" : space + ".description_tolerance", found)) {
        tolerance = found.as_double();
      }
    }
    const std::string wrong = description.empty() ? "" : difference(description, tolerance);
    if (!wrong.empty()) {
      throw std::runtime_error(wrong);
    }
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(JOINTS), weight = rigid(q, none, none);
    Eigen::MatrixXd result(JOINTS, JOINTS);
    for (int i = 0; i < JOINTS; ++i) {
      result.col(i) = rigid(q, none, Eigen::VectorXd::Unit(JOINTS, i)) - weight;
    }
    return 0.5 * (result + result.transpose());
  }

  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd & q, const Eigen::VectorXd & dq) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(JOINTS);
    return rigid(q, dq, none) - rigid(q, none, none);
  }

  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(JOINTS);
    return rigid(q, none, none) + rubbed(q, none);
  }

  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & dq) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(JOINTS);
    return rubbed(none, dq) - rubbed(none, none);
  }

  Eigen::VectorXd getTorques(
    const Eigen::VectorXd & q, const Eigen::VectorXd & dq, const Eigen::VectorXd & ddq) const override
  {
    return rigid(q, dq, ddq) + rubbed(q, Eigen::VectorXd::Zero(JOINTS));
  }

private:
  static const double * checked(const Eigen::VectorXd & values)
  {
    if (values.size() != JOINTS) {
      throw std::invalid_argument(
              "expected " + std::to_string(JOINTS) + " joints, got " + std::to_string(values.size()));
    }
    return values.data();
  }

  static Eigen::VectorXd rigid(const Eigen::VectorXd & q, const Eigen::VectorXd & dq, const Eigen::VectorXd & ddq)
  {
    Eigen::VectorXd result(JOINTS);
    rigid_body(checked(q), checked(dq), checked(ddq), default_coefficients, result.data());
    return result;
  }

  static Eigen::VectorXd rubbed(const Eigen::VectorXd & q, const Eigen::VectorXd & dq)
  {
    const Eigen::VectorXd unloaded = Eigen::VectorXd::Zero(JOINTS);
    Eigen::VectorXd result(JOINTS);
    friction(checked(q), checked(dq), unloaded.data(), default_coefficients, result.data());
    return result;
  }
};

}  // namespace @NAME@

PLUGINLIB_EXPORT_CLASS(@NAME@::Solver, inverse_dynamics_solver::InverseDynamicsSolver)
