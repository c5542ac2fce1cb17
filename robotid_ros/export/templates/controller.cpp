// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

// A ros2_control controller with the identified torque of this arm: gravity compensation with friction compensation,
// for effort interfaces. It stands alone; take it as it is, or take its parts.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "inverse_dynamics.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace @NAME@
{

constexpr std::size_t N = JOINTS;
// In the order of all arrays of inverse_dynamics.hpp.
const std::array<std::string, N> joint_names = {@JOINTS@};
// Largest efforts of the arm's description [N m, or N]; the command never exceeds them.
constexpr std::array<double, N> largest = {@EFFORT@};

class GravityCompensation : public controller_interface::ControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override
  {
    // Part of the identified friction that is compensated: above 1, an arm pushes itself.
    friction_ = auto_declare<double>("friction_share", 0.0);
    return friction_ >= 0.0 && friction_ <= 1.0 ? controller_interface::CallbackReturn::SUCCESS
                                                : controller_interface::CallbackReturn::ERROR;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({hardware_interface::HW_IF_EFFORT});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY});
  }

  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    std::array<double, N> q, dq, torque, lost;
    for (std::size_t i = 0; i < N; ++i) {
      const std::optional<double> position = state_interfaces_[2 * i].get_optional();
      const std::optional<double> velocity = state_interfaces_[2 * i + 1].get_optional();
      if (!position || !velocity || !std::isfinite(*position) || !std::isfinite(*velocity)) {
        return controller_interface::return_type::ERROR;
      }
      q[i] = *position;
      dq[i] = *velocity;
    }
    gravity(q.data(), default_coefficients, torque.data());
    friction(q.data(), dq.data(), torque.data(), default_coefficients, lost.data());
    bool written = true;
    for (std::size_t i = 0; i < N; ++i) {
      const double command = torque[i] + friction_ * lost[i];
      written = command_interfaces_[i].set_value(std::clamp(command, -largest[i], largest[i])) && written;
    }
    return written ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

private:
  controller_interface::InterfaceConfiguration interfaces(const std::vector<std::string> & kinds) const
  {
    std::vector<std::string> names;
    for (const auto & joint : joint_names) {
      for (const auto & kind : kinds) {
        names.push_back(joint + "/" + kind);
      }
    }
    return {controller_interface::interface_configuration_type::INDIVIDUAL, names};
  }

  double friction_ = 0.0;
};

}  // namespace @NAME@

PLUGINLIB_EXPORT_CLASS(@NAME@::GravityCompensation, controller_interface::ControllerInterface)
