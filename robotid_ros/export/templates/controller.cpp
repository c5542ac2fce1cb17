// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

// A chainable ros2_control controller with the identified torque of this arm, for effort interfaces; torque_law.hpp has
// the torque itself.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "description.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "torque_law.hpp"

namespace @NAME@
{

using Done = controller_interface::CallbackReturn;
using Return = controller_interface::return_type;

// Takes a parameter into the settings; returns what is wrong with it, or nothing.
inline std::string take(const rclcpp::Parameter & given, Settings & settings)
{
  const std::string & name = given.get_name();
  try {
    if (name == "mode") {
      const std::string mode = given.as_string();
      if (mode != "gravity" && mode != "pd" && mode != "impedance") {
        return "mode: expected gravity, pd or impedance, got " + mode;
      }
      settings.mode = mode == "pd" ? Mode::pd : mode == "gravity" ? Mode::gravity : Mode::impedance;
    } else if (name == "stiffness" || name == "damping") {
      const std::vector<double> values = given.as_double_array();
      const auto poor = [](double value) {return !std::isfinite(value) || value < 0.0;};
      if (values.size() != N || std::any_of(values.begin(), values.end(), poor)) {
        return name + ": expected " + std::to_string(N) + " numbers, none below zero";
      }
      std::copy(values.begin(), values.end(), (name == "damping" ? settings.damping : settings.stiffness).begin());
    } else if (name == "friction_share" || name == "effort_share") {
      const double value = given.as_double();
      const bool friction_only = name == "friction_share";
      if (!(value <= 1.0) || !(friction_only ? value >= 0.0 : value > 0.0)) {
        return name + ": expected a share up to 1";
      }
      (friction_only ? settings.friction_share : settings.effort_share) = value;
    } else if (name == "friction_speed" || name == "rise_time" || name == "longest_period") {
      const double value = given.as_double();
      if (!(value > 0.0)) {
        return name + ": expected a number above zero";
      }
      (name == "rise_time" ? settings.rise_time :
      name == "friction_speed" ? settings.friction_speed : settings.longest_period) = value;
    }
  } catch (const rclcpp::ParameterTypeException & cause) {
    return name + ": " + cause.what();
  }
  return "";
}

class TorqueController : public controller_interface::ChainableControllerInterface
{
public:
  Done on_init() override
  {
    const Settings usual;
    auto_declare<std::string>("mode", "gravity");
    auto_declare<double>("friction_share", usual.friction_share);
    auto_declare<double>("friction_speed", usual.friction_speed);
    auto_declare<double>("effort_share", usual.effort_share);
    auto_declare<double>("rise_time", usual.rise_time);
    auto_declare<double>("longest_period", usual.longest_period);
    auto_declare<double>("description_tolerance", 0.01);
    auto_declare<std::vector<double>>("stiffness", std::vector<double>(N, 0.0));
    auto_declare<std::vector<double>>("damping", std::vector<double>(N, 0.0));
    const std::string wrong = reload(get_node()->get_parameters(
          {"mode", "friction_share", "friction_speed", "effort_share", "rise_time", "longest_period", "stiffness",
            "damping"}));
    if (!wrong.empty()) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", wrong.c_str());
      return Done::ERROR;
    }
    reloading_ = get_node()->add_on_set_parameters_callback(
      [this](const std::vector<rclcpp::Parameter> & given) {
        rcl_interfaces::msg::SetParametersResult result;
        result.reason = reload(given);
        result.successful = result.reason.empty();
        return result;
      });
    return Done::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({hardware_interface::HW_IF_EFFORT});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY});
  }

  Done on_configure(const rclcpp_lifecycle::State &) override
  {
    const std::string wrong =
      difference(get_robot_description(), get_node()->get_parameter("description_tolerance").as_double());
    if (!wrong.empty()) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", wrong.c_str());
      return Done::FAILURE;
    }
    return Done::SUCCESS;
  }

  Done on_activate(const rclcpp_lifecycle::State &) override
  {
    law_.begin();
    bool written = true;
    for (const auto & reference : ordered_exported_reference_interfaces_) {
      written = reference->set_value(nothing) && written;
    }
    return written ? Done::SUCCESS : Done::ERROR;
  }

  Done on_deactivate(const rclcpp_lifecycle::State &) override
  {
    bool written = true;
    for (auto & command : command_interfaces_) {
      written = command.set_value(0.0) && written;
    }
    return written ? Done::SUCCESS : Done::ERROR;
  }

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
  {
    std::vector<hardware_interface::CommandInterface::SharedPtr> references;
    for (const auto & joint : joint_names) {
      for (const char * kind : {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
          hardware_interface::HW_IF_ACCELERATION})
      {
        hardware_interface::InterfaceInfo info;
        info.name = kind;
        info.data_type = "double";
        references.push_back(std::make_shared<hardware_interface::CommandInterface>(
            hardware_interface::InterfaceDescription(std::string(get_node()->get_name()) + "/" + joint, info)));
      }
    }
    return references;
  }

  // Not chained: the arm is held where it was.
  Return update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    return Return::OK;
  }

  // Nothing here allocates memory or waits.
  Return update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    if (std::unique_lock<std::mutex> lock(guard_, std::try_to_lock); lock.owns_lock()) {
      law_.settings = wanted_;
    }
    const bool led = is_in_chained_mode();
    Values q, dq;
    std::array<Reference, N> reference;
    for (std::size_t i = 0; i < N; ++i) {
      q[i] = state_interfaces_[2 * i].get_optional().value_or(nothing);
      dq[i] = state_interfaces_[2 * i + 1].get_optional().value_or(nothing);
      if (led) {
        reference[i] = {asked(i, 0), asked(i, 1), asked(i, 2)};
      }
    }
    if (const char * wrong = law_.update(period.seconds(), q, dq, reference); wrong != nullptr) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", wrong);
      return Return::ERROR;
    }
    bool written = true;
    for (std::size_t i = 0; i < N; ++i) {
      written = command_interfaces_[i].set_value(law_.command[i]) && written;
    }
    return written ? Return::OK : Return::ERROR;
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

  std::string reload(const std::vector<rclcpp::Parameter> & given)
  {
    const std::lock_guard<std::mutex> lock(guard_);
    Settings next = wanted_;
    for (const auto & parameter : given) {
      const std::string wrong = take(parameter, next);
      if (!wrong.empty()) {
        return wrong;
      }
    }
    wanted_ = next;
    return "";
  }

  double asked(std::size_t joint, std::size_t kind) const
  {
    return ordered_exported_reference_interfaces_[3 * joint + kind]->get_optional().value_or(nothing);
  }

  std::mutex guard_;  // of wanted_; update takes it only where it is free
  Settings wanted_;
  TorqueLaw law_;
  rclcpp_lifecycle::LifecycleNode::OnSetParametersCallbackHandle::SharedPtr reloading_;
};

}  // namespace @NAME@

PLUGINLIB_EXPORT_CLASS(@NAME@::TorqueController, controller_interface::ChainableControllerInterface)
